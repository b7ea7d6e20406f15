// Speculate: for loads that stall, where a choice says by what they bring where they go next. Only the compiler sees that. As
// a branch, the processor guesses the way and has the next load under way meanwhile. It guesses right half of the time at
// least, so half of the stalls stay.
#include <fmt/format.h>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class Speculate final : public LoadPolicy {
 public:
  Speculate() : LoadPolicy(jit::ChangeKind::kSpeculate) {}

  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("branch around the choices that {} load{} wait for, if there are any", count,
                       plural(count));
  }
  std::string_view condition(jit::ChangeKind) const override { return "if a choice says where it goes next"; }
  std::string_view of_load() const override { return "branches around the choices of"; }

 private:
  bool is_worth_trying(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e,
                       const PolicyConfig& config) const override {
    return is_open(jit::ChangeKind::kSpeculate, load, e, config) &&
           (stalls.are_worth_a_change(load) || stalls.are_worth_a_search(load));
  }
  double share_saved() const override { return 0.5; }
};

}  // namespace

const ChangePolicy& speculate_policy() {
  static const Speculate policy;
  return policy;
}

}  // namespace hindsight::feedback
