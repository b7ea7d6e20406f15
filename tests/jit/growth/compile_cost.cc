// How long the optimizing tier takes a function, against what the policy expects (feedback/policy/policy.h):
// compile_cost FILE.wasm...
//
// Every function of the modules, alone, with entries for on-stack replacement of as many loops as a policy
// asks for. Prints the line that fits best and how far the policy's own is from what was measured.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "feedback/policy/policy.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

int main(int argc, char** argv) {
  using namespace hindsight;
  const std::unique_ptr<jit::Optimizer> optimizer(hindsight_create_optimizer());
  const feedback::PolicyConfig policy;
  struct Point {
    double bytes, seconds;
  };
  std::vector<Point> points;
  std::set<std::string> seen;  // the C library is the same in all
  for (int i = 1; i < argc; ++i) {
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
  if (points.size() < 2) return 1;
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, total = 0, expected_total = 0;
  std::vector<double> ratios;
  for (const Point& p : points) {
    n += 1, x += p.bytes, y += p.seconds, xx += p.bytes * p.bytes, xy += p.bytes * p.seconds;
    const double expected = policy.compile_fixed_seconds + policy.compile_seconds_per_byte * p.bytes;
    total += p.seconds;
    expected_total += expected;
    ratios.push_back(p.seconds / expected);
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x), fixed = (y - slope * x) / n;
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))];
  };
  std::printf("%zu functions, %.0f bytes, %.0f ms\n", points.size(), x, 1e3 * total);
  std::printf("fits best: %.2f ms + %.2f us a byte\n", 1e3 * fixed, 1e6 * slope);
  std::printf(
      "the policy's %.2f ms + %.2f us a byte: %.0f ms in all; measured over expected: least %.2f, quartiles "
      "%.2f %.2f %.2f, most %.2f\n",
      1e3 * policy.compile_fixed_seconds, 1e6 * policy.compile_seconds_per_byte, 1e3 * expected_total,
      ratios.front(), at(0.25), at(0.5), at(0.75), ratios.back());
}
