// How long the optimizing tier takes a function, against what the policy expects (feedback/policy/parameters.h):
// compile_cost [--points] FILE.wasm...
//
// Every function of the modules, alone, with entries for on-stack replacement of as many loops as a policy asks for. Prints
// the line of least absolute deviations and how far the policy's own is from what was measured; of small and of large
// functions too. --points: each function's bytes and CPU seconds instead.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "feedback/policy/policy.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace {

using namespace hindsight;

struct Point {
  double bytes, seconds;
};

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// fixed + slope * bytes of least absolute deviations. For a slope the best `fixed` is the median of what is left, and the
// sum of deviations is convex in the slope.
struct Line {
  double fixed = 0, slope = 0;
};
Line fit(const std::vector<Point>& points) {
  const auto fixed_for = [&](double slope) {
    std::vector<double> rest;
    for (const Point& p : points) rest.push_back(p.seconds - slope * p.bytes);
    return median(std::move(rest));
  };
  const auto deviations = [&](double slope) {
    const double fixed = fixed_for(slope);
    double sum = 0;
    for (const Point& p : points) sum += std::abs(p.seconds - fixed - slope * p.bytes);
    return sum;
  };
  double low = 0, high = 1e-3;
  for (int step = 0; step < 60; ++step) {
    const double third = (high - low) / 3;
    if (deviations(low + third) <= deviations(high - third))
      high -= third;
    else
      low += third;
  }
  return {fixed_for((low + high) / 2), (low + high) / 2};
}

void compare(const char* which, const std::vector<Point>& points, const feedback::PolicyConfig& policy) {
  if (points.empty()) return;
  double bytes = 0, seconds = 0;
  std::vector<double> ratios;
  for (const Point& p : points) {
    bytes += p.bytes;
    seconds += p.seconds;
    ratios.push_back(p.seconds / feedback::compile_seconds(0, static_cast<uint32_t>(p.bytes), policy));
  }
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))];
  };
  const Line line = fit(points);
  std::printf(
      "%s: %zu functions, %.0f bytes, %.0f ms; fits best: %.2f ms + %.2f us a byte; measured over expected: "
      "least %.2f, quartiles %.2f %.2f %.2f, most %.2f\n",
      which, points.size(), bytes, 1e3 * seconds, 1e3 * line.fixed, 1e6 * line.slope, ratios.front(),
      at(0.25), at(0.5), at(0.75), ratios.back());
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<jit::Optimizer> optimizer(hindsight_create_optimizer());
  const feedback::PolicyConfig policy;
  const bool print_points = argc > 1 && std::string_view(argv[1]) == "--points";
  std::vector<Point> points;
  std::set<std::string> seen;  // the C library is the same in all
  for (int i = print_points ? 2 : 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    auto module =
        wasm::decode_module(std::vector<uint8_t>{std::istreambuf_iterator<char>(file), {}}, argv[i]);
    auto arena = jit::CodeArena::create();
    if (!module || !arena) continue;
    for (uint32_t f = (*module)->imported_functions; f < (*module)->function_count(); ++f) {
      const wasm::FunctionBody& body = (*module)->body(FuncIndex(f));
      const auto* bytes = reinterpret_cast<const char*>((*module)->bytes.data());
      if (!seen.emplace(bytes + body.begin.value, bytes + body.end.value).second) continue;
      jit::OptimizeRequest request;
      request.module = *module;
      request.function = FuncIndex(f);
      for (uint32_t loop = 0; loop < std::min<size_t>(policy.max_osr_loops, body.loops.size()); ++loop)
        request.osr_loops.push_back(LoopIndex(loop));
      double least = 1e9;
      for (int run = 0; run < 2; ++run)
        if (auto result = optimizer->compile(request, **arena))
          least = std::min(least, result->version->compile_seconds);
      if (least < 1e9) points.push_back({static_cast<double>(body.end.value - body.begin.value), least});
    }
  }
  if (points.empty()) return 1;
  if (print_points) {
    for (const Point& p : points) std::printf("%.0f %.6f\n", p.bytes, p.seconds);
    return 0;
  }
  std::printf("the policy expects %.2f ms + %.2f us a byte\n", 1e3 * policy.compile_fixed_seconds,
              1e6 * policy.compile_seconds_per_byte);
  compare("all", points, policy);
  for (const auto& [which, least, most] : {std::tuple{"up to 300 bytes", 0, 300},
                                           {"up to 1,000", 300, 1000},
                                           {"up to 3,000", 1000, 3000},
                                           {"larger", 3000, 1 << 30}}) {
    std::vector<Point> some;
    std::copy_if(points.begin(), points.end(), std::back_inserter(some),
                 [&](const Point& p) { return p.bytes > least && p.bytes <= most; });
    compare(which, some, policy);
  }
}
