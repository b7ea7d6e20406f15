// Modules that grow in one direction each: what a test of growth compiles at several sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::jit::testing {

struct Shape {
  std::string name;  // "LoopsOneAfterTheOther"
  // A valid module of size n. Where it has functions to compile, they are those after the imported ones.
  std::function<wasm::testing::Bytes(uint32_t n)> make;
  uint32_t decoded;    // sizes at which decoding takes milliseconds; zero: not interesting there
  uint32_t baseline;   // the same for the baseline tier
  uint32_t optimized;  // and for the optimizing tier
};

const std::vector<Shape>& shapes();
// What asks for as much as it can of the optimizing tier alone (hostile_shapes.cc); `optimized` is some 10,000 operations.
std::vector<Shape> hostile_shapes();

}  // namespace hindsight::jit::testing
