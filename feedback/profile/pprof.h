// A profile in the format of pprof (github.com/google/pprof, proto/profile.proto): a gzipped protocol buffer.
//
// A sample has one location: the wasm function and the byte offset of an instruction in the module's file (as
// address and as line number). It has three values: clock samples, their CPU time, and how many of all
// samples stood right after that load. Mapping 0 is the module, its build id the module's hash.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

// All modules of the file. Error kResource: zlib found no memory.
Result<std::vector<std::byte>> to_pprof(const ProfileFile& profile);

}  // namespace hindsight::feedback
