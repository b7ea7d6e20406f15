// LwpSink: where the LWP events of counting baseline code go: the LWP unit of the thread that runs the guest.
// The runtime knows no more of profiling than this. Called on the guest's thread, in a builtin, so a sink may
// allocate and lock, but should not: it runs every few thousand instructions.
#pragma once

#include <cstdint>

#include "jit/abi/vm_context.h"

namespace hindsight::rt {

class LwpSink {
 public:
  // Detaches the unit. On the thread itself when the thread ends; on another thread when the engine goes
  // first.
  virtual ~LwpSink() = default;
  // A store's thread state is about to be used with this unit: sets the event counters.
  virtual void arm(jit::ThreadState& thread) = 0;
  // A counter became negative. pc: the return address of the builtin's call, in generated code. Each reloads
  // its counter.
  virtual void instructions(jit::ThreadState& thread, const void* pc) = 0;
  virtual void branch(jit::ThreadState& thread, const void* pc, bool taken, const void* target) = 0;
  virtual void value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
                     uint32_t site_flags) = 0;

  // Called by instrumented code (base/trace.h) that has no room left in the buffer that arm() gave to
  // `thread`, or that leaves the guest. Takes the words out and resets trace_at.
  virtual void trace(jit::ThreadState& thread) {}

  // Events of the guest's own, which it asks for by calling a host function; pc: that call's return address.
  // Does anybody read what is inserted? If not, the guest is told what a processor with LWP switched off
  // says.
  virtual bool listens() const { return false; }
  // One record of event 255, or of event 1. True: the ring was full, and the next record overwrites this one.
  virtual bool insert_event(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) { return false; }
  virtual bool insert_value(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) { return false; }
};

}  // namespace hindsight::rt
