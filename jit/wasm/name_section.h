// The "name" custom section: names for backtraces and listings. It may be wrong without making the module
// wrong. So errors in it are counted, and the rest of the broken part is passed over.
#pragma once

#include <cstdint>

#include "jit/wasm/module.h"

namespace hindsight::wasm {

// Reads the section's contents, bytes [begin, end) of the module, into `module`. That is function_names (in
// the order found) and, if the module has no name yet, its name.
void read_name_section(Module& module, uint32_t begin, uint32_t end);

// After the last section: sorts the names, keeps the first of several for one function, drops those of
// functions that do not exist.
void finish_names(Module& module);

}  // namespace hindsight::wasm
