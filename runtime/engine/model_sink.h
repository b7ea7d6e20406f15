// ModelSink: a guest thread whose code is instrumented (CompileOptions::trace), as the runtime sees it: hands
// the trace to the thread's model unit. Nothing in it depends on time or on addresses, so the same program
// makes the same records again.
#pragma once

#include <memory>
#include <vector>

#include "feedback/lwp/units/model_unit.h"
#include "runtime/code/guest_unit.h"
#include "runtime/exec/lwp_sink.h"

namespace hindsight::rt {

class ModelSink final : public LwpSink {
 public:
  // The unit is attached to the calling thread; the monitor learns of it here and forgets it in the
  // destructor.
  ModelSink(std::shared_ptr<lwp::ModelUnit> unit, feedback::Monitor& monitor);

  void arm(jit::ThreadState& thread) override;
  void trace(jit::ThreadState& thread) override;
  // Counting is the model's; instrumented code does not come here.
  void instructions(jit::ThreadState& thread, const void* pc) override;
  void branch(jit::ThreadState& thread, const void* pc, bool taken, const void* target) override;
  void value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
             uint32_t site_flags) override;
  bool listens() const override { return true; }
  bool insert_event(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) override;
  bool insert_value(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) override;

 private:
  std::shared_ptr<lwp::ModelUnit> unit_;
  GuestUnit guest_;  // attaches and detaches
};

// Where instrumented code of a thread writes for which no unit could be had: into the void.
class VoidSink final : public LwpSink {
 public:
  VoidSink();
  void arm(jit::ThreadState& thread) override;
  void trace(jit::ThreadState& thread) override { arm(thread); }
  void instructions(jit::ThreadState& thread, const void*) override { arm(thread); }
  void branch(jit::ThreadState& thread, const void*, bool, const void*) override { arm(thread); }
  void value(jit::ThreadState& thread, const void*, uint32_t, uint64_t, uint32_t) override { arm(thread); }

 private:
  std::vector<uint64_t> buffer_;
};

}  // namespace hindsight::rt
