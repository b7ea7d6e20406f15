// Two saved profiles side by side: which decisions are other ones, which outcomes, and what was seen
// otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/printable.h"
#include "runtime/engine/hindsight.h"
#include "runtime/tools/printable_profile.h"
#include "runtime/tools/profile_sources.h"
#include "runtime/tools/profile_words.h"

namespace hindsight {
namespace {

using namespace feedback;
using rt::share_text;

// What is worth a line: changes of a share of the samples, or of a rate, by this much.
constexpr double kWorthALine = 0.05;
// Below, a rate is noise.
constexpr double kEnoughCounts = 32;

struct Side {
  const ModuleProfile* module = nullptr;
  double samples = 0;  // of all functions
};

Side side_of(const ModuleProfile* module) {
  Side side{module};
  if (module != nullptr)
    for (const FunctionSamples& s : module->samples) side.samples += s.samples;
  return side;
}

const FunctionSamples* samples_of(const Side& side, uint32_t function) {
  if (side.module != nullptr)
    for (const FunctionSamples& s : side.module->samples)
      if (s.function.value == function) return &s;
  return nullptr;
}

const FunctionEvidence* evidence_of(const Side& side, uint32_t function) {
  if (side.module != nullptr)
    for (const FunctionEvidence& e : side.module->functions)
      if (e.function.value == function) return &e;
  return nullptr;
}

// The last decision about the function.
const Episode* decision_of(const Side& side, uint32_t function) {
  const Episode* last = nullptr;
  if (side.module != nullptr)
    for (const Episode& e : side.module->episodes)
      if (e.evidence.function.value == function) last = &e;
  return last;
}

std::string name_of(const Side& side, uint32_t function) {
  if (const FunctionSamples* s = samples_of(side, function)) return s->name;
  if (const Episode* e = decision_of(side, function)) return e->evidence.name;
  if (const FunctionEvidence* e = evidence_of(side, function)) return e->name;
  return {};
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// A ratio on both sides, if both are known and differ enough.
void compare(const std::string& what, double part_before, double before, double part_after, double after,
             std::vector<std::string>& lines) {
  if (before < kEnoughCounts || after < kEnoughCounts) return;
  if (std::abs(share(part_before, before) - share(part_after, after)) < kWorthALine) return;
  lines.push_back(
      fmt::format("{}: {} -> {}", what, share_text(part_before, before), share_text(part_after, after)));
}

std::string decision_text(const Episode* e) {
  if (e == nullptr) return "nothing decided";
  std::string text =
      fmt::format("{} ({})", e->action, e->state == DecisionState::kNone ? "no outcome" : state_text(*e));
  if (const size_t calls = e->asked_for(jit::ChangeKind::kInlineCalls).size(); calls > 0)
    text += fmt::format(", targets of {} calls inlined", calls);
  return text;
}

std::string diff_text(jit::Site site, const Outcome* outcome) {
  if (outcome == nullptr) return "none";
  std::string text = to_string(outcome->state);
  if (outcome->state == ChangeState::kKept || outcome->state == ChangeState::kRolledBack)
    text += fmt::format(" ({:+.1f} %{})", 100 * outcome->gain,
                        jit::is_tuned(site.kind) ? fmt::format(" at {}", outcome->setting) : std::string());
  return text;
}

void diff_decisions(const Episode* before, const Episode* after, std::vector<std::string>& lines) {
  if (decision_text(before) != decision_text(after))
    lines.push_back(fmt::format("decision: {} -> {}", decision_text(before), decision_text(after)));
  constexpr jit::ChangeKind kCalls = jit::ChangeKind::kInlineCalls;
  if (before && after && before->asked_for(kCalls) != after->asked_for(kCalls) &&
      before->asked_for(kCalls).size() == after->asked_for(kCalls).size())
    lines.push_back("decision: targets of other calls are inlined");
  std::set<jit::Site> sites;
  for (const Episode* e : {before, after})
    if (e != nullptr)
      for (const auto& [site, outcome] : e->outcomes) sites.insert(site);
  for (const jit::Site& site : sites) {
    const Outcome* const a = before ? before->outcomes.find(site) : nullptr;
    const Outcome* const b = after ? after->outcomes.find(site) : nullptr;
    const bool same = a && b && a->state == b->state && a->setting == b->setting &&
                      std::abs(a->gain - b->gain) < kWorthALine;
    if (!same)
      lines.push_back(
          fmt::format("{}: {} -> {}", rt::change_text(site), diff_text(site, a), diff_text(site, b)));
  }
}

// Pairs the sites of both sides by offset, and calls each(offset, before, after) where both have one.
template <typename Site, typename Each>
void pair_up(const std::vector<Site>& before, const std::vector<Site>& after, WasmOffset Site::*offset,
             Each each) {
  for (const Site& b : after)
    for (const Site& a : before)
      if (a.*offset == b.*offset) each((a.*offset).value, a, b);
}

void diff_evidence(const FunctionEvidence& before, const FunctionEvidence& after,
                   std::vector<std::string>& lines) {
  const double samples_before = before.samples_baseline + before.samples_optimized;
  const double samples_after = after.samples_baseline + after.samples_optimized;
  pair_up(before.loads, after.loads, &LoadEvidence::load, [&](uint32_t at, const auto& a, const auto& b) {
    compare(fmt::format("load at 0x{:x}, samples that stall on it", at), a.stall_samples, samples_before,
            b.stall_samples, samples_after, lines);
    if (a.latency.timed && b.latency.timed && a.latency.level != b.latency.level)
      lines.push_back(fmt::format("load at 0x{:x}, data from (estimate): {}, {} timed -> {}, {} timed", at,
                                  to_string(a.latency.level), a.latency.timed, to_string(b.latency.level),
                                  b.latency.timed));
  });
  pair_up(before.branches, after.branches, &BranchEvidence::branch,
          [&](uint32_t at, const auto& a, const auto& b) {
            const auto d = [](uint64_t n) { return static_cast<double>(n); };
            compare(fmt::format("branch at 0x{:x}, taken", at), d(a.taken + a.sampled_taken),
                    d(a.outcomes + a.sampled), d(b.taken + b.sampled_taken), d(b.outcomes + b.sampled),
                    lines);
            compare(fmt::format("branch at 0x{:x}, mispredicted (estimate)", at), d(a.mispredicted),
                    d(a.judged), d(b.mispredicted), d(b.judged), lines);
          });
  pair_up(before.values, after.values, &ValueEvidence::at, [&](uint32_t at, const auto& a, const auto& b) {
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> values;
    for (const auto& v : a.values) values[v.value].first = v.records;
    for (const auto& v : b.values) values[v.value].second = v.records;
    for (const auto& [value, records] : values)
      compare(fmt::format("{} at 0x{:x}, is {}", to_string(b.site), at, value),
              static_cast<double>(records.first), static_cast<double>(a.records),
              static_cast<double>(records.second), static_cast<double>(b.records), lines);
  });
  pair_up(before.calls, after.calls, &CallEvidence::call, [&](uint32_t at, const auto& a, const auto& b) {
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> targets;
    for (const auto& t : a.targets) targets[t.element].first = t.records;
    for (const auto& t : b.targets) targets[t.element].second = t.records;
    for (const auto& [element, records] : targets)
      compare(fmt::format("call at 0x{:x}, to {} {}", at, a.by_reference ? "function" : "element", element),
              static_cast<double>(records.first), static_cast<double>(a.records),
              static_cast<double>(records.second), static_cast<double>(b.records), lines);
  });
}

size_t diff_module(const Side& before, const Side& after, std::string& text) {
  std::set<uint32_t> functions;
  for (const Side* side : {&before, &after}) {
    if (side->module == nullptr) continue;
    for (const FunctionSamples& s : side->module->samples) functions.insert(s.function.value);
    for (const Episode& e : side->module->episodes) functions.insert(e.evidence.function.value);
  }
  // The hottest first, on either side.
  std::vector<std::pair<double, uint32_t>> order;
  for (const uint32_t function : functions) {
    double hottest = 0;
    for (const Side* side : {&before, &after})
      if (const FunctionSamples* s = samples_of(*side, function))
        hottest = std::max(hottest, share(s->samples, side->samples));
    order.emplace_back(-hottest, function);
  }
  std::sort(order.begin(), order.end());
  size_t differences = 0;
  for (const auto& [heat, function] : order) {
    std::vector<std::string> lines;
    const FunctionSamples* a = samples_of(before, function);
    const FunctionSamples* b = samples_of(after, function);
    compare("samples", a ? a->samples : 0, before.samples, b ? b->samples : 0, after.samples, lines);
    diff_decisions(decision_of(before, function), decision_of(after, function), lines);
    const FunctionEvidence* seen_before = evidence_of(before, function);
    const FunctionEvidence* seen_after = evidence_of(after, function);
    if (seen_before && seen_after) diff_evidence(*seen_before, *seen_after, lines);
    if (lines.empty()) continue;
    const std::string name =
        name_of(after, function).empty() ? name_of(before, function) : name_of(after, function);
    text += "  " + rt::function_text(FuncIndex(function), name) + "\n";
    for (const std::string& line : lines) text += "      " + line + "\n";
    differences += lines.size();
  }
  const auto pages = [](const Side& side) {
    std::string words;
    if (side.module != nullptr)
      for (const PageEpisode& e : side.module->page_episodes) {
        uint64_t bytes = 0;
        for (const PageEpisode::Range& range : e.ranges) bytes += range.end - range.begin;
        words += fmt::format("{}{} MiB {}", words.empty() ? "" : ", ", bytes >> 20, to_string(e.state));
      }
    return words.empty() ? std::string("none") : words;
  };
  if (pages(before) != pages(after)) {
    text += fmt::format("  huge pages: {} -> {}\n", pages(before), pages(after));
    ++differences;
  }
  const auto layouts = [](const Side& side) {
    std::string words;
    if (side.module != nullptr)
      for (const LayoutEpisode& e : side.module->layout_episodes)
        words += fmt::format("{}{}", words.empty() ? "" : ", ", to_string(e.state));
    return words.empty() ? std::string("none") : words;
  };
  if (layouts(before) != layouts(after)) {
    text += fmt::format("  code layout: {} -> {}\n", layouts(before), layouts(after));
    ++differences;
  }
  return differences;
}

std::string head(const Side& side) {
  return fmt::format("{} run{}, {:.0f} samples", side.module->runs_seen,
                     side.module->runs_seen == 1 ? "" : "s", side.samples);
}

}  // namespace

Result<std::string> diff_profiles(const ProfileSource& before, const ProfileSource& after) {
  HINDSIGHT_ASSIGN(rt::FoundProfile a, rt::find_profile(before));
  HINDSIGHT_ASSIGN(rt::FoundProfile b, rt::find_profile(after));
  rt::make_printable(a.file);
  rt::make_printable(b.file);
  std::string text = fmt::format("before  {}\nafter   {}\n", printable_line(a.path), printable_line(b.path));
  size_t differences = 0;
  std::set<std::string> policy;
  for (const auto* file : {&a.file, &b.file})
    for (const auto& [name, value] : file->policy) policy.insert(name);
  for (const std::string& name : policy) {
    const auto x = a.file.policy.find(name), y = b.file.policy.find(name);
    const bool has_x = x != a.file.policy.end(), has_y = y != b.file.policy.end();
    if (has_x && has_y && x->second == y->second) continue;
    text += fmt::format("policy {}: {} -> {}\n", name, has_x ? fmt::format("{}", x->second) : "none",
                        has_y ? fmt::format("{}", y->second) : "none");
    ++differences;
  }
  std::set<std::string> hashes;
  for (const auto* file : {&a.file, &b.file})
    for (const ModuleProfile& module : file->modules) hashes.insert(module.hash_hex);
  for (const std::string& hash : hashes) {
    const Side from = side_of(a.file.find(hash)), to = side_of(b.file.find(hash));
    const ModuleProfile& named = to.module ? *to.module : *from.module;
    text += fmt::format("{} ({})", named.name, hash.substr(0, 12));
    if (from.module == nullptr || to.module == nullptr) {
      text +=
          fmt::format(": only in {}, {}\n", from.module ? "before" : "after", head(from.module ? from : to));
      ++differences;
      continue;
    }
    text += fmt::format(": {} -> {}\n", head(from), head(to));
    differences += diff_module(from, to, text);
  }
  text += differences == 0
              ? "no differences in decisions, and none in rates by 5 % or more\n"
              : fmt::format(
                    "{} differences; rates are compared where both sides have {:.0f} counts, and "
                    "shown where they differ by {:.0f} % or more of these\n",
                    differences, kEnoughCounts, 100 * kWorthALine);
  return text;
}

}  // namespace hindsight
