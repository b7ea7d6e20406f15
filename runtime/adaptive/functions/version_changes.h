// Which changes are in a version that is watched. Those of loops its answers say. Of those of a whole version there is no
// answer: what the compiler was told says it, and of code out of the code cache what was kept with it. Pure.
#pragma once

#include <vector>

#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

// Of a whole version.
std::vector<jit::ChangeKind> version_changes(const Watch& watch);
// Of its loops, or of all of it.
bool is_changed(const Watch& watch);
// This one, and no other.
bool has_no_change_but(const Watch& watch, jit::ChangeKind kind);

}  // namespace hindsight::rt
