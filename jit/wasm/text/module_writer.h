// From the parts that the readers filled to the bytes of a module.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/wasm/text/module_parts.h"

namespace hindsight::wasm::text {

// Where in a binary module what begins where in the text.
struct SourcePlace {
  uint64_t offset = 0;
  size_t text = 0;
};

// The module: its sections that have something in them, with custom ones at their places. After all others come the names that the text
// uses ("name"), in the numbering of the extended name section proposal. `places`: filled, ascending, if the parts have marks.
std::vector<uint8_t> write_module(ModuleParts& parts, std::vector<SourcePlace>* places);

}  // namespace hindsight::wasm::text
