// A k-d tree over random points, one allocated node a point. It is built by splitting at the median with
// std::nth_element. Recursive searches find the nearest neighbours of other points, and those within a distance. The far
// half of a node is visited only where something nearer may be in it.
//
// Arguments: thousands of points, thousands of neighbour queries, thousands of range queries.
#include <algorithm>
#include <array>
#include <memory>
#include <queue>
#include <vector>

#include "../../common/sample.h"

template <int D>
struct Point {
  std::array<double, D> x;
  uint32_t id;

  double operator[](int i) const { return x[i]; }
};

template <int D>
static double squared_distance(const Point<D>& a, const Point<D>& b) {
  double sum = 0;
  for (int i = 0; i < D; ++i) {
    const double d = a[i] - b[i];
    sum += d * d;
  }
  return sum;
}

template <int D>
class KdTree {
 public:
  struct Neighbour {
    double distance;
    uint32_t id;
    bool operator<(const Neighbour& other) const {
      return distance != other.distance ? distance < other.distance : id < other.id;
    }
  };

  explicit KdTree(std::vector<Point<D>> points) { root_ = build(points.begin(), points.end(), 0); }

  std::vector<Neighbour> nearest(const Point<D>& from, size_t count) const {
    std::priority_queue<Neighbour> best;
    search(root_.get(), from, count, &best);
    std::vector<Neighbour> result;
    while (!best.empty()) {
      result.push_back(best.top());
      best.pop();
    }
    return result;
  }

  uint32_t count_within(const Point<D>& from, double radius) const {
    return count_within(root_.get(), from, radius, radius * radius);
  }

  uint64_t visited() const { return visited_; }

 private:
  struct Node {
    Point<D> point;
    int axis;
    std::unique_ptr<Node> left, right;
  };

  using Iterator = typename std::vector<Point<D>>::iterator;

  static std::unique_ptr<Node> build(Iterator begin, Iterator end, int depth) {
    if (begin == end) return nullptr;
    const int axis = depth % D;
    const Iterator middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, [axis](const Point<D>& a, const Point<D>& b) {
      return a[axis] != b[axis] ? a[axis] < b[axis] : a.id < b.id;
    });
    auto node = std::make_unique<Node>();
    node->point = *middle;
    node->axis = axis;
    node->left = build(begin, middle, depth + 1);
    node->right = build(middle + 1, end, depth + 1);
    return node;
  }

  void search(const Node* node, const Point<D>& from, size_t count,
              std::priority_queue<Neighbour>* best) const {
    if (!node) return;
    ++visited_;
    const Neighbour here{squared_distance(from, node->point), node->point.id};
    if (best->size() < count) {
      best->push(here);
    } else if (here < best->top()) {
      best->pop();
      best->push(here);
    }

    const double to_plane = from[node->axis] - node->point[node->axis];
    const Node* near = to_plane < 0 ? node->left.get() : node->right.get();
    const Node* far = to_plane < 0 ? node->right.get() : node->left.get();
    search(near, from, count, best);
    if (best->size() < count || to_plane * to_plane <= best->top().distance) search(far, from, count, best);
  }

  uint32_t count_within(const Node* node, const Point<D>& from, double radius, double squared) const {
    if (!node) return 0;
    uint32_t count = squared_distance(from, node->point) <= squared ? 1 : 0;
    const double to_plane = from[node->axis] - node->point[node->axis];
    if (to_plane <= radius) count += count_within(node->left.get(), from, radius, squared);
    if (to_plane >= -radius) count += count_within(node->right.get(), from, radius, squared);
    return count;
  }

  std::unique_ptr<Node> root_;
  mutable uint64_t visited_ = 0;
};

int main(int argc, char** argv) {
  constexpr int kDimensions = 3;
  const uint32_t count = 1000 * argument(argc, argv, 1, 1500);
  const uint32_t queries = 1000 * argument(argc, argv, 2, 250);
  const uint32_t ranges = 1000 * argument(argc, argv, 3, 100);

  // Half of the points are spread evenly, the others crowd in clusters.
  uint64_t seed = 1975;
  auto uniform = [&] {
    Point<kDimensions> p;
    for (double& x : p.x) x = random_unit(&seed);
    p.id = 0;
    return p;
  };
  std::vector<Point<kDimensions>> points;
  points.reserve(count);
  Point<kDimensions> center = uniform();
  for (uint32_t i = 0; i < count; ++i) {
    Point<kDimensions> p = uniform();
    if (i % 2 == 1) {
      if (i % 1024 == 1) center = uniform();
      for (int d = 0; d < kDimensions; ++d) p.x[d] = center[d] + (p[d] - 0.5) * 0.03125;
    }
    p.id = i;
    points.push_back(p);
  }
  const KdTree<kDimensions> tree(points);

  uint64_t checksum = 0;
  for (uint32_t q = 0; q < queries; ++q) {
    Point<kDimensions> from = uniform();
    if (q % 2 == 0) {
      from = points[random_below(&seed, count)];
      from.x[q % kDimensions] += 0x1p-12;
    }
    for (const auto& neighbour : tree.nearest(from, 8)) {
      checksum = mix(checksum, bits_of(neighbour.distance) + neighbour.id);
    }
  }
  for (uint32_t q = 0; q < ranges; ++q) {
    checksum = mix(checksum, tree.count_within(uniform(), 0.001953125 * (1 + q % 8)));
  }
  return report("kd_tree", mix(checksum, tree.visited()));
}
