// CodeServices: what all generated code of one engine shares. That is its memory, its registry, the list of code to be
// freed, the bridges, and the optimizing tier (opened when first needed).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/fork_gate.h"
#include "base/log.h"
#include "base/result.h"
#include "base/store_limits.h"
#include "base/system_failures.h"
#include "jit/abi/trampolines.h"
#include "jit/code/code_arena.h"
#include "jit/code/code_registry.h"
#include "jit/code/retire.h"
#include "jit/compile_options.h"
#include "jit/optimizing/optimizer.h"
#include "runtime/code/compile_threads.h"
#include "runtime/code/pass_times.h"
#include "runtime/code/test_knobs.h"

namespace hindsight::rt {

class CodeCache;
class ProfileStore;
class UserKey;

class CodeServices {
 public:
  // `compile_threads`: at most, of either kind; 0: as many as there are hardware threads for the process beside one. Errors: kResource.
  static Result<std::unique_ptr<CodeServices>> create(const jit::CompileOptions& options,
                                                      uint32_t compile_threads);
  ~CodeServices();

  jit::CodeArena& arena() { return *arena_; }
  jit::Trampolines& trampolines() { return *trampolines_; }
  jit::CodeRegistry& registry() { return registry_; }
  jit::RetireList& retired() { return retired_; }
  CompileThreads& threads() { return threads_; }  // where the optimizing tier works
  // The same for what is only to be tried. What runs in guests goes before it.
  CompileThreads& threads_for_trials() { return threads_for_trials_; }
  const jit::CompileOptions& options() const { return options_; }
  // Before any module is loaded: functions outside of this range stay in baseline code.
  void optimize_only(uint32_t first, uint32_t last) {
    first_optimized_ = first;
    last_optimized_ = last;
  }
  bool may_optimize(FuncIndex function) const {
    return function.value >= first_optimized_ && function.value <= last_optimized_;
  }

  // Opens libhindsight-optimizing.so at the first call (tens of milliseconds). Thread-safe. Error kResource
  // names the places tried; it is remembered.
  Result<jit::Optimizer*> optimizer();
  // That has failed, and will not be tried again. Relaxed: whoever does not see it yet asks in vain once more.
  bool has_no_optimizer() const { return has_no_optimizer_.load(std::memory_order_relaxed); }
  // The files of the optimizing tier and of LLVM as they were when it was opened; empty: it has not been.
  struct CompilerFiles {
    std::string optimizer;  // file_identity (machine_identity.h)
    std::string llvm_path, llvm;
  };
  std::optional<CompilerFiles> compiler_files();

  // Frees retired code that no thread holds; returns how many versions. Any thread, not under a lock that
  // guest threads take.
  size_t collect_retired();

  // Says what the system has refused since it was last said of that kind (base/system_failures.h): once each. Any
  // thread, not under a lock.
  void say_system_failures();

  // What is kept is sealed with it. Never null; set before the two below.
  std::shared_ptr<const UserKey> key;
  std::shared_ptr<CodeCache> cache;        // null: no code is kept between runs
  std::shared_ptr<ProfileStore> profiles;  // null: neither is what was decided

  uint64_t most_code_bytes =
      StoreLimits{}.code_bytes;  // of stores with the engine's limits; before any module is loaded
  bool time_passes = false;      // before any module is loaded
  TestKnobs knobs;               // the same
  PassTimes pass_times;          // empty unless time_passes
  LogSink log;                   // may be empty; makes what it is given printable
  LogLevel log_level = LogLevel::kInfo;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    if (log && level >= log_level) log(level, topic, line);
  }

 private:
  uint32_t first_optimized_ = 0, last_optimized_ = ~uint32_t{0};
  CodeServices(const jit::CompileOptions& options, uint32_t compile_threads);
  jit::CompileOptions options_;
  std::unique_ptr<jit::CodeArena> arena_;  // destroyed last: everything below has code in it
  std::unique_ptr<jit::Trampolines> trampolines_;
  jit::CodeRegistry registry_;
  jit::RetireList retired_;
  ForkSafeMutex optimizer_mutex_;  // protects what follows
  std::unique_ptr<jit::Optimizer> optimizer_;
  std::optional<Error> optimizer_error_;
  std::atomic<bool> has_no_optimizer_{false};  // read without the mutex
  std::optional<CompilerFiles> compiler_files_;
  // Relaxed: only keep lines from being said twice.
  std::array<std::atomic<bool>, kSystemFailures> failures_said_{};
  CompileThreads threads_, threads_for_trials_;  // destroyed first
};

}  // namespace hindsight::rt
