// A program of tests/jit/optimizing/shapes: its text, and what the comments at its head ask for. shapes/README.md says how they
// are written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jit/change.h"
#include "jit/compile_options.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::testing {

// What memory holds before the first call.
struct Fill {
  enum class Kind : uint8_t { kBelow, kRising, kChain, kIs };
  Kind kind = Kind::kIs;
  uint32_t from = 0, to = 0;     // bytes
  uint32_t number = 0;           // below which, by how much it rises, the size of a node, or what it is
  uint32_t times = 1, plus = 0;  // of words below a number
  uint32_t length = 0;           // of a chain, in nodes; 0: all of them
  void make(uint8_t* memory) const;
};

struct ShapeProgram {
  struct Call {
    std::string function;
    std::vector<std::string> arguments;
  };
  std::shared_ptr<const wasm::Module> module;
  std::vector<FuncIndex>
      compiled;  // whose answers and shapes are compared: those with changes, and others that are named
  std::vector<std::pair<FuncIndex, Request>> changes;  // in the order of the file
  std::vector<std::pair<FuncIndex, LoopIndex>> entered;
  std::vector<Fill> fills;
  std::vector<Call> calls;
  BoundsChecks bounds = BoundsChecks::kGuardPages;
  bool shows_weights = false;
};

// Fails the test where a head cannot be read.
ShapeProgram read_shape_program(const std::string& text);

// "load 1 of f": how the head of a program names an instruction, and its answer does. "all of f": the last byte of its body.
std::string place_name(const wasm::Module& module, WasmOffset at);

}  // namespace hindsight::jit::testing
