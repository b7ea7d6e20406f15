// Hindsight's public C++ API: everything an embedder needs, nothing of the inside.
//
//   auto engine = hindsight::Engine::create({}).value();
//   auto module = engine->load_file("app.wasm").value();
//   hindsight::Linker linker(*engine);
//   linker.define_function("env", "add", [](int32_t a, int32_t b) -> int32_t { return a + b; });
//   auto instance = linker.instantiate(module).value();
//   auto sum = instance->typed_function<int32_t(int32_t, int32_t)>("sum").value();
//   Result<int32_t> r = sum(1, 2);
//
// Ownership: Engine, Module and Instance are reference-counted handles' targets (std::shared_ptr); an Instance keeps its Module and
// Engine alive. Memory and function handles stay valid as long as their Instance.
// Threads: Engine and Module may be used from any thread. One Instance (and all instances linked with it, a "store") is entered by at most one
// thread at a time; different stores run in parallel. interrupt() and feedback_report() may be called from any thread.
// Errors: values. A trap is an Error of kind kTrap whose message is the trap's name; Instance::last_trap() has the details.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"

#if defined(HINDSIGHT_BUILDING)
#define HINDSIGHT_API __attribute__((visibility("default")))
#else
#define HINDSIGHT_API
#endif

namespace hindsight {

class Engine;
class Module;
class Instance;
class Linker;

// ---------------------------------------------------------------- configuration

enum class TierMode : uint8_t {
  kAuto,       // baseline first, hot code is optimized in the background
  kBaseline,   // baseline only
  kOptimized,  // every function is compiled by the optimizing tier at its first call, while the guest waits
};

struct EngineConfig {
  TierMode tier = TierMode::kAuto;
  bool feedback = true;                // decisions beyond hotness; false: kAuto optimizes by hotness alone
  bool profiling = true;               // LWP units and the monitor thread (kAuto needs them; false only with a fixed tier)
  std::string unit = "auto";           // auto|native|hardware|clock|clock-timer|model
  bool guard_pages = true;             // false, or where 8 GiB of address space cannot be reserved: explicit bounds checks
  uint32_t compile_threads = 0;        // 0: hardware threads - 1, at least 1
  size_t max_stack_bytes = size_t{1} << 20;      // of guest frames per entry
  uint64_t max_memory_bytes = uint64_t{4} << 30; // a cap on each linear memory
  std::string profile_in;              // file with a saved profile; empty: none
  std::string profile_out;             // written when the engine is destroyed and on save_profile(); empty: none
  std::vector<std::string> disabled_decisions;   // by name: "prefetch", "optimize"
  LogSink log;                         // null: silent
  LogLevel log_level = LogLevel::kInfo;
};

// ---------------------------------------------------------------- values

enum class ValueKind : uint8_t { kI32, kI64, kF32, kF64, kFuncRef, kExternRef };

// One WebAssembly value. References: funcref is an opaque pointer (null allowed), externref the embedder's 64-bit handle.
struct Value {
  ValueKind kind = ValueKind::kI32;
  uint64_t bits = 0;  // low bits hold small kinds; funcref: pointer; externref: handle + 1, 0 = null

  static HINDSIGHT_API Value i32(int32_t v);
  static HINDSIGHT_API Value i64(int64_t v);
  static HINDSIGHT_API Value f32(float v);
  static HINDSIGHT_API Value f64(double v);
  HINDSIGHT_API int32_t as_i32() const;
  HINDSIGHT_API int64_t as_i64() const;
  HINDSIGHT_API float as_f32() const;
  HINDSIGHT_API double as_f64() const;
};

struct FunctionType {
  std::vector<ValueKind> params;
  std::vector<ValueKind> results;
  friend bool operator==(const FunctionType&, const FunctionType&) = default;
};

// ---------------------------------------------------------------- traps

struct Frame {
  std::string function;                     // name section, export name or func[12]
  uint32_t function_index = 0;
  std::optional<uint32_t> wasm_offset;      // from the start of the module file
  bool inlined = false;
};

struct Trap {
  std::string name;                          // "out of bounds memory access", ...
  std::string detail;                        // faulting address, host error text; may be empty
  std::vector<Frame> backtrace;              // innermost first, at most 100 frames
  uint64_t frames_left_out = 0;
  HINDSIGHT_API std::string to_string() const;  // several lines, for people
};

// ---------------------------------------------------------------- modules

struct ImportType {
  std::string module, name, kind;  // kind: func|table|memory|global
  std::optional<FunctionType> function;
};
struct ExportType {
  std::string name, kind;
  std::optional<FunctionType> function;
};

class HINDSIGHT_API Module {
 public:
  virtual ~Module() = default;
  virtual std::string name() const = 0;
  virtual std::vector<ImportType> imports() const = 0;
  virtual std::vector<ExportType> exports() const = 0;
  virtual std::string content_hash_hex() const = 0;
};

// ---------------------------------------------------------------- host functions

// What a host function may see of its caller.
class HINDSIGHT_API Caller {
 public:
  virtual ~Caller() = default;
  // The calling instance's memory 0; empty without one. Valid until the guest runs again.
  virtual std::span<std::byte> memory() = 0;
  virtual Instance& instance() = 0;
};

// Reads args, fills results (preset to zero of the right kinds). An error becomes a trap of the guest with the error's message;
// an error of kind kExit ends the guest's entry as proc_exit does (its message is the decimal status).
using HostFunction = std::function<Status(Caller& caller, std::span<const Value> args, std::span<Value> results)>;

// ---------------------------------------------------------------- WASI

struct WasiConfig {
  std::vector<std::string> args;                              // args[0] is the program's name
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::pair<std::string, std::string>> preopens;  // host path, guest path
  // Unset: the process's own descriptors.
  std::optional<std::string> stdin_text;
  std::function<void(std::string_view)> stdout_sink;
  std::function<void(std::string_view)> stderr_sink;
};

// ---------------------------------------------------------------- instances

namespace detail {
template <typename T>
struct ValueTraits;  // i32: (u)int32_t, bool; i64: (u)int64_t; f32: float; f64: double
template <typename Signature>
struct Signature_;
}  // namespace detail

template <typename Signature>
class TypedFunction;

class HINDSIGHT_API Instance {
 public:
  virtual ~Instance() = default;
  // Calls an exported function. Errors: kUsage (no such export, wrong arguments), kTrap, kExit (WASI proc_exit; see exit_code()).
  virtual Result<std::vector<Value>> call(std::string_view export_name, std::span<const Value> args) = 0;
  virtual Result<FunctionType> function_type(std::string_view export_name) const = 0;
  // Memory 0 (or the named export). Valid until the guest runs again.
  virtual Result<std::span<std::byte>> memory(std::string_view export_name = {}) = 0;
  virtual Result<Value> global(std::string_view export_name) const = 0;
  virtual Status set_global(std::string_view export_name, const Value& value) = 0;

  // Ends the guest's current entry with a trap "interrupted" as soon as possible (also inside tight loops). Any thread.
  virtual void interrupt() = 0;
  // Like interrupt(), once `limit` of wall time has passed since the call; zero cancels.
  virtual void set_timeout(std::chrono::milliseconds limit) = 0;

  virtual const Trap* last_trap() const = 0;          // of the last call; null if it did not trap
  virtual std::optional<uint32_t> exit_code() const = 0;  // of proc_exit in the last call
  virtual std::shared_ptr<const Module> module() const = 0;

  template <typename Signature>
  Result<TypedFunction<Signature>> typed_function(std::string_view export_name);

  // Looked-up exported function: faster to call than by name. Opaque; owned by the instance.
  struct Function;
  virtual Result<Function*> find_function(std::string_view export_name) = 0;
  virtual Status call_raw(Function* function, std::span<uint64_t> slots) = 0;  // arguments in, results out, 8 bytes each
};

// Collects what modules may import, then instantiates. Everything instantiated by one Linker shares one store.
class HINDSIGHT_API Linker {
 public:
  explicit Linker(Engine& engine);
  ~Linker();
  Linker(Linker&&) noexcept;
  Linker& operator=(Linker&&) noexcept;

  // Later definitions of the same name replace earlier ones.
  void define_host(std::string_view module, std::string_view name, FunctionType type, HostFunction function);
  // Any callable with WebAssembly-typed parameters, optionally Caller& first, returning void, a value, a tuple, or Result of these.
  template <typename F>
  void define_function(std::string_view module, std::string_view name, F function);
  // Every export of `instance` under this module name.
  void define_instance(std::string_view module, std::shared_ptr<Instance> instance);
  // wasi_snapshot_preview1 for the next instances. Errors: kResource (a preopened directory cannot be opened).
  Status define_wasi(WasiConfig config);

  // Links, initializes and runs the start function. Errors: kLink, kTrap (from start or initializers), kResource.
  Result<std::shared_ptr<Instance>> instantiate(std::shared_ptr<const Module> module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend class Engine;
};

// ---------------------------------------------------------------- what feedback did

struct DecisionReport {
  uint64_t id = 0;
  std::string kind;           // "optimize", "prefetch"
  std::string function;
  std::optional<uint32_t> wasm_offset;
  std::string reason;         // what was seen, with denominators
  std::vector<std::string> alternatives;  // each with its estimate, doing nothing included
  std::string state;          // "queued", "compiled", "trial", "kept", "rolled back", "rejected", "failed"
  double estimated_gain = 0;  // 0.20 = 20 % of the function's time
  double measured_gain = 0;   // from the trial; 0 if none
  std::string outcome;        // words: chunks, medians, distance
  double seconds = 0;         // since the engine's start
};

struct ProfilingCounts {
  uint64_t samples = 0;             // clock samples taken
  uint64_t attributed = 0;          // to a code version and wasm offset
  uint64_t outside_guest = 0;       // host code, kernel, libraries
  uint64_t unattributed = 0;        // in guest code memory but not in a known version
  uint64_t stall_records = 0;       // LWP event 4 (estimated by the clock unit)
  uint64_t stall_addresses = 0;     // of these, with a data address
  uint64_t branch_records = 0, instruction_records = 0, value_records = 0;
  uint64_t missed = 0;              // ring full
  uint64_t lost = 0;                // by the kernel
};

struct FeedbackReport {
  std::string unit;                 // which LWP unit
  ProfilingCounts counts;
  std::vector<DecisionReport> decisions;
  uint64_t functions_baseline = 0, functions_optimized = 0;
  double baseline_compile_seconds = 0, optimized_compile_seconds = 0;
  uint64_t osr_entries = 0, versions_retired = 0, versions_waiting = 0;
  struct PmuCount { std::string name; bool available = false; std::string why_not; double value = 0; double scale = 1; };
  std::vector<PmuCount> pmu;
  HINDSIGHT_API std::string to_string() const;  // for people
};

// ---------------------------------------------------------------- engine

class HINDSIGHT_API Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Errors: kUsage (unknown unit, unreadable profile), kResource.
  static Result<std::shared_ptr<Engine>> create(EngineConfig config);
  virtual ~Engine() = default;

  // Binary (.wasm) or text (.wat), told apart by content. `name` is for messages.
  virtual Result<std::shared_ptr<const Module>> load(std::span<const std::byte> bytes, std::string name) = 0;
  virtual Result<std::shared_ptr<const Module>> load_file(const std::string& path) = 0;

  virtual FeedbackReport feedback_report() const = 0;
  virtual Status save_profile(const std::string& path) const = 0;
  // Waits until the optimizer has nothing queued or running. For tests and reports.
  virtual void wait_for_compiles() = 0;
  virtual const EngineConfig& config() const = 0;
};

// A multi-line text about this machine: LWP, PMU, units and which one is used, and why not the others. `json`: the same as JSON.
HINDSIGHT_API std::string lwp_info(bool json);
// Explains a saved profile: decisions by replaying the policy on it. Errors: kUsage with the file's defect.
HINDSIGHT_API Result<std::string> explain_profile(const std::string& path);
HINDSIGHT_API const char* version();

}  // namespace hindsight

#include "runtime/engine/hindsight_templates.h"
