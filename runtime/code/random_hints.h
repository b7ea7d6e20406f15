// Hints drawn by lot, for tests: a request, however wrong, must give correct code (jit/change.h). Only requests
// make the compiler prefetch, run searches several at once and test for targets of calls. Only they give branches
// another form, and operators code for one operand.
#pragma once

#include <vector>

#include "jit/change.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

// Hints for every other load and call or so in the function's body, and for its branches, selects, divisions,
// copies and fills. They are the same for the same module, function and seed.
std::vector<jit::Request> random_hints(const wasm::Module& module, FuncIndex function, uint32_t seed);

}  // namespace hindsight::rt
