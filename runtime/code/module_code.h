// ModuleCode: all code of one module in one engine. It has the versions of each function, which of them is published, and
// the live instances that have to hear of it. It is the CodeSource of those instances, and what a tier manager works on.
//
//   compile (any thread, not published)  ->  publish (slots of all instances, OSR slots of the baseline
//   version)  ->  replaced or withdrawn  ->  RetireList
//
// The baseline version of a function stays for the life of the module, because rolling back needs it and it is small.
// Only optimized versions are retired.
//
// Threads: all functions may be called from any thread. Lock order: ModuleCode -> Instance's aliases.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/fork_gate.h"
#include "jit/code/call_meter.h"
#include "jit/code/code_version.h"
#include "jit/code/unit.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"
#include "runtime/code/code_services.h"
#include "runtime/instance/code_source.h"
#include "runtime/instance/code_tally.h"

namespace hindsight::rt {

class Memory;
class ModuleCode;

// Told of what happens to a module's code; the tier manager. Calls come from guest threads (first compiles)
// or from whoever publishes, outside ModuleCode's lock.
class CodeObserver {
 public:
  virtual ~CodeObserver() = default;
  virtual void on_published(ModuleCode& code, const std::shared_ptr<jit::CodeVersion>& version) = 0;
  // A new instance, whose memories are there and, as far as they are its own, not yet touched.
  virtual void on_instance(ModuleCode&, const Instance&) {}
  // The module's last instance and last handle are gone; the reference must not be used after it returns.
  virtual void on_destroyed(ModuleCode& code) = 0;
};

struct ModuleCodeCounts {
  uint64_t baseline_functions = 0, optimized_functions = 0;  // compilations that succeeded
  double baseline_seconds = 0, optimized_seconds = 0;        // CPU time
  uint64_t cached_functions = 0;                             // optimized versions out of the code cache
  std::array<uint64_t, jit::kNoCodes> no_code{};             // optimizing compiles that gave none, by why
  uint64_t functions_left =
      0;  // of which the last optimizing compile gave no code, for whatever reason but that nobody waited
  uint64_t published = 0, retired = 0;
  uint64_t over_limit =
      0;  // optimized versions and copies that were not made for want of room (StoreLimits::code_bytes)
  // The compilations and their time.
  void add_compilations(const ModuleCodeCounts& more) {
    baseline_functions += more.baseline_functions;
    optimized_functions += more.optimized_functions;
    for (size_t i = 0; i < no_code.size(); i++) no_code[i] += more.no_code[i];
    functions_left += more.functions_left;
    cached_functions += more.cached_functions;
    over_limit += more.over_limit;
    baseline_seconds += more.baseline_seconds;
    optimized_seconds += more.optimized_seconds;
  }
};

class ModuleCode final : public CodeSource, public std::enable_shared_from_this<ModuleCode> {
 public:
  // `first`: the tier that compiles a function at its first call, while the guest waits. Error kResource: no
  // lazy stubs. `services` and `observer` (may be null) outlive this.
  static Result<std::shared_ptr<ModuleCode>> create(std::shared_ptr<const wasm::Module> module,
                                                    CodeServices& services, jit::Tier first,
                                                    CodeObserver* observer);
  ~ModuleCode() override;

  const std::shared_ptr<const wasm::Module>& module() const { return module_; }
  CodeServices& services() { return services_; }

  // CodeSource
  Status attach(Instance& instance) override;
  void detach(Instance& instance) override;
  Result<const void*> compile_first(Instance& instance, FuncIndex function) override;

  // The function's baseline version, compiled now if there is none (not published), out of the budget of the store that
  // waits for it. One compilation a function however many threads ask.
  Result<std::shared_ptr<jit::CodeVersion>> baseline(FuncIndex function, const StoreBudget& payer);
  // An optimized version that another process compiled becomes one of this module; not published. False: there is no
  // room for its code (code_tally.h).
  bool adopt(std::shared_ptr<jit::CodeVersion>& version);
  // A new optimized version, not published.
  struct Optimized {
    std::shared_ptr<jit::CodeVersion> version;
    std::string begun_anew;  // as in OptimizeResult
    std::string left_out;
  };
  // Where the request asked for no code without changes, the version may have none (OptimizeRequest::only_with_changes).
  // request.module and request.options are filled in. On a compile thread: wherever the stack is shorter, a long
  // function may not leave enough of it. kResource, too: no room for the code.
  Result<Optimized> optimize(jit::OptimizeRequest request);
  // Whether code for speed has not been made for want of room, which was said then.
  bool is_out_of_room() const;
  // A copy of a version, whose bytes count from here on. Null: there is no room for them.
  std::shared_ptr<jit::CodeVersion> hold_copy(std::unique_ptr<jit::CodeVersion> copy);

  // Makes a version current: registers it and stores its entry into all instances' slots. The OSR entries of an optimized
  // one go into the baseline version's OSR slots. They also go into the exits of earlier optimized versions that may
  // still be running. The optimized version it replaces goes to the retire list. A version without an entry is published
  // to running loops alone. Calls go on to baseline code, and a watch for them goes on.
  // A nest (CodeVersion::nest) replaces what was published of the same loop, and concerns nothing else. Several live side by side.
  void publish(const std::shared_ptr<jit::CodeVersion>& version);
  // Back to baseline code: slots and OSR slots; the optimized version and the nests are retired. A nest that runs ends its loop first.
  // False: there was neither.
  bool withdraw(FuncIndex function);
  // The same of one nest, by its outermost loop.
  bool withdraw_nest(FuncIndex function, LoopIndex root);
  // The same, and loops that run in optimized code leave it where it has exits. They go to baseline code that is made for
  // that, to be seen again. They go on into the next optimized version that has entries for them.
  bool observe(FuncIndex function);

  // The same code in two places, or two versions that are to run in turns. Neither was retired; `from` is or was
  // published, and `to` too, or registered by register_copy(). Loops go on in `to` where it has entries for them.
  struct Exchange {
    std::shared_ptr<jit::CodeVersion> from, to;
  };
  // Numbers and registers a copy of a published version, or a second version; not published.
  void register_copy(const std::shared_ptr<jit::CodeVersion>& copy);
  // Makes `to` current wherever `from` is, all at once as seen by whoever publishes. What was current stays
  // as it is, to be made current again or handed to retire_copy(). False, by exchange, where something else
  // is current by now.
  std::vector<bool> exchange(std::span<const Exchange> exchanges);
  // A version that is not current and will not be again.
  void retire_copy(std::shared_ptr<jit::CodeVersion> version);

  // Counts the function's calls from here on, in all versions, until told otherwise. False: it has no code yet, or there
  // is no memory for that. A nanosecond a call. What is counted goes on from what it was.
  bool meter_calls(FuncIndex function);
  void stop_metering(FuncIndex function);
  uint64_t metered_calls(FuncIndex function) const;

  // Watches for the function's next call, whoever makes it, at no cost until then. Its slots lead to the lazy stub, whose
  // first call puts them back. The watch is ended by that call and by any publishing or withdrawing. False if the
  // function has no code yet.
  bool watch_entry(FuncIndex function);
  // Whether it was called while watched; stays true.
  bool entered(FuncIndex function) const;

  // Null if there is none. `current` is the one in the entry slots.
  std::shared_ptr<jit::CodeVersion> current(FuncIndex function) const;
  std::shared_ptr<jit::CodeVersion> version(FuncIndex function, jit::Tier tier) const;
  // The optimized one of a function, or the nest, that is published.
  std::shared_ptr<jit::CodeVersion> optimized(jit::Unit unit) const;
  // The published nests of a function and of all, by function and outermost loop.
  std::vector<std::shared_ptr<jit::CodeVersion>> nests(FuncIndex function) const;
  std::vector<std::shared_ptr<jit::CodeVersion>> all_nests() const;
  // The current optimized versions; nests are none of them.
  std::vector<std::shared_ptr<jit::CodeVersion>> optimized_versions() const;
  size_t instance_count() const;
  // What of these addresses lies in which of the instances' memories.
  struct MemoryPlace {
    uint32_t memory = 0;          // index in the module
    uint64_t begin = 0, end = 0;  // bytes from the memory's start
    friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
  };
  std::vector<MemoryPlace> places_of(uint64_t begin, uint64_t end) const;
  // The instances' memories as they are now, each once.
  struct MemorySpan {
    uint32_t memory = 0;           // index in the module
    uint64_t base = 0, bytes = 0;  // address and length
  };
  std::vector<MemorySpan> memories() const;
  ModuleCodeCounts counts() const;
  // Functions that the optimizing tier was asked for and gave no code of, other than because nobody waited, and why.
  std::map<uint32_t, std::string> left_in_baseline() const;

 private:
  struct FunctionCode {
    std::shared_ptr<jit::CodeVersion> baseline;  // compiled; published before or with the first optimized one
    std::shared_ptr<jit::CodeVersion> optimized;                  // published, if any
    std::map<uint32_t, std::shared_ptr<jit::CodeVersion>> nests;  // published, by their outermost loop
    // Those before it with ways out of their loops, as far as they are not freed: loops may still be running in them.
    std::vector<std::weak_ptr<jit::CodeVersion>> before;
    // Baseline code that running loops came back to; goes when a next optimized version comes. Calls do not go there.
    std::shared_ptr<jit::CodeVersion> observing;
    bool baseline_registered = false;
    bool optimized_current = false;
    bool baseline_current = false;
    bool watched = false;  // the slots hold the lazy stub although there is code
    bool entered = false;
    bool metered = false;                   // the slots lead to the meter
    std::unique_ptr<jit::CallMeter> meter;  // once made it stays, and leads to what is current
  };
  // A memory that instances have under this index in the module. It lives as long as there are any.
  struct HeldMemory {
    const Memory* memory = nullptr;
    uint32_t index = 0;
    uint32_t instances = 0;
    auto key() const { return std::pair(memory, index); }
  };
  ModuleCode(std::shared_ptr<const wasm::Module> module, CodeServices& services, jit::Tier first,
             CodeObserver* observer);
  // Under mutex_: those of an instance that comes, for which there is room, and of one that goes.
  void hold_memories(const Instance& instance) noexcept;
  void let_go_of_memories(const Instance& instance) noexcept;
  // The same from any other thread, which waits. Whoever interrupts `instance`'s store abandons it.
  Result<Optimized> optimize_and_wait(Instance& instance, jit::OptimizeRequest request);
  FunctionCode& code_of(FuncIndex f) { return functions_[f.value - module_->imported_functions]; }
  const FunctionCode& code_of(FuncIndex f) const { return functions_[f.value - module_->imported_functions]; }
  void store_entries(FuncIndex f, const void* entry);  // under mutex_
  // The version, with its bytes counted as long as it is there. kResource: no room; counted and, the first time, said.
  Result<std::shared_ptr<jit::CodeVersion>> hold_for_speed(std::shared_ptr<jit::CodeVersion> version);
  void note_no_room(const Error& error);
  std::string words_for(FuncIndex function) const;
  // For tests: a copy of what was just published, somewhere, takes its place.
  void move_elsewhere(const std::shared_ptr<jit::CodeVersion>& version);
  // What a baseline version's slot for the loop holds: it leads to the newest code that has an entry there. Null: the loop goes on.
  static const void* slot_word(const FunctionCode& code, LoopIndex loop);
  // Where a loop leaves optimized code for: the optimized version or `observing`. Null: it goes on. Never a nest, which comes back to
  // baseline code's frame.
  static const void* exit_word(const FunctionCode& code, LoopIndex loop);
  // Stores both into all versions that may be running.
  static void set_osr_slots(FunctionCode& code);
  void publish_nest(FunctionCode& code, const std::shared_ptr<jit::CodeVersion>& nest);
  // What running code of the nest finds where it may be left: null, or a word that says how (nest_leave_word).
  static void lead_exits(const jit::CodeVersion& nest, const void* word);
  bool exchange_nest(FunctionCode& code, const Exchange& exchange);
  void retire(std::shared_ptr<jit::CodeVersion> version);
  void retire_nest(
      std::shared_ptr<jit::CodeVersion> nest);  // it is left where it runs, and its slots lead elsewhere
  bool take_back(FuncIndex function, std::shared_ptr<jit::CodeVersion> observing);
  // For tests: makes both versions known, which have loop entries alone. Loops enter `first` and leave it for `second`,
  // or, where that is null, for baseline code.
  void leave_at_loops(std::shared_ptr<jit::CodeVersion> first, std::shared_ptr<jit::CodeVersion> second);
  // For tests: nests of the function's loops, published with its baseline code.
  Status enter_at_nests(Instance& instance, FuncIndex function);
  // Loops that run in `replaced` are to follow what becomes current.
  static void remember_exits(FunctionCode& code, const std::shared_ptr<jit::CodeVersion>& replaced);
  const void* current_entry(const FunctionCode& code) const;
  const void* entry_or_stub(FuncIndex f) const;

  std::shared_ptr<const wasm::Module> module_;
  CodeServices& services_;
  const std::shared_ptr<CodeTally> tally_;
  std::atomic<bool> out_of_room_{false};  // publishes nothing
  const jit::Tier first_;
  CodeObserver* const observer_;
  std::vector<const void*> lazy_stubs_;  // of the defined functions; constant
  // One compilation of a function at a time; striped by function. Never held together with mutex_ of another
  // ModuleCode; mutex_ may be taken inside.
  std::array<ForkSafeMutex, 64> compile_mutexes_;
  mutable ForkSafeMutex mutex_;  // protects what follows
  std::vector<FunctionCode> functions_;
  std::vector<Instance*> instances_;
  std::vector<HeldMemory> memories_;  // theirs, sorted
  ModuleCodeCounts counts_;
  std::map<uint32_t, std::string> left_in_baseline_;
};

}  // namespace hindsight::rt
