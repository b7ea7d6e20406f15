// Counts triangles by merging sorted rows, after tc of the GAP benchmark suite. If a sample says that degrees differ a
// lot, nodes are numbered anew by falling degree first. A triangle is counted from its highest node down, so that each
// merge ends early.
//
// Arguments: log2 of the nodes, edges a node, whether to take a Kronecker graph, trials.
#include <functional>

#include "../gap_graph.h"

using namespace gap;

namespace {

// The order counts here: from the highest node down, each row only up to the node below.
size_t count_triangles(const Graph<NodeID>& g) {
  size_t total = 0;
  for (NodeID u = 0; u < g.num_nodes(); u++) {
    for (NodeID v : g.neighbours(u)) {
      if (v > u) break;
      const auto row = g.neighbours(v);
      auto it = row.begin();
      for (NodeID w : g.neighbours(u)) {
        if (w > v) break;
        while (it != row.end() && *it < w) it++;
        if (it == row.end()) break;
        if (w == *it) total++;
      }
    }
  }
  return total;
}

// Whether a few rows are so much longer than most that numbering by degree is worth it.
bool worth_relabelling(const Graph<NodeID>& g) {
  const int64_t average_degree = g.num_edges() / g.num_nodes();
  if (average_degree < 10) return false;
  SourcePicker<Graph<NodeID>> picker(g);
  const size_t num_samples = std::min<size_t>(1000, g.num_nodes());
  int64_t sample_total = 0;
  std::vector<int64_t> samples(num_samples);
  for (auto& sample : samples) {
    sample = g.degree(picker.next());
    sample_total += sample;
  }
  std::sort(samples.begin(), samples.end());
  const double sample_average = static_cast<double>(sample_total) / static_cast<double>(num_samples);
  return sample_average / 1.3 > static_cast<double>(samples[num_samples / 2]);
}

Graph<NodeID> relabelled_by_degree(const Graph<NodeID>& g) {
  std::vector<std::pair<int64_t, NodeID>> by_degree;
  by_degree.reserve(g.num_nodes());
  for (NodeID n = 0; n < g.num_nodes(); n++) by_degree.emplace_back(g.degree(n), n);
  std::sort(by_degree.begin(), by_degree.end(), std::greater<std::pair<int64_t, NodeID>>());

  std::vector<NodeID> new_ids(g.num_nodes());
  std::vector<int64_t> offsets(g.num_nodes() + 1, 0);
  for (NodeID n = 0; n < g.num_nodes(); n++) {
    new_ids[by_degree[n].second] = n;
    offsets[n + 1] = offsets[n] + by_degree[n].first;
  }
  std::vector<NodeID> ends(g.num_edges());
  for (NodeID u = 0; u < g.num_nodes(); u++) {
    auto at = ends.begin() + offsets[new_ids[u]];
    const auto first = at;
    for (NodeID v : g.neighbours(u)) *at++ = new_ids[v];
    std::sort(first, at);
  }
  return Graph<NodeID>(std::move(offsets), std::move(ends));
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 14);
  const uint32_t degree = argument(argc, argv, 2, 12);
  const bool kronecker = argument(argc, argv, 3, 1) != 0;
  const uint32_t trials = argument(argc, argv, 4, 1);
  uint64_t checksum = 0;

  Generator<NodeID> generator(scale, degree);
  const Graph<NodeID> g = builder::squeezed(builder::build(
      kronecker ? generator.kronecker() : generator.uniform(), int64_t{1} << scale, Direction::kBoth));

  for (uint32_t trial = 0; trial < trials; trial++) {
    const size_t total = worth_relabelling(g) ? count_triangles(relabelled_by_degree(g)) : count_triangles(g);

    // Of some nodes with few neighbours, the triangles are counted in another way: by looking each pair up.
    uint64_t looked_up = 0;
    for (NodeID u = static_cast<NodeID>(trial); u < g.num_nodes(); u += 211) {
      const auto row = g.neighbours(u);
      if (row.size() > 64) continue;
      for (const NodeID* v = row.begin(); v != row.end(); v++) {
        const auto other = g.neighbours(*v);
        for (const NodeID* w = row.begin(); w != v; w++) {
          if (std::binary_search(other.begin(), other.end(), *w)) looked_up++;
        }
      }
    }
    if (looked_up > total) {
      fprintf(stderr, "%lu triangles are too few\n", static_cast<unsigned long>(total));
      return 1;
    }
    checksum = mix(mix(checksum, total), looked_up);
  }
  return report("gap_triangles", checksum);
}
