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
// Ownership: Engine, Module and Instance are reference-counted handles' targets (std::shared_ptr); an Instance keeps its
// Module and Engine alive. Memory and function handles stay valid as long as their Instance.
// Threads: Engine and Module may be used from any thread. One Instance (and all instances linked with it, a "store") is
// entered by at most one thread at a time. Different stores run in parallel, and may share memories
// (Linker::define_shared_memory). interrupt() and feedback_report() may be called from any thread. What a second thread
// asks of a store that is in use fails with kUsage. Handles may be destroyed inside of a host function that they led to:
// what runs keeps what it needs.
// Words and names: what is made of words for people has the names of modules made printable (base/printable.h). That is
// Error::message, the log's lines, Trap::to_string(), FeedbackReport::to_string() and the texts about profiles. Names
// alone, wherever a structure here has them as a field, are the bytes that the module gives, newlines and commands to
// terminals included. Give them to printable() before you show them.
// Errors: values. A trap is an Error of kind kTrap whose message is the trap's name; Instance::last_trap() has the
// details.
#pragma once

#include <array>
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

#include "base/decision_state.h"
#include "base/log.h"
#include "base/result.h"
#include "base/store_limits.h"

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

// ---------------------------------------------------------------- LWP records

// One 32-byte record of Lightweight Profiling, with what is known about it. Views live as long as whoever hands the
// record out says.
struct LwpRecord {
  // The record's own fields.
  uint8_t event_id =
      0;  // 1 value, 2 instructions, 3 branch, 4 DCache miss, 5 core clocks, 255 programmed (inserted by the guest)
  uint8_t core_id = 0;
  uint16_t flags = 0;
  uint32_t data1 = 0;
  uint64_t address =
      0;  // native, of the instruction, or the return address of the call that wrote the record
  uint64_t data2 = 0;
  uint64_t timestamp = 0;  // ns of CLOCK_MONOTONIC; 0: the record carries none
  // Where it came from; all empty for records out of a file.
  uint64_t time_ns = 0;                   // CLOCK_MONOTONIC
  bool exact_time = false;                // time_ns is the event's; else that of the monitor's round
  uint64_t cpu_ns = 0;                    // the CPU time that a clock record stands for
  int32_t thread = 0;                     // kernel id
  bool from_guest = false;                // asked for by the guest, through module hindsight_lwp
  bool optimized = false;                 // in optimized code
  std::string_view function;              // whose body holds the instruction; empty: in no code that is known
  std::optional<uint32_t> wasm_offset;    // of the WebAssembly instruction, from the start of the module file
  std::optional<uint64_t> guest_address;  // data2 of a DCache miss as an address of the guest's linear memory
  uint32_t guest_memory = 0;              // which: its index in the module that defines it
  std::string_view label;                 // the name that the guest gave to these flags; may be empty
};

enum class LwpLayout : uint8_t { kFinal, kProposal2007 };
// "programmed event", ...; "unknown" for an id without a meaning.
HINDSIGHT_API std::string_view lwp_event_name(uint8_t event_id);
// Reads a record as it lies in a ring or a dump, in the final numbering of events. Empty: an EventId that the layout does
// not define.
HINDSIGHT_API std::optional<LwpRecord> decode_lwp_record(std::span<const std::byte, 32> bytes,
                                                         LwpLayout layout);
// The 32 bytes of the final layout.
HINDSIGHT_API std::array<std::byte, 32> encode_lwp_record(const LwpRecord& record);
// One line for people, without newline: what the record's own fields say.
HINDSIGHT_API std::string describe_lwp_record(const LwpRecord& record);

// ---------------------------------------------------------------- configuration

enum class TierMode : uint8_t {
  kAuto,       // baseline first, hot code is optimized in the background
  kBaseline,   // baseline only
  kOptimized,  // every function is compiled by the optimizing tier at its first call, while the guest waits
};

struct EngineConfig {
  TierMode tier = TierMode::kAuto;
  bool feedback = true;   // decisions beyond hotness; false: kAuto optimizes by hotness alone
  bool profiling = true;  // LWP units and the monitor thread (kAuto needs them; false only with a fixed tier)
  std::string unit = "auto";  // auto|native|hardware|clock|clock-timer|model; time (feedback off): see LWP.md
  bool guard_pages =
      true;  // false, or where address space is limited to less than 16 times 8 GiB: explicit bounds checks
  // 0: hardware threads - 1, at least 1. While all of these are at what can wait, one more compiles what runs in baseline code,
  // and one of them waits for it. As many more, of a lower priority than guests have, compile what is only to be tried.
  uint32_t compile_threads = 0;
  // Bytes of guest frames per entry. It is never more than the stack has, less a quarter (64 to 256 KiB) that stays for
  // the host's functions and the compilers. Guests may run on stacks of the host's own (fibers). That is found out by the
  // mapping that the stack is in, at each entry (some microseconds). So have a page below it that cannot be accessed, or
  // set this to less than the stack has. What a host may do with several stacks is in docs/EMBEDDING.md.
  size_t max_stack_bytes = size_t{1} << 20;
  uint64_t max_memory_bytes =
      uint64_t{16} << 30;  // a cap on each linear memory (4 GiB is all that 32-bit addresses reach)
  StoreLimits limits;      // of each store, unless its Linker is made with others
  // Functions of other indices than these, both included, stay in baseline code: to find one that the optimizing tier
  // gets wrong (scripts/bisect.mjs).
  uint32_t first_optimized = 0, last_optimized = ~uint32_t{0};
  std::string
      profile_in;  // file with a saved profile; empty: none. What it says of a module goes before profile_directory
  std::string profile_out;  // written when the engine is destroyed and on save_profile(); empty: none
  // What was seen and decided is kept in this folder between runs (tier auto only). At a module's next start what was hot
  // is compiled at once, with the decisions that had paid. One file a module and set of options; runs are put together,
  // older ones fade. Trusted, made and bounded as code_cache_directory is. Empty: nothing is kept. See
  // default_profile_directory().
  std::string profile_directory;
  uint64_t profile_directory_bytes = uint64_t{64} << 20;
  // Optimized code is kept in this folder between runs: a program's second start has it at once. Empty: nothing is kept.
  // Files are used only if the process's user owns them, nobody else can write them, and they are sealed with the user's
  // key. They must be made by the same build of the optimizing tier for the same processor and configuration. Others are
  // named in the log and ignored. The folder is made for its owner alone. No folder that contains it, or lies in it, can
  // be given to a guest of this engine (WasiConfig::preopens). What is used least recently goes when the files hold more
  // than code_cache_bytes. See default_code_cache_directory().
  std::string code_cache_directory;
  uint64_t code_cache_bytes = uint64_t{256} << 20;
  // Where the key lies with which code and profiles are sealed when they are kept; it is made at its first use. The
  // folder is for its owner alone, and no guest may reach it. Without a key nothing is kept and nothing that was kept is
  // used, which the log says once. Empty: default_key_directory().
  std::string key_directory;
  std::vector<std::string> disabled_decisions;  // names of decision_names(); create() refuses others
  // Samples of CPU time a second and thread; 0: as few as evidence needs. Units that sample by time only.
  uint32_t sampling_hz = 0;
  // unit "model": changes to the processor that is modelled, such as "l2=512K/8/14,predictor=gshare"
  // (feedback/lwp/model/core_model.h). The first of them may be "machine": the caches of this machine as measured
  // (feedback/lwp/calibration/machine_model.h: up to a second).
  // model_addresses: ModelReport::loaded knows the addresses of every load (about an eighth of the guest's memory, a bit
  // each 4 bytes and load).
  std::string model;
  bool model_addresses = false;
  bool guest_lwp =
      false;  // guests that import module hindsight_lwp get its functions (samples/include/hindsight_lwp.h)
  // Sees every LWP record after it was attributed; one call at a time, on the monitor's thread or on one that asks for a
  // report. It holds the monitor up, and what a ring cannot hold meanwhile is missed and counted: be quick. Must not call
  // the engine, nor wait for a thread that calls it or begins or ends guest code. With it baseline code counts
  // instructions (LWP event 2) too, and is up to a third slower.
  std::function<void(const LwpRecord& record)> on_record;
  // The host's own native code may execute the LWP instructions (see emulate_lwp_here). Where something else handles
  // SIGILL already they stay undefined, which is said once, as a warning; guests run all the same.
  bool lwp_instructions = false;
  bool time_passes = false;  // FeedbackReport::optimizer_passes; costs a few percent of the compile time
  LogSink log;               // null: silent
  LogLevel log_level = LogLevel::kInfo;
};

// ---------------------------------------------------------------- values

enum class ValueKind : uint8_t { kI32, kI64, kF32, kF64, kFuncRef, kExternRef, kV128, kExnRef };

// A vector: 16 bytes, lane 0 first, as memory has them.
struct V128 {
  std::array<uint8_t, 16> bytes{};
  friend bool operator==(const V128&, const V128&) = default;
};

// One WebAssembly value. References: funcref is an opaque pointer that came from the same store (null allowed; any other
// is refused). externref is the embedder's 64-bit handle. Of exnref the embedder can have and give null only.
struct Value {
  ValueKind kind = ValueKind::kI32;
  uint64_t bits =
      0;  // low bits hold small kinds; funcref: pointer; externref: handle + 1, 0 = null; v128: bytes 0 to 7
  uint64_t high = 0;  // v128: bytes 8 to 15

  static HINDSIGHT_API Value i32(int32_t v);
  static HINDSIGHT_API Value i64(int64_t v);
  static HINDSIGHT_API Value f32(float v);
  static HINDSIGHT_API Value f64(double v);
  static HINDSIGHT_API Value v128(const V128& v);
  HINDSIGHT_API int32_t as_i32() const;
  HINDSIGHT_API int64_t as_i64() const;
  HINDSIGHT_API float as_f32() const;
  HINDSIGHT_API double as_f64() const;
  HINDSIGHT_API V128 as_v128() const;
};

struct FunctionType {
  std::vector<ValueKind> params;
  std::vector<ValueKind> results;
  friend bool operator==(const FunctionType&, const FunctionType&) = default;
};

// ---------------------------------------------------------------- traps

struct Frame {
  std::string function;  // name section, export name or func[12]; its bytes as they are
  uint32_t function_index = 0;
  std::optional<uint32_t> wasm_offset;  // from the start of the module file
  bool inlined = false;
};

// A WebAssembly exception that no handler took.
struct ThrownException {
  std::string tag;  // name section, export name, import name or tag[12] of the module that defines it
  std::vector<Value> values;  // references to exceptions among them are null
};

struct Trap {
  std::string name;              // "out of bounds memory access", ...
  std::string detail;            // faulting address, host error text; may be empty
  std::vector<Frame> backtrace;  // innermost first, at most 100 frames
  uint64_t frames_left_out = 0;
  std::optional<ThrownException>
      exception;  // name "uncaught exception"; the backtrace begins where it was thrown first
  HINDSIGHT_API std::string to_string()
      const;  // several lines, for people: the only newlines are these lines' ends
};

// ---------------------------------------------------------------- modules

struct ImportType {
  std::string module, name, kind;        // kind: func|table|memory|global|tag
  std::optional<FunctionType> function;  // func; of a tag the values of its exceptions, as parameters
  // In words: of a function or tag with what references may refer to; of a memory "1..4 pages", "1.. pages, 64-bit
  // addresses", "1..4 pages, shared"; else empty.
  std::string type;
};
struct ExportType {
  std::string name, kind;
  std::optional<FunctionType> function;
  std::string type;  // as in ImportType
};

// What the tools that made a module wrote about it into its custom sections. Nothing depends on it, and it may be wrong.
struct ModuleTools {
  struct Tool {
    std::string name, version;  // the version may be empty
  };
  struct Producers {
    std::string field;  // "language", "processed-by", "sdk" or what the section says
    std::vector<Tool> tools;
  };
  std::vector<Producers> producers;          // section "producers"
  std::vector<std::string> target_features;  // section "target_features", with their prefixes: "+simd128"
  std::vector<std::string> custom_sections;  // names of all, in the module's order
  uint32_t branch_hints = 0;  // of section "metadata.code.branch_hint"; the optimizer uses them
  uint32_t malformed = 0;     // sections of these kinds that could not be read to their end, and hints
                              // without a place
};

class HINDSIGHT_API Module {
 public:
  virtual ~Module() = default;
  virtual std::string name() const = 0;
  virtual std::vector<ImportType> imports() const = 0;
  virtual std::vector<ExportType> exports() const = 0;
  virtual std::string content_hash_hex() const = 0;
  virtual ModuleTools tools() const = 0;        // reads the sections anew
  virtual bool has_start_function() const = 0;  // which Linker::instantiate() runs
};

// ---------------------------------------------------------------- host functions

// What a host function may see of its caller.
class HINDSIGHT_API Caller {
 public:
  virtual ~Caller() = default;
  // The calling instance's memory 0; empty without one. Valid until the guest runs again.
  virtual std::span<std::byte> memory() = 0;
  virtual Instance& instance() = 0;
  // What a host function returns to throw: an exception of the tag that the calling instance exports under this name.
  // Returned as the function's error it is the guest's to catch; not returned it is forgotten. Values are those of the
  // tag's parameters; kUsage if not.
  virtual std::unexpected<Error> throw_exception(std::string_view tag_export,
                                                 std::span<const Value> values) = 0;
};

// Reads args, fills results (preset to zero of the right kinds). An error becomes a trap of the guest with the error's
// message. The error of a nested call that an exception left lets the exception pass on to the guest, which may catch it.
// An error of kind kExit ends the guest's entry as proc_exit does (its message is the decimal status).
using HostFunction =
    std::function<Status(Caller& caller, std::span<const Value> args, std::span<Value> results)>;

// ---------------------------------------------------------------- WASI

struct WasiConfig {
  std::vector<std::string> args;  // args[0] is the program's name
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
struct ValueTraits;  // i32: (u)int32_t, bool; i64: (u)int64_t; f32: float; f64: double; v128: V128
template <typename Signature>
struct Signature_;
}  // namespace detail

template <typename Signature>
class TypedFunction;

class HINDSIGHT_API Instance {
 public:
  virtual ~Instance() = default;
  // Calls an exported function. An exception that it does not catch is an error of kind kTrap, with
  // last_trap()->exception. Errors: kUsage (no such export, wrong arguments, a caught exception among the results),
  // kTrap, kExit (WASI proc_exit; see exit_code()).
  virtual Result<std::vector<Value>> call(std::string_view export_name, std::span<const Value> args) = 0;
  virtual Result<FunctionType> function_type(std::string_view export_name) const = 0;
  // Memory 0 (or the named export). Valid until the guest runs again.
  virtual Result<std::span<std::byte>> memory(std::string_view export_name = {}) = 0;
  virtual Result<Value> global(std::string_view export_name) const = 0;
  virtual Status set_global(std::string_view export_name, const Value& value) = 0;

  // Ends one call with a trap "interrupted", as soon as possible and also inside tight loops. It is the call that a
  // thread is in. If there is none, or it returns by itself before it notices, it is the next one, before any of its code
  // runs. It stays until a call has ended so or clear_interrupt() takes it back; several of them until then are one. Any
  // thread; returns at once. Calls are those of the whole store, of any of its instances; calls made by host functions
  // inside another one are a part of that.
  //
  // It reaches loops by SIGURG, and where that is blocked or has another handler by SIGSEGV or SIGBUS, sent to the
  // thread. Threads that run guests must not block the latter two: the kernel answers that by ending the process when a
  // guest leaves its memory. Handlers that are installed after the first call must hand on what they do not know. A
  // thread's first 16 calls and every 256th one let the three through, and each call if one finds them blocked. With a
  // time limit each call and each host function's end do so. So a host that blocks them between calls later than that, or
  // inside of a call without a limit, must let them through itself (pthread_sigmask). Where SIGURG does not come through,
  // the log has a warning that says so, and whether the thread is out of reach.
  virtual void interrupt() = 0;
  virtual void clear_interrupt() = 0;
  // Each call that begins from now on, and from now on the one that is running, may take so much wall time. What it calls
  // in the host is included. Then it ends with a trap "timed out". The limit is each call's own: a call that returns
  // takes it with it, and it never hits a later one. Zero: no limit. Any thread.
  virtual void set_timeout(std::chrono::milliseconds limit) = 0;

  virtual const Trap* last_trap() const = 0;              // of the last call; null if it did not trap
  virtual std::optional<uint32_t> exit_code() const = 0;  // of proc_exit in the last call
  virtual std::shared_ptr<const Module> module() const = 0;

  template <typename Signature>
  Result<TypedFunction<Signature>> typed_function(std::string_view export_name);

  // Looked-up exported function: faster to call than by name. Opaque; owned by the instance.
  struct Function;
  virtual Result<Function*> find_function(std::string_view export_name) = 0;
  virtual Status call_raw(
      Function* function,
      std::span<uint64_t> slots) = 0;  // arguments in, results out, 8 bytes each; a v128 16
};

// Collects what modules may import, then instantiates. Everything instantiated by one Linker shares one store.
class HINDSIGHT_API Linker {
 public:
  explicit Linker(Engine& engine);
  // With limits of its own (base/store_limits.h). A linker that joins another's store (define_instance) has that one's.
  Linker(Engine& engine, const StoreLimits& limits);
  ~Linker();
  Linker(Linker&&) noexcept;
  Linker& operator=(Linker&&) noexcept;

  // Later definitions of the same name replace earlier ones.
  void define_host(std::string_view module, std::string_view name, FunctionType type, HostFunction function);
  // Any callable with WebAssembly-typed parameters, optionally Caller& first, returning void, a value, a tuple, or Result
  // of these.
  template <typename F>
  void define_function(std::string_view module, std::string_view name, F function);
  // Every export of `instance` under this module name.
  void define_instance(std::string_view module, std::shared_ptr<Instance> instance);
  // Defines wasi_snapshot_preview1, and wasi_unstable for older programs, for the next instances. Also defines "wasi"
  // "thread-spawn" (wasi-threads): each thread that a guest spawns is a native thread with an instance of the module of
  // its own. A module gets the shared memory that it imports too, if nobody defined that. Functions of the embedder that
  // it imports, and its sinks, are called on those threads; the sinks one at a time. A trap or proc_exit of any thread
  // ends the program. So do interrupt(), a timeout and the return of _start. All threads have ended when the call in
  // question returns. Errors: kUsage, kResource. kUsage: a preopened directory cannot be opened, or contains or lies in
  // the folders of code, profiles or the key that this engine uses.
  Status define_wasi(WasiConfig config);
  // A shared memory that `owner` exports, whichever store it belongs to. Its guests and those of this linker's store may
  // run at the same time, on threads that the embedder has. Error: kUsage (no such export, or not shared).
  Status define_shared_memory(std::string_view module, std::string_view name, Instance& owner,
                              std::string_view export_name);

  // As Instance::set_timeout, for all instances of this linker, start functions included.
  void set_timeout(std::chrono::milliseconds limit);

  // Links, initializes and runs the start function. Errors: kLink, kTrap (from start or initializers), kResource, kUsage
  // (another thread uses the store).
  Result<std::shared_ptr<Instance>> instantiate(std::shared_ptr<const Module> module);
  // As Instance::last_trap(), where instantiate() failed with kTrap and so left no instance to ask: what the start
  // function or a segment ended with. Null if the last instantiate() or call did not trap.
  const Trap* last_trap() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // what runs keeps it, if the linker goes inside of a host function
  friend class Engine;
};

// ---------------------------------------------------------------- what feedback did

struct DecisionReport {
  uint64_t id = 0;
  std::string kind;  // of decision_names()
  std::string function;
  std::optional<uint32_t> wasm_offset;    // of the instruction, or of the loop that is compiled alone
  std::string reason;                     // what was seen, with denominators
  std::vector<std::string> alternatives;  // each with its estimate, doing nothing included
  DecisionState state = DecisionState::kNone;
  std::string state_why;      // beside it, in words: why it failed; may be empty
  double estimated_gain = 0;  // 0.20 = 20 % of the function's time
  double measured_gain = 0;   // from the trial; 0 if none
  std::string outcome;        // words: chunks, medians, distance
  double seconds = 0;         // since the engine's start
};

struct ProfilingCounts {
  uint64_t samples = 0;          // clock samples taken
  uint64_t attributed = 0;       // to a code version and wasm offset
  uint64_t outside_guest = 0;    // host code, kernel, libraries
  uint64_t unattributed = 0;     // in guest code memory but not in a known version
  uint64_t stall_records = 0;    // LWP event 4 (estimated by the clock unit)
  uint64_t stall_addresses = 0;  // of these, with a data address
  uint64_t branch_records = 0, value_records = 0;
  uint64_t instruction_records = 0;  // baseline code counts instructions only where on_record is set
  uint64_t guest_records = 0;        // asked for by guests: events (LWPINS) and values (LWPVAL)
  uint64_t records_unattributed =
      0;  // of the five above: in no code version that is known, or at none of its instructions
  uint64_t emitted =
      0;  // records that threads wrote into their rings: those drained, missed and not yet drained
  uint64_t missed = 0;  // ring full
  uint64_t lost = 0;    // by the kernel
};

// What guests told through module hindsight_lwp. Bounded: what does not fit is counted.
struct GuestEventReport {
  struct Data1 {
    uint32_t value = 0;
    uint64_t count = 0;
  };
  // One kind of event or value: all records with the same flags.
  struct Kind {
    bool value = false;  // a value sample (LWPVAL); else an inserted event (LWPINS)
    uint16_t flags = 0;
    std::string name;                            // that the guest gave to the flags; may be empty
    uint64_t count = 0;                          // records
    double first_seconds = 0, last_seconds = 0;  // since the engine's start
    std::string function;                        // of the first one's call; empty: not attributed
    std::optional<uint32_t> wasm_offset;
    bool more_sites = false;           // others were called elsewhere
    uint64_t least = 0, greatest = 0;  // of data2
    double mean = 0;
    std::array<uint64_t, 65> widths{};  // records whose data2 needs this many bits
    std::vector<Data1> data1;           // the first distinct ones, by descending count
    uint64_t data1_others = 0;          // records with yet others
    std::vector<uint64_t> timeline;     // records in each bucket from the engine's start on
  };
  std::vector<Kind> kinds;  // events before values, by flags
  uint64_t left_out = 0;    // records of yet other kinds
  double bucket_seconds = 0;
  // Calls, counted where they are made.
  uint64_t inserted = 0,
           inserted_full = 0;  // insert_event: into the ring; of these into a full one, so missed
  uint64_t values_seen = 0;    // value_sample
  uint64_t values_stored = 0,
           values_full = 0;  // of these every (interval + 1)th into the ring; of these into a full one
  uint64_t calls_off = 0;    // of both while no unit listened: did nothing
};

// A branch as instrumented code saw it. Prediction is a model's view of consecutive outcomes, an estimate.
struct BranchReport {
  std::string function;
  uint32_t wasm_offset = 0;
  uint64_t sampled = 0, sampled_taken = 0;  // one execution in some 65,000, by the branch records
  uint64_t outcomes = 0, taken = 0;         // consecutive executions, in bursts
  uint64_t judged = 0, mispredicted = 0;    // of the outcomes: run through the model after its warm-up
};

// A load after which samples stood, and from where its data came where single executions were timed (an estimate).
struct LoadReport {
  std::string function;
  uint32_t wasm_offset = 0;
  double stall_samples = 0, function_samples = 0;
  std::string level;        // "L1", "L2", "L3", "memory"; "unknown": too few timed, or no calibration yet
  uint64_t timed = 0;       // loads timed; 0: none, all below means nothing
  double mean_ticks = 0;    // of the time-stamp counter, with the fences around it
  double memory_share = 0;  // of the timed ones, beyond what caches give
  double latency_ns = 0;    // of the level, as calibrated
};

// What one place of a program ran in baseline code after it was hot. A place is a loop with what is in it, or a function
// outside of its loops. CPU time by samples; each second is in one of the parts, by what the place waited for then.
struct LateReport {
  std::string function;
  uint32_t wasm_offset = 0;  // of the loop, or of the function's first instruction
  bool in_loop = false;
  double seconds = 0;    // the sum of these:
  double waiting = 0;    // for a decision, or the evidence for one
  double queued = 0;     // for the compile to begin
  double compiling = 0;  // for the compile, or also for it to begin
  double entering = 0;   // to get into code that is there
  double refused = 0;    // for nothing: it is not to be compiled
  double observed = 0;   // back from optimized code, to be seen anew
  std::string why;       // the last that was said about it; may be empty
};
struct LatePart {
  const char* name;
  double LateReport::*seconds;
};
inline constexpr LatePart kLateParts[] = {
    {"waiting", &LateReport::waiting},     {"queued", &LateReport::queued},
    {"compiling", &LateReport::compiling}, {"entering", &LateReport::entering},
    {"refused", &LateReport::refused},     {"observed", &LateReport::observed}};

// Bursts of sampling and of branch outcomes: how many, and what they cost beyond the steady state.
struct BurstReport {
  uint64_t rate_bursts = 0;  // times that the sampling rate was raised
  double rate_seconds = 0;
  double rate_cost_seconds = 0;  // estimated CPU time of the guest, at 13 us a sample
  uint64_t branch_bursts = 0, branch_bursts_refused = 0;
  uint64_t branch_outcomes = 0, branch_judged = 0, branch_mispredicted = 0;
  // The share of the run's branches, an estimate. Each burst's rate counts for the branches around it, which come faster
  // in some phases than in others. 0 if none were judged.
  double mispredicted_share = 0;
};

struct FeedbackReport {
  std::string unit;  // which LWP unit
  ProfilingCounts counts;
  GuestEventReport guest;
  BurstReport bursts;
  std::vector<LoadReport> loads;       // by descending stall samples, at most 16
  std::vector<BranchReport> branches;  // by descending mispredictions seen, at most 16
  std::vector<DecisionReport> decisions;
  // What ran in baseline code after it was hot, in tier auto, in so many places; the worst of these, at most 16.
  double late_seconds = 0;
  uint64_t late_places = 0;
  std::vector<LateReport> late;
  // Counts modules that ended while others came: only the last few of these have their decisions told.
  uint64_t modules_forgotten = 0, decisions_forgotten = 0;
  // Decisions about huge pages of the other modules that are not told: a module has the last few of these told.
  uint64_t page_decisions_forgotten = 0;
  uint64_t functions_baseline = 0, functions_optimized = 0;  // compiled in this process
  uint64_t functions_cached = 0;                             // optimized ones out of the code cache
  uint64_t versions_over_limit =
      0;  // optimized versions and copies that were not made for want of room (StoreLimits::code_bytes)
  // Compiles of the optimizing tier that were asked for in this process: functions_optimized and these, which gave no code.
  struct CompilesWithoutCode {
    uint64_t too_large = 0;  // a limit by size
    uint64_t too_slow = 0;   // more CPU time than a function of its size may take
    uint64_t no_memory = 0;  // too little was left, or an allocation failed
    uint64_t abandoned = 0;  // nobody waited any more
    uint64_t defects = 0;    // of the compiler
    uint64_t sum() const { return too_large + too_slow + no_memory + abandoned + defects; }
  };
  CompilesWithoutCode compiles_without_code;
  uint64_t functions_left_in_baseline = 0;  // by one of these but the abandoned ones, and not compiled since
  struct LeftInBaseline {
    std::string function, reason;
  };
  std::vector<LeftInBaseline> left_in_baseline;  // of modules that are there, at most 16
  // Threads for the optimizing tier that could not be made, and tasks that others then did not do either.
  uint64_t compile_threads_refused = 0, compile_tasks_refused = 0;
  double baseline_compile_seconds = 0, optimized_compile_seconds = 0;
  uint64_t versions_retired = 0, versions_waiting = 0;
  // What the system refused this process, which went on without it: so often, and the errno's words of the first time
  // (may be empty).
  struct SystemRefusal {
    std::string what;
    uint64_t count = 0;
    std::string first_error;
  };
  std::vector<SystemRefusal> system_refusals;
  struct PmuCount {
    std::string name;
    bool available = false;
    std::string why_not;
    double value = 0;
    double scale = 1;
  };
  std::vector<PmuCount> pmu;
  // What the optimizing tier's passes took, code generation included: CPU time, each one's own, by descending time.
  // Empty without EngineConfig::time_passes.
  struct PassTime {
    std::string name;
    uint64_t runs = 0;
    double seconds = 0;
  };
  std::vector<PassTime> optimizer_passes;
  // A head and a line a pass; passes with less than this share of the time are one line. Empty where there are none.
  HINDSIGHT_API std::vector<std::string> pass_table(double least_share = 0.01) const;
  // The late time with its worst place in one line; empty where there is none.
  HINDSIGHT_API std::string late_text() const;
  HINDSIGHT_API std::string to_string() const;  // for people
};

// What the model unit counted: every execution of every instruction, by its place in the code.
struct ModelReport {
  struct Access {  // a load, store or bulk operation
    std::string function;
    uint32_t wasm_offset = 0;
    bool store = false;  // or bulk
    uint64_t executions = 0;
    std::array<uint64_t, 5>
        from_level{};  // by where the data came from: L1, L2, ..., the last that is used: memory
    uint64_t tlb_misses = 0;
    uint64_t latency_cycles = 0;     // summed over all executions
    uint64_t stall_cycles = 0;       // in which it was the oldest instruction and waited for its data
    uint64_t miss_stall_cycles = 0;  // of these, of executions that missed the first level
  };
  struct Branch {
    std::string function;
    uint32_t wasm_offset = 0;
    bool computed = false;  // br_table or call_indirect
    bool call = false;      // call_indirect
    uint64_t executions = 0, taken = 0, mispredicted = 0;
  };
  struct Function {
    std::string function;
    uint64_t instructions = 0, cycles = 0;
  };
  std::string model;  // EngineConfig::model, with what "machine" stood for
  std::vector<Access> accesses;
  std::vector<Branch> branches;
  std::vector<Function> functions;
  uint64_t instructions = 0, cycles = 0;
  uint64_t unfinished = 0;  // reports of instructions in front of one that trapped: not counted above
  uint64_t unknown = 0;     // reports that made no sense: our bug
  // Did this load ever read this address of the guest's memory (in granules of 4 bytes)? With
  // EngineConfig::model_addresses.
  std::function<bool(std::string_view function, uint32_t wasm_offset, uint64_t guest_address)> loaded;
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
  // Empty unless the unit is "model".
  virtual std::optional<ModelReport> model_report() const = 0;
  virtual Status save_profile(const std::string& path) const = 0;
  // Waits until the optimizer has nothing queued or running. For tests and reports.
  virtual void wait_for_compiles() = 0;
  virtual const EngineConfig& config() const = 0;
};

// A multi-line text about this machine: LWP, PMU, units and which one is used, and why not the others, latencies. `json`:
// the same as JSON. The first call measures the latencies (50 ms) and keeps them in the user's cache; `calibrate`:
// measure them again.
HINDSIGHT_API std::string lwp_info(bool json, bool calibrate = false);
// Where the command keeps optimized code: "code" in $HINDSIGHT_CACHE_DIR, else in hindsight in $XDG_CACHE_HOME, else in
// ~/.cache/hindsight. Empty: none of these is set.
HINDSIGHT_API std::string default_code_cache_directory();
// Where the command keeps profiles: "profiles" in the same folder. Empty: as above.
HINDSIGHT_API std::string default_profile_directory();
// Where the key is, unless EngineConfig::key_directory says otherwise: $HINDSIGHT_KEY_DIR, else "key" in
// $HINDSIGHT_CACHE_DIR, else hindsight in $XDG_STATE_HOME, else ~/.local/state/hindsight. Empty: none of these is set.
// What reads kept files without an engine takes this one.
HINDSIGHT_API std::string default_key_directory();
struct CodeCacheInfo {
  struct File {
    std::string name;  // in the folder
    uint64_t bytes = 0;
    std::string defect;  // why it is not used; empty: it is, for the module, under the options
    std::string module,
        module_hash;      // as it was named when it was loaded; SHA-256 of its bytes, in hexadecimal digits
    std::string options;  // in words
    uint64_t functions = 0;
    double age_seconds = 0;  // since it was last used
  };
  std::string directory;
  uint64_t bytes = 0;       // of all files
  std::vector<File> files;  // the most recently used first
};
// Errors: kUsage (the folder can be written by others), kResource (it cannot be read). A folder that is not there has no
// files.
HINDSIGHT_API Result<CodeCacheInfo> code_cache_info(const std::string& directory);
// Removes the cache's files and says how many there were. Programs that run meanwhile lose nothing but what they would
// have kept. Nothing else is removed. A folder is emptied if it has our mark (the CACHEDIR.TAG that is made with it) or
// holds nothing but what we keep. Errors: kUsage (no such folder, or none of ours), kResource.
HINDSIGHT_API Result<uint64_t> clear_code_cache(const std::string& directory);

// ---------------------------------------------------------------- saved profiles

// A saved profile, wherever one is asked for below. It is a file (of EngineConfig::profile_out, or one that is kept), or
// a module (.wasm or .wat), whose profile in `directory` is meant. If other options or processors have left several, it
// is the one that was used last.
struct ProfileSource {
  std::string path;
  std::string directory = {};
};
// Errors of all: kUsage (no such file, not a profile and not a module, no profile of the module; always with what to do),
// kBadModule.
//
// Explains the decisions: what was seen, which alternatives were weighed, what was done, what it gave, what was undone.
// Asks the policy about each of them again.
HINDSIGHT_API Result<std::string> explain_profile(const ProfileSource& profile);
// What the profile knows: modules, runs, hot functions, loads, branches, calls, decisions.
HINDSIGHT_API Result<std::string> show_profile(const ProfileSource& profile);
// What is different in `after`: decisions and evidence.
HINDSIGHT_API Result<std::string> diff_profiles(const ProfileSource& before, const ProfileSource& after);
// Puts profiles together as runs are put together, the last one fading least, into a new file. kResource: it cannot be
// written.
HINDSIGHT_API Status merge_profiles(std::span<const ProfileSource> profiles, const std::string& out);
enum class ProfileFormat : uint8_t {
  kPprof,        // gzipped, for `pprof`
  kLlvm,         // LLVM's sample profile, text
  kBranchHints,  // a copy of the module with the section metadata.code.branch_hint
};
struct ExportedProfile {
  std::vector<std::byte> bytes;
  std::string summary;  // one line: what is in it
};
// `module`: the path of the module that was profiled. kBranchHints needs it, kLlvm names the targets of calls with it.
// Empty: none, or the one that `profile` names.
HINDSIGHT_API Result<ExportedProfile> export_profile(const ProfileSource& profile, ProfileFormat format,
                                                     const std::string& module = {});

struct KeptProfiles {
  struct File {
    std::string name;  // in the folder
    uint64_t bytes = 0;
    std::string defect;               // why it is not used; empty: it is
    std::string module, module_hash;  // as in CodeCacheInfo
    std::string options;
    uint64_t runs = 0, decisions = 0;
    double age_seconds = 0;
  };
  std::string directory;
  uint64_t bytes = 0;
  std::vector<File> files;  // the most recently used first
};
// As code_cache_info and clear_code_cache.
HINDSIGHT_API Result<KeptProfiles> kept_profiles(const std::string& directory);
HINDSIGHT_API Result<uint64_t> clear_kept_profiles(const std::string& directory);

// What feedback may decide, each of which EngineConfig::disabled_decisions can switch off. They are "optimize",
// "prefetch", "interleave", "jump-pointers", "inline-calls", "huge-pages", "weigh-branches" and "select" (in place of a
// branch). Then "branch" (in place of a select), "values" (code for what operands usually are), "code-layout", "populate"
// (pages made before they are touched) and "follow-shifts".
HINDSIGHT_API std::span<const std::string_view> decision_names();
HINDSIGHT_API const char* version();

// ---------------------------------------------------------------- LWP instructions of native programs

struct LwpEmulation {
  std::vector<std::string> command;  // a program (looked for in PATH if it has no slash) and its arguments
  std::function<void(int pid)>
      started;  // called once, on another thread, before the program's first instruction; may be empty
};
struct LwpEmulationReport {
  int exit_status = 0, signal = 0;                          // of the program; a signal other than 0 ended it
  uint64_t llwpcb = 0, slwpcb = 0, lwpins = 0, lwpval = 0;  // executed for it
  uint64_t faults = 0;                                      // of these instructions
  uint64_t programs = 0, processes = 0, threads = 0;        // followed, the first ones included
  bool cpuid_shown = false;                                 // the programs saw LWP in CPUID
  std::string cpuid_reason;                                 // if not, why
};
// Runs an unmodified native program under ptrace and executes LLWPCB, SLWPCB, LWPINS and LWPVAL for it where the
// processor does not. Returns when it and all it started have ended. Errors: kUsage: no such program; kUnsupported: not
// executable; kResource: tracing is forbidden here.
HINDSIGHT_API Result<LwpEmulationReport> emulate_lwp(const LwpEmulation& emulation);
// The same for this process's own native code, by a handler of SIGILL, which hands on what is no LWP instruction. kUsage,
// and nothing changes, if SIGILL is handled by somebody else already, unless `even_if_handled`.
HINDSIGHT_API Status emulate_lwp_here(bool even_if_handled = false);

}  // namespace hindsight

#include "runtime/engine/hindsight_templates.h"
