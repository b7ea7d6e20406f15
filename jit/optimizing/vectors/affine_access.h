// The loads and stores of a loop that go through memory in even steps, in groups whose members stay at
// constant distances from each other.
//
// WebAssembly computes indices in 32 bits, where `i + 8` may wrap, and widens the sum. LLVM then cannot tell
// that two neighbours are neighbours, nor that an address advances by a constant. Here an access is
// understood under the assumption that nothing wraps while the loop runs. A group says what has to be asked
// at the loop's entry to know (see widen_pass.h).
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace hindsight::jit::optimizing {

// The address in iteration k is base + outer + start + step * k, where `start` is the leader's: the member
// with the least one.
struct AccessGroup {
  const llvm::SCEV* base = nullptr;   // of pointer type
  const llvm::SCEV* outer = nullptr;  // i64
  const llvm::SCEV* start = nullptr;  // i32 if the index wraps at 2^32, else i64
  int64_t step = 0;                   // bytes
  // For groups with an i32 start: the greatest distance of a member's start from the leader's, without
  // constant offsets that are added after widening. No index wraps if start + span + step * k does not.
  int64_t span = 0;
  // In bytes from the leader's address, over all members: [low, high).
  int64_t low = 0;
  int64_t high = 0;

  bool may_wrap() const { return start->getType()->isIntegerTy(32); }
};

struct AffineAccess {
  llvm::Instruction* instruction = nullptr;  // a load or a store
  size_t group = 0;
  int64_t offset = 0;  // bytes from the leader
  int64_t bytes = 0;
  bool is_store = false;
};

struct AffineAccesses {
  std::vector<AffineAccess> all;  // in program order
  std::vector<AccessGroup> groups;

  const AffineAccess* of(const llvm::Instruction* instruction) const;
};

// Where one access is: at base + outer + constant + start + step * k.
struct AffinePlace {
  const llvm::SCEV* base = nullptr;   // invariant
  const llvm::SCEV* outer = nullptr;  // i64, without its constant
  int64_t constant = 0;
  const llvm::SCEV* start = nullptr;  // as a group's
  int64_t step = 0;                   // bytes; 0: it does not move
};
std::optional<AffinePlace> affine_place(llvm::Value* pointer, const llvm::Loop& loop,
                                        llvm::ScalarEvolution& evolution);

// Precondition: the loop has one block. Nothing if it touches memory in any other way.
std::optional<AffineAccesses> find_affine_accesses(const llvm::Loop& loop, llvm::ScalarEvolution& evolution);

}  // namespace hindsight::jit::optimizing
