// Shortest paths by delta-stepping (Meyer, Sanders 2003), after sssp of the GAP benchmark suite. Nodes wait in buckets by
// their distance over delta. Each bucket is a std::vector that is taken out whole, and may fill again while it is gone
// through. A pass over all edges verifies the distances.
//
// Arguments: log2 of the nodes, edges a node, delta, whether to take a Kronecker graph, sources.
#include <limits>

#include "../gap_graph.h"

using namespace gap;

using WNode = WeightedEnd<NodeID>;
using WGraph = Graph<NodeID, WNode>;

const Weight kDistInf = std::numeric_limits<Weight>::max() / 2;

namespace {

class Buckets {
 public:
  void add(size_t bin, NodeID node) {
    if (bin >= bins_.size()) bins_.resize(bin + 1);
    bins_[bin].push_back(node);
  }
  // The first bin from `bin` on that is not empty, or the number of bins.
  size_t next(size_t bin) const {
    while (bin < bins_.size() && bins_[bin].empty()) ++bin;
    return bin;
  }
  bool any(size_t bin) const { return bin < bins_.size(); }
  void take(size_t bin, std::vector<NodeID>* frontier) {
    frontier->clear();
    frontier->swap(bins_[bin]);
  }

 private:
  std::vector<std::vector<NodeID>> bins_;
};

inline void relax(const WGraph& g, NodeID u, Weight delta, std::vector<Weight>& dist, Buckets& buckets) {
  for (const WNode& wn : g.neighbours(u)) {
    const Weight new_dist = dist[u] + wn.w;
    if (new_dist < dist[wn.v]) {
      dist[wn.v] = new_dist;
      buckets.add(static_cast<size_t>(new_dist / delta), wn.v);
    }
  }
}

// Whether no edge leads to a shorter path, and whether each path is one: its last edge is tight.
bool verify(const WGraph& g, NodeID source, const std::vector<Weight>& dist) {
  for (NodeID u = 0; u < g.num_nodes(); ++u) {
    if (dist[u] == kDistInf) continue;
    bool tight = u == source && dist[u] == 0;
    for (const auto& [v, w] : g.neighbours(u)) {
      if (dist[v] > dist[u] + w) return false;
      if (dist[v] + w == dist[u]) tight = true;
    }
    if (!tight) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 18);
  const uint32_t degree = argument(argc, argv, 2, 8);
  const Weight delta = static_cast<Weight>(argument(argc, argv, 3, 32));
  const bool kronecker = argument(argc, argv, 4, 0) != 0;
  const uint32_t sources = argument(argc, argv, 5, 1);
  uint64_t checksum = 0;

  const WGraph g = [&] {
    Generator<NodeID> generator(scale, degree);
    const auto edges = generator.with_weights(kronecker ? generator.kronecker() : generator.uniform());
    return builder::build(edges, int64_t{1} << scale, Direction::kBoth);
  }();

  SourcePicker<WGraph> picker(g);
  for (uint32_t trial = 0; trial < sources; ++trial) {
    const NodeID source = picker.next();
    std::vector<Weight> dist(g.num_nodes(), kDistInf);
    Buckets buckets;
    std::vector<NodeID> frontier;
    uint64_t steps = 0, relaxed = 0;

    dist[source] = 0;
    buckets.add(0, source);
    for (size_t bin = 0; buckets.any(bin = buckets.next(bin)); ++steps) {
      buckets.take(bin, &frontier);
      const Weight lower = delta * static_cast<Weight>(bin);
      for (NodeID u : frontier) {
        // A node that has come into a lower bucket since then is done already.
        if (dist[u] < lower) continue;
        relax(g, u, delta, dist, buckets);
        ++relaxed;
      }
    }

    if (!verify(g, source, dist)) {
      fprintf(stderr, "these are not the distances from %ld\n", static_cast<long>(source));
      return 1;
    }
    uint64_t reached = 0, total = 0;
    Weight longest = 0;
    for (Weight d : dist) {
      if (d == kDistInf) continue;
      ++reached;
      total += static_cast<uint64_t>(d);
      longest = std::max(longest, d);
    }
    checksum = mix(mix(mix(checksum, steps), relaxed), reached);
    checksum = mix(mix(checksum, total), static_cast<uint64_t>(longest));
  }
  return report("gap_sssp", checksum);
}
