#include "runtime/engine/model_sink.h"

#include "base/trace.h"
#include "feedback/lwp/format/record.h"

namespace hindsight::rt {

ModelSink::ModelSink(std::shared_ptr<lwp::ModelUnit> unit, feedback::Monitor& monitor)
    : unit_(unit), guest_(std::move(unit), monitor) {}

void ModelSink::arm(jit::ThreadState& thread) {
  thread.lwp_instructions = INT32_MAX;
  thread.lwp_branches = INT32_MAX;
  thread.lwp_values = kValueInterval;
  thread.trace_at = unit_->trace_begin();
  thread.trace_end = unit_->trace_end();
}

void ModelSink::trace(jit::ThreadState& thread) {
  const uint64_t* const end = thread.trace_at;
  // Where there is no memory to look at the words they are lost: code must find room, whatever.
  thread.trace_at = unit_->trace_begin();
  thread.trace_at = unit_->consume(end);
}

void ModelSink::instructions(jit::ThreadState& thread, const void*) {
  thread.lwp_instructions = INT32_MAX;
}

void ModelSink::branch(jit::ThreadState& thread, const void*, bool, const void*) {
  thread.lwp_branches = INT32_MAX;
}

void ModelSink::value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
                      uint32_t site_flags) {
  unit_->insert(lwp::make_value_record(reinterpret_cast<uint64_t>(pc), value, wasm_offset,
                                       static_cast<uint16_t>(site_flags)));
  thread.lwp_values = kValueInterval;
}

bool ModelSink::insert_event(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  unit_->insert(lwp::make_programmed_record(reinterpret_cast<uint64_t>(pc), data2, data1, flags));
  return false;
}

bool ModelSink::insert_value(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  unit_->insert(lwp::make_value_record(reinterpret_cast<uint64_t>(pc), data2, data1, flags));
  return false;
}

VoidSink::VoidSink() : buffer_(2 * kTraceSlack) {}

void VoidSink::arm(jit::ThreadState& thread) {
  thread.lwp_instructions = thread.lwp_branches = thread.lwp_values = INT32_MAX;
  thread.trace_at = buffer_.data();
  thread.trace_end = buffer_.data() + kTraceSlack;
}

}  // namespace hindsight::rt
