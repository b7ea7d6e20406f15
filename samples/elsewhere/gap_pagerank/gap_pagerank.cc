// PageRank by pulling over the edges into each node, after pr of the GAP benchmark suite (Beamer, Asanovic, Patterson
// 2015). New scores are seen within the same iteration. Rows are of very different lengths: the graph is a Kronecker
// graph. The best nodes are found with a heap, and the scores are verified by one more pass.
//
// Arguments: log2 of the nodes, edges a node, iterations at most, trials.
#include <cmath>
#include <functional>
#include <queue>

#include "../gap_graph.h"

using namespace gap;

typedef float ScoreT;
const float kDamp = 0.85f;

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 20);
  const uint32_t degree = argument(argc, argv, 2, 6);
  const int max_iters = static_cast<int>(argument(argc, argv, 3, 10));
  const uint32_t trials = argument(argc, argv, 4, 1);
  const double epsilon = 1e-5;
  uint64_t checksum = 0;

  const int64_t num_nodes = int64_t{1} << scale;
  std::vector<int32_t> out_degree(num_nodes, 0);
  const Graph<NodeID> g = [&] {
    const EdgeList<NodeID> edges = Generator<NodeID>(scale, degree).kronecker();
    for (auto [u, v] : edges) {
      if (u != v) out_degree[u]++;
    }
    return builder::build(edges, num_nodes, Direction::kIn);
  }();

  for (uint32_t trial = 0; trial < trials; trial++) {
    const ScoreT init_score = 1.0f / static_cast<float>(num_nodes + trial);
    const ScoreT base_score = (1.0f - kDamp) / static_cast<float>(num_nodes);
    std::vector<ScoreT> scores(num_nodes, init_score);
    std::vector<ScoreT> outgoing_contrib(num_nodes);
    for (NodeID n = 0; n < num_nodes; n++) {
      outgoing_contrib[n] = out_degree[n] == 0 ? 0 : init_score / static_cast<float>(out_degree[n]);
    }

    int iter;
    for (iter = 0; iter < max_iters; iter++) {
      double error = 0;
      for (NodeID u = 0; u < num_nodes; u++) {
        ScoreT incoming_total = 0;
        for (NodeID v : g.neighbours(u)) incoming_total += outgoing_contrib[v];
        ScoreT old_score = scores[u];
        scores[u] = base_score + kDamp * incoming_total;
        error += std::fabs(scores[u] - old_score);
        if (out_degree[u] != 0) outgoing_contrib[u] = scores[u] / static_cast<float>(out_degree[u]);
      }
      checksum = mix(checksum, bits_of(error));
      if (error < epsilon) break;
    }

    // The best: a heap whose least is on top.
    const size_t kBest = 16;
    using Ranked = std::pair<ScoreT, NodeID>;
    std::priority_queue<Ranked, std::vector<Ranked>, std::greater<Ranked>> best;
    for (NodeID n = 0; n < num_nodes; n++) {
      if (best.size() < kBest) {
        best.push({scores[n], n});
      } else if (Ranked candidate{scores[n], n}; best.top() < candidate) {
        best.pop();
        best.push(candidate);
      }
    }
    for (; !best.empty(); best.pop()) checksum = mix(checksum, static_cast<uint64_t>(best.top().second));

    // How far the scores are from what one more iteration would give.
    double error = 0;
    for (NodeID n = 0; n < num_nodes; n++) {
      double sum = 0;
      for (NodeID v : g.neighbours(n)) sum += static_cast<double>(scores[v]) / out_degree[v];
      error += std::fabs(base_score + static_cast<double>(kDamp) * sum - scores[n]);
    }
    checksum = mix(mix(checksum, bits_of(error)), static_cast<uint64_t>(iter));
    if (error > 0.5) {
      fprintf(stderr, "the scores are off by %g\n", error);
      return 1;
    }
  }
  return report("gap_pagerank", checksum);
}
