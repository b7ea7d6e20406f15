#include "jit/optimizing/generate/inline_cost.h"

#include <algorithm>

#include "jit/optimizing/pass_limits.h"

namespace hindsight::jit::optimizing {
namespace {

// Wasm bytes of a body. An operator with its operands takes about four bytes. So 48 bytes are about what a
// call's own moves, spills and branch cost, and 240 what LLVM's inliner accepts at -O2.
constexpr uint32_t kAlways = 48;
constexpr uint32_t kInLoop = 240;
constexpr uint32_t kOutsideLoops = 96;
constexpr uint32_t kMaxDepth = 4;
constexpr uint32_t kMaxLocals = 64;
// All inlined bodies of one function together.
constexpr uint32_t kLeastGrowth = 1500;
constexpr uint32_t kLeastGrowthOfNest = 400;
constexpr uint32_t kMostGrowth = 12000;

}  // namespace

uint32_t inlined_growth(const OptimizeRequest& request) {
  return std::clamp(2 * bytes_to_compile(request), request.nest ? kLeastGrowthOfNest : kLeastGrowth,
                    kMostGrowth);
}

bool worth_inlining(const wasm::FunctionBody& callee, const InlineSituation& situation) {
  if (situation.recursive || situation.depth >= kMaxDepth) return false;
  if (callee.locals.size() > kMaxLocals) return false;
  const uint32_t size = callee.end.value - callee.begin.value;
  if (situation.inlined_bytes + size > situation.growth) return false;
  if (size <= kAlways) return true;
  // A callee with a loop spends its time there; calling it costs nothing in comparison.
  if (!callee.loops.empty()) return false;
  return size <= (situation.in_loop ? kInLoop : kOutsideLoops);
}

}  // namespace hindsight::jit::optimizing
