// CallMeter: counts the calls of a function on their way into it. Four instructions that entry slots can lead
// to: one more on the counter, and on to wherever the meter leads. Nothing is known of the function but that
// r11 is nobody's at its entry (jit/abi/vm_context.h: the registers of System V AMD64).
//
// Invariant: where a meter leads is one more entry slot. Whoever frees code must have led the meter away from
// it before, also while no slot leads to the meter any more. A thread may have stopped inside of the meter.
//
// Threads: lead_to() by one thread at a time; the others at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "jit/code/code_arena.h"

namespace hindsight::jit {

class CallMeter {
 public:
  // Leads to `code`. Error kResource.
  static Result<std::unique_ptr<CallMeter>> create(CodeArena& arena, const void* code);

  const void* entry() const { return memory_.executable(); }
  void lead_to(const void* code);
  // Since it was made. Of calls that several threads make at once some are lost: adding alone, without asking
  // other processors, keeps it as cheap as it is.
  uint64_t calls() const;

 private:
  // In a line of its own: it is written by every call.
  struct alignas(64) Counter {
    uint64_t calls = 0;
  };
  CallMeter(CodeAllocation memory, const void* code);

  CodeAllocation memory_;  // the instructions; in the next line where they lead
  std::unique_ptr<Counter> counter_;
};

}  // namespace hindsight::jit
