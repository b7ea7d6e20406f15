// Whether anything new came of compiling a function again. A recompile is asked for because of something: a load that
// stalls, a branch in another form, an operand. Where the compiler refuses all of that, what it made is what runs
// already. Publishing it would only make running trials begin anew, and loops and calls change from one place to
// another for nothing.
//
// Compared is what was applied, with its cells, and what was told. What was told may have changed all the same, as
// for branches that were seen more often meanwhile. The code says whether the compiler made any use of it: then its
// bytes are not the same.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "feedback/policy/policy.h"
#include "jit/code/code_version.h"

namespace hindsight::rt {

// A version and what its compiler was told that is on no trial, and so is told by no site.
struct MadeVersion {
  const jit::CodeVersion& version;
  std::span<const feedback::Candidate> told;
};

// By call: the elements that the compiler was told are its usual targets.
std::map<uint32_t, std::vector<uint32_t>> usual_targets(std::span<const feedback::Candidate> told);

// What `made` has, or was to be without, that `running` is not like, in words; empty: nothing. `loops_wait`: it was
// made for loops that run in other code. Then an entry or a way out for such a loop is something new where `running`
// has none. Else these only come with it.
std::string_view what_is_new(const MadeVersion& running, const MadeVersion& made, bool loops_wait);

}  // namespace hindsight::rt
