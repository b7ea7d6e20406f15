// PassLimits: what keeps the time of a compile in proportion to the function.
//
// Problem: some of LLVM's passes are quadratic, or worse, in the length of a block, in the number of blocks
// or in that of loops. They are worth their time in functions that people write. In one of 3000 ifs, as
// generators of code and attackers write them, they take minutes.
//
// Idea: a pass that grows faster than the function is left out of large functions. These are functions above
// the size at which it takes about a tenth of a second (kLimits, measured with
// tests/jit/growth/growth_table). Functions above sizes at which nothing helps are refused. Sizes decide, not
// a clock, so that the same function always gives the same code.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>

#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

struct IrSize {
  size_t instructions = 0, blocks = 0, longest_block = 0;
  size_t loops = 0;  // of the wasm code, inlined bodies included
};

// Beyond these a function stays in baseline code. With them the slowest function that is accepted takes some
// seconds (the growth test's bound).
inline constexpr uint32_t kMostBodyBytes = 500'000;
inline constexpr size_t kMostInstructions = 120'000;  // IR of all entries together, locals made values
inline constexpr size_t kMostBlocks = 12'000;
// What passes may make of that, in one function. It bounds their memory, of which an instruction takes up to
// some 2 KiB in all that is known of it at a time.
inline constexpr size_t kMostGrownInstructions = 240'000;
inline constexpr size_t kMostMachineInstructions = 480'000;
inline constexpr size_t kMostMovedValues = 200'000;  // along branches, and to and from callees
// In one block: without branches, passes that walk from value to value have nowhere to stop.
inline constexpr size_t kMostInOneBlock = 30'000;
inline constexpr size_t kMostLoops = 600;
inline constexpr size_t kMostLoopDepth = 64;  // LLVM's walks over nested loops are recursive
// A value for each local at each block is what making locals values can cost.
inline constexpr size_t kMostLocalsTimesBlocks = 3'000'000;
// Entries for on-stack replacement are copies: above these sizes of the body only the innermost loop's is
// made.
inline constexpr uint32_t kMostBodyBytesForOsr = 40'000;
inline constexpr size_t kMostLoopsForOsr = 48;

// The wasm bytes that become code, without what is inlined: the function's, or those of the nest's loop.
uint32_t bytes_to_compile(const OptimizeRequest& request);

// Asked before anything is generated. Errors: kResource, which name the limit.
Status check_body(const OptimizeRequest& request);
// Generated, its locals not yet values. `moves_too_much`: more than kMostMovedValues.
Status check_generated(const llvm::Function& function, size_t locals, bool moves_too_much);

class PassLimits {
 public:
  // `selects_stay`: OptimizeRequest's.
  explicit PassLimits(bool selects_stay) : selects_stay_(selects_stay) {}
  PassLimits(const PassLimits&) = delete;
  PassLimits& operator=(const PassLimits&) = delete;

  // Precondition: the function was generated, and its locals were made values.
  void note(const llvm::Function& function, size_t loops);
  // All of them together. Errors: kResource.
  Status check() const;

  // Whether the passes made it so large that the next ones would take too much memory. Errors: kResource.
  Status check_grown() const;
  // The same of code generation, which asks with what it has by now.
  Status check_machine(size_t instructions) const;

  // Leaves passes out of the pass manager built with `callbacks`, which this must outlive; all of them, where it has grown so.
  void listen(llvm::PassInstrumentationCallbacks& callbacks);
  // Whether there may be something to leave out: small functions are not looked at again.
  bool watches() const { return watches_; }
  // Once, before code generation.
  void measure_for_codegen(const llvm::Module& module);
  // Whether code generation has this pass, by the name that LLVM shows for it.
  bool allows_codegen(llvm::StringRef pass);

  // In words, for logs: what was left out and of how large a function. Empty: nothing.
  std::string left_out() const;

 private:
  bool allows(llvm::StringRef pass, const IrSize& size);
  IrSize size_of(const llvm::Function& function) const;

  const bool selects_stay_;
  std::map<const llvm::Function*, size_t> loops_;
  IrSize all_;
  IrSize largest_;  // of one function, by each measure
  bool watches_ = false;
  size_t grown_to_ = 0;  // instructions of one function, where that is too many
  std::set<std::string> left_out_;
};

}  // namespace hindsight::jit::optimizing
