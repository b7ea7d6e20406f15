// Leaving a running loop: the mirror image of entering one (OsrEntry in jit/code/code_version.h).
//
// A loop that runs for minutes inside one call would keep the code it was entered with, whatever is compiled
// meanwhile. So optimized code looks, in loops that can afford it, at a slot of the version. The slot is
// null, or an entry for that loop of another version. If it is not null, the code stores what that entry
// begins with, the locals and operands at the loop's header. Then it goes there, never to come back:
//
//     header:  if (slot != null) { thread->arguments = locals and operands; return slot(vmctx, arguments) }
//
// The frame lies where arguments without a register do (vm_context.h): to be read before anything else runs.
// An entry for running loops has the same type, so that it is left by a jump. However often code replaces
// code, the stack does not grow.
//
// Problem: LLVM must know from the start which values such an exit needs, or they are gone. But a branch out
// of every loop would end most of what LLVM does for loops.
//
// Idea: generation marks the header with a call that does nothing but read memory and take these values
// (emit_exit_marker). The simplifying half of the pipeline carries it along. After that half LoopExitPass
// turns it into what the loop can afford, one of these.
//   - A poll in every iteration. It is for a loop whose iterations are long (it contains loops), or that is
//     the outermost one of code that was entered for it. Where its iterations are short that is seen in its
//     time: it is so only where it is to be left in short iterations too (OptimizeRequest::short_loop_exits).
//   - A poll between strips (strips.h) of a counted innermost loop, which stays free to become vectors. It is
//     only in code for running loops, where entering the strips costs once. Strips are short where iterations call something.
//   - Nothing: the loop is not left. A nest goes nowhere, but returns to its caller (jit/abi/nest_exits.h).
//
// Invariants: a marker reads memory, so no store is moved out of its loop past the place where the loop may
// be left. Only loops of the compiled function itself have markers: of a body in place of its call, baseline
// code would want a frame.
//
// Where a nest polls in long iterations, or between strips, it also counts its iterations (NestWork): a measure of work for
// trials of whole versions.
//
// Searches are interleaved in loops of a certain shape, and markers are none of it. ParkExitsPass takes those
// out that could be in the way. UnparkExitsPass puts them back, unless searches were interleaved.
#pragma once

#include <llvm/IR/PassManager.h>
#include <llvm/IR/ValueHandle.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// A value at a loop's header and its place in the frame (OsrEntry): the slot's number.
struct ExitValue {
  // The value goes nowhere, but is computed before the loop is left.
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  uint32_t slot;
  llvm::Value* value;
};

// Whether the frame of an exit has room for this function's values, and nothing else is in the way.
bool can_leave_loops(const wasm::Module& module, FuncIndex function);
// Whether this is what emit_exit_marker() left: it takes values for the case that the loop is left, and needs none.
bool is_exit_marker(const llvm::Instruction& instruction);
// The marker with one more value, which has no slot, in its place.
void add_exit_need(llvm::CallInst& marker, llvm::Value& value);
// At the builder's place, a header after its phis.
void emit_exit_marker(IrModule& ir, llvm::IRBuilder<>& b, LoopIndex loop,
                      const std::vector<ExitValue>& values);

// Markers taken out of a function, for the time of one pass.
class ParkedExits {
 public:
  struct Marker {
    llvm::WeakTrackingVH next;  // the instruction after it
    LoopIndex loop;
    std::vector<std::pair<uint32_t, llvm::WeakTrackingVH>> values;
    llvm::DebugLoc location;
  };
  std::vector<Marker> markers;
};

class ParkExitsPass : public llvm::PassInfoMixin<ParkExitsPass> {
 public:
  explicit ParkExitsPass(std::shared_ptr<ParkedExits> parked) : parked_(std::move(parked)) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  std::shared_ptr<ParkedExits> parked_;
};

class UnparkExitsPass : public llvm::PassInfoMixin<UnparkExitsPass> {
 public:
  // `is_for_nothing`: asked when the pass runs, whether the loops are such by now that no exit may come back.
  UnparkExitsPass(IrModule& ir, std::shared_ptr<ParkedExits> parked, std::function<bool()> is_for_nothing)
      : ir_(&ir), parked_(std::move(parked)), is_for_nothing_(std::move(is_for_nothing)) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  IrModule* ir_;
  std::shared_ptr<ParkedExits> parked_;
  std::function<bool()> is_for_nothing_;
};

class LoopExitPass : public llvm::PassInfoMixin<LoopExitPass> {
 public:
  explicit LoopExitPass(IrModule& ir) : ir_(&ir) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  IrModule* ir_;
};

}  // namespace hindsight::jit::optimizing
