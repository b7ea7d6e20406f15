// What decoding or compiling one module costs.
#pragma once

#include <cstddef>
#include <string>

#include "jit/code/code_version.h"
#include "tests/jit/growth/shapes.h"

namespace hindsight::jit::testing {

enum class Stage : uint8_t { kDecode, kBaseline, kOptimize };
const char* to_string(Stage stage);
uint32_t size_of(const Shape& shape, Stage stage);

struct Measured {
  size_t wasm_bytes = 0;
  double seconds = 0;     // CPU time of this thread, the least of some runs
  size_t peak_bytes = 0;  // most memory of the heap at once, beyond what was in use before
  size_t code_bytes = 0;
  std::string error;             // the first
  std::vector<PassCost> passes;  // of kOptimize
  std::string left_out;          // the same: passes that it did not get
};

// All defined functions of the module, one after the other. kOptimize: only the last one, with its loops' OSR
// entries as a policy would ask for them. `runs`: at most; long ones are not repeated.
Measured measure(const wasm::testing::Bytes& bytes, Stage stage, int runs = 3);

}  // namespace hindsight::jit::testing
