// Which values an address is so many bytes behind: the pointers, as programs have them, of which it is a field or an element.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// A load or store of the program's, which may stall.
bool is_of_guest(const IrModule& ir, const llvm::Instruction& access);

// A value that an address is so many bytes behind, or more.
struct Origin {
  const llvm::Value* value = nullptr;
  int64_t offset = 0;
  bool is_element = false;  // or more, by what is not constant
  bool is_carried = false;  // by a phi that the caller says it of
};

// From a phi to what comes in: whether what does not come with it adds to the address, and whether that is carried.
using FollowIncoming =
    llvm::function_ref<void(const llvm::Value& incoming, bool is_element, bool is_carried)>;

// What a number that is added may be: any, or one of a few, as child[key < node->key] has it.
enum class Summands : uint8_t { kAny, kFew };

// Goes back from an address through sums, choices, and phis as `follow` says. Ends where `is_origin` says so. A value is gone
// through once, so of one that is added to itself the first place is known. With kFew there is an origin for each of the numbers.
std::vector<Origin> origins_of(
    const llvm::Value& address, llvm::function_ref<bool(const llvm::Value&)> is_origin,
    llvm::function_ref<void(const llvm::PHINode& phi, FollowIncoming incoming)> follow,
    Summands summands = Summands::kAny);

}  // namespace hindsight::jit::optimizing
