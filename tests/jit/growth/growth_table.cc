// How the time to decode and to compile grows, shape by shape: the table from which the bounds of
// growth_test come.
//
// Usage: growth_table [FILTER [SCALE [STAGE]]]   shapes whose names contain FILTER, their sizes times SCALE,
// STAGE alone
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/jit/growth/measure.h"

int main(int argc, char** argv) {
  using namespace hindsight::jit::testing;
  const std::string filter = argc > 1 ? argv[1] : "";
  const double scale = argc > 2 ? std::atof(argv[2]) : 1;
  const std::string only = argc > 3 ? argv[3] : "";
  std::printf("%-28s %9s %10s | %9s %9s %6s | heap bytes a byte, code bytes a byte\n", "", "size", "bytes",
              "ms", "ms at 4n", "ratio");
  std::vector<Shape> all = shapes();
  for (Shape& shape : hostile_shapes()) all.push_back(std::move(shape));
  for (const Shape& shape : all) {
    if (shape.name.find(filter) == std::string::npos) continue;
    for (const Stage stage : {Stage::kDecode, Stage::kBaseline, Stage::kOptimize}) {
      if (!only.empty() && only != to_string(stage)) continue;
      const auto n = static_cast<uint32_t>(scale * size_of(shape, stage));
      if (n == 0) continue;
      const Measured small = measure(shape.make(n), stage);
      const Measured large = measure(shape.make(4 * n), stage);
      std::printf("%-28s %9u %10zu | %9.2f %9.2f %6.2f | %6.1f %6.1f %s %s%s\n", shape.name.c_str(), n,
                  small.wasm_bytes, 1e3 * small.seconds, 1e3 * large.seconds, large.seconds / small.seconds,
                  static_cast<double>(large.peak_bytes) / static_cast<double>(large.wasm_bytes),
                  static_cast<double>(large.code_bytes) / static_cast<double>(large.wasm_bytes),
                  to_string(stage), small.error.c_str(), large.error.c_str());
      for (size_t i = 0; i < std::min<size_t>(4, large.passes.size()); ++i)
        std::printf("%28s %7.1f ms %s\n", "", 1e3 * large.passes[i].seconds, large.passes[i].name.c_str());
      if (!large.left_out.empty()) std::printf("%28s without %s\n", "", large.left_out.c_str());
      std::fflush(stdout);
    }
  }
}
