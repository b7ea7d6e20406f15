// Finds and opens the optimizing tier's shared object. Once a process: it stays open, because code and data
// of LLVM cannot be unloaded safely. What it hands out works until exit() begins (exit_gate.h).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "jit/optimizing/optimizer.h"

namespace hindsight::rt {

// Looks beside the file that contains this code, in ../lib from there, at $HINDSIGHT_OPTIMIZER, and where the
// loader looks by itself. Thread-safe. Error kResource names every place and what was wrong with it,
// or says that the process is ending.
Result<std::unique_ptr<jit::Optimizer>> load_optimizer();

// The file that would be opened, found without opening it. Empty: there is none, or only the loader knows where.
std::string optimizer_file();

}  // namespace hindsight::rt
