// From what a user names to the profile that is meant; see ProfileSource.
#pragma once

#include <memory>
#include <string>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

struct FoundProfile {
  feedback::ProfileFile file;
  std::string path;                            // of the profile
  std::shared_ptr<const wasm::Module> module;  // if one was named; else null
};

Result<FoundProfile> find_profile(const ProfileSource& source);
// Binary or text.
Result<std::shared_ptr<const wasm::Module>> read_module(const std::string& path);

}  // namespace hindsight::rt
