// The prefetch pass: for loads that a profile says stall, compute the address some iterations ahead and
// prefetch it. After S. Ainsworth and T. Jones, "Software Prefetching for Indirect Memory Accesses", CGO
// 2017, with hints in place of static guesses, run-time distances, and clamps in place of proofs.
//
// A counted innermost loop that got a slice is versioned in strips (strips.h), so that it costs nothing an
// iteration to have the choice, and the copy without prefetch is the loop as LLVM would have made it:
//
//   for each strip of `count` iterations:
//     if (cell->enabled) {
//       distance = cell->distance
//       loop `count` times:
//         i' = i + step * distance
//         t  = load b[clamp(i')]                   // intermediate loads, clamped to the memory's length
//         prefetch a[clamp(t)]
//         ...
//     } else {
//       loop `count` times: ...
//     }
//     if ((cell->countdown -= count) < 0) strip_ended(vmctx, cell)
//
// A strip is as long as the countdown says, but never shorter than kShortestStrip iterations unless the loop
// ends: the countdown falls below -1 by the iterations that the strip had too many.
//
// Outer loops, and loops whose trip count is not known at entry, look at the cell every iteration:
//
//   loop:
//     if (cell->enabled) { ... slices ... }        // one guard for all slices of the loop
//     if (--cell->countdown < 0) strip_ended(vmctx, cell)
//
// Where strip_ended is called, the code has computed before where up to kMostTimedLoads of the hinted loads
// will look a few hundred iterations later, for the runtime to time a load there: the address computation
// once more, with clamps, in the cold block alone.
//
// See prefetch_slice.h for how the slice is found. Loops without slices are left as they were.
#pragma once

#include <llvm/IR/PassManager.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "jit/code/code_version.h"
#include "jit/optimizing/generate/ir_module.h"

namespace hindsight::jit::optimizing {

// More searches at once than this no processor has lines under way for.
inline constexpr uint32_t kMaxInterleaveWidth = 64;

// The hints of one request that are put on trial going in, sites and cells coming out.
class PrefetchPlan {
 public:
  explicit PrefetchPlan(IrModule& ir);
  // No load is hinted at of which LLVM is to know.
  bool empty() const { return hints.empty() && interleaves.empty(); }
  // The sites of prefetch and interleave hints of whose load nothing came, nor of its loop: these loads were kept apart
  // for nothing.
  std::vector<size_t> refused() const;
  // The cell of a wasm loop for sites of one kind, or for all that are in one of its two versions (form_pass.h),
  // shared by its copies (OSR entries): its index in `cells`. Made at first use, for `site`.
  uint32_t cell_of(WasmOffset loop, size_t site);
  // The place of the site's address in its cell's upcoming[]; made at first use, empty if all are taken.
  std::optional<uint32_t> timed_slot(size_t site);

  IrModule& ir;
  std::vector<PrefetchHint> hints;          // by falling stall share; one a load
  std::vector<InterleaveHint> interleaves;  // alike
  std::vector<BranchHint> conversions;      // of branches, to another form
  std::vector<ValueHint> values;            // one an operator
  std::vector<JumpHint> jumps;              // as `hints`
  // One a hint: of `hints`, then `interleaves`, `conversions`, `values` and `jumps`; and more.
  std::vector<PrefetchSite> sites;
  std::vector<std::shared_ptr<LoopCell>> cells;  // the code names them by cell_symbol (link_code.h)
  std::set<uint32_t> short_loops;                // wasm offsets of loops not worth a prefetch, see the pass

 private:
  void add_site(ChangeKind kind, WasmOffset load, const char* if_not_found);
  std::map<std::pair<ChangeKind, uint32_t>, uint32_t> cell_of_loop_;  // wasm offset of the loop -> its cell
};

class PrefetchPass : public llvm::PassInfoMixin<PrefetchPass> {
 public:
  explicit PrefetchPass(PrefetchPlan& plan) : plan_(&plan) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  PrefetchPlan* plan_;
};

}  // namespace hindsight::jit::optimizing
