// Hints drawn by lot, for tests: a request, however wrong, must give correct code (jit/change.h), and only requests
// make the compiler prefetch, run searches several at once, test for targets of calls, give branches another
// form and operators code for one operand.
#pragma once

#include <vector>

#include "jit/change.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

// Of every other load and call or so in the function's body, and of its branches, selects,
// divisions, copies and fills; the same for the same module, function and seed.
std::vector<jit::Request> random_hints(const wasm::Module& module, FuncIndex function, uint32_t seed);

}  // namespace hindsight::rt
