// Whether anything new came of compiling a function again. A recompile is asked for because of something: a load that
// stalls, a branch in another form, an operand. Where the compiler refuses all of that, what it made is what runs
// already, and publishing it would only make running trials begin anew, and loops and calls change from one place to
// another for nothing.
//
// Compared is what was applied, with its cells, and what was told. Of what was told and is not the same, as branches
// are that were seen more often meanwhile, the code says whether the compiler made any use: then its bytes are not
// the same.
#pragma once

#include <span>
#include <string_view>

#include "feedback/policy/policy.h"
#include "jit/code/code_version.h"

namespace hindsight::rt {

// A version and what its compiler was told that is on no trial, and so is told by no site.
struct MadeVersion {
  const jit::CodeVersion& version;
  std::span<const feedback::Candidate> told;
};

// What `made` has, or was to be without, that `running` is not like, in words; empty: nothing. `loops_wait`: it was
// made for loops that run in other code, so that an entry for them, or a way out, is something new where `running`
// has none for that loop; else these only come with it.
std::string_view what_is_new(const MadeVersion& running, const MadeVersion& made, bool loops_wait);

}  // namespace hindsight::rt
