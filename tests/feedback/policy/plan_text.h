// Plans as text, for cases that say all that a plan is.
#pragma once

#include <fmt/format.h>

#include <string>

#include "feedback/policy/policy.h"
#include "feedback/policy/start.h"

namespace hindsight::feedback {

inline std::string text_of(const jit::Request& request) {
  std::string text;
  if (jit::is_tuned(request.site.kind)) text += fmt::format(" at {}", request.setting);
  for (const auto& target : jit::what_of<jit::CallTargets>(request).targets)
    text += fmt::format(" {}:{:.3f}", target.element, target.share);
  if (const auto* counts = std::get_if<jit::BranchCounts>(&request.what))
    text += fmt::format(" {}:{}", counts->taken, counts->not_taken);
  if (const auto* usual = std::get_if<jit::UsualValue>(&request.what))
    text += fmt::format(" {}:{:.3f}", usual->value, usual->share);
  return text;
}

inline std::string text_of(const FunctionPlan& plan) {
  std::string text = fmt::format("  {}", to_string(plan.action));
  for (const LoopIndex loop : plan.osr_loops) text += fmt::format(", enters loop {}", loop.value);
  if (plan.nest) text += fmt::format(", loop {} as a nest", plan.nest->value);
  if (plan.loop_entries_only) text += " alone";
  text += plan.early ? ", early\n" : plan.second ? ", second\n" : "\n";
  for (const Candidate& candidate : plan.candidates) {
    text += fmt::format("    {}@{:x}{}, gains {:.3f} / {:.6f} s\n", to_string(candidate.kind()),
                        candidate.at().value, text_of(candidate.request), candidate.estimate.share,
                        candidate.estimate.seconds);
  }
  for (const std::string& line : describe_alternatives(plan)) text += "    weighed " + line + "\n";
  return text + "    because " + plan.reason + "\n";
}

inline std::string text_of(const StartPlan& start) {
  std::string text = text_of(start.plan);
  for (const auto& [site, setting] : start.settled)
    text += fmt::format("    settled {}@{:x} {}\n", to_string(site.kind), site.at.value, setting);
  return text;
}

}  // namespace hindsight::feedback
