#include "runtime/code/module_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "jit/abi/nest_exits.h"
#include "jit/baseline/baseline_compiler.h"
#include "jit/code/move_code.h"
#include "jit/wasm/loop_nests.h"
#include "runtime/code/charged_version.h"
#include "runtime/code/exit_gate.h"
#include "runtime/code/random_hints.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {

ModuleCode::ModuleCode(std::shared_ptr<const wasm::Module> module, CodeServices& services, jit::Tier first,
                       CodeObserver* observer)
    : module_(std::move(module)),
      services_(services),
      tally_(std::make_shared<CodeTally>(services.most_code_bytes)),
      first_(first),
      observer_(observer) {}

Result<std::shared_ptr<ModuleCode>> ModuleCode::create(std::shared_ptr<const wasm::Module> module,
                                                       CodeServices& services, jit::Tier first,
                                                       CodeObserver* observer) {
  std::shared_ptr<ModuleCode> code(new ModuleCode(std::move(module), services, first, observer));
  const uint32_t count = code->module_->function_count();
  const uint32_t imported = code->module_->imported_functions;
  code->functions_.resize(count - imported);
  code->lazy_stubs_.reserve(count - imported);
  for (uint32_t i = imported; i < count; i++) {
    HINDSIGHT_ASSIGN(const void* stub, services.trampolines().lazy_stub(i));
    code->lazy_stubs_.push_back(stub);
  }
  return code;
}

ModuleCode::~ModuleCode() {
  if (observer_ != nullptr) observer_->on_destroyed(*this);
  // Nobody can be in this code: its instances, and so its stores, are gone.
  for (const FunctionCode& code : functions_) {
    if (code.baseline_registered) services_.registry().remove(*code.baseline);
    if (code.optimized) services_.registry().remove(*code.optimized);
    if (code.observing) services_.registry().remove(*code.observing);
    for (const auto& [root, nest] : code.nests) services_.registry().remove(*nest);
  }
}

const void* ModuleCode::current_entry(const FunctionCode& code) const {
  if (code.optimized_current && code.optimized->entry != nullptr) return code.optimized->entry;
  if (code.baseline_current) return code.baseline->entry;
  return nullptr;
}

const void* ModuleCode::entry_or_stub(FuncIndex f) const {
  const void* const entry = current_entry(code_of(f));
  return entry != nullptr ? entry : lazy_stubs_[f.value - module_->imported_functions];
}

Status ModuleCode::attach(Instance& instance) {
  HINDSIGHT_TRY(tally_->join(instance.store().budget(), "module " + printable_name(module_->name)));
  {
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < functions_.size(); i++) {
      const FuncIndex function(module_->imported_functions + i);
      instance.set_initial_entry(function, entry_or_stub(function));
    }
    // Room comes first: where there is none, the instance is not there at all.
    if (const size_t needed = memories_.size() + module_->memories.size(); needed > memories_.capacity())
      memories_.reserve(std::max(needed, 2 * memories_.capacity()));
    instances_.push_back(&instance);
    hold_memories(instance);
  }
  if (observer_ != nullptr) observer_->on_instance(*this, instance);
  return {};
}

std::vector<ModuleCode::MemoryPlace> ModuleCode::places_of(uint64_t begin, uint64_t end) const {
  std::vector<MemoryPlace> places;
  const std::lock_guard lock(mutex_);
  for (const HeldMemory& held : memories_) {
    const auto base = reinterpret_cast<uint64_t>(held.memory->base());
    const uint64_t from = std::max(begin, base), to = std::min(end, base + held.memory->bytes());
    if (from >= to) continue;
    places.push_back({.memory = held.index, .begin = from - base, .end = to - base});
  }
  return places;
}

std::vector<ModuleCode::MemorySpan> ModuleCode::memories() const {
  std::vector<MemorySpan> spans;
  const std::lock_guard lock(mutex_);
  spans.reserve(memories_.size());
  const Memory* last = nullptr;  // under another index of the module
  for (const HeldMemory& held : memories_)
    if (std::exchange(last, held.memory) != held.memory)
      spans.push_back({.memory = held.index,
                       .base = reinterpret_cast<uint64_t>(held.memory->base()),
                       .bytes = held.memory->bytes()});
  return spans;
}

void ModuleCode::hold_memories(const Instance& instance) noexcept {
  for (uint32_t index = 0; index < module_->memories.size(); index++) {
    const std::pair<const Memory*, uint32_t> key(instance.memory(index), index);
    auto at = std::ranges::lower_bound(memories_, key, {}, &HeldMemory::key);
    if (at == memories_.end() || at->key() != key)
      at = memories_.insert(at, {.memory = key.first, .index = index});
    ++at->instances;
  }
}

void ModuleCode::let_go_of_memories(const Instance& instance) noexcept {
  for (uint32_t index = 0; index < module_->memories.size(); index++) {
    const std::pair<const Memory*, uint32_t> key(instance.memory(index), index);
    const auto at = std::ranges::lower_bound(memories_, key, {}, &HeldMemory::key);
    if (--at->instances == 0) memories_.erase(at);
  }
}

void ModuleCode::detach(Instance& instance) {
  const std::lock_guard lock(mutex_);
  if (std::erase(instances_, &instance) != 0) let_go_of_memories(instance);
}

std::string ModuleCode::words_for(FuncIndex function) const {
  return "function " + printable_name(module_->function_name(function));
}

void ModuleCode::note_no_room(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    counts_.over_limit++;
  }
  if (!out_of_room_.exchange(true, std::memory_order_relaxed))
    services_.say(LogLevel::kInfo, "compile",
                  error.message + ": not made, nor are others without room; said once, counted in reports");
}

bool ModuleCode::is_out_of_room() const {
  return out_of_room_.load(std::memory_order_relaxed);
}

Result<std::shared_ptr<jit::CodeVersion>> ModuleCode::hold_for_speed(
    std::shared_ptr<jit::CodeVersion> version) {
  auto charge = tally_->take_for_speed(words_for(version->function), version->memory.size());
  if (!charge) {
    note_no_room(charge.error());
    return std::unexpected(charge.error());
  }
  charge_version(version, std::move(*charge));
  return version;
}

std::shared_ptr<jit::CodeVersion> ModuleCode::hold_copy(std::unique_ptr<jit::CodeVersion> copy) {
  auto held = hold_for_speed(chargeable(std::move(copy)));
  return held ? std::move(*held) : nullptr;
}

Result<std::shared_ptr<jit::CodeVersion>> ModuleCode::baseline(FuncIndex function, const StoreBudget& payer) {
  const std::lock_guard compiling(compile_mutexes_[function.value % compile_mutexes_.size()]);
  if (auto present = version(function, jit::Tier::kBaseline)) return present;
  HINDSIGHT_ASSIGN(auto made,
                   jit::compile_baseline(*module_, function, services_.options(), services_.arena()));
  HINDSIGHT_ASSIGN(CodeTally::Charge charge,
                   tally_->take_needed(words_for(function), made->memory.size(), payer));
  const std::shared_ptr<jit::CodeVersion> version = chargeable(std::move(made));
  charge_version(version, std::move(charge));
  const std::lock_guard lock(mutex_);
  counts_.baseline_functions++;
  counts_.baseline_seconds += version->compile_seconds;
  code_of(function).baseline = version;
  return version;
}

bool ModuleCode::adopt(std::shared_ptr<jit::CodeVersion>& version) {
  if (!hold_for_speed(version)) return false;
  version->id = jit::CodeRegistry::next_version_id();
  const std::lock_guard lock(mutex_);
  counts_.cached_functions++;
  return true;
}

Result<ModuleCode::Optimized> ModuleCode::optimize(jit::OptimizeRequest request) {
  HINDSIGHT_ASSIGN(jit::Optimizer * optimizer, services_.optimizer());
  // A compile costs much: not for what will surely have no place. Optimized code is hardly ever smaller than the body.
  const wasm::FunctionBody& body = module_->body(request.function);
  uint32_t bytes = body.end.value - body.begin.value;
  if (request.nest) {
    const wasm::LoopInfo& root = body.loops[request.nest->value];
    bytes = root.end.value - root.offset.value;
  }
  if (const Status room = tally_->room_for_speed(words_for(request.function), bytes); !room) {
    note_no_room(room.error());
    return std::unexpected(room.error());
  }
  request.module = module_;
  request.options = services_.options();
  request.time_passes = services_.time_passes;
  request.process_ends = &ExitGate::shut();
  jit::NoCode why = jit::NoCode::kDefect;
  request.no_code = &why;
  Result<jit::OptimizeResult> result = [&]() -> Result<jit::OptimizeResult> {
    try {
      return optimizer->compile(request, services_.arena());
    } catch (const std::bad_alloc&) {
      why = jit::NoCode::kNoMemory;
      return make_error(ErrorKind::kResource, "abandoned: there was no memory to compile it");
    }
  }();
  if (result) services_.pass_times.add(result->passes);
  if (!result) {
    const std::lock_guard lock(mutex_);
    counts_.no_code[static_cast<size_t>(why)]++;
    if (why != jit::NoCode::kAbandoned && !request.nest && !code_of(request.function).optimized_current)
      left_in_baseline_.insert_or_assign(request.function.value, result.error().message);
    counts_.functions_left = left_in_baseline_.size();
    return std::unexpected(result.error());
  }
  Optimized made{.version = nullptr,
                 .begun_anew = std::move(result->begun_anew),
                 .left_out = std::move(result->left_out)};
  if (!result->version->memory) {
    made.version = std::move(result->version);
    const std::lock_guard lock(mutex_);
    counts_.optimized_seconds += made.version->compile_seconds;
    return made;
  }
  HINDSIGHT_ASSIGN(made.version, hold_for_speed(chargeable(std::move(result->version))));
  // The optimizer's library has a counter of its own; ids are unique in the process.
  made.version->id = jit::CodeRegistry::next_version_id();
  const std::lock_guard lock(mutex_);
  if (!request.nest) left_in_baseline_.erase(request.function.value);
  counts_.functions_left = left_in_baseline_.size();
  counts_.optimized_functions++;
  counts_.optimized_seconds += made.version->compile_seconds;
  return made;
}

Result<ModuleCode::Optimized> ModuleCode::optimize_and_wait(Instance& instance,
                                                            jit::OptimizeRequest request) {
  std::atomic<bool> abandoned{false};
  request.abandoned = &abandoned;
  std::optional<Result<Optimized>> result;
  // Invariant: the task is over when run() returns, so it may use what is on this stack.
  HINDSIGHT_TRY(services_.threads().run(
      [&] { result = optimize(std::move(request)); },
      [&] {
        // Relaxed, both: nothing is published by them.
        if (instance.store().thread()->interrupt_requested.load(std::memory_order_relaxed) != 0)
          abandoned.store(true, std::memory_order_relaxed);
      }));
  return std::move(*result);
}

void ModuleCode::store_entries(FuncIndex f, const void* entry) {
  FunctionCode& code = code_of(f);
  code.watched = false;
  if (code.meter != nullptr) {
    // Invariant: also where no slot leads to the meter, it leads to what no one frees.
    code.meter->lead_to(entry);
    if (code.metered) entry = code.meter->entry();
  }
  for (Instance* instance : instances_) instance->publish(f, entry);
}

const void* ModuleCode::slot_word(const FunctionCode& code, LoopIndex loop) {
  const jit::OsrEntry* newest = nullptr;
  VersionId id;
  const auto look_at = [&](const jit::CodeVersion& version) {
    if (newest != nullptr && version.id < id) return;
    for (const jit::OsrEntry& osr : version.osr_entries) {
      if (osr.loop != loop) continue;
      newest = &osr;
      id = version.id;
    }
  };
  if (code.optimized_current) look_at(*code.optimized);
  for (const auto& [root, nest] : code.nests) look_at(*nest);
  return newest != nullptr ? jit::slot_word(*newest) : nullptr;
}

const void* ModuleCode::exit_word(const FunctionCode& code, LoopIndex loop) {
  const jit::CodeVersion* const target = code.observing != nullptr ? code.observing.get()
                                         : code.optimized_current  ? code.optimized.get()
                                                                   : nullptr;
  if (target == nullptr) return nullptr;
  for (const jit::OsrEntry& osr : target->osr_entries)
    if (osr.loop == loop && osr.kind == jit::OsrEntry::Kind::kRemainder) return osr.code;
  return nullptr;
}

void ModuleCode::set_osr_slots(FunctionCode& code) {
  // Release: the target's code is complete before a loop header jumps to it.
  const auto set_polls = [&](const jit::CodeVersion& baseline) {
    if (baseline.osr_slot_count == 0) return;
    const jit::CodeWriting writing = baseline.memory.write();
    for (uint32_t i = 0; i < baseline.osr_slot_count; i++)
      baseline.osr_slots[i].store(slot_word(code, LoopIndex(i)), std::memory_order_release);
  };
  if (code.baseline != nullptr) set_polls(*code.baseline);
  std::erase_if(code.before, [&](const std::weak_ptr<jit::CodeVersion>& weak) {
    const std::shared_ptr<jit::CodeVersion> earlier = weak.lock();
    if (earlier == nullptr) return true;
    set_polls(*earlier);
    if (earlier->osr_exits.empty()) return false;
    const jit::CodeWriting writing = earlier->memory.write();
    // One that is current again keeps its loops.
    for (const jit::OsrExit& exit : earlier->osr_exits)
      exit.slot->store(earlier == code.optimized ? nullptr : exit_word(code, exit.loop),
                       std::memory_order_release);
    return false;
  });
}

void ModuleCode::retire(std::shared_ptr<jit::CodeVersion> version) {
  counts_.retired++;
  services_.retired().add(std::move(version));
}

void ModuleCode::publish_nest(FunctionCode& code, const std::shared_ptr<jit::CodeVersion>& nest) {
  services_.registry().add(module_, nest);
  std::shared_ptr<jit::CodeVersion> replaced = std::exchange(code.nests[nest->nest->value], nest);
  set_osr_slots(code);
  // Invariant: nothing leads to the replaced version any more. Those who run it come back by its exit, or when their loop
  // ends.
  if (replaced != nullptr && replaced != nest) retire_nest(std::move(replaced));
}

// The OSR slots come first: who leaves asks them again at the loop's header. One who read a slot before may enter once more,
// leaves at once, and reads the new word.
void ModuleCode::retire_nest(std::shared_ptr<jit::CodeVersion> nest) {
  lead_exits(*nest, jit::nest_leave_word(jit::kNestLeft));
  retire(std::move(nest));
}

void ModuleCode::lead_exits(const jit::CodeVersion& nest, const void* word) {
  if (nest.osr_exits.empty()) return;
  const jit::CodeWriting writing = nest.memory.write();
  // Release: the slots that it leads to were written before.
  for (const jit::OsrExit& exit : nest.osr_exits) exit.slot->store(word, std::memory_order_release);
}

bool ModuleCode::withdraw_nest(FuncIndex function, LoopIndex root) {
  const std::lock_guard lock(mutex_);
  FunctionCode& code = code_of(function);
  auto node = code.nests.extract(root.value);
  if (node.empty()) return false;
  set_osr_slots(code);
  retire_nest(std::move(node.mapped()));
  return true;
}

void ModuleCode::remember_exits(FunctionCode& code, const std::shared_ptr<jit::CodeVersion>& replaced) {
  if (replaced->osr_exits.empty() && replaced->osr_slot_count == 0) return;
  const bool known = std::any_of(code.before.begin(), code.before.end(),
                                 [&](const auto& earlier) { return earlier.lock() == replaced; });
  if (!known) code.before.push_back(replaced);
}

void ModuleCode::publish(const std::shared_ptr<jit::CodeVersion>& version) {
  {
    const std::lock_guard lock(mutex_);
    FunctionCode& code = code_of(version->function);
    if (version->tier == jit::Tier::kBaseline) {
      if (!code.baseline_registered) services_.registry().add(module_, version);
      code.baseline = version;
      code.baseline_registered = code.baseline_current = true;
      // A function that is already optimized keeps that; the baseline version is for loops and rolling back.
      if (code.optimized_current || !code.nests.empty()) set_osr_slots(code);
      if (current_entry(code) == version->entry) store_entries(version->function, version->entry);
    } else if (version->nest) {
      publish_nest(code, version);
    } else {
      services_.registry().add(module_, version);
      std::shared_ptr<jit::CodeVersion> replaced = std::move(code.optimized);
      code.optimized = version;
      code.optimized_current = true;
      // One for running loops alone leaves the slots as they are, watched or not.
      if (version->entry != nullptr)
        store_entries(version->function, version->entry);
      else if (replaced != nullptr && replaced->entry != nullptr)
        store_entries(version->function, entry_or_stub(version->function));
      if (replaced != nullptr && replaced != version) remember_exits(code, replaced);
      const std::shared_ptr<jit::CodeVersion> observed = std::exchange(code.observing, nullptr);
      set_osr_slots(code);
      // Invariant: nothing leads to the replaced version any more when it is handed over.
      if (replaced != nullptr && replaced != version) retire(std::move(replaced));
      if (observed != nullptr) retire(observed);
    }
    counts_.published++;
  }
  if (observer_ != nullptr) observer_->on_published(*this, version);
}

bool ModuleCode::withdraw(FuncIndex function) {
  return take_back(function, nullptr);
}

bool ModuleCode::observe(FuncIndex function) {
  const std::shared_ptr<jit::CodeVersion> optimized = version(function, jit::Tier::kOptimized);
  std::shared_ptr<jit::CodeVersion> observing;
  if (optimized != nullptr && !optimized->osr_exits.empty()) {
    jit::CompileOptions options = services_.options();
    options.loop_entries = true;
    // Where there is no room for it, loops stay where they are.
    if (auto made = jit::compile_baseline(*module_, function, options, services_.arena());
        made && !(*made)->osr_entries.empty()) {
      if (auto held = hold_for_speed(chargeable(std::move(*made)))) observing = std::move(*held);
    }
  }
  return take_back(function, std::move(observing));
}

bool ModuleCode::take_back(FuncIndex function, std::shared_ptr<jit::CodeVersion> observing) {
  const std::lock_guard lock(mutex_);
  FunctionCode& code = code_of(function);
  if (!code.optimized_current && code.nests.empty()) return false;
  const std::shared_ptr<jit::CodeVersion> optimized = std::exchange(code.optimized, nullptr);
  const auto nests = std::exchange(code.nests, {});
  code.optimized_current = false;
  if (optimized != nullptr) remember_exits(code, optimized);
  if (observing != nullptr) {
    services_.registry().add(module_, observing);
    // From here on it is one of those that loops may be in.
    code.before.push_back(observing);
    counts_.published++;
    code.observing = std::move(observing);
  }
  set_osr_slots(code);
  if (optimized != nullptr) {
    store_entries(function, entry_or_stub(function));
    retire(optimized);
  }
  for (const auto& [root, nest] : nests) retire_nest(nest);
  return true;
}

void ModuleCode::leave_at_loops(std::shared_ptr<jit::CodeVersion> first,
                                std::shared_ptr<jit::CodeVersion> second) {
  publish(first);
  if (second != nullptr)
    publish(second);
  else
    observe(first->function);
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<jit::CodeVersion>& baseline = code_of(first->function).baseline;
  const jit::CodeWriting writing = baseline->memory.write();
  // Release: as in set_osr_slots.
  for (const jit::OsrEntry& entry : first->osr_entries)
    baseline->osr_slots[entry.loop.value].store(jit::slot_word(entry), std::memory_order_release);
}

Status ModuleCode::enter_at_nests(Instance& instance, FuncIndex function) {
  HINDSIGHT_ASSIGN(auto slow, baseline(function, *instance.store().budget()));
  publish(slow);
  const std::vector<wasm::LoopInfo>& loops = module_->body(function).loops;
  // Outermost loops that can be nests, or innermost ones.
  std::vector<bool> around(loops.size()), chosen(loops.size());
  for (uint32_t i = 0; i < loops.size(); i++) {
    const auto parent = loops[i].parent;
    if (parent) around[i] = around[parent->value];
    if (!wasm::why_no_nest(*module_, function, LoopIndex(i)).empty()) continue;
    if (!services_.knobs.inner_nests && around[i]) continue;
    around[i] = chosen[i] = true;
    for (auto outer = parent; services_.knobs.inner_nests && outer; outer = loops[outer->value].parent)
      chosen[outer->value] = false;
  }
  for (uint32_t i = 0; i < loops.size(); i++) {
    if (!chosen[i]) continue;
    jit::OptimizeRequest request;
    request.function = function;
    request.nest = LoopIndex(i);
    auto made = optimize_and_wait(instance, std::move(request));
    if (made) {
      publish(made->version);
      continue;
    }
    if (!services_.optimizer()) return std::unexpected(made.error());
    if (is_out_of_room()) return {};
    services_.say(LogLevel::kWarning, "compile",
                  fmt::format("loop {} of {} stays in baseline code: {}", i, module_->function_name(function),
                              made.error().describe()));
  }
  return {};
}

Result<const void*> ModuleCode::compile_first(Instance& instance, FuncIndex function) {
  {
    const std::lock_guard lock(mutex_);
    FunctionCode& code = code_of(function);
    if (const void* entry = current_entry(code)) {
      // Watched for this call; or another thread published the code since the stub was entered.
      if (code.watched) {
        code.entered = true;
        store_entries(function, entry);
      }
      return entry;
    }
  }
  const bool optimizes = first_ == jit::Tier::kOptimized && services_.may_optimize(function);
  if (optimizes && services_.knobs.enter_at_nests && !module_->body(function).loops.empty()) {
    HINDSIGHT_TRY(enter_at_nests(instance, function));
    const std::lock_guard lock(mutex_);
    return current_entry(code_of(function));
  }
  if (optimizes) {
    const size_t loops = module_->body(function).loops.size();
    const bool at_loops = services_.knobs.enter_at_loops && loops != 0;
    const auto request_with = [&](uint32_t seed) {
      jit::OptimizeRequest request;
      request.function = function;
      if (seed != 0) {
        request.changes = random_hints(*module_, function, seed);
        request.verify = true;
        request.split_cold = true;
      }
      for (uint32_t i = 0; at_loops && i < loops; i++) request.osr_loops.emplace_back(i);
      request.loop_entries_only = at_loops;
      request.loop_exits = at_loops && services_.knobs.leave_at_loops;
      return request;
    };
    if (at_loops) {
      HINDSIGHT_ASSIGN(auto slow, baseline(function, *instance.store().budget()));
      publish(slow);
    }
    const uint32_t seed = services_.knobs.random_hints;
    auto made = optimize_and_wait(instance, request_with(seed));
    if (made && at_loops && services_.knobs.leave_at_loops) {
      std::shared_ptr<jit::CodeVersion> second;
      if (!services_.knobs.leave_for_baseline) {
        HINDSIGHT_ASSIGN(Optimized next, optimize_and_wait(instance, request_with(seed == 0 ? 0 : seed + 1)));
        second = std::move(next.version);
      }
      leave_at_loops(std::move(made->version), std::move(second));
      const std::lock_guard lock(mutex_);
      return current_entry(code_of(function));
    }
    if (made) {
      std::string why = "its first call, in the optimizing tier";
      if (!made->begun_anew.empty()) why += "; restarted: " + made->begun_anew;
      services_.say(LogLevel::kInfo, "compile",
                    fmt::format("{}: {} bytes of code in {:.1f} ms of CPU; because: {}",
                                module_->function_name(function), made->version->code_size.value,
                                1e3 * made->version->compile_seconds, why));
      const std::shared_ptr<jit::CodeVersion> version = std::move(made->version);
      publish(version);
      if (services_.knobs.random_hints != 0) move_elsewhere(version);
      const std::lock_guard lock(mutex_);
      return current_entry(code_of(function));
    }
    // Without the library nothing can be promised; a single function that it refuses still runs.
    if (!services_.optimizer()) return std::unexpected(made.error());
    // Relaxed: nothing is published by it. Whoever interrupts the guest knows why; that there is no room was said once.
    if (!is_out_of_room() &&
        instance.store().thread()->interrupt_requested.load(std::memory_order_relaxed) == 0)
      services_.say(LogLevel::kWarning, "compile",
                    module_->function_name(function) + " stays in baseline code: " + made.error().describe());
  }
  HINDSIGHT_ASSIGN(auto version, baseline(function, *instance.store().budget()));
  publish(version);
  const std::lock_guard lock(mutex_);
  return current_entry(code_of(function));
}

void ModuleCode::move_elsewhere(const std::shared_ptr<jit::CodeVersion>& version) {
  const size_t bytes = jit::bytes_to_move(*version);
  if (bytes == 0) return;
  auto place = services_.arena().allocate(bytes);
  if (!place) return;
  auto copy = jit::copy_version(version, std::move(*place));
  if (!copy) return;
  const Exchange exchanged{version, hold_copy(std::move(*copy))};
  if (exchanged.to == nullptr) return;
  register_copy(exchanged.to);
  retire_copy(exchange({&exchanged, 1}).front() ? exchanged.from : exchanged.to);
}

void ModuleCode::register_copy(const std::shared_ptr<jit::CodeVersion>& copy) {
  copy->id = jit::CodeRegistry::next_version_id();
  services_.registry().add(module_, copy);
}

std::vector<bool> ModuleCode::exchange(std::span<const Exchange> exchanges) {
  std::vector<bool> done;
  done.reserve(exchanges.size());
  const std::lock_guard lock(mutex_);
  for (const Exchange& e : exchanges) {
    FunctionCode& code = code_of(e.to->function);
    if (e.to->nest) {
      done.push_back(exchange_nest(code, e));
      continue;
    }
    const bool current = code.optimized_current && code.optimized == e.from;
    done.push_back(current);
    if (!current) continue;
    code.optimized = e.to;
    remember_exits(code, e.from);
    // What is watched is put back by the call that it is watched for.
    if (e.to->entry != nullptr && !code.watched) store_entries(e.to->function, e.to->entry);
    set_osr_slots(code);
  }
  return done;
}

bool ModuleCode::exchange_nest(FunctionCode& code, const Exchange& e) {
  const auto found = code.nests.find(e.to->nest->value);
  if (found == code.nests.end() || found->second != e.from) return false;
  // First: who enters it from here on may stay. One who still runs it from before stays too.
  lead_exits(*e.to, nullptr);
  found->second = e.to;
  set_osr_slots(code);
  lead_exits(*e.from, jit::nest_leave_word(jit::kNestLeft));
  return true;
}

void ModuleCode::retire_copy(std::shared_ptr<jit::CodeVersion> version) {
  const std::lock_guard lock(mutex_);
  retire(std::move(version));
}

bool ModuleCode::meter_calls(FuncIndex function) {
  const std::lock_guard lock(mutex_);
  FunctionCode& code = code_of(function);
  const void* const entry = current_entry(code);
  if (entry == nullptr || code.watched) return false;
  if (code.meter == nullptr) {
    auto meter = jit::CallMeter::create(services_.arena(), entry);
    if (!meter) return false;
    code.meter = std::move(*meter);
  }
  code.metered = true;
  store_entries(function, entry);
  return true;
}

void ModuleCode::stop_metering(FuncIndex function) {
  const std::lock_guard lock(mutex_);
  FunctionCode& code = code_of(function);
  if (!code.metered) return;
  code.metered = false;
  // What is watched leads to the stub, and goes on to.
  const bool watched = code.watched;
  store_entries(function, watched ? lazy_stubs_[function.value - module_->imported_functions]
                                  : entry_or_stub(function));
  code.watched = watched;
}

uint64_t ModuleCode::metered_calls(FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  const FunctionCode& code = code_of(function);
  return code.meter != nullptr ? code.meter->calls() : 0;
}

bool ModuleCode::watch_entry(FuncIndex function) {
  const std::lock_guard lock(mutex_);
  FunctionCode& code = code_of(function);
  if (current_entry(code) == nullptr) return false;
  store_entries(function, lazy_stubs_[function.value - module_->imported_functions]);
  code.watched = true;
  return true;
}

bool ModuleCode::entered(FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  return code_of(function).entered;
}

std::shared_ptr<jit::CodeVersion> ModuleCode::current(FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  const FunctionCode& code = code_of(function);
  if (code.optimized_current) return code.optimized;
  return code.baseline_current ? code.baseline : nullptr;
}

std::shared_ptr<jit::CodeVersion> ModuleCode::version(FuncIndex function, jit::Tier tier) const {
  const std::lock_guard lock(mutex_);
  const FunctionCode& code = code_of(function);
  return tier == jit::Tier::kBaseline ? code.baseline : code.optimized;
}

std::vector<std::shared_ptr<jit::CodeVersion>> ModuleCode::optimized_versions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<jit::CodeVersion>> versions;
  for (const FunctionCode& code : functions_)
    if (code.optimized_current) versions.push_back(code.optimized);
  return versions;
}

std::shared_ptr<jit::CodeVersion> ModuleCode::optimized(jit::Unit unit) const {
  const std::lock_guard lock(mutex_);
  const FunctionCode& code = code_of(unit.function);
  if (!unit.nest) return code.optimized;
  const auto found = code.nests.find(unit.nest->value);
  return found == code.nests.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<jit::CodeVersion>> ModuleCode::nests(FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<jit::CodeVersion>> versions;
  for (const auto& [root, nest] : code_of(function).nests) versions.push_back(nest);
  return versions;
}

std::vector<std::shared_ptr<jit::CodeVersion>> ModuleCode::all_nests() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<jit::CodeVersion>> versions;
  for (const FunctionCode& code : functions_)
    for (const auto& [root, nest] : code.nests) versions.push_back(nest);
  return versions;
}

size_t ModuleCode::instance_count() const {
  const std::lock_guard lock(mutex_);
  return instances_.size();
}

std::map<uint32_t, std::string> ModuleCode::left_in_baseline() const {
  const std::lock_guard lock(mutex_);
  return left_in_baseline_;
}

ModuleCodeCounts ModuleCode::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace hindsight::rt
