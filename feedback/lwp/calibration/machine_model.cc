#include "feedback/lwp/calibration/machine_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feedback/lwp/calibration/calibration_cache.h"
#include "feedback/lwp/calibration/pointer_chase.h"

namespace hindsight::lwp {
namespace {

constexpr std::string_view kMachine = "machine";
constexpr uint32_t kWays = 8, kLastLevelWays = 16;

// The latency of a random chase over so many bytes, when what fits is there; nanoseconds a step.
double latency_ns(std::byte* data, uint64_t bytes, double tsc_ghz) {
  chase::Random random;
  const uint64_t lines = bytes / chase::kLine;
  void* at = chase::make_cycle(data, lines, chase::kLine, random);
  chase::Stretches ignored, steps;
  chase::walk(at, 2 * lines, ignored);
  chase::walk(at, lines, steps);
  return steps.median() / tsc_ghz;
}

uint64_t cycles(const Calibration& c, const LevelTiming& level) {
  return static_cast<uint64_t>(std::max(1.0, std::round(level.latency_ns * c.core_ghz)));
}

// Sets are a power of two.
uint64_t power_of_two_below(uint64_t bytes) {
  uint64_t size = 1;
  while (size <= bytes / 2) size *= 2;
  return size;
}

}  // namespace

uint64_t last_level_share(const Calibration& c) {
  if (!c.l3.measured() || !c.memory.measured() || c.l2.bytes == 0 || c.tsc_ghz <= 0) return 0;
  const chase::Mapping memory(c.l3.bytes, chase::Pages::kSmall);
  if (!memory.data()) return 0;
  const double slowest = 0.75 * c.l3.latency_ns + 0.25 * c.memory.latency_ns;
  uint64_t share = 0;
  for (uint64_t bytes = power_of_two_below(2 * c.l2.bytes); bytes <= c.l3.bytes; bytes *= 2) {
    if (latency_ns(memory.data(), bytes, c.tsc_ghz) >= slowest) break;
    share = bytes;
  }
  return share;
}

std::string machine_words(const Calibration& c, uint64_t share) {
  std::string words;
  const auto level = [&](std::string_view name, const LevelTiming& timing, uint64_t bytes, uint32_t ways) {
    if (!timing.measured() || bytes == 0) {
      if (name == "l3") words += "l3=off,";
      return;
    }
    words += fmt::format("{}={}K/{}/{},", name, power_of_two_below(bytes) >> 10, ways, cycles(c, timing));
  };
  level("l1", c.l1, c.l1.bytes, kWays);
  level("l2", c.l2, c.l2.bytes, kWays);
  level("l3", c.l3, share, kLastLevelWays);
  if (c.memory.measured()) words += fmt::format("memory={},", cycles(c, c.memory));
  words.pop_back();  // the comma; there is l3 at least
  return words;
}

Result<std::string> resolve_model(std::string_view words) {
  const std::string_view first = words.substr(0, words.find(','));
  if (first != kMachine) return std::string(words);
  HINDSIGHT_ASSIGN(const MachineCalibration known, machine_calibration(/*anew=*/false));
  std::string resolved = machine_words(known.values, last_level_share(known.values));
  resolved += words.substr(first.size());
  return resolved;
}

}  // namespace hindsight::lwp
