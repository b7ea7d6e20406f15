// Prefetch: the address of a load that stalls is computed some iterations ahead. Loads whose trial was won keep theirs in
// any new version, those that lost stay without.
#include <fmt/format.h>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class Prefetch final : public LoadPolicy {
 public:
  Prefetch() : LoadPolicy(jit::ChangeKind::kPrefetch) {}

  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("prefetch {} load{}", count, plural(count));
  }
  std::string_view of_load() const override { return "the prefetch at"; }

 private:
  bool is_worth_trying(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e,
                       const PolicyConfig& config) const override {
    return is_untried(load, e, config) && stalls.are_worth_a_change(load);
  }
};

}  // namespace

const ChangePolicy& prefetch_policy() {
  static const Prefetch policy;
  return policy;
}

}  // namespace hindsight::feedback
