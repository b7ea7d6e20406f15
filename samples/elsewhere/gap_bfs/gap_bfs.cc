// Breadth-first search that turns its direction (Beamer, Asanovic, Patterson, SC 2012), after bfs of the GAP benchmark
// suite. A narrow frontier lies in a queue, and its nodes look for neighbours nobody has found: top-down. A wide one is a
// bitmap, and the nodes not found yet look for a neighbour in it, which ends their row: bottom-up. A parent below zero
// means not found. It is minus the degree, so that finding a node says how many edges there are to look at from it. A plain
// search that gives depths verifies some of the trees.
//
// Arguments: log2 of the nodes, edges a node, whether to take a Kronecker graph, sources, of how many trees one is verified.
#include "../gap_graph.h"

using namespace gap;

namespace {

class Bitmap {
 public:
  explicit Bitmap(int64_t size) : words_(static_cast<size_t>(size + 63) / 64) {}
  void reset() { std::fill(words_.begin(), words_.end(), 0); }
  void set_bit(NodeID pos) { words_[static_cast<size_t>(pos) / 64] |= uint64_t{1} << (pos % 64); }
  bool get_bit(NodeID pos) const { return words_[static_cast<size_t>(pos) / 64] >> (pos % 64) & 1; }
  void swap(Bitmap& other) { words_.swap(other.words_); }

 private:
  std::vector<uint64_t> words_;
};

// The window is the frontier. What is pushed lies behind it, and becomes the window when it slides.
class SlidingQueue {
 public:
  explicit SlidingQueue(int64_t most) : nodes_(static_cast<size_t>(most)) {}
  void reset() { begin_ = end_ = pushed_ = 0; }
  void push_back(NodeID node) { nodes_[pushed_++] = node; }
  void slide_window() { begin_ = std::exchange(end_, pushed_); }
  int64_t size() const { return static_cast<int64_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  const NodeID* begin() const { return nodes_.data() + begin_; }
  const NodeID* end() const { return nodes_.data() + end_; }

 private:
  std::vector<NodeID> nodes_;
  size_t begin_ = 0, end_ = 0, pushed_ = 0;
};

struct Steps {
  uint64_t top_down = 0, bottom_up = 0;
};

// Pushes what the frontier's nodes find; returns the edges out of that.
inline int64_t top_down_step(const Graph<NodeID>& g, std::vector<NodeID>& parent, SlidingQueue& queue) {
  int64_t scouted = 0;
  for (NodeID u : queue) {
    for (NodeID v : g.neighbours(u)) {
      const NodeID known = parent[v];
      if (known < 0) {
        parent[v] = u;
        queue.push_back(v);
        scouted -= known;
      }
    }
  }
  return scouted;
}

// Marks in `next` the nodes that found a parent in `front`; returns how many they are.
inline int64_t bottom_up_step(const Graph<NodeID>& g, std::vector<NodeID>& parent, const Bitmap& front,
                              Bitmap& next) {
  int64_t awake = 0;
  next.reset();
  for (NodeID v = 0; v < g.num_nodes(); ++v) {
    if (parent[v] >= 0) continue;
    for (NodeID u : g.neighbours(v)) {
      if (front.get_bit(u)) {
        parent[v] = u;
        next.set_bit(v);
        ++awake;
        break;
      }
    }
  }
  return awake;
}

Steps search(const Graph<NodeID>& g, NodeID source, int alpha, int beta, std::vector<NodeID>& parent,
             SlidingQueue& queue, Bitmap& front, Bitmap& next) {
  Steps steps;
  // A node without edges is not found either.
  for (NodeID n = 0; n < g.num_nodes(); ++n)
    parent[n] = -static_cast<NodeID>(std::max<int64_t>(g.degree(n), 1));
  parent[source] = source;
  queue.reset();
  queue.push_back(source);
  queue.slide_window();

  int64_t unexplored = g.num_edges(), scouted = g.degree(source);
  while (!queue.empty()) {
    if (scouted <= unexplored / alpha) {
      unexplored -= scouted;
      scouted = top_down_step(g, parent, queue);
      queue.slide_window();
      ++steps.top_down;
      continue;
    }

    front.reset();
    for (NodeID u : queue) front.set_bit(u);
    int64_t awake = queue.size(), before;
    do {
      before = awake;
      awake = bottom_up_step(g, parent, front, next);
      front.swap(next);
      ++steps.bottom_up;
    } while (awake >= before || awake > g.num_nodes() / beta);
    for (NodeID n = 0; n < g.num_nodes(); ++n) {
      if (front.get_bit(n)) queue.push_back(n);
    }
    queue.slide_window();
    scouted = 1;  // a narrow frontier: the next step is top-down
  }

  for (NodeID& p : parent) p = std::max(p, NodeID{-1});
  return steps;
}

// Whether the tree has the nodes that a plain search finds, each one level under its parent, which is a neighbour. Adds up
// the depths.
bool verify(const Graph<NodeID>& g, NodeID source, const std::vector<NodeID>& parent, uint64_t* total) {
  std::vector<NodeID> depth(g.num_nodes(), -1);
  std::vector<NodeID> reached;
  reached.reserve(g.num_nodes());
  depth[source] = 0;
  reached.push_back(source);
  for (size_t at = 0; at < reached.size(); ++at) {
    const NodeID u = reached[at];
    for (NodeID v : g.neighbours(u)) {
      if (depth[v] == -1) {
        depth[v] = depth[u] + 1;
        reached.push_back(v);
      }
    }
  }

  for (NodeID n = 0; n < g.num_nodes(); ++n) {
    const NodeID p = parent[n];
    if ((p == -1) != (depth[n] == -1)) return false;
    if (p == -1) continue;
    *total += static_cast<uint64_t>(depth[n]);
    if (n == source) {
      if (p != source) return false;
      continue;
    }
    const auto row = g.neighbours(n);
    if (depth[p] != depth[n] - 1 || std::find(row.begin(), row.end(), p) == row.end()) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t scale = argument(argc, argv, 1, 20);
  const uint32_t degree = argument(argc, argv, 2, 8);
  const bool kronecker = argument(argc, argv, 3, 1) != 0;
  const uint32_t sources = argument(argc, argv, 4, 16);
  const uint32_t verified = std::max(argument(argc, argv, 5, 4), 1u);
  const int alpha = 15, beta = 18;
  uint64_t checksum = 0;

  const Graph<NodeID> g = [&] {
    Generator<NodeID> generator(scale, degree);
    return builder::build(kronecker ? generator.kronecker() : generator.uniform(), int64_t{1} << scale,
                          Direction::kBoth);
  }();

  std::vector<NodeID> parent(g.num_nodes());
  SlidingQueue queue(g.num_nodes());
  Bitmap front(g.num_nodes()), next(g.num_nodes());

  SourcePicker<Graph<NodeID>> picker(g);
  for (uint32_t trial = 0; trial < sources; ++trial) {
    const NodeID source = picker.next();
    const Steps steps = search(g, source, alpha, beta, parent, queue, front, next);

    uint64_t reached = 0, parents = 0, depths = 0;
    for (NodeID n = 0; n < g.num_nodes(); ++n) {
      reached += parent[n] >= 0;
      parents += static_cast<uint64_t>(parent[n] + 1) * static_cast<uint64_t>(n | 1);
    }
    if (trial % verified == 0 && !verify(g, source, parent, &depths)) {
      fprintf(stderr, "from %ld: this is not a breadth-first tree\n", static_cast<long>(source));
      return 1;
    }
    checksum = mix(mix(mix(checksum, steps.top_down), steps.bottom_up), reached);
    checksum = mix(mix(checksum, parents), depths);
  }
  return report("gap_bfs", checksum);
}
