#include "runtime/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <tuple>

#include "runtime/report/trace_writer.h"

namespace hindsight::cli {
namespace {

struct Number {
  double value = 0;
  std::string_view suffix;
};

std::optional<Number> number_with_suffix(std::string_view text) {
  Number number;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number.value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number.value) || number.value < 0) return std::nullopt;
  number.suffix = text.substr(static_cast<size_t>(end - text.data()));
  return number;
}

Status with_option(const Error& error, const char* option) {
  return make_error(error.kind, error.message, option, error.offset);
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto number = number_with_suffix(text);
  double unit = 0;
  if (number) {
    if (number->suffix.empty() || number->suffix == "s") unit = 1000;
    if (number->suffix == "ms") unit = 1;
    if (number->suffix == "m") unit = 60'000;
  }
  if (unit == 0) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("'{}' is no duration; write seconds (2, 0.5s), milliseconds (500ms) or minutes (3m)",
                    text));
  }
  const double milliseconds = number->value * unit;
  // Ten years: far above any use, far below any overflow.
  if (milliseconds < 1 || milliseconds > 3.2e11) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("'{}' is out of range; a duration is at least 1ms", text));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(std::llround(milliseconds)));
}

Result<uint64_t> parse_size(std::string_view text) {
  const auto bad = [&] {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("'{}' is no size; write bytes, or a number with K, M or G (64M, 2G)", text));
  };
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return bad();
  std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  uint32_t shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view kLetters = "KMG";
    const size_t letter = kLetters.find(static_cast<char>(suffix[0] & ~0x20));
    if (letter != std::string_view::npos) {
      shift = 10 * static_cast<uint32_t>(letter + 1);
      suffix.remove_prefix(1);
      if (suffix.starts_with('i')) suffix.remove_prefix(1);
    }
    if (suffix == "B" || suffix == "b") suffix = {};
    if (!suffix.empty()) return bad();
  }
  if (value > (UINT64_MAX >> shift)) return bad();
  return value << shift;
}

Result<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return make_error(ErrorKind::kUsage, fmt::format("'{}' is neither on nor off", text));
}

Result<TierMode> parse_tier(std::string_view text) {
  if (text == "auto") return TierMode::kAuto;
  if (text == "baseline") return TierMode::kBaseline;
  if (text == "optimized") return TierMode::kOptimized;
  return make_error(ErrorKind::kUsage,
                    fmt::format("'{}' is no tier; one of auto, baseline, optimized", text));
}

Status parse_limit(std::string_view text, StoreLimits& limits) {
  const size_t cut = text.find('=');
  const auto limit = std::ranges::find(kStoreLimitNames, text.substr(0, cut), &StoreLimitName::name);
  if (cut == std::string_view::npos || limit == kStoreLimitNames.end()) {
    std::vector<std::string_view> names;
    for (const StoreLimitName& known : kStoreLimitNames) names.push_back(known.name);
    return make_error(ErrorKind::kUsage,
                      fmt::format("'{}' is no limit; write NAME=NUMBER, where NAME is one of {}", text,
                                  fmt::join(names, ", ")));
  }
  HINDSIGHT_ASSIGN(limits.*limit->value, parse_size(text.substr(cut + 1)));
  return {};
}

Result<std::pair<uint32_t, uint32_t>> parse_index_range(std::string_view text) {
  std::pair<uint32_t, uint32_t> range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '-') {
    const auto last = std::from_chars(first.ptr + 1, end, range.second);
    if (last.ec == std::errc() && last.ptr == end && range.first <= range.second) return range;
  }
  return make_error(ErrorKind::kUsage,
                    fmt::format("'{}' is no range of function indices such as 12-40", text));
}

Status check_decision(std::string_view text) {
  const auto names = decision_names();
  if (std::find(names.begin(), names.end(), text) != names.end()) return {};
  return make_error(ErrorKind::kUsage,
                    fmt::format("'{}' is no decision; there are {}", text, fmt::join(names, ", ")),
                    "--without");
}

Status check_unit(std::string_view text) {
  constexpr std::array<std::string_view, 8> kUnits = {"auto",        "native", "hardware", "clock",
                                                      "clock-timer", "time",   "model",    "none"};
  if (std::find(kUnits.begin(), kUnits.end(), text) != kUnits.end()) return {};
  return make_error(ErrorKind::kUsage, fmt::format("'{}' is no LWP unit; one of auto, native, hardware, "
                                                   "clock, clock-timer, model, time where "
                                                   "feedback is off, or none with a fixed tier "
                                                   "(`hindsight lwp info` says which this machine offers)",
                                                   text));
}

Result<std::pair<std::string, std::string>> parse_directory(std::string_view text) {
  const size_t cut = text.find("::");
  std::string host(text.substr(0, cut));
  std::string guest(cut == std::string_view::npos ? text : text.substr(cut + 2));
  if (host.empty() || guest.empty()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("'{}' names no directory; write HOST or HOST::GUEST", text));
  }
  return std::pair{std::move(host), std::move(guest)};
}

Result<std::pair<std::string, std::string>> parse_environment(std::string_view text) {
  const size_t cut = text.find('=');
  if (cut == std::string_view::npos || cut == 0) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is no variable; write KEY=VALUE", text));
  }
  return std::pair{std::string(text.substr(0, cut)), std::string(text.substr(cut + 1))};
}

Result<RunPlan> plan_run(const RunOptions& options) {
  RunPlan plan;
  const auto take = [](auto&& result, const char* option, auto&& target) -> Status {
    if (!result) return with_option(result.error(), option);
    target = std::move(*result);
    return {};
  };
  if (options.program.empty()) {
    return make_error(ErrorKind::kUsage,
                      "no module named; write the path of a .wasm or .wat file after the options");
  }
  plan.module_path = options.program.front();
  if (plan.module_path.starts_with("-") && plan.module_path != "-") {
    return make_error(ErrorKind::kUsage,
                      fmt::format("unknown option '{}'; options of the guest come after the module's path",
                                  plan.module_path));
  }
  plan.guest_args.assign(options.program.begin() + 1, options.program.end());
  // One "--" after the path separates for people who are used to it; everything after it is the guest's.
  if (!plan.guest_args.empty() && plan.guest_args.front() == "--")
    plan.guest_args.erase(plan.guest_args.begin());

  HINDSIGHT_TRY(take(parse_tier(options.tier), "--tier", plan.engine.tier));
  if (!options.optimize_only.empty()) {
    std::pair<uint32_t, uint32_t> range;
    HINDSIGHT_TRY(take(parse_index_range(options.optimize_only), "--optimize-only", range));
    std::tie(plan.engine.first_optimized, plan.engine.last_optimized) = range;
  }
  HINDSIGHT_TRY(take(parse_switch(options.feedback), "--feedback", plan.engine.feedback));
  for (const std::string& name : options.without) HINDSIGHT_TRY(check_decision(name));
  plan.engine.disabled_decisions = options.without;
  if (const Status unit = check_unit(options.unit); !unit)
    return std::unexpected(with_option(unit.error(), "--unit").error());
  plan.engine.unit = options.unit;
  if (options.unit == "none") {
    plan.engine.unit = "auto";
    plan.engine.profiling = false;
  }
  if (!options.model.empty() && options.unit != "model") {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("changes the processor of the model unit, and the unit is {}; add --unit model",
                    options.unit),
        "--model");
  }
  plan.engine.model = options.model;
  if (!options.timeout.empty())
    HINDSIGHT_TRY(take(parse_duration(options.timeout), "--timeout", plan.timeout));
  if (!options.max_memory.empty()) {
    HINDSIGHT_TRY(take(parse_size(options.max_memory), "--max-memory", plan.engine.max_memory_bytes));
    // Bounds all memories together, and as much again for what else a program can have that grows without
    // end.
    StoreLimits& limits = plan.engine.limits;
    limits.memory_bytes = plan.engine.max_memory_bytes;
    limits.table_bytes = std::min(limits.table_bytes, limits.memory_bytes);
    limits.exception_bytes = std::min(limits.exception_bytes, limits.memory_bytes);
  }
  for (const std::string& limit : options.limits) {
    if (const Status parsed = parse_limit(limit, plan.engine.limits); !parsed)
      return std::unexpected(with_option(parsed.error(), "--limit").error());
  }
  if (!options.code_cache_size.empty()) {
    HINDSIGHT_TRY(
        take(parse_size(options.code_cache_size), "--code-cache-size", plan.engine.code_cache_bytes));
  }
  // Who looks for a function that the optimizer gets wrong wants it compiled.
  if (!options.no_code_cache && options.optimize_only.empty())
    plan.engine.code_cache_directory = options.code_cache;
  if (!options.no_profile && options.optimize_only.empty())
    plan.engine.profile_directory = options.profile_directory;
  plan.engine.guard_pages = !options.no_guard_pages;
  plan.engine.profile_in = options.profile_in;
  plan.engine.time_passes = options.verbosity > 0;
  plan.engine.log_level = options.verbosity > 1 ? LogLevel::kDebug : LogLevel::kInfo;
  plan.profile_out = options.profile_out;
  plan.report = options.report;
  plan.trace = options.trace;
  plan.trace_limit = options.trace_limit;
  if (!plan.trace.empty()) {
    if (const auto format = report::trace_format_of(plan.trace); !format)
      return std::unexpected(with_option(format.error(), "--trace").error());
    if (!plan.engine.profiling)
      return make_error(ErrorKind::kUsage, "without a unit there are no records to trace", "--trace");
  }
  plan.engine.guest_lwp = true;
  plan.invoke = options.invoke;

  plan.wasi.args = plan.guest_args;
  plan.wasi.args.insert(plan.wasi.args.begin(), plan.module_path);
  for (const auto& text : options.directories) {
    HINDSIGHT_TRY(take(parse_directory(text), "--dir", plan.wasi.preopens.emplace_back()));
  }
  for (const auto& text : options.environment) {
    HINDSIGHT_TRY(take(parse_environment(text), "--env", plan.wasi.env.emplace_back()));
  }
  return plan;
}

}  // namespace hindsight::cli
