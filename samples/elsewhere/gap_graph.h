// What the programs after the GAP benchmark suite (Beamer, Asanovic, Patterson 2015) share. There are graphs in
// compressed rows of any kind of edge, generators of uniform and of Kronecker graphs, and a builder. Written as such
// libraries are: by templates over the numbers of nodes and the ends of edges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/sample.h"

namespace gap {

using NodeID = int32_t;
using Weight = int32_t;

// The far end of an edge with a weight; stands for the node where only that matters.
template <typename Node>
struct WeightedEnd {
  Node v;
  Weight w;
  operator Node() const { return v; }
};

template <typename Node, typename End = Node>
struct EdgeOf {
  Node u;
  End v;
};

template <typename Node, typename End = Node>
using EdgeList = std::vector<EdgeOf<Node, End>>;

template <typename Node, typename End = Node>
class Graph {
 public:
  class Neighbours {
   public:
    Neighbours(const End* begin, const End* end) : begin_(begin), end_(end) {}
    const End* begin() const { return begin_; }
    const End* end() const { return end_; }
    size_t size() const { return static_cast<size_t>(end_ - begin_); }

   private:
    const End* begin_;
    const End* end_;
  };

  Graph(std::vector<int64_t> offsets, std::vector<End> ends)
      : offsets_(std::move(offsets)), ends_(std::move(ends)) {}

  int64_t num_nodes() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t num_edges() const { return static_cast<int64_t>(ends_.size()); }
  int64_t offset(Node n) const { return offsets_[static_cast<size_t>(n)]; }
  int64_t degree(Node n) const { return offset(n + 1) - offset(n); }
  Neighbours neighbours(Node n) const { return {ends_.data() + offset(n), ends_.data() + offset(n + 1)}; }

 private:
  std::vector<int64_t> offsets_;
  std::vector<End> ends_;
};

template <typename Node>
class Generator {
 public:
  Generator(uint32_t scale, uint32_t degree, uint64_t seed = 27491095)
      : scale_(scale), num_nodes_(int64_t{1} << scale), num_edges_(num_nodes_ * degree), seed_(seed) {}

  EdgeList<Node> uniform() {
    EdgeList<Node> edges;
    edges.reserve(static_cast<size_t>(num_edges_));
    for (int64_t e = 0; e < num_edges_; ++e) {
      const uint64_t bits = next_random(&seed_);
      edges.push_back({label(static_cast<uint32_t>(bits)), label(static_cast<uint32_t>(bits >> 32))});
    }
    return edges;
  }

  // Degrees follow a power law: initiator 0.57, 0.19, 0.19, 0.05.
  EdgeList<Node> kronecker() {
    constexpr uint32_t kA = 37356, kAB = 49807, kABC = 62259;  // of 65536
    EdgeList<Node> edges;
    edges.reserve(static_cast<size_t>(num_edges_));
    for (int64_t e = 0; e < num_edges_; ++e) {
      uint32_t u = 0, v = 0;
      uint64_t bits = 0;
      for (uint32_t depth = 0; depth < scale_; ++depth, bits >>= 16) {
        if (depth % 4 == 0) bits = next_random(&seed_);
        const uint32_t chance = bits & 0xffff;
        u = 2 * u + (chance >= kAB);
        v = 2 * v + ((chance >= kA && chance < kAB) || chance >= kABC);
      }
      edges.push_back({static_cast<Node>(scatter(u, scale_)), static_cast<Node>(scatter(v, scale_))});
    }
    return edges;
  }

  // The same edges with weights from 1 to 255.
  EdgeList<Node, WeightedEnd<Node>> with_weights(const EdgeList<Node>& edges) {
    EdgeList<Node, WeightedEnd<Node>> weighted;
    weighted.reserve(edges.size());
    for (const auto& [u, v] : edges) {
      weighted.push_back({u, {v, static_cast<Weight>(1 + random_below(&seed_, 255))}});
    }
    return weighted;
  }

 private:
  Node label(uint32_t bits) const { return static_cast<Node>(bits >> (32 - scale_)); }

  uint32_t scale_;
  int64_t num_nodes_;
  int64_t num_edges_;
  uint64_t seed_;
};

enum class Direction { kOut, kIn, kBoth };

namespace builder {

template <typename Node>
Node turned(Node, Node u) {
  return u;
}
template <typename Node>
WeightedEnd<Node> turned(WeightedEnd<Node> end, Node u) {
  return {u, end.w};
}

// Rows of the edges out of each node, into it, or both. Loops are left out, double edges are not.
template <typename Node, typename End>
Graph<Node, End> build(const EdgeList<Node, End>& edges, int64_t num_nodes, Direction direction) {
  std::vector<int64_t> offsets(static_cast<size_t>(num_nodes) + 1, 0);
  for (const auto& edge : edges) {
    const Node v = edge.v;
    if (edge.u == v) continue;
    if (direction != Direction::kIn) ++offsets[static_cast<size_t>(edge.u)];
    if (direction != Direction::kOut) ++offsets[static_cast<size_t>(v)];
  }
  int64_t total = 0;
  for (auto& offset : offsets) offset = std::exchange(total, total + offset);

  std::vector<End> ends(static_cast<size_t>(total));
  std::vector<int64_t> places(offsets.begin(), offsets.end() - 1);
  for (const auto& edge : edges) {
    const Node v = edge.v;
    if (edge.u == v) continue;
    if (direction != Direction::kIn)
      ends[static_cast<size_t>(places[static_cast<size_t>(edge.u)]++)] = edge.v;
    if (direction != Direction::kOut) {
      ends[static_cast<size_t>(places[static_cast<size_t>(v)]++)] = turned(edge.v, edge.u);
    }
  }
  return Graph<Node, End>(std::move(offsets), std::move(ends));
}

// The same graph with sorted rows, in which each neighbour stands once.
template <typename Node>
Graph<Node> squeezed(const Graph<Node>& g) {
  std::vector<int64_t> offsets(1, 0);
  std::vector<Node> ends, row;
  offsets.reserve(static_cast<size_t>(g.num_nodes()) + 1);
  ends.reserve(static_cast<size_t>(g.num_edges()));
  for (Node n = 0; n < g.num_nodes(); ++n) {
    row.assign(g.neighbours(n).begin(), g.neighbours(n).end());
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    ends.insert(ends.end(), row.begin(), row.end());
    offsets.push_back(static_cast<int64_t>(ends.size()));
  }
  return Graph<Node>(std::move(offsets), std::move(ends));
}

}  // namespace builder

// Random nodes that have neighbours.
template <typename AnyGraph>
class SourcePicker {
 public:
  explicit SourcePicker(const AnyGraph& g, uint64_t seed = 27491095) : g_(g), seed_(seed) {}

  NodeID next() {
    NodeID source;
    do {
      source = static_cast<NodeID>(random_below(&seed_, static_cast<uint32_t>(g_.num_nodes())));
    } while (g_.degree(source) == 0);
    return source;
  }

 private:
  const AnyGraph& g_;
  uint64_t seed_;
};

}  // namespace gap
