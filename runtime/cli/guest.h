// A guest from file to end: load, link with WASI, initialize, call, and what came of it. `run`, `top` and the
// benchmark's child differ only in what they do around it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cli/options.h"

namespace hindsight::cli {

struct GuestEnd {
  int exit_status = 0;
  std::string trap;            // text for people; empty: none
  std::vector<Value> results;  // of --invoke
};

struct Guest {
  std::shared_ptr<const Module> module;
  std::shared_ptr<Instance> instance;  // null if instantiation ended the guest (start trapped or exited)
  GuestEnd end;
};

// Engine::load_file, with every failure told as one of loading (never of usage) and directories refused.
Result<std::shared_ptr<const Module>> load_module(Engine& engine, const std::string& path);

// Errors: what keeps the guest from running at all (bad module, missing import, wrong arguments, no entry
// point). A trap and proc_exit are ends, not errors.
Result<Guest> run_guest(Engine& engine, const RunPlan& plan);
// The same of a module that is loaded; several threads may run instances of one.
Result<Guest> run_guest(Engine& engine, std::shared_ptr<const Module> module, const RunPlan& plan);

}  // namespace hindsight::cli
