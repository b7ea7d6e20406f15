// From guest code into a host function: what HostCallee::dispatch points to.
#include <charconv>
#include <exception>

#include "runtime/exec/enter.h"
#include "runtime/exec/exceptions.h"
#include "runtime/exec/guest_thread.h"
#include "runtime/exec/interrupt.h"
#include "runtime/exec/signal_handlers.h"
#include "runtime/exec/trap.h"
#include "runtime/exec/x86_64.h"
#include "runtime/instance/host_function.h"

namespace hindsight::rt {
namespace {

// Nothing is thrown across guest frames: a host function's exception is its error.
Status call_body(const BoundHostFunction& callee, uint64_t* slots) {
  try {
    return callee.function->body(callee.caller, slots);
  } catch (const std::exception& e) {
    return make_error(ErrorKind::kInternal, std::string("host function threw: ") + e.what());
  } catch (...) {
    return make_error(ErrorKind::kInternal, "host function threw");
  }
}

void record_failure(Store& store, const BoundHostFunction& callee, const Error& error, uintptr_t frame) {
  const WalkStart start{.exact_pc = 0, .return_pc = 0, .fp = frame};
  if (error.kind == ErrorKind::kTrap && store.trap && store.trap->code != jit::TrapCode::kNone) {
    // From a nested entry: its trap, whose backtrace already goes through this call.
    store.thread()->pending_trap = store.trap->code;
    return;
  }
  if (error.kind == ErrorKind::kExit) {
    uint32_t code = 1;
    std::from_chars(error.message.data(), error.message.data() + error.message.size(), code);
    store.thread()->pending_trap = jit::TrapCode::kExit;
    store.thread()->pending_exit_code = code;
    store.trap = GuestTrap{.code = jit::TrapCode::kExit, .detail = {}, .frames = {}, .exit_code = code};
    return;
  }
  std::string words = error.message.empty() ? callee.function->name + " failed" : error.message;
  record_trap(store, jit::TrapCode::kHostError, std::move(words), start);
}

// The exception of a nested entry that the host function lets pass; null: it is something else.
jit::ExceptionRecord* exception_of(const Store& store, const Error& error) {
  if (error.kind != ErrorKind::kTrap || !store.trap) return nullptr;
  return store.trap->code == jit::TrapCode::kUncaughtException ? store.trap->exception : nullptr;
}

// An entry that has called a function of the host's, until that returns. The host may go to other stacks meanwhile, and
// come back (guest_thread.h).
class InHostFunction {
 public:
  InHostFunction(Activation& entry, uintptr_t frame, uintptr_t low) : entry_(entry) {
    entry.entry_sp = entry.store->thread()->entry_sp.load(std::memory_order_relaxed);
    entry.host_frame = frame;
    entry.low.store(low, std::memory_order_relaxed);
    // For handlers of this thread: before whatever the host does.
    std::atomic_signal_fence(std::memory_order_release);
  }
  ~InHostFunction() {
    if (entry_.thread->activation.load(std::memory_order_relaxed) != &entry_) [[unlikely]]
      go_on_in(entry_);
    std::atomic_signal_fence(std::memory_order_release);
    entry_.host_frame = 0;
    entry_.low.store(0, std::memory_order_relaxed);
  }
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;

 private:
  Activation& entry_;
};

Status call_inside(BoundHostFunction& bound, uint64_t* slots, uintptr_t frame, uintptr_t low) {
  const InHostFunction inside(*bound.function->store->activation, frame, low);
  return call_body(bound, slots);
}

// What dispatch_host_call returns; or, if `exception` is set, what it throws on, and where to.
uint32_t run_and_search(BoundHostFunction& bound, uint64_t* slots, uintptr_t frame, uintptr_t low,
                        jit::ExceptionRecord*& exception, Landing& landing) {
  Store& store = *bound.function->store;
  store.trap.reset();
  const Status status = call_inside(bound, slots, frame, low);
  // A limit holds whatever the host does to its signals.
  if (store.entry_state().limited.load(std::memory_order_relaxed)) [[unlikely]]
    (void)unblock_signals_here();
  // An interruption wins over whatever the host function made of it.
  if (const jit::TrapCode asked = asked_to_end(store); asked != jit::TrapCode::kNone) {
    if (!store.trap || !is_interruption(store.trap->code))
      record_trap(store, asked, {}, {.exact_pc = 0, .return_pc = 0, .fp = frame});
    store.thread()->pending_trap = store.trap->code;
    return 1;
  }
  if (status) return 0;
  exception = exception_of(store, status.error());
  if (exception == nullptr)
    record_failure(store, bound, status.error(), frame);
  else
    landing = find_landing(store, *exception, frame);
  return 1;
}

// The same; the library's own exceptions of C++ end here too.
[[gnu::noinline]] uint32_t run(BoundHostFunction& bound, uint64_t* slots, uintptr_t frame,
                               jit::ExceptionRecord*& exception, Landing& landing) noexcept {
  // Invariant: the caller's whole frame is above this one.
  const auto low = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  try {
    return run_and_search(bound, slots, frame, low, exception, landing);
  } catch (...) {
    exception = nullptr;
    Store& store = *bound.function->store;
    record_trap_at(store, jit::TrapCode::kOutOfResources, "the host has no memory",
                   reinterpret_cast<void*>(frame));
    return 1;
  }
}

}  // namespace

HINDSIGHT_UNWOUND uint32_t dispatch_host_call(jit::HostCallee* callee, uint64_t* slots) {
  auto& bound = *static_cast<BoundHostFunction*>(callee);
  // What the guest has in registers may end up anywhere in the host's frames: here it is in any case (Activation::low).
  uint64_t registers[x86_64::kKeptRegisters];
  x86_64::read_kept_registers(registers);
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  jit::ExceptionRecord* exception = nullptr;
  Landing landing;
  const uint32_t failed = run(bound, slots, frame, exception, landing);
  if (exception == nullptr) [[likely]]
    return failed;
  Store& store = *bound.function->store;
  go_on(store, landing, exception);
}

}  // namespace hindsight::rt
