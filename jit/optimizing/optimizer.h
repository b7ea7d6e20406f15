// The optimizing tier's face. Its implementation (LLVM 19: IR generation, passes, ORC) is the shared object libhindsight-optimizing.so. It
// is opened with dlopen when something first gets hot, because linking LLVM into the host costs 50 ms at every start. This header knows no
// LLVM type.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "jit/change.h"
#include "jit/code/code_arena.h"
#include "jit/code/code_version.h"
#include "jit/compile_options.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

// Why there is no code, for who counts.
enum class NoCode : uint8_t {
  kTooLarge,   // a limit by size, or a frame that no stack has room for
  kTooSlow,    // more CPU time than a function of its size may take
  kNoMemory,   // too little is left to begin or to go on, or an allocation failed
  kAbandoned,  // nobody waited for it any more
  kDefect,     // LLVM's or ours
};
inline constexpr size_t kNoCodes = 5;

// What a compile measures itself by; others than the machine's are for tests.
struct CompileMeters {
  std::function<double()> thread_seconds;  // CPU time of the calling thread
  std::function<uint64_t()> free_memory;   // base/free_memory.h
};

struct OptimizeRequest {
  std::shared_ptr<const wasm::Module> module;
  FuncIndex function;
  // Loops that running baseline code may enter by OSR; each costs one more copy of the function's remainder.
  std::vector<LoopIndex> osr_loops;
  // Makes these loops' entries alone, in half of the time, for a function that nobody calls again as far as is known. The version's `entry`
  // is null. A function that calls itself is compiled whole nevertheless.
  bool loop_entries_only = false;
  // This loop and nothing else of the function, as a nest (jit/abi/nest_exits.h). Then `osr_loops` is empty.
  std::optional<LoopIndex> nest;
  // Running loops may be left for other code where that costs nothing worth mentioning (CodeVersion::osr_exits).
  bool loop_exits = false;
  // Also where that costs something: where each of a loop's short iterations looks whether it is to be left.
  bool short_loop_exits = true;
  // No conditional move becomes a branch because LLVM guesses that it would be predicted well: whoever asks finds out in trials where it
  // is (ChangeKind::kBranch).
  bool selects_stay = false;
  // What hardly ever runs lies after everything else, and can be left where it is when the rest is moved (CodeVersion::hot_bytes).
  bool split_cold = false;
  // Asks LLVM whether the IR is well-formed after it was generated, after each change, and in the end. A compile that takes a
  // third longer then fails with an error of kind kInternal. Debug builds always do, tests too.
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  CompileOptions options;
  Tuning tuning;
  std::vector<Request> changes;  // asked for; the version says what came of them (CodeVersion::answers)
  // Callees whose calls in loops stay inlined as in a version that this one is compared with, though no load of theirs is asked
  // for any more.
  std::vector<FuncIndex> inlined;
  // Ends before code generation where no change in a loop came to be: the version then has answers and no code (`memory` is empty). For
  // whoever has code already that is without them.
  bool only_with_changes = false;
  // Null, or a wish of whoever waits. Once true, the compilation ends soon (what is left of a pass, some milliseconds at most) with an
  // error of kind kResource. Outlives the call.
  const std::atomic<bool>* abandoned = nullptr;
  // The same, of the process: it is ending.
  const std::atomic<bool>* process_ends = nullptr;
  // Empty, or called between passes on the thread that compiles, which holds no lock: the compile goes on when it returns. What it sleeps
  // there is no CPU time of the compile. Nothing may be thrown out of it.
  std::function<void()> give_way;
  // Null, or where to say why, if there is no code. Outlives the call.
  NoCode* no_code = nullptr;
  const CompileMeters* meters = nullptr;  // null: the machine's. Outlives the call.
  bool dump_ir = false;                   // keep slices, shape, final IR and assembly in OptimizeResult::dump
  bool time_passes = false;               // fill OptimizeResult::passes; costs a few percent of the compile
  // That a branch loses which went the other way, on this machine.
  double mispredict_cycles = kMispredictCycles;
};

struct OptimizeResult {
  std::unique_ptr<CodeVersion> version;
  std::string dump;
  std::string begun_anew;        // why the compilation had to begin again; empty: it did not
  std::string left_out;          // passes that a function of this size does not get, and why; empty: none
  std::vector<PassCost> passes;  // LLVM's and ours, code generation's too, by descending time
};

// Who calls whom, how often. Functions by their place in `functions`.
struct CallGraph {
  struct Function {
    uint64_t bytes = 0;  // of code
    uint64_t calls = 0;  // of it, by whomever
  };
  struct Call {
    uint32_t caller = 0, callee = 0;
    uint32_t at = 0;  // offset of the call in the caller's code
    uint64_t count = 0;
  };
  std::vector<Function> functions;
  std::vector<Call> calls;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Thread-safe; each call works in an LLVM context of its own. The code is not published. Never prints. What it may take, and what
  // it promises where memory ends: budget.h.
  virtual Result<OptimizeResult> compile(const OptimizeRequest& request, CodeArena& arena) = 0;
  // An order of all functions in which those that call each other often lie near each other, the most frequent first. It is cache-directed
  // sort, as LLVM has it. Source: Hoag, Lee, Mestre, Pupyrev, Zhu, "Reordering Functions in Mobiles Apps for Reduced Size and Faster
  // Start-Up", 2023. Deterministic; a few milliseconds for a thousand functions. Thread-safe.
  virtual std::vector<uint32_t> order_by_calls(const CallGraph& graph) = 0;
  virtual std::string description() const = 0;  // "LLVM 19.1.7, znver4, avx512..."
  // The shared objects that decide, with a request and this processor, what compile() makes: its own and LLVM's.
  virtual std::vector<std::string> files() const = 0;
};

// Exported by libhindsight-optimizing.so under this name; the caller owns the result. Null on failure.
inline constexpr const char* kOptimizerFactoryName = "hindsight_create_optimizer";
using OptimizerFactory = Optimizer* (*)();

}  // namespace hindsight::jit
