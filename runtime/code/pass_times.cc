#include "runtime/code/pass_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace rt {

std::vector<jit::PassCost> PassTimes::sums() const {
  std::vector<jit::PassCost> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, sum] : sums_) all.push_back({name, sum.runs, sum.seconds});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const jit::PassCost& a, const jit::PassCost& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace rt

std::vector<std::string> FeedbackReport::pass_table(double least_share) const {
  std::vector<std::string> lines;
  double total = 0;
  for (const PassTime& pass : optimizer_passes) total += pass.seconds;
  if (total <= 0) return lines;
  lines.push_back(fmt::format("{:.1f} ms in passes of {:.1f} ms of compiling {} functions", 1e3 * total,
                              1e3 * optimized_compile_seconds, functions_optimized));
  lines.push_back("      ms   share     runs  pass");
  PassTime rest;
  size_t others = 0;
  for (const PassTime& pass : optimizer_passes) {
    if (pass.seconds < least_share * total) {
      ++others;
      rest.runs += pass.runs;
      rest.seconds += pass.seconds;
      continue;
    }
    lines.push_back(fmt::format("{:8.1f}  {:4.1f} % {:8}  {}", 1e3 * pass.seconds, 100 * pass.seconds / total,
                                pass.runs, pass.name));
  }
  if (others)
    lines.push_back(fmt::format("{:8.1f}  {:4.1f} % {:8}  {} others", 1e3 * rest.seconds,
                                100 * rest.seconds / total, rest.runs, others));
  return lines;
}

}  // namespace hindsight
