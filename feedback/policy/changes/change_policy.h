// One decision about code: which changes of a kind to ask for, given what was seen of a function. Pure, like decide(),
// which asks all of them (policy.cc). A new decision is a file in this folder and a row in change_policies().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedback/policy/candidate.h"
#include "feedback/policy/policy.h"

namespace hindsight::feedback {

// A hot function is not compiled yet, to see more of it: optimized code does not show that, but where its loads stall.
struct Wait {
  std::string reason;
  bool for_stalls = false;  // that, it shows as well
};

// What reports say of a change of a whole version, beside what became of it.
struct Reported {
  std::optional<WasmOffset> at = {};  // empty: all of the version
  std::string reason;
  std::vector<std::string> alternatives;
};

// Static objects without anything to be destroyed: threads that decide go on while exit() destroys what has a destructor.
class ChangePolicy {
 public:
  ChangePolicy() = default;
  ChangePolicy(const ChangePolicy&) = delete;
  ChangePolicy& operator=(const ChangePolicy&) = delete;

  // What it may ask for: one kind, or two of which each place gets one at most.
  virtual std::span<const jit::ChangeKind> kinds() const = 0;
  // Adds what is worth asking for, nothing where the decision is switched off.
  virtual void propose(const FunctionEvidence& evidence, const PolicyConfig& config,
                       std::vector<Candidate>& out) const = 0;
  // Whether the next compile would come too early for it.
  virtual std::optional<Wait> wants_more(const FunctionEvidence& /*evidence*/,
                                         const PolicyConfig& /*config*/) const {
    return std::nullopt;
  }
  // "prefetch 2 loads", of an alternative that has them. Empty: it is no alternative by itself.
  virtual std::string offer(jit::ChangeKind /*kind*/, size_t /*count*/) const { return {}; }
  // "if it searches": what the compiler has to see before it can do what is asked for. Empty: nothing.
  virtual std::string_view condition(jit::ChangeKind /*kind*/) const { return {}; }
  // "the prefetch at", in front of a load's offset; empty: it is not about loads that stall, and goes with any version.
  virtual std::string_view of_load() const { return {}; }

  // What reports say of a change of a whole version, as a decision has asked for it. It is one for all its places,
  // or one for each.
  virtual std::vector<Reported> report(const Episode& decision, const PolicyConfig& config) const;

  bool is_about_loads() const { return !of_load().empty(); }

 protected:
  ~ChangePolicy() = default;  // not virtual: that is never trivial
};

// All of them, in the order in which a plan has their candidates.
std::span<const ChangePolicy* const> change_policies();
// That which asks for `kind`.
const ChangePolicy& change_policy(jit::ChangeKind kind);

}  // namespace hindsight::feedback
