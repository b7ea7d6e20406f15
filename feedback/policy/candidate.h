// Candidate: a change of code that the policy would ask for, with what it expects of it and why. A plan has one list of
// them.
#pragma once

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "jit/change.h"

namespace hindsight::feedback {

// Upper bounds.
struct Estimate {
  double share = 0;    // of the function's time
  double seconds = 0;  // over the assumed future
};

struct Candidate {
  jit::Request request;
  Estimate estimate = {};
  std::string reason = {};  // empty: the counts that go with the request are all there is to say

  jit::Site site() const { return request.site; }
  jit::ChangeKind kind() const { return request.site.kind; }
  WasmOffset at() const { return request.site.at; }
};

// Those of one kind, in their order.
template <typename Candidates>
auto of(Candidates& candidates, jit::ChangeKind kind) {
  return candidates | std::views::filter([kind](const Candidate& c) { return c.kind() == kind; });
}
inline bool has(const std::vector<Candidate>& candidates, jit::ChangeKind kind) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& c) { return c.kind() == kind; });
}
inline size_t count(const std::vector<Candidate>& candidates, jit::ChangeKind kind) {
  return static_cast<size_t>(std::count_if(candidates.begin(), candidates.end(),
                                           [&](const Candidate& c) { return c.kind() == kind; }));
}
// Null: there is none.
inline const Candidate* find(const std::vector<Candidate>& candidates, jit::Site site) {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate& c) { return c.site() == site; });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace hindsight::feedback
