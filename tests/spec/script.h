// Runs one test script.
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

// What a script is of. The language took back some results of drafts, and allows some of what the second version refused
// (overridden.h); the third is the language.
enum class Edition { kDraft, kSecond, kThird };

// Everything in the script shares one store.
Outcome run_script(Engine& engine, const std::filesystem::path& wast, Edition edition);

}  // namespace hindsight::spec
