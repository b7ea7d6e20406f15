#include "jit/baseline/run_recorder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "jit/wasm/opcodes.h"

namespace hindsight::jit::baseline {

using wasm::Instr;
using wasm::Opcode;

namespace {

// Cycles from operands to result on a current x86 core, to the nearest that matters beside a cache miss.
uint32_t latency_of(Opcode opcode) {
  const auto code = static_cast<uint16_t>(opcode);
  switch (opcode) {
    case Opcode::kI32Mul:
    case Opcode::kI64Mul:
      return 3;
    case Opcode::kI32DivS:
    case Opcode::kI32DivU:
    case Opcode::kI32RemS:
    case Opcode::kI32RemU:
      return 11;
    case Opcode::kI64DivS:
    case Opcode::kI64DivU:
    case Opcode::kI64RemS:
    case Opcode::kI64RemU:
      return 15;
    case Opcode::kF32Div:
    case Opcode::kF64Div:
      return 12;
    case Opcode::kF32Sqrt:
    case Opcode::kF64Sqrt:
      return 18;
    default:
      break;
  }
  if ((code >= 0x8b && code <= 0xa6) || (code >= 0xa8 && code <= 0xbb) || code >= 0xfc00) return 4;
  return 1;
}

uint32_t vector_latency_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kF32x4Div:
    case Opcode::kF64x2Div:
      return 13;
    case Opcode::kF32x4Sqrt:
    case Opcode::kF64x2Sqrt:
      return 18;
    case Opcode::kI64x2Mul:
      return 9;
    default:
      break;
  }
  const std::string_view name = wasm::find_opcode(static_cast<uint16_t>(opcode))->name;
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("mul") || has("dot") || has("pairwise") || has("extract_lane") || has("bitmask")) return 4;
  const bool floating = name.starts_with("f32x4") || name.starts_with("f64x2") || has("trunc");
  const bool moves = has("splat") || has("lane") || has("abs") || has("neg");
  return floating && !moves ? 4 : 1;
}

// Operands and results of an instruction whose typing is not special.
std::pair<uint32_t, uint32_t> counts_of(Opcode opcode) {
  const std::string_view signature = wasm::find_opcode(static_cast<uint16_t>(opcode))->signature;
  const auto operands = static_cast<uint32_t>(signature.find(':'));
  return {operands, static_cast<uint32_t>(signature.size()) - operands - 1};
}

constexpr uint32_t kCallOperations = 14;    // arguments, prologue and epilogue
constexpr uint32_t kThrowOperations = 500;  // making the exception, one frame searched

}  // namespace

void RunRecorder::Value::add(TraceTerm term) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (terms[i].source == term.source) {
      terms[i].delay = std::max(terms[i].delay, term.delay);
      return;
    }
    // An access may have missed, a slot is usually long ready.
    const auto weight = [](const TraceTerm& t) {
      return (t.source >= kTraceAccess ? 0x10000u : 0u) + t.delay;
    };
    if (weight(terms[i]) < weight(terms[least])) least = i;
  }
  terms[count < kMost ? count++ : least] = term;
}

void RunRecorder::Value::add(const Value& other, uint32_t delay) {
  for (uint32_t i = 0; i < other.count; ++i) {
    const uint32_t sum = std::min<uint32_t>(other.terms[i].delay + delay, UINT16_MAX);
    add({other.terms[i].source, static_cast<uint16_t>(sum)});
  }
}

RunRecorder::RunRecorder(const wasm::Module& module, FuncIndex function, TraceDirectory& directory)
    : module_(module),
      directory_(directory),
      type_(module.type_of(function)),
      locals_(static_cast<uint32_t>(module.body(function).locals.size())),
      function_(std::make_unique<TraceFunction>()),
      local_state_(locals_) {
  function_->function = function;
  function_->slots = locals_ + module.body(function).max_stack;
  const auto& hash = module.content_hash();
  for (size_t i = 0; i < 8; ++i) function_->module = function_->module << 8 | static_cast<uint8_t>(hash[i]);
}

RunRecorder::Value RunRecorder::slot_value(uint32_t slot) const {
  Value value;
  // Frames beyond 32,768 slots: what lies there counts as ready.
  if (slot < kTraceAccess) value.add({static_cast<uint16_t>(slot), 0});
  return value;
}

RunRecorder::Value RunRecorder::pop() {
  const Value value = stack_.back();
  stack_.pop_back();
  clean_ = std::min(clean_, stack_.size());
  return value;
}

const RunRecorder::Value& RunRecorder::local(uint32_t index) {
  LocalState& state = local_state_[index];
  if (state.run != run_number_) state.value = slot_value(index);
  return state.value;
}

void RunRecorder::set_local(uint32_t index, const Value& value) {
  LocalState& state = local_state_[index];
  if (state.run != run_number_) dirty_.push_back(index);
  state.run = run_number_;
  state.value = value;
}

void RunRecorder::compute(uint32_t operands, uint32_t results, uint32_t latency) {
  Value value;
  for (uint32_t i = 0; i < operands; ++i) value.add(pop(), latency);
  for (uint32_t i = 0; i < results; ++i) push(value);
}

void RunRecorder::access(TraceAccessKind kind, uint32_t bytes, const Value& address, const Value& value,
                         WasmOffset offset) {
  TraceAccess a;
  a.kind = kind;
  a.bytes = static_cast<uint8_t>(bytes);
  a.operations = operations_;
  a.offset = offset;
  a.address = span_of(address);
  a.value = span_of(value);
  operations_ = 0;
  run_.words += trace_words(kind);
  run_.accesses.push_back(a);
}

void RunRecorder::access_at(CodeOffset code) {
  const WasmOffset offset = run_.accesses.back().offset;
  for (size_t i = run_.accesses.size(); i-- > 0 && run_.accesses[i].offset == offset;)
    run_.accesses[i].code = code;
}

// Those with the prefix 0xfe. What reads and writes is a load and a store of the same place.
void RunRecorder::atomic(const Instr& instr) {
  constexpr uint32_t kLockedLatency = 18;
  const auto code = static_cast<uint16_t>(instr.opcode);
  ++operations_;
  if (instr.opcode == Opcode::kAtomicFence) return;
  if (!wasm::is_atomic_access(code)) {
    operations_ += kCallOperations;
    return compute(instr.opcode == Opcode::kMemoryAtomicNotify ? 2 : 3, 1, 1);
  }
  const wasm::AtomicAccess atomic = wasm::atomic_access(code);
  const uint32_t bytes = 1u << atomic.log2;
  if (atomic.kind == wasm::AtomicKind::kStore) {
    const Value value = pop();
    const Value address = pop();
    return access(TraceAccessKind::kStore, bytes, address, value, instr.offset);
  }
  Value value;
  const bool compares = atomic.kind == wasm::AtomicKind::kCompareExchange;
  for (int i = atomic.kind == wasm::AtomicKind::kLoad ? 0 : compares ? 2 : 1; i > 0; --i) value.add(pop(), 1);
  const Value address = pop();
  access(TraceAccessKind::kLoad, bytes, address, {}, instr.offset);
  const bool writes = atomic.kind != wasm::AtomicKind::kLoad;
  Value loaded;
  loaded.add({static_cast<uint16_t>(kTraceAccess + run_.accesses.size() - 1),
              static_cast<uint16_t>(writes ? kLockedLatency : 0)});
  if (writes) {
    operations_ += 3;
    value.add(loaded, 0);
    access(TraceAccessKind::kStore, bytes, address, value, instr.offset);
  }
  push(loaded);
}

TraceSpan RunRecorder::span_of(const Value& value) {
  const TraceSpan span{static_cast<uint32_t>(run_.terms.size()), value.count};
  run_.terms.insert(run_.terms.end(), value.terms, value.terms + value.count);
  return span;
}

void RunRecorder::write(uint32_t slot, const Value& value) {
  if (slot >= kTraceAccess) return;
  if (value.count == 1 && value.terms[0] == TraceTerm{static_cast<uint16_t>(slot), 0}) return;
  run_.writes.push_back({static_cast<uint16_t>(slot), span_of(value)});
}

uint32_t RunRecorder::mark(TraceEnd end) {
  const uint32_t id = directory_.next_id();
  TraceRun run;
  run.end = end;
  function_->runs.emplace_back(id, std::move(run));
  return id;
}

uint32_t RunRecorder::enter() {
  return mark(TraceEnd::kEnter);
}

uint32_t RunRecorder::land() {
  return mark(TraceEnd::kLand);
}

void RunRecorder::sync(size_t height) {
  if (stack_.size() > height) stack_.resize(height);
  clean_ = std::min(clean_, stack_.size());
  while (stack_.size() < height) {
    if (clean_ == stack_.size()) ++clean_;
    push(slot_value(operand_slot(stack_.size())));
  }
}

void RunRecorder::instruction(const Instr& instr) {
  const auto code = static_cast<uint16_t>(instr.opcode);
  if (wasm::is_structure(instr.opcode)) return;
  if (wasm::is_simd(instr.opcode)) return vector(instr);
  switch (instr.opcode) {
    case Opcode::kUnreachable:
    case Opcode::kBr:
    case Opcode::kReturn:
      ++operations_;
      return;
    case Opcode::kBrOnNonNull:
      ++operations_;
      condition_ = stack_.back();
      return;
    case Opcode::kRefAsNonNull:
      ++operations_;
      return;
    case Opcode::kIf:
    case Opcode::kBrIf:
    case Opcode::kBrOnNull:  // the reference counts as reloaded where the branch falls through
      ++operations_;
      condition_ = pop();
      return;
    case Opcode::kBrTable:
      operations_ += 5;
      condition_ = pop();
      return;
    case Opcode::kCall:
    case Opcode::kCallIndirect:
    case Opcode::kReturnCall:
    case Opcode::kReturnCallIndirect:
    case Opcode::kCallRef:
    case Opcode::kReturnCallRef: {
      const bool indirect = instr.opcode != Opcode::kCall && instr.opcode != Opcode::kReturnCall;
      const bool by_table =
          instr.opcode == Opcode::kCallIndirect || instr.opcode == Opcode::kReturnCallIndirect;
      const wasm::FuncType& type =
          indirect ? module_.types[instr.index] : module_.type_of(FuncIndex(instr.index));
      if (indirect) condition_ = pop();
      operations_ += kCallOperations + (by_table ? 8 : indirect ? 2 : 0);
      call_params_ = static_cast<uint32_t>(type.params.size());
      call_results_ = static_cast<uint32_t>(type.results.size());
      return;
    }
    case Opcode::kThrow:
      for (size_t i = module_.type_of_tag(instr.index).params.size(); i-- > 0;) pop();
      operations_ += kThrowOperations;
      return;
    case Opcode::kRethrow:
      operations_ += kThrowOperations;
      return;
    case Opcode::kThrowRef:
      pop();
      operations_ += kThrowOperations;
      return;
    case Opcode::kDrop:
      pop();
      return;
    case Opcode::kSelect:
    case Opcode::kSelectT:
      operations_ += 2;
      return compute(3, 1, 1);
    case Opcode::kLocalGet:
      return push(local(instr.index));
    case Opcode::kLocalSet: {
      ++operations_;
      return set_local(instr.index, pop());
    }
    case Opcode::kLocalTee:
      ++operations_;
      return set_local(instr.index, stack_.back());
    case Opcode::kGlobalGet:
    case Opcode::kRefNull:
    case Opcode::kRefFunc:
    case Opcode::kTableSize:
      ++operations_;
      return push({});
    case Opcode::kGlobalSet:
      ++operations_;
      pop();
      return;
    case Opcode::kTableGet:
    case Opcode::kRefIsNull:
      ++operations_;
      return compute(1, 1, 1);
    case Opcode::kTableSet:
      ++operations_;
      return compute(2, 0, 1);
    case Opcode::kTableGrow:
      operations_ += kCallOperations;
      return compute(2, 1, 1);
    case Opcode::kTableFill:
      operations_ += kCallOperations;
      return compute(3, 0, 1);
    case Opcode::kMemoryCopy:
    case Opcode::kMemoryFill:
    case Opcode::kMemoryInit: {
      operations_ += kCallOperations;
      Value address;
      for (int i = 0; i < 3; ++i) address.add(pop(), 0);
      const bool copy = instr.opcode == Opcode::kMemoryCopy;
      return access(copy ? TraceAccessKind::kCopy : TraceAccessKind::kFill, 0, address, {}, instr.offset);
    }
    case Opcode::kI32Const:
    case Opcode::kI64Const:
    case Opcode::kF32Const:
    case Opcode::kF64Const:
      return push({});
    default:
      break;
  }
  if (code >> 8 == 0xfe) return atomic(instr);
  ++operations_;
  if (code >= 0x28 && code <= 0x3e) {
    const uint32_t bytes = 1u << wasm::access_log2(instr.opcode);
    if (code <= 0x35) {
      const Value address = pop();
      access(TraceAccessKind::kLoad, bytes, address, {}, instr.offset);
      Value loaded;
      loaded.add({static_cast<uint16_t>(kTraceAccess + run_.accesses.size() - 1), 0});
      return push(loaded);
    }
    const Value value = pop();
    const Value address = pop();
    return access(TraceAccessKind::kStore, bytes, address, value, instr.offset);
  }
  const auto [operands, results] = counts_of(instr.opcode);
  compute(operands, results, latency_of(instr.opcode));
}

void RunRecorder::vector(const Instr& instr) {
  const wasm::ImmKind kind = wasm::find_opcode(static_cast<uint16_t>(instr.opcode))->imm;
  if (kind == wasm::ImmKind::kV128) return push({});
  ++operations_;
  const auto [operands, results] = counts_of(instr.opcode);
  if (kind != wasm::ImmKind::kMemArg && kind != wasm::ImmKind::kMemArgLane)
    return compute(operands, results, vector_latency_of(instr.opcode));
  const uint32_t bytes = 1u << wasm::simd_access_log2(instr.opcode);
  Value value;
  if (operands == 2) value = pop();
  const Value address = pop();
  if (results == 0) return access(TraceAccessKind::kStore, bytes, address, value, instr.offset);
  access(TraceAccessKind::kLoad, bytes, address, {}, instr.offset);
  Value loaded;
  loaded.add(value, 1);  // a lane goes into a vector
  loaded.add({static_cast<uint16_t>(kTraceAccess + run_.accesses.size() - 1), 0});
  push(loaded);
}

bool RunRecorder::empty() const {
  return run_.accesses.empty() && dirty_.empty() && clean_ == stack_.size() && operations_ == 0;
}

uint32_t RunRecorder::end_run(TraceEnd end, uint32_t instructions, WasmOffset offset, CodeOffset code,
                              Moved moved) {
  run_.end = end;
  run_.instructions = instructions;
  run_.operations = operations_;
  run_.offset = offset;
  run_.code = code;
  run_.condition = span_of(condition_);
  if (end == TraceEnd::kReturn ||
      is_tail_call(end)) {  // to where the caller or callee looks; the frame is dead
    const uint32_t arity = is_tail_call(end) ? call_params_ : static_cast<uint32_t>(type_.results.size());
    for (uint32_t i = 0; i < arity && i < stack_.size(); ++i) write(i, stack_[stack_.size() - arity + i]);
  } else {
    for (const uint32_t index : dirty_) write(index, local_state_[index].value);
    for (size_t i = clean_; i < stack_.size(); ++i) write(operand_slot(i), stack_[i]);
    for (uint32_t i = 0; i < moved.arity && moved.arity <= stack_.size(); ++i) {
      write(operand_slot(moved.to_base + i), stack_[stack_.size() - moved.arity + i]);
    }
  }
  if (end == TraceEnd::kCall || end == TraceEnd::kIndirectCall)
    run_.call_slot = operand_slot(stack_.size() - call_params_);

  const uint32_t id = directory_.next_id();
  function_->runs.emplace_back(id, std::move(run_));
  reset_run();
  for (size_t i = clean_; i < stack_.size(); ++i) stack_[i] = slot_value(operand_slot(i));
  clean_ = stack_.size();
  if (end == TraceEnd::kCall || end == TraceEnd::kIndirectCall) sync(stack_.size() - call_params_);
  if (end == TraceEnd::kCall || end == TraceEnd::kIndirectCall) sync(stack_.size() + call_results_);
  return id;
}

void RunRecorder::reset_run() {
  run_ = {};
  operations_ = 0;
  condition_ = {};
  dirty_.clear();
  ++run_number_;
}

void RunRecorder::drop_run() {
  reset_run();
  stack_.clear();
  clean_ = 0;
}

std::unique_ptr<TraceFunction> RunRecorder::finish() {
  return std::move(function_);
}

}  // namespace hindsight::jit::baseline
