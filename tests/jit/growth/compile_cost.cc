// How long the optimizing tier takes, and for what:
// compile_cost [--points|--passes|--code] FILE.wasm...
//
// Every function of the modules, alone, with entries for on-stack replacement of as many loops as a policy asks for. Prints
// the line of least absolute deviations and how far the policy's own (feedback/policy/parameters.h) is from what was
// measured; of small and of large functions too. --points: each function's bytes and CPU seconds instead.
//
// --passes and --code: functions without such entries, and loops as nests, of 40 to 2,500 bytes. --passes prints the CPU time of all by
// step and by LLVM's pass, --code a line for each: its instructions and a hash of its assembly, without positions. Two builds
// with the same lines make the same code.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "feedback/policy/policy.h"
#include "jit/code/unit.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/loop_nests.h"
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
    ratios.push_back(p.seconds / feedback::compile_seconds(0, static_cast<uint32_t>(p.bytes), 1, policy));
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

std::shared_ptr<const wasm::Module> read_module(const char* path) {
  std::ifstream file(path, std::ios::binary);
  auto module = wasm::decode_module(std::vector<uint8_t>{std::istreambuf_iterator<char>(file), {}}, path);
  return module ? *module : nullptr;
}

// The C library is the same in all modules.
class Seen {
 public:
  bool is_new(const wasm::Module& module, uint32_t function) {
    const wasm::FunctionBody& body = module.body(FuncIndex(function));
    const auto* bytes = reinterpret_cast<const char*>(module.bytes.data());
    return seen_.emplace(bytes + body.begin.value, bytes + body.end.value).second;
  }

 private:
  std::set<std::string> seen_;
};

struct Assembly {
  size_t instructions = 0, hash = 0;
};
// Of the text behind the IR in OptimizeResult::dump, up to what debuggers read.
Assembly assembly_in(const std::string& dump) {
  Assembly assembly;
  std::istringstream lines(dump.substr(std::min(dump.find("\t.text"), dump.size())));
  std::string code;
  for (std::string line; std::getline(lines, line) && !line.starts_with("\t.section\t.debug");) {
    if (line.starts_with("\t.loc") || line.starts_with(".Ltmp")) continue;
    line.resize(std::min(line.find('#'), line.size()));
    if (line.size() > 1 && line[0] == '\t' && line[1] != '.') ++assembly.instructions;
    if (!line.empty()) code += line + '\n';
  }
  assembly.hash = std::hash<std::string>()(code);
  return assembly;
}

// Functions and nests of the module that --passes and --code compile.
std::vector<jit::Unit> units_of(const wasm::Module& module, Seen& seen) {
  constexpr uint32_t kLeast = 40, kMost = 2500;
  const auto fits = [](WasmOffset begin, WasmOffset end) {
    return end.value - begin.value >= kLeast && end.value - begin.value <= kMost;
  };
  std::vector<jit::Unit> units;
  for (uint32_t f = module.imported_functions; f < module.function_count(); ++f) {
    if (!seen.is_new(module, f)) continue;
    const wasm::FunctionBody& body = module.body(FuncIndex(f));
    if (fits(body.begin, body.end)) units.push_back({FuncIndex(f), std::nullopt});
    for (uint32_t loop = 0; loop < body.loops.size(); ++loop)
      if (fits(body.loops[loop].offset, body.loops[loop].end) &&
          wasm::why_no_nest(module, FuncIndex(f), LoopIndex(loop)).empty())
        units.push_back({FuncIndex(f), LoopIndex(loop)});
  }
  return units;
}

int compile_units(jit::Optimizer& optimizer, std::span<char*> files, bool code) {
  Seen seen;
  std::map<std::string, double> steps, passes;
  double all = 0;
  size_t count = 0, bytes = 0;
  for (const char* file : files) {
    const std::shared_ptr<const wasm::Module> module = read_module(file);
    auto arena = jit::CodeArena::create();
    if (!module || !arena) continue;
    for (const jit::Unit unit : units_of(*module, seen)) {
      jit::OptimizeRequest request;
      request.module = module;
      request.function = unit.function;
      request.nest = unit.nest;
      request.loop_exits = unit.nest.has_value();
      request.verify = false;
      request.time_passes = !code;
      request.dump_ir = code;
      const auto result = optimizer.compile(request, **arena);
      if (!result) continue;
      ++count;
      all += result->version->compile_seconds;
      bytes += result->version->code_size.value;
      for (const jit::PassTime& step : result->version->pass_times) steps[step.name] += step.seconds;
      for (const jit::PassCost& pass : result->passes) passes[pass.name] += pass.seconds;
      if (!code) continue;
      const Assembly assembly = assembly_in(result->dump);
      std::printf("%s %u %d %zu %zx\n", file, unit.function.value,
                  unit.nest ? static_cast<int>(unit.nest->value) : -1, assembly.instructions, assembly.hash);
    }
  }
  if (code) return 0;
  std::printf("%zu functions and loops, %.1f ms, %zu bytes of code\n", count, 1e3 * all, bytes);
  for (const auto* times : {&steps, &passes}) {
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto& [name, seconds] : *times) sorted.emplace_back(seconds, name);
    std::sort(sorted.rbegin(), sorted.rend());
    for (const auto& [seconds, name] : sorted)
      std::printf("%10.1f ms %5.1f %%  %s\n", 1e3 * seconds, 100 * seconds / all, name.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<jit::Optimizer> optimizer(hindsight_create_optimizer());
  const feedback::PolicyConfig policy;
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (option == "--passes" || option == "--code")
    return compile_units(*optimizer, std::span(argv, static_cast<size_t>(argc)).subspan(2),
                         option == "--code");
  const bool print_points = option == "--points";
  std::vector<Point> points;
  Seen seen;
  for (int i = print_points ? 2 : 1; i < argc; ++i) {
    const std::shared_ptr<const wasm::Module> module = read_module(argv[i]);
    auto arena = jit::CodeArena::create();
    if (!module || !arena) continue;
    for (uint32_t f = module->imported_functions; f < module->function_count(); ++f) {
      if (!seen.is_new(*module, f)) continue;
      const wasm::FunctionBody& body = module->body(FuncIndex(f));
      jit::OptimizeRequest request;
      request.module = module;
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
