// Runs one test script in the JSON form that wast2json makes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/engine/hindsight.h"

namespace hindsight::spec {

struct Outcome {
  size_t passed = 0;
  std::vector<std::string> failures;  // "file.wast:12: assert_return: ..."
  std::vector<std::string> skipped;   // the same, with the reason
};

// Everything in the script shares one store. `folder` holds the modules that the script names.
Outcome run_script(Engine& engine, const std::filesystem::path& json_file);

}  // namespace hindsight::spec
