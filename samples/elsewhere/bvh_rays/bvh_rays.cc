// Traces rays through a scene of triangles with a hierarchy of boxes. It is built from the top by the surface-area
// heuristic over bins, and flattened to an array. Rays walk it with an explicit stack, the nearer child first.
// Rays from a camera hit a hilly ground with scattered shards over it. Each hit asks for shadow towards two lights and
// sends one reflected ray.
//
// Arguments: triangles on each side of the ground, thousands of shards, width and height of the picture.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../../common/sample.h"

namespace {

struct Vec3 {
  float x = 0, y = 0, z = 0;
  Vec3() = default;
  Vec3(float x, float y, float z) : x(x), y(y), z(z) {}
  float operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
};

inline Vec3 operator+(const Vec3& a, const Vec3& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vec3 operator-(const Vec3& a, const Vec3& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vec3 operator*(const Vec3& a, float s) {
  return {a.x * s, a.y * s, a.z * s};
}
inline float dot(const Vec3& a, const Vec3& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vec3 normalize(const Vec3& a) {
  return a * (1.0f / std::sqrt(dot(a, a)));
}

const float kInfinity = 1e30f;

struct Box {
  Vec3 low{kInfinity, kInfinity, kInfinity};
  Vec3 high{-kInfinity, -kInfinity, -kInfinity};

  void add(const Vec3& p) {
    low = Vec3(std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z));
    high = Vec3(std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z));
  }
  void add(const Box& b) {
    add(b.low);
    add(b.high);
  }
  float area() const {
    const Vec3 d = high - low;
    return d.x < 0 ? 0 : d.x * d.y + d.y * d.z + d.z * d.x;
  }
};

struct Triangle {
  Vec3 a, b, c;
  Vec3 centroid() const { return (a + b + c) * (1.0f / 3); }
};

struct Ray {
  Vec3 origin, direction, inverse;
  Ray(const Vec3& o, const Vec3& d) : origin(o), direction(d), inverse(1 / d.x, 1 / d.y, 1 / d.z) {}
};

struct Hit {
  float t = kInfinity;
  uint32_t triangle = UINT32_MAX;
};

// 32 bytes. A leaf has triangles from `first` on; an inner node has its children at `first` and after it.
struct BvhNode {
  Box box;
  uint32_t first;
  uint32_t count;
};

class Bvh {
 public:
  explicit Bvh(std::vector<Triangle> triangles) : triangles_(std::move(triangles)) {
    const uint32_t count = static_cast<uint32_t>(triangles_.size());
    order_.resize(count);
    centroids_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      order_[i] = i;
      centroids_[i] = triangles_[i].centroid();
    }
    nodes_.reserve(2 * count);
    nodes_.emplace_back();
    nodes_[0].first = 0;
    nodes_[0].count = count;
    update_box(0);
    subdivide(0, 1);
  }

  bool closest(const Ray& ray, Hit* hit) const {
    uint32_t stack[kMostDepth + 4];
    int top = 0;
    uint32_t current = 0;
    if (enter(nodes_[0].box, ray, hit->t) == kInfinity) return false;
    while (true) {
      const BvhNode& node = nodes_[current];
      if (node.count > 0) {
        for (uint32_t i = node.first; i < node.first + node.count; ++i) {
          const float t = intersect(triangles_[order_[i]], ray);
          if (t < hit->t || (t == hit->t && order_[i] < hit->triangle)) {
            hit->t = t;
            hit->triangle = order_[i];
          }
        }
        if (top == 0) break;
        current = stack[--top];
        continue;
      }
      uint32_t near = node.first, far = node.first + 1;
      float to_near = enter(nodes_[near].box, ray, hit->t);
      float to_far = enter(nodes_[far].box, ray, hit->t);
      if (to_far < to_near) {
        std::swap(near, far);
        std::swap(to_near, to_far);
      }
      if (to_near == kInfinity) {
        if (top == 0) break;
        current = stack[--top];
      } else {
        current = near;
        if (to_far != kInfinity) stack[top++] = far;
      }
    }
    return hit->triangle != UINT32_MAX;
  }

  bool occluded(const Ray& ray, float until) const {
    uint32_t stack[kMostDepth + 4];
    int top = 0;
    stack[top++] = 0;
    while (top > 0) {
      const BvhNode& node = nodes_[stack[--top]];
      if (enter(node.box, ray, until) == kInfinity) continue;
      if (node.count == 0) {
        stack[top++] = node.first + 1;
        stack[top++] = node.first;
        continue;
      }
      for (uint32_t i = node.first; i < node.first + node.count; ++i) {
        if (intersect(triangles_[order_[i]], ray) < until) return true;
      }
    }
    return false;
  }

  const Triangle& triangle(uint32_t index) const { return triangles_[index]; }
  size_t size() const { return nodes_.size(); }

 private:
  static constexpr int kBins = 8;
  static constexpr int kMostDepth = 60;

  void update_box(uint32_t index) {
    BvhNode& node = nodes_[index];
    node.box = Box();
    for (uint32_t i = node.first; i < node.first + node.count; ++i) {
      const Triangle& t = triangles_[order_[i]];
      node.box.add(t.a);
      node.box.add(t.b);
      node.box.add(t.c);
    }
  }

  void subdivide(uint32_t index, int depth) {
    const uint32_t first = nodes_[index].first, count = nodes_[index].count;
    if (count <= 2 || depth == kMostDepth) return;

    Box centers;
    for (uint32_t i = first; i < first + count; ++i) centers.add(centroids_[order_[i]]);
    int best_axis = -1, best_split = 0;
    float best_cost = count * nodes_[index].box.area();
    for (int axis = 0; axis < 3; ++axis) {
      const float low = centers.low[axis], extent = centers.high[axis] - low;
      if (!(extent > 0)) continue;
      struct Bin {
        Box box;
        uint32_t count = 0;
      } bins[kBins];
      const float scale = kBins / extent;
      for (uint32_t i = first; i < first + count; ++i) {
        const uint32_t which = order_[i];
        const int bin = std::min(kBins - 1, static_cast<int>((centroids_[which][axis] - low) * scale));
        ++bins[bin].count;
        bins[bin].box.add(triangles_[which].a);
        bins[bin].box.add(triangles_[which].b);
        bins[bin].box.add(triangles_[which].c);
      }
      float right_cost[kBins];
      Box right;
      uint32_t right_count = 0;
      for (int i = kBins - 1; i > 0; --i) {
        right.add(bins[i].box);
        right_count += bins[i].count;
        right_cost[i] = right_count * right.area();
      }
      Box left;
      uint32_t left_count = 0;
      for (int i = 0; i < kBins - 1; ++i) {
        left.add(bins[i].box);
        left_count += bins[i].count;
        if (left_count == 0 || left_count == count) continue;
        const float cost = left_count * left.area() + right_cost[i + 1];
        if (cost < best_cost) {
          best_cost = cost;
          best_axis = axis;
          best_split = i;
        }
      }
    }
    if (best_axis < 0) return;

    const float low = centers.low[best_axis], scale = kBins / (centers.high[best_axis] - low);
    uint32_t i = first, j = first + count;
    while (i < j) {
      if (std::min(kBins - 1, static_cast<int>((centroids_[order_[i]][best_axis] - low) * scale)) <=
          best_split) {
        ++i;
      } else {
        std::swap(order_[i], order_[--j]);
      }
    }

    const uint32_t children = static_cast<uint32_t>(nodes_.size());
    nodes_.resize(children + 2);
    nodes_[children].first = first;
    nodes_[children].count = i - first;
    nodes_[children + 1].first = i;
    nodes_[children + 1].count = first + count - i;
    nodes_[index].first = children;
    nodes_[index].count = 0;
    update_box(children);
    update_box(children + 1);
    subdivide(children, depth + 1);
    subdivide(children + 1, depth + 1);
  }

  // How far away the ray enters the box, or infinity where it misses it or something nearer was hit.
  static float enter(const Box& box, const Ray& ray, float until) {
    const float x1 = (box.low.x - ray.origin.x) * ray.inverse.x,
                x2 = (box.high.x - ray.origin.x) * ray.inverse.x;
    float first = std::min(x1, x2), last = std::max(x1, x2);
    const float y1 = (box.low.y - ray.origin.y) * ray.inverse.y,
                y2 = (box.high.y - ray.origin.y) * ray.inverse.y;
    first = std::max(first, std::min(y1, y2)), last = std::min(last, std::max(y1, y2));
    const float z1 = (box.low.z - ray.origin.z) * ray.inverse.z,
                z2 = (box.high.z - ray.origin.z) * ray.inverse.z;
    first = std::max(first, std::min(z1, z2)), last = std::min(last, std::max(z1, z2));
    return last >= first && first < until && last > 0 ? first : kInfinity;
  }

  // Moeller and Trumbore, 1997.
  static float intersect(const Triangle& triangle, const Ray& ray) {
    const Vec3 edge1 = triangle.b - triangle.a;
    const Vec3 edge2 = triangle.c - triangle.a;
    const Vec3 h = cross(ray.direction, edge2);
    const float determinant = dot(edge1, h);
    if (determinant > -1e-9f && determinant < 1e-9f) return kInfinity;
    const float f = 1 / determinant;
    const Vec3 s = ray.origin - triangle.a;
    const float u = f * dot(s, h);
    if (u < 0 || u > 1) return kInfinity;
    const Vec3 q = cross(s, edge1);
    const float v = f * dot(ray.direction, q);
    if (v < 0 || u + v > 1) return kInfinity;
    const float t = f * dot(edge2, q);
    return t > 1e-4f ? t : kInfinity;
  }

  std::vector<Triangle> triangles_;
  std::vector<uint32_t> order_;
  std::vector<Vec3> centroids_;
  std::vector<BvhNode> nodes_;
};

float uniform(uint64_t* seed) {
  return static_cast<float>(next_random(seed) >> 40) * 0x1p-24f;
}

// In braces, because a list is evaluated in order and arguments of a call need not be.
Vec3 uniform_point(uint64_t* seed) {
  return Vec3{uniform(seed), uniform(seed), uniform(seed)};
}

std::vector<Triangle> make_scene(uint32_t side, uint32_t shards, uint64_t* seed) {
  // Hills: coarse random heights, interpolated, and finer ones on top.
  const uint32_t coarse = 33;
  std::vector<float> hills(coarse * coarse);
  for (float& height : hills) height = uniform(seed) * 0.12f;
  std::vector<Vec3> ground((side + 1) * (side + 1));
  for (uint32_t row = 0; row <= side; ++row) {
    for (uint32_t column = 0; column <= side; ++column) {
      const float x = static_cast<float>(column) / side, z = static_cast<float>(row) / side;
      const float cx = x * (coarse - 1.001f), cz = z * (coarse - 1.001f);
      const uint32_t i = static_cast<uint32_t>(cx), j = static_cast<uint32_t>(cz);
      const float fx = cx - i, fz = cz - j;
      const float* at = &hills[j * coarse + i];
      const float height = (at[0] * (1 - fx) + at[1] * fx) * (1 - fz) +
                           (at[coarse] * (1 - fx) + at[coarse + 1] * fx) * fz + uniform(seed) * 0.5f / side;
      ground[row * (side + 1) + column] = Vec3(x, height, z);
    }
  }
  std::vector<Triangle> triangles;
  for (uint32_t row = 0; row < side; ++row) {
    for (uint32_t column = 0; column < side; ++column) {
      const Vec3* p = &ground[row * (side + 1) + column];
      triangles.push_back({p[0], p[1], p[side + 1]});
      triangles.push_back({p[1], p[side + 2], p[side + 1]});
    }
  }
  for (uint32_t i = 0; i < shards; ++i) {
    const Vec3 at{uniform(seed), 0.05f + 0.3f * uniform(seed), uniform(seed)};
    Vec3 corner[3];
    for (Vec3& c : corner) {
      c = at + (uniform_point(seed) - Vec3(0.5f, 0.5f, 0.5f)) * 0.006f;
    }
    triangles.push_back({corner[0], corner[1], corner[2]});
  }
  return triangles;
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t side = argument(argc, argv, 1, 500);
  const uint32_t shards = 1000 * argument(argc, argv, 2, 300);
  const uint32_t width = argument(argc, argv, 3, 800);
  const uint32_t height = argument(argc, argv, 4, 600);

  uint64_t seed = 1980;
  const Bvh bvh(make_scene(side, shards, &seed));
  uint64_t checksum = mix(0, bvh.size());

  const Vec3 lights[2] = {Vec3(0.1f, 1.5f, 0.2f), Vec3(1.4f, 0.9f, 0.7f)};
  const Vec3 eye(0.5f, 0.45f, -0.35f);
  uint32_t hits = 0, in_shadow = 0;
  for (uint32_t y = 0; y < height; ++y) {
    uint64_t row = 0;
    for (uint32_t x = 0; x < width; ++x) {
      const Vec3 target{(x + uniform(&seed)) / width, 0.35f - 0.5f * (y + uniform(&seed)) / height, 0.25f};
      Vec3 origin = eye, direction = normalize(target - eye);
      float light = 0, weight = 1;
      for (int bounce = 0; bounce < 2; ++bounce) {
        const Ray ray(origin, direction);
        Hit hit;
        if (!bvh.closest(ray, &hit)) {
          light += weight * 0.25f;
          break;
        }
        ++hits;
        const Triangle& t = bvh.triangle(hit.triangle);
        Vec3 normal = normalize(cross(t.b - t.a, t.c - t.a));
        if (dot(normal, direction) > 0) normal = normal * -1;
        const Vec3 at = origin + direction * hit.t + normal * 1e-4f;
        for (const Vec3& lamp : lights) {
          const Vec3 towards = lamp - at;
          const float distance = std::sqrt(dot(towards, towards));
          const Vec3 unit = towards * (1 / distance);
          const float cosine = dot(normal, unit);
          if (cosine <= 0) continue;
          if (bvh.occluded(Ray(at, unit), distance)) {
            ++in_shadow;
            continue;
          }
          light += weight * 0.5f * cosine;
        }
        weight *= 0.3f;
        direction = direction - normal * (2 * dot(normal, direction));
        origin = at;
      }
      const float clamped = light > 1 ? 1 : light;
      row = row * 31 + static_cast<uint32_t>(clamped * 255 + 0.5f);
    }
    checksum = mix(checksum, row);
  }
  checksum = mix(checksum, hits);
  checksum = mix(checksum, in_shadow);
  return report("bvh_rays", checksum);
}
