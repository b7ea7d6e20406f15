// Connected components, after cc of the GAP benchmark suite: Afforest (Sutton, Ben-Nun, Barak, IPDPS 2018). A few
// neighbours of each node are linked first. Most nodes are then in one component, which is found by sampling; nodes
// outside it have their other neighbours linked. A search over the graph verifies the answer.
//
// Arguments: log2 of the nodes, edges a node, whether to take a Kronecker graph, trials.
#include <unordered_map>

#include "../gap_graph.h"

using namespace gap;

namespace {

// Joins the trees of u and v, the higher root under the lower.
inline void link(NodeID u, NodeID v, std::vector<NodeID>& comp) {
  NodeID p1 = comp[u];
  NodeID p2 = comp[v];
  while (p1 != p2) {
    const NodeID low = std::min(p1, p2), high = std::max(p1, p2);
    const NodeID above = comp[high];
    if (above == low) break;
    if (above == high) {
      comp[high] = low;
      break;
    }
    p1 = comp[above];
    p2 = comp[low];
  }
}

// Hangs each node directly under its root.
inline void compress(const Graph<NodeID>& g, std::vector<NodeID>& comp) {
  for (NodeID n = 0; n < g.num_nodes(); ++n) {
    while (comp[n] != comp[comp[n]]) comp[n] = comp[comp[n]];
  }
}

NodeID sample_most_frequent(const std::vector<NodeID>& comp, uint64_t* seed, int samples = 1024) {
  std::unordered_map<NodeID, int> counts(32);
  for (int i = 0; i < samples; ++i) ++counts[comp[random_below(seed, static_cast<uint32_t>(comp.size()))]];
  // Of equally frequent ones the lowest, as the order of the map is not the same everywhere.
  NodeID best = -1;
  int most = 0;
  for (const auto& [label, count] : counts) {
    if (count > most || (count == most && label < best)) {
      best = label;
      most = count;
    }
  }
  return best;
}

bool verify(const Graph<NodeID>& g, const std::vector<NodeID>& comp) {
  std::unordered_map<NodeID, NodeID> label_to_source;
  for (NodeID n = 0; n < g.num_nodes(); ++n) label_to_source[comp[n]] = n;
  std::vector<bool> visited(g.num_nodes(), false);
  std::vector<NodeID> frontier;
  for (const auto& [label, source] : label_to_source) {
    frontier.assign(1, source);
    visited[source] = true;
    for (size_t at = 0; at < frontier.size(); ++at) {
      const NodeID u = frontier[at];
      for (NodeID v : g.neighbours(u)) {
        if (comp[v] != label) return false;
        if (!visited[v]) {
          visited[v] = true;
          frontier.push_back(v);
        }
      }
    }
  }
  return std::find(visited.begin(), visited.end(), false) == visited.end();
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 20);
  const uint32_t degree = argument(argc, argv, 2, 4);
  const bool kronecker = argument(argc, argv, 3, 0) != 0;
  const uint32_t trials = argument(argc, argv, 4, 2);
  const int32_t neighbour_rounds = 2;
  uint64_t seed = 5, checksum = 0;

  Generator<NodeID> generator(scale, degree);
  const Graph<NodeID> g = builder::build(kronecker ? generator.kronecker() : generator.uniform(),
                                         int64_t{1} << scale, Direction::kBoth);

  for (uint32_t trial = 0; trial < trials; ++trial) {
    std::vector<NodeID> comp(g.num_nodes());
    for (NodeID n = 0; n < g.num_nodes(); ++n) comp[n] = n;

    for (int r = 0; r < neighbour_rounds; ++r) {
      for (NodeID u = 0; u < g.num_nodes(); ++u) {
        if (g.degree(u) > r) link(u, g.neighbours(u).begin()[r], comp);
      }
      compress(g, comp);
    }

    const NodeID c = sample_most_frequent(comp, &seed);
    for (NodeID u = 0; u < g.num_nodes(); ++u) {
      if (comp[u] == c) continue;
      const auto row = g.neighbours(u);
      for (const NodeID* it = row.begin() + std::min<size_t>(row.size(), neighbour_rounds); it != row.end();
           ++it) {
        link(u, *it, comp);
      }
    }
    compress(g, comp);

    if (!verify(g, comp)) {
      fprintf(stderr, "trial %u: these are not the components\n", static_cast<unsigned>(trial));
      return 1;
    }
    int64_t components = 0, largest = 0;
    for (NodeID n = 0; n < g.num_nodes(); ++n) {
      components += comp[n] == n;
      largest += comp[n] == c;
      checksum += static_cast<uint64_t>(comp[n]) * static_cast<uint64_t>(n | 1);
    }
    checksum = mix(mix(checksum, static_cast<uint64_t>(components)), static_cast<uint64_t>(largest));
  }
  return report("gap_components", checksum);
}
