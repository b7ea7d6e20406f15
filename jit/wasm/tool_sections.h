// What a module's tools wrote about it into custom sections. "producers" says which languages, compilers and
// other tools made it (tool conventions). "target_features" says which parts of the language its code may
// use. Nothing depends on them: they are for people, read when somebody asks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/wasm/module.h"

namespace hindsight::wasm {

struct Producers {
  struct Tool {
    std::string name;
    std::string version;  // may be empty
  };
  std::string field;  // "language", "processed-by" or "sdk"; others are passed on as they are
  std::vector<Tool> tools;
};

struct TargetFeature {
  char prefix = '+';  // '+' used, '-' must not be used, '=' (of old tools) required
  std::string name;
};

struct ToolSections {
  std::vector<Producers> producers;  // in the module's order
  std::vector<TargetFeature> target_features;
  uint32_t errors = 0;  // malformed sections, of which only what came before the error is here
};

// Time and memory linear in the sections' sizes.
ToolSections read_tool_sections(const Module& module);

}  // namespace hindsight::wasm
