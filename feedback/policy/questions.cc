#include "feedback/policy/questions.h"

#include <algorithm>

namespace hindsight::feedback {

Case::Case(const FunctionEvidence& evidence, const PolicyConfig& policy)
    : e(evidence), config(policy), compile_cost(policy.background_cost * compile_seconds(evidence, policy)) {
  plan.function = e.function;
  offer("nothing", 0, 0);
}

bool Case::answer(Action action, std::string reason) {
  plan.action = action;
  plan.reason = std::move(reason);
  return true;
}

bool is_left_behind(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.samples_left_behind >= config.min_samples_left_behind;
}

bool has_stayed(const FunctionEvidence& e, const PolicyConfig& config) {
  return config.follow_shifts && e.samples_stayed >= config.min_samples_left_behind;
}

std::vector<LoopIndex> plan_osr_loops(const FunctionEvidence& e, const PolicyConfig& config) {
  if (e.entered == Entered::kAgain && !is_left_behind(e, config) && !has_stayed(e, config)) return {};
  const LoopEvidence* hottest = nullptr;
  for (const LoopEvidence& loop : e.loops) {
    if (loop.samples <= 0) continue;
    // An inner loop that has nearly all of its parent's samples is the place where the time goes.
    if (!hottest || loop.samples > hottest->samples ||
        (loop.depth > hottest->depth && loop.samples >= 0.5 * hottest->samples && loop.parent >= 0 &&
         e.loops[loop.parent].loop == hottest->loop)) {
      hottest = &loop;
    }
  }
  std::vector<LoopIndex> chain;
  for (const LoopEvidence* loop = hottest; loop;
       loop = loop->parent >= 0 ? &e.loops[loop->parent] : nullptr) {
    chain.push_back(loop->loop);
  }
  if (e.optimized && !is_left_behind(e, config)) {
    const auto exit = std::find_if(chain.begin(), chain.end(), [&](LoopIndex loop) {
      return std::find(e.exit_loops.begin(), e.exit_loops.end(), loop) != e.exit_loops.end();
    });
    if (exit != chain.end()) return {*exit};
  }
  std::reverse(chain.begin(), chain.end());
  // The innermost ones are reached soonest; outer ones give better code. Keep the inner end of the chain.
  if (chain.size() > config.max_osr_loops) chain.erase(chain.begin(), chain.end() - config.max_osr_loops);
  return chain;
}

}  // namespace hindsight::feedback
