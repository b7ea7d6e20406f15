// Betweenness centrality from a few sources by the algorithm of Brandes (2001), after bc of the GAP benchmark suite. A
// breadth-first search counts shortest paths and marks each edge to a successor in a bitmap of edges. Then the levels are
// gone through backwards, and each node adds up what depends on it. Sums of both phases are compared.
//
// Arguments: log2 of the nodes, edges a node, whether to take a Kronecker graph, sources.
#include <cmath>

#include "../gap_graph.h"

using namespace gap;

typedef float ScoreT;
typedef double CountT;

namespace {

class Bitmap {
 public:
  explicit Bitmap(size_t size) : words_((size + 63) / 64) {}
  void reset() { std::fill(words_.begin(), words_.end(), 0); }
  void set_bit(int64_t pos) { words_[static_cast<size_t>(pos) / 64] |= uint64_t{1} << (pos % 64); }
  bool get_bit(int64_t pos) const { return words_[static_cast<size_t>(pos) / 64] >> (pos % 64) & 1; }

 private:
  std::vector<uint64_t> words_;
};

void search(const Graph<NodeID>& g, NodeID source, std::vector<CountT>& path_counts,
            std::vector<NodeID>& depths, Bitmap& succ, std::vector<size_t>& depth_index,
            std::vector<NodeID>& queue) {
  depths[source] = 0;
  path_counts[source] = 1;
  queue.push_back(source);
  depth_index.push_back(0);
  size_t begin = 0;
  for (NodeID depth = 1; begin < queue.size(); ++depth) {
    const size_t end = queue.size();
    depth_index.push_back(end);
    for (; begin < end; ++begin) {
      const NodeID u = queue[begin];
      int64_t edge = g.offset(u);
      for (NodeID v : g.neighbours(u)) {
        if (depths[v] == -1) {
          depths[v] = depth;
          queue.push_back(v);
        }
        if (depths[v] == depth) {
          succ.set_bit(edge);
          path_counts[v] += path_counts[u];
        }
        ++edge;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 18);
  const uint32_t degree = argument(argc, argv, 2, 8);
  const bool kronecker = argument(argc, argv, 3, 1) != 0;
  const uint32_t sources = argument(argc, argv, 4, 2);
  uint64_t checksum = 0;

  Generator<NodeID> generator(scale, degree);
  const Graph<NodeID> g = builder::build(kronecker ? generator.kronecker() : generator.uniform(),
                                         int64_t{1} << scale, Direction::kBoth);

  std::vector<ScoreT> scores(g.num_nodes(), 0);
  std::vector<CountT> path_counts(g.num_nodes());
  std::vector<NodeID> depths(g.num_nodes());
  Bitmap succ(g.num_edges());
  std::vector<size_t> depth_index;
  std::vector<NodeID> queue;
  queue.reserve(g.num_nodes());

  SourcePicker<Graph<NodeID>> picker(g);
  for (uint32_t iter = 0; iter < sources; ++iter) {
    const NodeID source = picker.next();
    std::fill(path_counts.begin(), path_counts.end(), 0);
    std::fill(depths.begin(), depths.end(), -1);
    depth_index.resize(0);
    queue.resize(0);
    succ.reset();
    search(g, source, path_counts, depths, succ, depth_index, queue);

    std::vector<ScoreT> deltas(g.num_nodes(), 0);
    double depending = 0;
    for (int d = static_cast<int>(depth_index.size()) - 2; d >= 0; --d) {
      for (size_t it = depth_index[d]; it < depth_index[d + 1]; ++it) {
        const NodeID u = queue[it];
        ScoreT delta_u = 0;
        int64_t edge = g.offset(u);
        for (NodeID v : g.neighbours(u)) {
          if (succ.get_bit(edge)) {
            delta_u += static_cast<ScoreT>(path_counts[u] / path_counts[v]) * (1 + deltas[v]);
          }
          ++edge;
        }
        deltas[u] = delta_u;
        if (u != source) {
          scores[u] += delta_u;
          depending += delta_u;
        }
      }
    }

    // On a shortest path of d edges lie d - 1 nodes; what depends on all nodes adds up to that.
    double between = 0;
    for (NodeID n : queue) between += n == source ? 0 : depths[n] - 1;
    if (std::fabs(depending - between) > 1e-3 * between) {
      fprintf(stderr, "from %ld: %g depends on nodes, and %g lies between\n", static_cast<long>(source),
              depending, between);
      return 1;
    }
    checksum = mix(mix(checksum, bits_of(depending)), queue.size());
  }

  ScoreT biggest_score = 0;
  for (ScoreT score : scores) biggest_score = std::max(biggest_score, score);
  if (biggest_score != 0) {
    for (ScoreT& score : scores) score /= biggest_score;
  }
  for (size_t n = 0; n < scores.size(); n += 61) checksum = mix(checksum, bits_of(scores[n]));
  return report("gap_betweenness", checksum);
}
