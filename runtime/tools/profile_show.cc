// A saved profile for people: what it knows, without the decisions' whys (explain.cc).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "runtime/engine/hindsight.h"
#include "runtime/tools/printable_profile.h"
#include "runtime/tools/profile_sources.h"
#include "runtime/tools/profile_words.h"

namespace hindsight {
namespace {

using namespace feedback;
using rt::share_text;

constexpr size_t kFunctionsShown = 24;
constexpr size_t kPlacesShown = 4;    // of a function
constexpr size_t kEvidenceShown = 4;  // loads, branches, calls of a function each

std::string place_text(const FunctionSamples::Place& p) {
  return p.offset.value == ~uint32_t{0} ? std::string("somewhere") : fmt::format("0x{:x}", p.offset.value);
}

void show_function(const FunctionSamples& s, const ModuleProfile& module, double total,
                   const wasm::Module* wasm, std::string& text) {
  text += fmt::format("  {}: {} samples, {:.1f} ms a run ({:.1f} ms in baseline code)\n",
                      rt::function_text(s.function, s.name), share_text(s.samples, total),
                      1e3 * (s.seconds_baseline + s.seconds_optimized) / module.runs,
                      1e3 * s.seconds_baseline / module.runs);
  std::vector<FunctionSamples::Place> places = s.places;
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  std::string dearest;
  for (size_t i = 0; i < std::min(kPlacesShown, places.size()) && places[i].samples > 0; ++i)
    dearest += fmt::format("{}{} {:.0f} %", dearest.empty() ? "" : ", ", place_text(places[i]),
                           100 * places[i].samples / s.samples);
  if (!dearest.empty()) text += fmt::format("      at {}\n", dearest);
  for (const FunctionEvidence& e : module.functions)
    if (e.function == s.function) text += rt::evidence_text(e, wasm, "      ", kEvidenceShown);
  for (const Episode& e : module.episodes) {
    if (e.evidence.function != s.function) continue;
    text += fmt::format("      {} {}: {}", e.action, rt::age_text(e.runs_ago), state_text(e));
    for (const auto& [site, outcome] : e.outcomes) {
      text += fmt::format("; {} {}", rt::change_text(site), to_string(outcome.state));
      if (outcome.state != ChangeState::kKept && !jit::is_of_version(site.kind)) continue;
      text += fmt::format(" {:+.1f} %", 100 * outcome.gain);
      if (jit::is_tuned(site.kind)) text += fmt::format(" at {}", outcome.setting);
    }
    if (const size_t calls = e.asked_for(jit::ChangeKind::kInlineCalls).size(); calls > 0)
      text += fmt::format("; targets of {} calls inlined", calls);
    text += "\n";
  }
}

}  // namespace

Result<std::string> show_profile(const ProfileSource& profile) {
  HINDSIGHT_ASSIGN(rt::FoundProfile found, rt::find_profile(profile));
  rt::make_printable(found.file);
  std::string text = printable_line(found.path) + "\n";
  for (const ModuleProfile& module : found.file.modules) {
    const bool named = found.module && found.module->content_hash_hex() == module.hash_hex;
    double total = 0, seconds = 0;
    for (const FunctionSamples& s : module.samples) {
      total += s.samples;
      seconds += s.seconds_baseline + s.seconds_optimized;
    }
    text += fmt::format(
        "{}\n  SHA-256 {}\n  {} run{}, faded to {:.2f}; {:.0f} samples, {:.1f} ms of guest code a run\n",
        module.name, module.hash_hex, module.runs_seen, module.runs_seen == 1 ? "" : "s", module.runs, total,
        1e3 * seconds / module.runs);
    if (!module.options.empty()) text += fmt::format("  {}\n", module.options);
    for (size_t i = 0; i < std::min(kFunctionsShown, module.samples.size()); ++i)
      show_function(module.samples[i], module, total, named ? found.module.get() : nullptr, text);
    if (module.samples.size() > kFunctionsShown)
      text += fmt::format("  and {} more functions\n", module.samples.size() - kFunctionsShown);
    for (const PageEpisode& e : module.page_episodes) {
      uint64_t bytes = 0;
      for (const PageEpisode::Range& range : e.ranges) bytes += range.end - range.begin;
      text += fmt::format("  huge pages {}: {} MiB, {}{}{}\n", rt::age_text(e.runs_ago), bytes >> 20,
                          to_string(e.state), e.outcome.empty() ? "" : ": ", e.outcome);
    }
    for (const LayoutEpisode& e : module.layout_episodes) {
      text += fmt::format("  code layout {}: {}{}{}\n", rt::age_text(e.runs_ago), to_string(e.state),
                          e.outcome.empty() ? "" : ": ", e.outcome);
    }
  }
  return text;
}

}  // namespace hindsight
