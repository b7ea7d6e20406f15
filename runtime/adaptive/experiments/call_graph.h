// Finds who calls whom in optimized code, from what is known without watching each call. That is how often
// each function is called (its meter), and which calls stand in its code and in what was inlined into it. It
// is also where indirect calls were seen to go.
//
// Shares out the calls of a function among the places that may have made them, each weighed by how often its
// own function ran. Example: one `call` stands in a caller that ran 1,000 times and one in a caller that ran
// 10 times. Then the first is taken to have made 99 %. An indirect call weighs what its value records say
// goes to that function. Sampled stacks would see each call's true share, at the price of a walk of the stack
// in every sample.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "feedback/profile/profile.h"
#include "jit/code/code_version.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

// versions[i] was called calls[i] times. `profile` may be null: then no indirect call is known.
jit::CallGraph make_call_graph(const wasm::Module& module, const feedback::Profile* profile,
                               std::span<const std::shared_ptr<jit::CodeVersion>> versions,
                               std::span<const uint64_t> calls);

}  // namespace hindsight::rt
