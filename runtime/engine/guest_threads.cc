#include "runtime/engine/guest_threads.h"

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/engine/handles.h"
#include "runtime/engine/lwp_binding.h"
#include "runtime/exec/enter.h"
#include "runtime/exec/interrupt.h"
#include "runtime/wasi/abi.h"

namespace hindsight::rt {
namespace {

constexpr std::string_view kThreadStart = "wasi_thread_start";

int32_t failure(wasi::Errno error) {
  return -static_cast<int32_t>(error);
}

std::string import_name(const wasm::Import& import) {
  return "\"" + import.module + "\" \"" + import.name + "\"";
}

// Null: a guest's function.
HostFunction* host_of(const jit::FuncRef& ref) {
  return ref.owner == nullptr ? static_cast<BoundHostFunction*>(ref.callee_context)->function : nullptr;
}

bool is_thread_start(const wasm::Module& module) {
  const wasm::Export* start = module.find_export(kThreadStart);
  if (start == nullptr || start->kind != wasm::ExternKind::kFunc) return false;
  const wasm::FuncType& type = module.type_of(FuncIndex(start->index));
  return type.results.empty() && type.params == std::vector(2, wasm::ValType::kI32);
}

}  // namespace

struct GuestThreads::Thread {
  int32_t id = 0;
  uint32_t argument = 0;
  std::thread native;
  // The rest is taken down by the thread itself, before it counts as finished. Others touch it under mutex_.
  std::unique_ptr<StoreState> state;
  Instance* instance = nullptr;
  bool finished = false;
};

GuestThreads::GuestThreads(EngineHandle& engine, const std::shared_ptr<Store>& first)
    : engine_(engine), most_(std::min(first->budget()->limits().threads, kMostThreads)), first_(first) {}

GuestThreads::~GuestThreads() = default;

void GuestThreads::add_wasi(std::function<void(bool)> interrupt) {
  const std::lock_guard lock(mutex_);
  wasi_.push_back(std::move(interrupt));
}

std::vector<std::shared_ptr<Store>> GuestThreads::stores() const {
  std::vector<std::shared_ptr<Store>> stores;
  for (const auto& thread : threads_)
    if (thread->state != nullptr) stores.push_back(thread->state->store);
  return stores;
}

void GuestThreads::interrupt(bool interrupted) {
  const std::lock_guard lock(mutex_);
  if (interrupted)
    for (const auto& store : stores()) end_program(store);
  for (const auto& wasi : wasi_) wasi(interrupted);
}

bool GuestThreads::wanted_by(const wasm::Module& module) {
  return std::ranges::any_of(module.imports, [](const wasm::Import& import) {
    return import.module == kThreadModule && import.name == kThreadSpawn;
  });
}

Status GuestThreads::check(const wasm::Module& module, const std::vector<Extern>& imports) {
  if (!is_thread_start(module))
    return make_error(ErrorKind::kLink,
                      "a module that spawns threads must export wasi_thread_start: (i32, i32) -> ()",
                      module.name);
  bool shares = false;
  for (size_t i = 0; i < imports.size(); i++) {
    const wasm::Import& import = module.imports[i];
    const char* objection = nullptr;
    if (const auto* memory = std::get_if<Memory*>(&imports[i])) {
      shares |= (*memory)->type().shared;
      if (!(*memory)->type().shared) objection = "a memory that is not shared";
    } else if (const auto* global = std::get_if<Global*>(&imports[i])) {
      const wasm::GlobalType& type = (*global)->type();
      if (type.mutable_) objection = "a mutable global";
      if (is_reference(type.type) && (*global)->bits() != 0) objection = "a reference";
    } else if (const auto* function = std::get_if<Func>(&imports[i])) {
      if (function->host == nullptr) objection = "a function of another instance";
    } else {
      objection = "a table";
    }
    if (objection != nullptr)
      return make_error(ErrorKind::kLink,
                        "incompatible import type: " + import_name(import) + " is " + objection +
                            ", which belongs to one thread, and the module spawns threads",
                        module.name, import.offset.value);
  }
  if (!shares)
    return make_error(ErrorKind::kLink,
                      "a module that spawns threads must import its shared memory (link it with "
                      "--import-memory --shared-memory): threads would have nothing in common",
                      module.name);
  return {};
}

// A store and an instance for the thread, made like the caller's.
Status GuestThreads::prepare(Thread& thread, Instance& caller) {
  thread.state = std::make_unique<StoreState>();
  StoreState& state = *thread.state;
  state.engine = std::static_pointer_cast<EngineHandle>(engine_.shared_from_this());
  state.store = Store::create(engine_.store_services(caller.store().budget()));
  Store& store = *state.store;
  store.embedder = &state;

  std::map<HostFunction*, HostFunction*> functions;
  std::vector<BoundLwpFunction> lwp;
  const auto function_for = [&](HostFunction* from) -> Result<HostFunction*> {
    if (const auto made = functions.find(from); made != functions.end()) return made->second;
    RawHostFunction body = from->body;
    if (from->of_store) {
      // Module hindsight_lwp is the only one of this kind.
      if (lwp.empty()) lwp = bind_lwp(store, engine_.feed());
      for (const BoundLwpFunction& f : lwp)
        if (from->name == std::string(kLwpModule) + "." + f.name) body = f.body;
    }
    HINDSIGHT_ASSIGN(HostFunction * made, store.add_host_function(from->type, from->name, std::move(body)));
    made->of_store = from->of_store;
    functions[from] = made;
    return made;
  };
  const wasm::Module& module = *caller.module();
  std::vector<Extern> imports;
  uint32_t function = 0, memory = 0, global = 0, tag = 0;
  for (const wasm::Import& import : module.imports) {
    switch (import.kind) {
      case wasm::ExternKind::kFunc: {
        HINDSIGHT_ASSIGN(HostFunction * host, function_for(host_of(*caller.func_ref(FuncIndex(function++)))));
        imports.push_back(Func{&host->ref, host});
        break;
      }
      case wasm::ExternKind::kMemory:
        imports.push_back(caller.memory(memory++));
        break;
      case wasm::ExternKind::kGlobal: {
        const Global* from = caller.global(global++);
        Global* to = store.add_global(from->type(), nullptr);
        // An exception belongs to the store that made it.
        if (!wasm::is_exn_ref(from->type().type)) to->set_bits(from->bits());
        imports.push_back(to);
        break;
      }
      case wasm::ExternKind::kTag: {
        const Tag* from = caller.tag(tag++);
        imports.push_back(store.add_tag(from->type_id, from->name));
        break;
      }
      case wasm::ExternKind::kTable:
        return make_error(ErrorKind::kInternal, "a table was let through by check()");
    }
  }
  auto code = static_cast<ModuleCode&>(caller.code()).shared_from_this();
  HINDSIGHT_ASSIGN(thread.instance, Instance::instantiate(store, caller.module(), std::move(code), imports));
  return {};
}

int32_t GuestThreads::take_id() {
  if (threads_.size() >= most_) return 0;
  // Fewer threads live than there are ids: the search ends.
  do {
    last_id_ = last_id_ == kMostThreadId ? 1 : last_id_ + 1;
  } while (std::ranges::any_of(threads_, [this](const auto& thread) { return thread->id == last_id_; }));
  return last_id_;
}

int32_t GuestThreads::spawn(Instance& caller, uint32_t argument) {
  // An instance that check() did not see: linked for a module that has got the function as a reference.
  if (!wanted_by(*caller.module())) return failure(wasi::Errno::kNotsup);
  reap();
  used_.store(true, std::memory_order_relaxed);
  auto thread = std::make_shared<Thread>();
  thread->argument = argument;
  if (const Status prepared = prepare(*thread, caller); !prepared) {
    engine_.code().say(LogLevel::kWarning, "threads", "not spawned: " + prepared.error().describe());
    return failure(wasi::Errno::kAgain);
  }
  const std::lock_guard lock(mutex_);
  if (ended_) return failure(wasi::Errno::kAgain);
  thread->id = take_id();
  if (thread->id == 0) {
    engine_.code().say(LogLevel::kWarning, "threads",
                       "not spawned: the limit threads allows " + std::to_string(most_));
    return failure(wasi::Errno::kAgain);
  }
  try {
    // The new thread waits for the lock before it does anything that others see.
    thread->native = std::thread([self = shared_from_this(), thread] { self->run(*thread); });
  } catch (const std::system_error& e) {
    engine_.code().say(LogLevel::kWarning, "threads", std::string("not spawned: ") + e.what());
    return failure(wasi::Errno::kAgain);
  }
  threads_.push_back(thread);
  return thread->id;
}

Status GuestThreads::enter_thread(Thread& thread) {
  HINDSIGHT_TRY(run_start(*thread.instance));
  // Decided before any mark is made: if the program ends after this line, the entry that follows is marked.
  if (ended()) return {};
  const wasm::Export* start = thread.instance->module()->find_export(kThreadStart);
  std::array<uint64_t, 2> slots{static_cast<uint32_t>(thread.id), thread.argument};
  return enter(*thread.state->store, *thread.instance->func_ref(FuncIndex(start->index)), slots.data());
}

void GuestThreads::run(Thread& thread) {
  {
    const std::lock_guard lock(mutex_);  // until spawn() has put it into the list
  }
  const Status status = enter_thread(thread);
  if (!status) {
    // Without one: not even a trampoline could be had.
    GuestTrap trap = thread.state->store->trap.value_or(
        GuestTrap{.code = jit::TrapCode::kOutOfResources, .detail = status.error().describe(), .frames = {}});
    if (trap.code != jit::TrapCode::kExit)
      trap.detail += (trap.detail.empty() ? "in thread " : ", in thread ") + std::to_string(thread.id);
    end(std::move(trap));
  }
  std::unique_ptr<StoreState> state;
  {
    const std::lock_guard lock(mutex_);
    thread.instance = nullptr;
    state = std::move(thread.state);  // nobody interrupts it any more; it goes without the lock
  }
  state.reset();
  const std::lock_guard lock(mutex_);
  thread.finished = true;
}

bool GuestThreads::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void GuestThreads::end(GuestTrap trap) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    outcome_ = std::move(trap);
  }
  // Interrupted inside, it interrupts the others itself; outside, nobody else does.
  if (const auto first = first_.lock()) end_program(first);
  interrupt(true);
}

void GuestThreads::reap() {
  std::vector<std::shared_ptr<Thread>> done;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(threads_, [&](const auto& thread) {
      if (!thread->finished) return false;
      done.push_back(thread);
      return true;
    });
  }
  // All that is left of them is to end.
  for (const auto& thread : done) thread->native.join();
}

void GuestThreads::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (threads_.empty() && !ended_) return;
    ended_ = true;  // from here on none is added
  }
  interrupt(true);
  std::vector<std::shared_ptr<Thread>> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
  for (const auto& thread : threads) thread->native.join();
  interrupt(false);
  if (const auto first = first_.lock()) continue_program(first);
}

Status GuestThreads::settle(const Status& status, bool over) {
  if (!used_.load(std::memory_order_relaxed)) return status;
  const auto first = first_.lock();
  {
    // An entry inside another one: the outer one decides.
    const std::lock_guard lock(first->entry_state().mutex);
    if (first->entry_state().depth != 0) return status;
  }
  if (status && !over && !ended()) return status;
  finish();
  std::optional<GuestTrap> outcome;
  {
    const std::lock_guard lock(mutex_);
    ended_ = false;
    outcome = std::exchange(outcome_, std::nullopt);
  }
  // A trap of the first thread's own is told rather than what came at the same time elsewhere.
  if (!outcome || (!status && first->trap->code != jit::TrapCode::kInterrupted)) return status;
  first->trap = std::move(outcome);
  // The embedder's interruption reached a thread first: this is the call that ends by it.
  if (first->trap->code == jit::TrapCode::kInterrupted) clear_interrupt(first);
  return std::unexpected(to_error(*first->trap));
}

}  // namespace hindsight::rt
