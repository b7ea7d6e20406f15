// What the loads of a function say together, and which of them are worth a change. This is what prefetches, interleaved
// searches and jump pointers have in common.
#pragma once

#include <optional>
#include <string>

#include "feedback/policy/changes/change_policy.h"

namespace hindsight::feedback {

// With those of callees that would be inlined for their loads.
double function_samples(const FunctionEvidence& e, const PolicyConfig& config);

// The callee that has the load; null: none of the evidence's.
const CalleeEvidence* callee_of(const LoadEvidence& load, const FunctionEvidence& e);
// What callees ran that stall for a share of the run that makes them worth inlining in the loops that call them.
double callee_samples(const FunctionEvidence& e, const PolicyConfig& config);
double callee_seconds(const FunctionEvidence& e, const PolicyConfig& config);

// Nothing to gain by having its data earlier, wherever the samples stand. A store is so, too, unless it stands out and goes
// up and down in memory: what is written in order the processor's own buffers take.
bool is_hopeless(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config);

// Its share of the last second's samples in optimized code; 0 where these are too few.
double recent_share(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config);

// Nothing was tried there, or the load stalls far more than when that was taken back.
bool is_open(jit::ChangeKind kind, const LoadEvidence& load, const FunctionEvidence& e,
             const PolicyConfig& config);

// Open for a prefetch, and no other change of the load's loop stands where one could be.
bool is_untried(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config);
// Or its searches lost, and may win by now.
bool is_worth_another_look(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config);

class Stalls {
 public:
  Stalls(const FunctionEvidence& e, const PolicyConfig& config);
  bool known() const { return samples_ > 0; }
  bool are_worth_a_change(const LoadEvidence& load) const;
  // Searches gain by going side by side also where all of what they load is in a near cache. What each step decides is
  // then no branch that the processor has to guess.
  bool are_worth_a_search(const LoadEvidence& load) const;
  // It stalls, if hardly, and its addresses do not lie in a near cache as far as they are known.
  bool may_be_far(const LoadEvidence& load) const;
  // Remembering the way costs each iteration something: a loop that mostly waits for this load hides that.
  bool are_worth_remembering(const LoadEvidence& load) const;
  // The candidate for any kind of change.
  Candidate candidate(jit::ChangeKind kind, const LoadEvidence& load) const;

 private:
  double share_of(const LoadEvidence& load) const { return load.stall_samples / samples_; }
  std::string words_of(const LoadEvidence& load) const;

  const FunctionEvidence& e_;
  const PolicyConfig& config_;
  double samples_;
  bool stand_out_ = false;
};

// A load holds enough of the samples to be worth a change, and there are too few samples to name it for sure.
std::optional<Wait> wait_for_stalls(const FunctionEvidence& e, const PolicyConfig& config);

// What decides about one kind of change of loads that stall: which loads it is asked for, apart from what keeps them out.
class LoadPolicy : public ChangePolicy {
 public:
  std::span<const jit::ChangeKind> kinds() const final { return {&kind_, 1}; }
  // Proposes loads in the order of their stalls, at most PolicyConfig::max_prefetches: those that have the change, or may
  // get it.
  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const final;
  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const final;

 protected:
  explicit LoadPolicy(jit::ChangeKind kind) : kind_(kind) {}

 private:
  // Whether it is worth asking for where it is not in use.
  virtual bool is_worth_trying(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e,
                               const PolicyConfig& config) const = 0;
  // Whether it is asked for beside another load, though it was not possible by itself.
  virtual bool joins(const LoadEvidence&, const Stalls&, const FunctionEvidence&) const { return false; }
  // The share of a load's time that its change can save at most.
  virtual double share_saved() const { return 1; }

  const jit::ChangeKind kind_;
};

// "s" after the name of so many things.
constexpr const char* plural(size_t count) {
  return count == 1 ? "" : "s";
}

}  // namespace hindsight::feedback
