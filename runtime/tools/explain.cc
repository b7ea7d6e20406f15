// What a saved profile says about each hot place: what was seen, what was weighed, what was done, what it
// gave and what was undone. Also whether the policy decides the same again on the same evidence.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "feedback/policy/layout.h"
#include "feedback/policy/pages.h"
#include "feedback/policy/policy.h"
#include "runtime/engine/hindsight.h"
#include "runtime/tools/printable_profile.h"
#include "runtime/tools/profile_sources.h"
#include "runtime/tools/profile_words.h"

namespace hindsight {
namespace {

using namespace feedback;
using rt::share_text;

constexpr size_t kShown = 8;  // loads, branches, calls of a function each; sorted by importance

struct Replayed {
  size_t decisions = 0, same = 0, from_cache = 0;
};

// What the plan consisted of.
std::string done_text(const Episode& e) {
  std::string text = e.state == DecisionState::kNone ? "nothing yet" : state_text(e);
  if (e.compile_seconds > 0) text += fmt::format(", {:.1f} ms of compiling", 1e3 * e.compile_seconds);
  std::vector<std::string> parts;
  for (const jit::ChangeTraits& traits : jit::kChanges)
    if (std::string part = rt::changes_text(traits.kind, e.asked_for(traits.kind)); !part.empty())
      parts.push_back(std::move(part));
  if (!e.osr_loops.empty()) {
    std::vector<LoopIndex> loops;
    for (const uint32_t loop : e.osr_loops) loops.emplace_back(loop);
    parts.push_back(fmt::format("OSR entries for the loops at {}", rt::loops_text(e.evidence, loops)));
  }
  for (const std::string& part : parts) text += "; " + part;
  return text;
}

void explain_episode(const Episode& e, const PolicyConfig& policy, const wasm::Module* module,
                     Replayed& replayed, std::string& text) {
  const std::string nest =
      e.nest ? fmt::format(" the loop at {}", rt::loops_text(e.evidence, {*e.nest})) : std::string();
  text += fmt::format("    [{}] {}{}, {}, at {:.3f} s", e.id, e.action, nest, rt::age_text(e.runs_ago),
                      e.seconds);
  if (e.origin != Origin::kDecided) text += fmt::format(", taken over ({})", to_string(e.origin));
  text += "\n";
  const FunctionEvidence& seen = e.evidence;
  text += fmt::format(
      "      seen     {} samples in its baseline code ({:.1f} ms), {:.0f} in optimized code ({:.1f} ms)\n",
      share_text(seen.samples_baseline, seen.total_samples), 1e3 * seen.seconds_baseline,
      seen.samples_optimized, 1e3 * seen.seconds_optimized);
  text += rt::evidence_text(seen, module, "               ", kShown);
  if (!e.reason.empty()) text += fmt::format("      because  {}\n", e.reason);
  for (const std::string& alternative : e.alternatives)
    text += fmt::format("      weighed  {}\n", alternative);
  text += fmt::format("      done     {}\n", done_text(e));
  for (const auto& [site, outcome] : e.outcomes) {
    const bool undone =
        outcome.state == ChangeState::kRolledBack || outcome.state == ChangeState::kNotPossible;
    text += fmt::format("      {}   {}: {}\n", undone ? "undone" : "gave  ", rt::change_text(site),
                        rt::outcome_text(site, outcome));
  }
  if (e.outcomes.empty() && e.asked_for(jit::ChangeKind::kPrefetch).empty())
    text += "      gave     not measured: no change of it is on trial\n";
  if (e.origin == Origin::kCodeCache) {
    ++replayed.from_cache;
    return;
  }
  ++replayed.decisions;
  if (replays(e, policy))
    ++replayed.same;
  else
    text += "      (the present policy decides otherwise on this evidence)\n";
}

void explain_pages(const PageEpisode& e, const PolicyConfig& policy, Replayed& replayed, std::string& text) {
  uint64_t bytes = 0;
  for (const PageEpisode::Range& range : e.ranges) bytes += range.end - range.begin;
  text += fmt::format("    [p{}] huge-pages, {}, at {:.3f} s\n", e.id, rt::age_text(e.runs_ago), e.seconds);
  if (const auto& fill = e.evidence.fill)
    text += fmt::format(
        "      seen     {} of {} examined blocks of 2 MiB are full, {} touched in part, {} untouched\n",
        fill->full, fill->full + fill->part + fill->untouched, fill->part, fill->untouched);
  else
    text += fmt::format(
        "      seen     {} samples stall, {} of their addresses on {} pages in {} regions of 2 MiB\n",
        share_text(e.evidence.stall_samples, e.evidence.samples), e.evidence.addresses,
        e.evidence.distinct_pages, e.evidence.regions.size());
  if (!e.reason.empty()) text += fmt::format("      because  {}\n", e.reason);
  for (const std::string& alternative : e.alternatives)
    text += fmt::format("      weighed  {}\n", alternative);
  text += fmt::format("      done     {} MiB in {} ranges: {}\n", bytes >> 20, e.ranges.size(),
                      to_string(e.state));
  if (!e.outcome.empty())
    text += fmt::format("      {}   {}\n", e.state == DecisionState::kRolledBack ? "undone" : "gave  ",
                        e.outcome);
  ++replayed.decisions;
  if (replays(e, policy))
    ++replayed.same;
  else
    text += "      (the present policy decides otherwise on this evidence)\n";
}

void explain_layout(const LayoutEpisode& e, const PolicyConfig& policy, Replayed& replayed,
                    std::string& text) {
  double samples = 0;
  uint64_t bytes = 0;
  for (const LayoutEvidence::Function& f : e.evidence.functions) {
    samples += f.samples;
    bytes += f.code_bytes;
  }
  text += fmt::format("    [c{}] code-layout, {}, at {:.3f} s\n", e.id, rt::age_text(e.runs_ago), e.seconds);
  text += fmt::format(
      "      seen     {} samples in {} optimized functions of {} KiB, the last version {:.1f} s ago\n",
      share_text(samples, e.evidence.samples), e.evidence.functions.size(), bytes >> 10,
      e.evidence.seconds_settled);
  if (!e.reason.empty()) text += fmt::format("      because  {}\n", e.reason);
  for (const std::string& alternative : e.alternatives)
    text += fmt::format("      weighed  {}\n", alternative);
  text += fmt::format("      done     {}: {}\n", e.moves ? "placed together" : "nothing", to_string(e.state));
  if (!e.outcome.empty())
    text += fmt::format("      {}   {}\n", e.state == DecisionState::kRolledBack ? "undone" : "gave  ",
                        e.outcome);
  ++replayed.decisions;
  if (replays(e, policy))
    ++replayed.same;
  else
    text += "      (the present policy decides otherwise on this evidence)\n";
}

// The functions by heat: those of whole runs if they were saved, else those of which something was decided.
std::vector<FuncIndex> hot_functions(const ModuleProfile& module) {
  std::vector<FuncIndex> order;
  const auto add = [&](FuncIndex function) {
    if (std::find(order.begin(), order.end(), function) == order.end()) order.push_back(function);
  };
  for (const FunctionSamples& s : module.samples) add(s.function);
  for (const Episode& e : module.episodes) add(e.evidence.function);
  for (const FunctionEvidence& e : module.functions) add(e.function);
  return order;
}

std::string function_name(const ModuleProfile& module, FuncIndex function) {
  for (const FunctionSamples& s : module.samples)
    if (s.function == function) return s.name;
  for (const Episode& e : module.episodes)
    if (e.evidence.function == function) return e.evidence.name;
  for (const FunctionEvidence& e : module.functions)
    if (e.function == function) return e.name;
  return {};
}

void explain_module(const ModuleProfile& module, const PolicyConfig& policy, const wasm::Module* wasm,
                    Replayed& replayed, std::string& text) {
  text += fmt::format("{} ({}): {} decisions, {} run{}", module.name, module.hash_hex.substr(0, 12),
                      module.episodes.size() + module.page_episodes.size() + module.layout_episodes.size(),
                      module.runs_seen, module.runs_seen == 1 ? "" : "s");
  if (module.runs_seen > 1) text += fmt::format(" (faded to {:.1f})", module.runs);
  text += "\n";
  double total = 0;
  for (const FunctionSamples& s : module.samples) total += s.samples;
  size_t cold = 0;
  for (const FuncIndex function : hot_functions(module)) {
    const auto samples = std::find_if(module.samples.begin(), module.samples.end(),
                                      [&](const FunctionSamples& s) { return s.function == function; });
    const auto known = std::find_if(module.functions.begin(), module.functions.end(),
                                    [&](const FunctionEvidence& e) { return e.function == function; });
    const bool decided = std::any_of(module.episodes.begin(), module.episodes.end(),
                                     [&](const Episode& e) { return e.evidence.function == function; });
    constexpr double kColdShare = 0.01;
    if (!decided && (samples == module.samples.end() || samples->samples < kColdShare * total)) {
      ++cold;
      continue;
    }
    text += "  " + rt::function_text(function, function_name(module, function));
    if (samples != module.samples.end()) {
      text +=
          fmt::format(": {} samples, {:.1f} ms in baseline code, {:.1f} ms in optimized code{}",
                      share_text(samples->samples, total), 1e3 * samples->seconds_baseline / module.runs,
                      1e3 * samples->seconds_optimized / module.runs, module.runs_seen > 1 ? " a run" : "");
    }
    text += "\n";
    for (const Episode& e : module.episodes)
      if (e.evidence.function == function) explain_episode(e, policy, wasm, replayed, text);
    if (!decided) text += "    no decision about it\n";
    if (known != module.functions.end()) {
      const std::string later = rt::evidence_text(*known, wasm, "      ", kShown);
      if (!later.empty()) text += "    at the end:\n" + later;
    }
  }
  if (!module.page_episodes.empty()) text += "  linear memory\n";
  for (const PageEpisode& e : module.page_episodes) explain_pages(e, policy, replayed, text);
  if (!module.layout_episodes.empty()) text += "  code\n";
  for (const LayoutEpisode& e : module.layout_episodes) explain_layout(e, policy, replayed, text);
  if (cold > 0)
    text += fmt::format("  and {} functions with less than 1 % of the samples each, not shown\n", cold);
}

}  // namespace

Result<std::string> explain_profile(const ProfileSource& profile) {
  HINDSIGHT_ASSIGN(rt::FoundProfile found, rt::find_profile(profile));
  rt::make_printable(found.file);
  const PolicyConfig policy = from_parameters(found.file.policy);
  std::string text;
  Replayed replayed;
  for (const ModuleProfile& module : found.file.modules) {
    const bool named = found.module && found.module->content_hash_hex() == module.hash_hex;
    explain_module(module, policy, named ? found.module.get() : nullptr, replayed, text);
  }
  text += fmt::format("the policy reproduces {} of {} decisions from the saved evidence", replayed.same,
                      replayed.decisions);
  if (replayed.from_cache > 0) {
    text += fmt::format("; {} more came with code from the code cache, which keeps no evidence",
                        replayed.from_cache);
  }
  return text + "\n";
}

}  // namespace hindsight
