#include "jit/optimizing/generate/inline_cost.h"

#include <algorithm>

#include "jit/optimizing/pass_limits.h"
#include "jit/wasm/loop_nests.h"

namespace hindsight::jit::optimizing {
namespace {

// Wasm bytes of a body; those of jit/wasm/loop_nests.h go with them.
constexpr uint32_t kOutsideLoops = 96;
constexpr uint32_t kMaxDepth = 4;
// All inlined bodies of one function together.
constexpr uint32_t kLeastGrowth = 1500;
constexpr uint32_t kMostGrowth = 12000;

}  // namespace

uint32_t inlined_growth(const OptimizeRequest& request) {
  const uint32_t own = bytes_to_compile(request);
  return request.nest ? wasm::most_inlined_into_nest(own) : std::clamp(2 * own, kLeastGrowth, kMostGrowth);
}

bool has_asked_load(const OptimizeRequest& request, FuncIndex callee, const wasm::FunctionBody& body) {
  return std::ranges::find(request.inlined, callee) != request.inlined.end() ||
         std::any_of(request.changes.begin(), request.changes.end(), [&](const Request& change) {
           return is_of_load(change.site.kind) && body.begin <= change.site.at && change.site.at < body.end;
         });
}

bool worth_inlining(const wasm::FunctionBody& callee, const InlineSituation& situation) {
  if (situation.recursive || situation.depth >= kMaxDepth) return false;
  if (callee.locals.size() > wasm::kMostInlinedLocals) return false;
  const uint32_t size = callee.end.value - callee.begin.value;
  if (situation.has_asked_load && wasm::may_be_inlined_for_loads(callee) &&
      situation.inlined_bytes + size <= situation.growth + wasm::kMostInlinedForLoads)
    return true;
  if (situation.inlined_bytes + size > situation.growth) return false;
  if (size <= wasm::kAlwaysInlined) return true;
  if (situation.in_loop) return wasm::is_inlined_in_loops(callee);
  return callee.loops.empty() && size <= kOutsideLoops;
}

}  // namespace hindsight::jit::optimizing
