// What the machine offers, and what a saved profile says when its decisions are made again.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "feedback/lwp/info.h"
#include "feedback/policy/policy.h"
#include "feedback/profile/profile_file.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace {

void explain_episode(const feedback::Episode& episode, const feedback::PolicyConfig& policy,
                     std::string& text) {
  text += fmt::format("  [{}] {:.3f} s  func[{}]: {}\n", episode.id, episode.seconds,
                      episode.evidence.function.value, episode.action);
  if (!episode.reason.empty()) text += fmt::format("      because {}\n", episode.reason);
  for (const std::string& alternative : episode.alternatives)
    text += fmt::format("      - {}\n", alternative);
  if (!episode.state.empty())
    text +=
        fmt::format("      then: {}, compiled in {:.1f} ms\n", episode.state, episode.compile_seconds * 1e3);
  for (const auto& prefetch : episode.prefetches)
    text += fmt::format("      {} at 0x{:x}: {} {}, measured gain {:+.1f} %{}{}\n",
                        prefetch.interleaved ? "searches of the load" : "load", prefetch.load,
                        prefetch.interleaved ? "width" : "distance", prefetch.distance,
                        prefetch.measured_gain * 100, prefetch.words.empty() ? "" : "; ", prefetch.words);
  if (!feedback::replays(episode, policy))
    text += "      (the policy decides otherwise now on the same evidence)\n";
}

// What was known at the end of the run; decisions carry what was known when they were made.
void explain_evidence(const feedback::FunctionEvidence& e, std::string& text) {
  constexpr size_t kShown = 8;  // of each; they are sorted by importance
  if (e.loads.empty() && e.branches.empty()) return;
  const double samples = e.samples_baseline + e.samples_optimized;
  text += fmt::format("  func[{}] {} at the end:\n", e.function.value, e.name);
  for (size_t i = 0; i < std::min(kShown, e.loads.size()); ++i) {
    const feedback::LoadEvidence& l = e.loads[i];
    text += fmt::format("      load at 0x{:x}: {:.0f} of {:.0f} samples, prefetch: {}", l.load.value,
                        l.stall_samples, samples, to_string(l.outcome));
    if (l.interleave != feedback::PrefetchOutcome::kNone)
      text += fmt::format(", interleave: {}", to_string(l.interleave));
    if (l.latency.timed) {
      text += fmt::format(
          "; from {}, mean of {} timed loads {:.0f} ticks, {:.0f} % of them from memory (estimate)",
          to_string(l.latency.level), l.latency.timed, l.latency.mean_ticks, 100 * l.latency.memory_share);
    }
    text += "\n";
  }
  for (size_t i = 0; i < std::min(kShown, e.branches.size()); ++i) {
    const feedback::BranchEvidence& b = e.branches[i];
    text += fmt::format("      branch at 0x{:x}: taken {:.0f} % of {} seen", b.branch.value,
                        100 * b.taken_share(), b.outcomes + b.sampled);
    if (b.judged) {
      text += fmt::format(", mispredicted {} of {} judged ({:.1f} %, estimate)", b.mispredicted, b.judged,
                          100 * b.mispredict_rate());
    }
    text += "\n";
  }
}

}  // namespace

std::string lwp_info(bool json, bool calibrate) {
  const auto info = lwp::info("auto", calibrate ? lwp::Calibrate::kAnew : lwp::Calibrate::kIfUnknown);
  if (!info)
    return json ? nlohmann::json{{"error", info.error().describe()}}.dump(2) : info.error().describe();
  return json ? lwp::to_json(*info).dump(2) : lwp::to_text(*info);
}

Result<std::string> explain_profile(const std::string& path) {
  HINDSIGHT_ASSIGN(const feedback::ProfileFile file, feedback::load_profile(path));
  const feedback::PolicyConfig policy = feedback::from_parameters(file.policy);
  std::string text;
  size_t decisions = 0;
  size_t replayed = 0;
  for (const feedback::ModuleProfile& module : file.modules) {
    text += fmt::format("{} ({}): {} decisions\n", module.name, module.hash_hex.substr(0, 12),
                        module.episodes.size());
    for (const feedback::Episode& episode : module.episodes) {
      explain_episode(episode, policy, text);
      decisions++;
      replayed += feedback::replays(episode, policy);
    }
    for (const feedback::FunctionEvidence& evidence : module.functions) explain_evidence(evidence, text);
  }
  text += fmt::format("{} of {} decisions are reproduced by the policy from the saved evidence\n", replayed,
                      decisions);
  return text;
}

}  // namespace hindsight
