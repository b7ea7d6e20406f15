#include "runtime/exec/trap.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "runtime/exec/enter.h"
#include "runtime/exec/interrupt.h"
#include "runtime/exec/signal_handlers.h"
#include "runtime/exec/x86_64.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {
namespace {

std::string describe_address(Store& store, uintptr_t address) {
  char text[96];
  for (const auto& instance : store.instances()) {
    for (uint32_t i = 0; const Memory* memory = instance->memory(i); i++) {
      const auto base = reinterpret_cast<uintptr_t>(memory->base());
      if (address < base || address >= base + memory->record()->reserved_bytes) continue;
      std::snprintf(text, sizeof text, "address 0x%llx of a memory of 0x%llx bytes",
                    static_cast<unsigned long long>(address - base),
                    static_cast<unsigned long long>(memory->bytes()));
      return text;
    }
  }
  return {};
}

// `jmp rax`, which baseline code does at tail calls and nowhere else.
bool is_tail_jump(const jit::CodeVersion& version, uintptr_t pc) {
  const auto* code = reinterpret_cast<const uint8_t*>(pc);
  return version.tier == jit::Tier::kBaseline && code[0] == 0xff && code[1] == 0xe0;
}

// At a function's first instructions, at its `ret` and at the jump of a tail call, rbp is still or again the
// caller's. So the caller's return address would be skipped.
uintptr_t hidden_return_address(Store& store, const FaultRecord& fault) {
  const auto found = store.services().registry->find(reinterpret_cast<const void*>(fault.pc));
  if (!found) return 0;
  const auto entry = reinterpret_cast<uintptr_t>(found->version->entry);
  uintptr_t slot = 0;
  if (fault.pc == entry || *reinterpret_cast<const uint8_t*>(fault.pc) == 0xc3 ||
      is_tail_jump(*found->version, fault.pc))
    slot = fault.sp;
  else if (fault.pc == entry + 1)  // after `push rbp`
    slot = fault.sp + 8;
  else
    return 0;
  uintptr_t address;
  std::memcpy(&address, reinterpret_cast<const void*>(slot), sizeof address);
  return address;
}

std::string describe_as_memory_allows(Store& store, uintptr_t address) noexcept {
  try {
    return describe_address(store, address);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

[[gnu::noinline]] void record_fault(Store& store, const FaultRecord& fault) noexcept {
  WalkStart start{.exact_pc = fault.pc, .return_pc = 0, .fp = fault.fp};
  if (fault.kind == FaultRecord::Kind::kInterrupt) {
    start.return_pc = hidden_return_address(store, fault);
    record_trap(store, asked_to_end(store), {}, start);
  } else {
    record_trap(store, jit::TrapCode::kMemoryOutOfBounds, describe_as_memory_allows(store, fault.address),
                start);
  }
}

}  // namespace

void record_trap(Store& store, jit::TrapCode code, std::string detail, const WalkStart& start) noexcept {
  store.thread()->pending_trap = code;
  GuestTrap trap;
  trap.code = code;
  trap.detail = std::move(detail);
  try {
    walk_stack(store, start, trap);
  } catch (const std::bad_alloc&) {
    ++trap.frames_left_out;  // at least: those further out
  }
  store.trap = std::move(trap);
}

[[gnu::noinline]] void record_trap_at(Store& store, jit::TrapCode code, const char* detail,
                                      void* frame) noexcept {
  std::string words;
  try {
    words = detail;
  } catch (const std::bad_alloc&) {  // the trap says enough
  }
  record_trap(store, code, std::move(words),
              {.exact_pc = 0, .return_pc = 0, .fp = reinterpret_cast<uintptr_t>(frame)});
}

HINDSIGHT_UNWOUND void leave_guest(Store& store) {
  x86_64::jump(store.unwind(), store.thread());
}

HINDSIGHT_UNWOUND void trap_after_signal() {
  GuestThread* thread = this_guest_thread_or_null();
  Store& store = *thread->activation.load(std::memory_order_relaxed)->store;
  record_fault(store, thread->fault);
  leave_guest(store);
}

Error to_error(const GuestTrap& trap) {
  if (trap.code == jit::TrapCode::kExit)
    return make_error(ErrorKind::kExit, std::to_string(trap.exit_code)).error();
  std::string message = jit::to_string(trap.code);
  if (trap.code == jit::TrapCode::kHostError && !trap.detail.empty()) message = trap.detail;
  if (trap.code == jit::TrapCode::kOutOfResources || trap.code == jit::TrapCode::kUncaughtException)
    message += ": " + trap.detail;
  return make_error(ErrorKind::kTrap, std::move(message)).error();
}

}  // namespace hindsight::rt
