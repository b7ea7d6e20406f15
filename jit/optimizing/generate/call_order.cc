#include "jit/optimizing/generate/call_order.h"

#include <llvm/Transforms/Utils/CodeLayout.h>

#include <algorithm>
#include <map>

namespace hindsight::jit::optimizing {

std::vector<uint32_t> order_by_calls(const CallGraph& graph) {
  const auto count = static_cast<uint32_t>(graph.functions.size());
  // The sort wants no function without a size, and one edge for each pair; where it counts is where most of
  // the pair's calls are.
  std::vector<uint64_t> sizes, counts;
  for (const CallGraph::Function& f : graph.functions) {
    sizes.push_back(std::max<uint64_t>(f.bytes, 1));
    counts.push_back(f.calls);
  }
  struct Edge {
    uint64_t count = 0, most = 0;
    uint32_t at = 0;
  };
  std::map<std::pair<uint32_t, uint32_t>, Edge> merged;
  for (const CallGraph::Call& call : graph.calls) {
    if (call.caller >= count || call.callee >= count || call.caller == call.callee) continue;
    Edge& edge = merged[{call.caller, call.callee}];
    edge.count += call.count;
    if (call.count < edge.most) continue;
    edge.most = call.count;
    edge.at = call.at;
  }
  std::vector<llvm::codelayout::EdgeCount> edges;
  std::vector<uint64_t> offsets;
  for (const auto& [ends, edge] : merged) {
    edges.push_back({ends.first, ends.second, edge.count});
    offsets.push_back(std::min<uint64_t>(edge.at, sizes[ends.first] - 1));
  }
  std::vector<uint32_t> order;
  std::vector<bool> placed(count);
  for (const uint64_t f : llvm::codelayout::computeCacheDirectedLayout(sizes, counts, edges, offsets)) {
    if (f >= count || placed[f]) continue;
    placed[f] = true;
    order.push_back(static_cast<uint32_t>(f));
  }
  for (uint32_t f = 0; f < count; ++f)
    if (!placed[f]) order.push_back(f);
  return order;
}

}  // namespace hindsight::jit::optimizing
