// A profile in the text format of LLVM's sample profiles (llvm-profdata show --sample reads it):
//
//     name:samples:0
//      offset: samples [target:records ...]
//
// Functions have the names that they have in the module. A line is a wasm instruction: its byte offset from
// the function's first instruction. It has 16 bits as in the format, with what is above in the
// discriminator ("offset.above"). Calls through tables have their targets where the module shows which they
// are.
#pragma once

#include <string>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

// `module`: the one that was profiled, for the targets of its calls; null: they are left out.
std::string to_llvm_sample_profile(const ModuleProfile& profile, const wasm::Module* module);

}  // namespace hindsight::feedback
