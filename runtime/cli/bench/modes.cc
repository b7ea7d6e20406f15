#include "runtime/cli/bench/modes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace hindsight::cli {
namespace {

const Family* find_family(std::string_view name) {
  const auto found = std::ranges::find(kFamilies, name, &Family::name);
  return found == kFamilies.end() ? nullptr : &*found;
}

void add_decisions(const Family& family, std::vector<std::string>& names) {
  for (const std::string_view decision : family.decisions)
    if (!decision.empty()) names.emplace_back(decision);
}

// The decisions that a mode goes without, whatever else it says; empty: the word is no mode.
std::optional<std::vector<std::string>> switched_off(std::string_view mode) {
  std::vector<std::string> off;
  constexpr std::string_view kAllBut = "feedback-";
  if (mode == "feedback") return off;
  if (mode.starts_with(kAllBut)) {
    const std::string_view name = mode.substr(kAllBut.size());
    if (const Family* family = find_family(name)) {
      add_decisions(*family, off);
      return off;
    }
    if (std::ranges::find(decision_names(), name) == decision_names().end()) return std::nullopt;
    off.emplace_back(name);
    return off;
  }
  std::vector<const Family*> on;
  for (size_t begin = 0; begin <= mode.size();) {
    const size_t end = std::min(mode.find('+', begin), mode.size());
    const Family* family = find_family(mode.substr(begin, end - begin));
    if (family == nullptr || std::ranges::find(on, family) != on.end()) return std::nullopt;
    on.push_back(family);
    begin = end + 1;
  }
  for (const Family& family : kFamilies)
    if (std::ranges::find(on, &family) == on.end()) add_decisions(family, off);
  return off;
}

}  // namespace

Status apply_mode(std::string_view mode, EngineConfig& config) {
  config.tier = TierMode::kAuto;
  config.feedback = false;
  if (mode == "baseline") {
    config.tier = TierMode::kBaseline;
    config.profiling = false;  // a fixed tier needs none
    return {};
  }
  if (mode == "plain") {
    config.unit = "time";  // whatever the other modes use
    return {};
  }
  if (mode == "optimized") return {};
  const auto off = switched_off(mode);
  if (!off) {
    std::vector<std::string_view> families;
    for (const Family& family : kFamilies) families.push_back(family.name);
    return make_error(ErrorKind::kUsage,
                      fmt::format("'{}' is no mode; there are baseline, plain, optimized, feedback, any of "
                                  "{} joined by '+', and feedback-NAME without one of these or one decision",
                                  mode, fmt::join(families, ", ")));
  }
  config.feedback = true;
  config.disabled_decisions.insert(config.disabled_decisions.end(), off->begin(), off->end());
  return {};
}

std::vector<std::string> split_modes() {
  std::vector<std::string> modes{"plain", "optimized"};
  std::string families;
  for (const Family& family : kFamilies) {
    families += (families.empty() ? "" : "+") + std::string(family.name);
    modes.push_back(families);
  }
  modes.back() = "feedback";  // all families together
  return modes;
}

std::vector<report::SplitStep> split_steps() {
  const std::vector<std::string> modes = split_modes();
  std::vector<report::SplitStep> steps{{"counting", modes[1], modes[0]}};
  for (size_t k = 0; k < kFamilies.size(); ++k)
    steps.push_back({std::string(kFamilies[k].name), modes[k + 2], modes[k + 1]});
  return steps;
}

}  // namespace hindsight::cli
