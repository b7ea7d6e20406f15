// Areas and perimeters of a mixed collection of C++ objects through virtual functions. One kind is the usual
// one, two are rare, as in most real hierarchies.
//
// Arguments: thousands of shapes, repetitions.
#include <memory>
#include <vector>

#include "../../common/sample.h"

namespace {

class Shape {
 public:
  virtual ~Shape() = default;
  virtual double area() const = 0;
  virtual double perimeter() const = 0;
  virtual void grow(double by) = 0;
};

class Rectangle final : public Shape {
 public:
  Rectangle(double width, double height) : width_(width), height_(height) {}
  double area() const override { return width_ * height_; }
  double perimeter() const override { return 2 * (width_ + height_); }
  void grow(double by) override { width_ += by; }

 private:
  double width_, height_;
};

class Circle final : public Shape {
 public:
  explicit Circle(double radius) : radius_(radius) {}
  double area() const override { return kPi * radius_ * radius_; }
  double perimeter() const override { return 2 * kPi * radius_; }
  void grow(double by) override { radius_ += by; }

 private:
  static constexpr double kPi = 3.14159265358979323846;
  double radius_;
};

class Polygon final : public Shape {
 public:
  explicit Polygon(uint64_t* seed) {
    for (double& side : sides_) side = 1 + random_unit(seed);
  }
  double area() const override {
    double sum = 0;
    for (int i = 0; i < kSides; ++i) sum += sides_[i] * sides_[(i + 1) % kSides];
    return sum * 0.25;
  }
  double perimeter() const override {
    double sum = 0;
    for (double side : sides_) sum += side;
    return sum;
  }
  void grow(double by) override { sides_[0] += by; }

 private:
  static constexpr int kSides = 5;
  double sides_[kSides];
};

KERNEL double measure(const std::vector<std::unique_ptr<Shape>>& shapes) {
  double total = 0;
  for (const auto& shape : shapes) total += shape->area() / (1 + shape->perimeter());
  return total;
}

KERNEL void grow_all(const std::vector<std::unique_ptr<Shape>>& shapes, double by) {
  for (const auto& shape : shapes) shape->grow(by);
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 20);
  const uint32_t repetitions = argument(argc, argv, 2, 30000);

  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.reserve(count);
  uint64_t seed = 41;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t kind = random_below(&seed, 100);
    if (kind < 88) {
      const double width = 1 + random_unit(&seed);
      shapes.push_back(std::make_unique<Rectangle>(width, 1 + random_unit(&seed)));
    } else if (kind < 95) {
      shapes.push_back(std::make_unique<Circle>(1 + random_unit(&seed)));
    } else {
      shapes.push_back(std::make_unique<Polygon>(&seed));
    }
  }

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    if (r % 4 == 0) grow_all(shapes, 0x1p-10);
    checksum = mix(checksum, bits_of(measure(shapes)));
  }
  return report("shapes", checksum);
}
