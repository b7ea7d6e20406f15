// The driver: prologue, dispatch to the operator families, epilogue, out-of-line code, constants.
#include "jit/baseline/function_compiler.h"

#include <time.h>

#include "jit/baseline/baseline_compiler.h"
#include "jit/baseline/stubs.h"
#include "jit/code/code_registry.h"

namespace hindsight::jit {
namespace baseline {
namespace {

constexpr uint64_t kMaxFrameBytes = 64 << 20;  // no stack is that large
// Of one function. Two bytes of wasm can ask for a thousand moves: without a bound a body of a few megabytes would take
// all memory there is.
constexpr size_t kMaxCodeBytes = size_t{256} << 20;
constexpr x86::Gp kIntArgs[] = {x86::rdi, x86::rsi, x86::rdx, x86::rcx, x86::r8, x86::r9};

// Not the thread's CPU time, which takes a system call: a tenth of the time that a small function takes.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TargetFeatures TargetFeatures::host() {
  using F = asmjit::CpuFeatures::X86;
  const auto& cpu = asmjit::CpuInfo::host();
  return {cpu.hasFeature(F::kLZCNT), cpu.hasFeature(F::kBMI),    cpu.hasFeature(F::kPOPCNT),
          cpu.hasFeature(F::kBMI2),  cpu.hasFeature(F::kSSE4_2), cpu.hasFeature(F::kAVX),
          cpu.hasFeature(F::kAVX2),  cpu.hasFeature(F::kFMA)};
}

struct FunctionCompiler::Workspace {
  Emitter emitter;
  PcMap pc_map;
  std::vector<Entry> stack;
  std::vector<uint32_t> last_ref;
  std::vector<RegId> local_reg;
  CallLayout call_layout;
  std::vector<Argument> arguments;
  std::vector<Control> controls;
  std::vector<OutOfLine> out_of_line;
  std::vector<Body> bodies;
  std::vector<CountedBranch> branches;
  std::unordered_map<uint64_t, Label> constants8;
  std::vector<std::pair<uint64_t, Label>> constants8_order;

  // What the thread's next compiler takes; null while one has it.
  static thread_local std::unique_ptr<Workspace> spare;
};
thread_local std::unique_ptr<FunctionCompiler::Workspace> FunctionCompiler::Workspace::spare;

std::unique_ptr<FunctionCompiler::Workspace> FunctionCompiler::borrow_workspace() {
  if (Workspace::spare) return std::move(Workspace::spare);
  return std::make_unique<Workspace>();
}

FunctionCompiler::FunctionCompiler(const wasm::Module& module, FuncIndex function,
                                   const CompileOptions& options, const TargetFeatures& features)
    : module_(module),
      function_(function),
      body_(module.body(function)),
      type_(module.type_of(function)),
      options_(options),
      features_(features),
      vm_layout_(module),
      workspace_(borrow_workspace()),
      a_(workspace_->emitter),
      reader_(module, body_),
      pc_map_(workspace_->pc_map),
      slot_bytes_(body_.uses_v128 ? 16 : 8),
      stack_(workspace_->stack),
      last_ref_(workspace_->last_ref),
      local_reg_(workspace_->local_reg),
      call_layout_(workspace_->call_layout),
      arguments_(workspace_->arguments),
      controls_(workspace_->controls),
      innermost_(body_.loops.size(), true),
      out_of_line_(workspace_->out_of_line),
      bodies_(workspace_->bodies),
      branches_(workspace_->branches),
      constants8_(workspace_->constants8),
      constants8_order_(workspace_->constants8_order) {
  last_ref_.assign(body_.locals.size(), kNoIndex);
  local_reg_.assign(body_.locals.size(), kNoReg);
  stack_.reserve(body_.max_stack);
  if (options_.trace) recorder_ = std::make_unique<RunRecorder>(module, function, *options_.trace);
  for (const wasm::LoopInfo& loop : body_.loops)
    if (loop.parent) innermost_[loop.parent->value] = false;
}

FunctionCompiler::~FunctionCompiler() {
  a_.reset();
  pc_map_.clear();
  stack_.clear();
  controls_.clear();
  out_of_line_.clear();
  bodies_.clear();
  branches_.clear();
  if (!constants8_.empty()) constants8_.clear();
  constants8_order_.clear();
  Workspace::spare = std::move(workspace_);
}

void FunctionCompiler::out_of_line(const Label& entry, std::function<void()> body) {
  out_of_line(Rare::kBody, 0, static_cast<uint32_t>(bodies_.size()));
  bodies_.push_back({entry, std::move(body)});
}

Status FunctionCompiler::prologue() {
  const uint64_t slots_bytes = slot_bytes_ * (uint64_t{locals_count()} + body_.max_stack);
  // rbp is 16-byte aligned; so must rsp be behind the saved registers and the slots.
  const uint64_t frame = (static_cast<uint64_t>(saved_bytes()) + slots_bytes + 15) & ~uint64_t{15};
  if (frame > kMaxFrameBytes)
    return make_error(ErrorKind::kResource, "the frame of a function is too large",
                      module_.function_name(function_), body_.begin.value);
  frame_disp_ = -static_cast<int32_t>(frame);
  const auto below_saved = static_cast<int32_t>(frame) - saved_bytes();

  row(kNoWasmOffset);
  a_.push(x86::rbp);
  a_.mov(x86::rbp, x86::rsp);
  a_.push(x86::rbx);
  a_.push(x86::r14);
  a_.push(x86::r15);
  if (body_.has_handlers) {  // see jit/abi/exception.h
    a_.push(x86::r12);
    a_.push(x86::r13);
    a_.push(x86::rdi);
  }
  a_.mov(x86::r14, x86::qword_ptr(x86::rdi, kVmThread));
  a_.lea(x86::r11, x86::ptr(x86::rsp, -below_saved));
  a_.cmp(x86::r11, x86::qword_ptr(x86::r14, kThreadStackLimit));
  offset_ = body_.begin;
  out_of_line(Rare::kStackCheck, a_.j_later(x86::CondCode::kB));
  a_.sub(x86::rsp, below_saved);
  a_.mov(x86::rbx, x86::rdi);
  if (body_.has_memory_access) a_.mov(x86::r15, x86::qword_ptr(x86::rdi, kVmMemoryBase));

  trace_enter();

  // Parameters go home, and those that came in registers stay cached there.
  const CallLayout& layout = call_layout_;
  call_layout_.assign(type_);
  for (uint32_t i = 0; i < type_.params.size(); ++i) {
    const ValType type = type_.params[i];
    const ArgPlace place = layout.params[i];
    if (place.kind == ArgPlace::Kind::kThread) {
      const int32_t at = kThreadArguments + static_cast<int32_t>(place.index);
      if (type == ValType::kV128) {
        a_.movups(x86::xmm15, x86::ptr(x86::r14, at));
        store_reg(slot(i), 31, type);
        continue;
      }
      a_.mov(x86::r11, x86::qword_ptr(x86::r14, at));
      a_.mov(slot(i), x86::r11);
      continue;
    }
    const bool is_float = place.kind == ArgPlace::Kind::kFloat;
    const auto reg = static_cast<RegId>(is_float ? 16 + place.index : kIntArgs[place.index].id());
    // I1: the caller's upper half is undefined.
    if (type == ValType::kI32) a_.mov(gp(reg, false), gp(reg, false));
    store_reg(slot(i), reg, type);
    cache_local(i, reg);
  }
  zero_locals();
  return {};
}

void FunctionCompiler::zero_locals() {
  const auto first = static_cast<uint32_t>(type_.params.size());
  const uint32_t count = locals_count() - first;
  if (count == 0) return;
  constexpr uint32_t kUnrolled = 16;
  if (slot_bytes_ == 16) {
    a_.xorps(x86::xmm15, x86::xmm15);
    if (count <= kUnrolled) {
      for (uint32_t i = 0; i < count; ++i) a_.movaps(slot(first + i, 16), x86::xmm15);
      return;
    }
    a_.mov(x86::rax, asmjit::imm(-16 * static_cast<int64_t>(count)));
    const Label again = a_.new_label();
    a_.bind(again);
    a_.movaps(x86::ptr(x86::rbp, x86::rax, 0, frame_disp_ + static_cast<int32_t>(16 * locals_count()), 16),
              x86::xmm15);
    a_.add(x86::rax, 16);
    a_.jnz(again);
    return;
  }
  a_.xor_(x86::r11d, x86::r11d);
  if (count <= kUnrolled) {
    for (uint32_t i = 0; i < count; ++i) a_.mov(slot(first + i), x86::r11);
    return;
  }
  // rax is no argument register: it counts up to zero.
  a_.mov(x86::rax, asmjit::imm(-static_cast<int64_t>(count)));
  const Label again = a_.new_label();
  a_.bind(again);
  a_.mov(x86::ptr(x86::rbp, x86::rax, 3, frame_disp_ + static_cast<int32_t>(8 * locals_count()), 8),
         x86::r11);
  a_.inc(x86::rax);
  a_.jnz(again);
}

void FunctionCompiler::leave_frame() {
  if (body_.has_handlers) {
    a_.lea(x86::rsp, x86::ptr(x86::rbp, -40));
    a_.pop(x86::r13);
    a_.pop(x86::r12);
  } else {
    a_.lea(x86::rsp, x86::ptr(x86::rbp, -24));
  }
  a_.pop(x86::r15);
  a_.pop(x86::r14);
  a_.pop(x86::rbx);
  a_.pop(x86::rbp);
}

void FunctionCompiler::epilogue() {
  a_.bind(epilogue_);
  leave_frame();
  a_.ret();
}

void FunctionCompiler::skip_dead(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kLoop:
      ++next_loop_;
      ++dead_depth_;
      break;
    case Opcode::kBlock:
    case Opcode::kIf:
    case Opcode::kTry:
    case Opcode::kTryTable:
      ++dead_depth_;
      break;
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_catch(instr);
      }
      break;
    case Opcode::kDelegate:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_delegate(instr.index);
      } else {
        --dead_depth_;
      }
      break;
    case Opcode::kElse:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        do_else();
      }
      break;
    case Opcode::kEnd:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_end();
      } else {
        --dead_depth_;
      }
      break;
    default:
      break;
  }
}

void FunctionCompiler::compile_body() {
  Control& function = controls_.emplace_back();
  function.kind = Control::Kind::kFunction;
  function.label = epilogue_ = a_.new_label();
  function.type.func_type = &type_;
  Instr instr;
  while (!controls_.empty()) {
    reader_.next(instr);
    if (!reachable_) {
      skip_dead(instr);
      continue;
    }
    if (a_.offset() > kMaxCodeBytes) return;  // see compile()
    if (recorder_) {
      recorder_->sync(stack_.size());
      if (recorder_->full()) count_instructions();
    }
    begin_instruction(instr);
    compile_instruction(instr);
    finish_instruction();
  }
}

namespace {

// Who compiles an opcode of one byte.
enum class Family : uint8_t {
  kTable, kControl, kException, kCall, kCallIndirect, kReturnCall, kReturnCallIndirect, kCallRef, kReturnCallRef,
  kLocalGet, kLocalSet, kLocalTee, kVariable, kI32Const, kI64Const, kF32Const, kF64Const, kMemory, kInteger,
  kFloating, kConversion, kRefAsNonNull, kBrOnNull, kBrOnNonNull,
};

constexpr auto kFamilies = [] {
  std::array<Family, 256> of{};
  const auto set = [&](uint32_t first, uint32_t last, Family family) {
    for (uint32_t code = first; code <= last; ++code) of[code] = family;
  };
  set(0x00, 0x0f, Family::kControl);
  set(0x06, 0x0a, Family::kException);
  set(0x10, 0x10, Family::kCall);
  set(0x11, 0x11, Family::kCallIndirect);
  set(0x12, 0x12, Family::kReturnCall);
  set(0x13, 0x13, Family::kReturnCallIndirect);
  set(0x14, 0x14, Family::kCallRef);
  set(0x15, 0x15, Family::kReturnCallRef);
  set(0x18, 0x19, Family::kException);
  set(0x1a, 0x24, Family::kVariable);
  set(0x1f, 0x1f, Family::kException);
  set(0x20, 0x20, Family::kLocalGet);
  set(0x21, 0x21, Family::kLocalSet);
  set(0x22, 0x22, Family::kLocalTee);
  set(0x28, 0x40, Family::kMemory);
  set(0x41, 0x41, Family::kI32Const);
  set(0x42, 0x42, Family::kI64Const);
  set(0x43, 0x43, Family::kF32Const);
  set(0x44, 0x44, Family::kF64Const);
  set(0x45, 0x5a, Family::kInteger);
  set(0x5b, 0x66, Family::kFloating);
  set(0x67, 0x8a, Family::kInteger);
  set(0x8b, 0xa6, Family::kFloating);
  set(0xa7, 0xbf, Family::kConversion);
  set(0xc0, 0xc4, Family::kInteger);
  set(0xd4, 0xd4, Family::kRefAsNonNull);
  set(0xd5, 0xd5, Family::kBrOnNull);
  set(0xd6, 0xd6, Family::kBrOnNonNull);
  return of;
}();

}  // namespace

void FunctionCompiler::compile_instruction(const Instr& instr) {
  const auto code = static_cast<uint16_t>(instr.opcode);
  if (code > 0xff) [[unlikely]]
    return compile_prefixed(instr);
  switch (kFamilies[code]) {
    case Family::kLocalGet:
      return push_local(instr.index);
    case Family::kLocalSet:
      return set_local(instr.index, false);
    case Family::kLocalTee:
      return set_local(instr.index, true);
    case Family::kI32Const:
      return push_const(ValType::kI32, instr.bits);
    case Family::kI64Const:
      return push_const(ValType::kI64, instr.bits);
    case Family::kF32Const:
      return push_const(ValType::kF32, instr.bits);
    case Family::kF64Const:
      return push_const(ValType::kF64, instr.bits);
    case Family::kInteger:
      return integer(instr);
    case Family::kMemory:
      return memory(instr);
    case Family::kControl:
      return control(instr);
    case Family::kVariable:
      return variable(instr);
    case Family::kCall:
      return call(instr);
    case Family::kCallIndirect:
      return call_indirect(instr);
    case Family::kFloating:
      return floating(instr);
    case Family::kConversion:
      return conversion(instr);
    case Family::kException:
      return exception_instruction(instr);
    case Family::kReturnCall:
      return return_call(instr);
    case Family::kReturnCallIndirect:
      return return_call_indirect(instr);
    case Family::kCallRef:
      return call_ref(instr);
    case Family::kReturnCallRef:
      return return_call_ref(instr);
    case Family::kRefAsNonNull:
      return ref_as_non_null();
    case Family::kBrOnNull:
      return branch_on_null(instr.index);
    case Family::kBrOnNonNull:
      return branch_on_non_null(instr.index);
    case Family::kTable:
      return table(instr);
  }
}

void FunctionCompiler::compile_prefixed(const Instr& instr) {
  const auto code = static_cast<uint16_t>(instr.opcode);
  if (wasm::is_simd(instr.opcode)) return simd(instr);
  if (code >= 0xfc00 && code <= 0xfc07) return conversion(instr);
  if (code >= 0xfc08 && code <= 0xfc0b) return memory(instr);
  if (code >> 8 == 0xfe) return atomic(instr);
  return table(instr);  // tables, segments
}

void FunctionCompiler::emit_out_of_line() {
  // Bodies may add others.
  for (size_t i = 0; i < out_of_line_.size(); ++i) {
    if (a_.offset() > kMaxCodeBytes) return;
    const OutOfLine part = out_of_line_[i];
    offset_ = part.offset;
    row(part.offset);
    if (part.kind != Rare::kBody) a_.direct_here(part.jump);
    switch (part.kind) {
      case Rare::kBody: {
        const Body body = std::move(bodies_[part.detail]);
        a_.bind(body.entry);
        body.emit();
        break;
      }
      case Rare::kTrap:
        trap_here(static_cast<TrapCode>(part.detail));
        break;
      case Rare::kInstructions:
        a_.call_near(stub(hindsight_stub_instructions));
        a_.jmp_back(part.jump);
        break;
      case Rare::kBranch: {
        const CountedBranch& branch = branches_[part.detail];
        emit_branch_record(branch.condition, branch.taken, branch.not_taken);
        break;
      }
      case Rare::kJump:
        a_.call_near(stub(hindsight_stub_jump));
        a_.jmp_long({part.detail});
        break;
      case Rare::kComputedJump:
        a_.call_near(stub(hindsight_stub_computed_jump));
        a_.jmp_back(part.jump);
        break;
      case Rare::kStackCheck:
        a_.call_near(stub(hindsight_stub_stack_check));
        a_.jmp_back(part.jump);
        break;
    }
  }
  row(kNoWasmOffset);
}

void FunctionCompiler::emit_constants() {
  if (!constants16_.empty()) a_.align_data(16);
  for (const Constant16& c : constants16_) {
    a_.bind(c.label);
    a_.embed64(c.low);
    a_.embed64(c.high);
  }
  if (!constants8_order_.empty()) a_.align_data(8);
  for (const auto& [bits, label] : constants8_order_) {
    a_.bind(label);
    a_.embed64(bits);
  }
  if (!jump_tables_.empty()) a_.align_data(4);
  for (const JumpTable& table : jump_tables_) {
    a_.bind(table.label);
    const uint64_t base = a_.offset_of(table.label);
    for (const Label& target : table.targets)
      a_.embed32(static_cast<uint32_t>(a_.offset_of(target) - base));
  }
  if (options_.osr_polls && !body_.loops.empty()) {
    // A line of their own: they are written while the code runs.
    a_.align_data(64);
    for (uint32_t i = 0; i < body_.loops.size(); ++i) a_.bind({osr_slots_.id + i}, 8 * i);
    a_.embed_zeros(8 * body_.loops.size());
    a_.align_data(64);
  }
}

Result<std::unique_ptr<CodeVersion>> FunctionCompiler::compile(CodeArena& arena) {
  const double start = seconds_now();
  osr_slots_ = a_.new_labels(static_cast<uint32_t>(body_.loops.size()));
  HINDSIGHT_TRY(prologue());
  compile_body();
  if (a_.offset() <= kMaxCodeBytes) emit_out_of_line();
  if (a_.offset() > kMaxCodeBytes)
    return make_error(ErrorKind::kResource,
                      "the machine code of a function is larger than 256 MiB; split the function",
                      module_.function_name(function_), offset_.value);
  const auto code_size = static_cast<uint32_t>(a_.offset());
  emit_constants();
  if (a_.error())
    return asmjit_error(a_.error(), ("cannot compile " + module_.function_name(function_)).c_str());

  auto version = std::make_unique<CodeVersion>();
  HINDSIGHT_ASSIGN(version->memory, a_.place(arena));
  version->id = CodeRegistry::next_version_id();
  version->function = function_;
  version->tier = Tier::kBaseline;
  version->code_size = CodeOffset(code_size);
  version->entry = version->memory.executable();
  for (const CaughtCall& call : caught_calls_) {
    const Label& landing = handlers_[call.handler].landing;
    version->handlers.push_back({CodeOffset(call.return_offset - 1), CodeOffset(call.return_offset),
                                 CodeOffset(static_cast<uint32_t>(a_.offset_of(landing)))});
  }
  version->pc_map = pc_map_;  // in order already, and next to nothing to merge
  if (options_.osr_polls && !body_.loops.empty()) {
    static_assert(sizeof(std::atomic<const void*>) == 8);
    const size_t offset = a_.offset_of(osr_slots_);
    // The bytes are zeros already; this begins the lifetimes of the atomics in the writable view.
    auto* slots = reinterpret_cast<std::atomic<const void*>*>(version->memory.writable().data() + offset);
    for (size_t i = 0; i < body_.loops.size(); ++i) new (slots + i) std::atomic<const void*>(nullptr);
    version->osr_slots = slots;
    version->osr_slot_count = static_cast<uint32_t>(body_.loops.size());
  }
  publish_trace(*version);
  version->compile_seconds = seconds_now() - start;
  return version;
}

}  // namespace baseline

Result<std::unique_ptr<CodeVersion>> compile_baseline(const wasm::Module& module, FuncIndex function,
                                                      const CompileOptions& options, CodeArena& arena) {
  static const baseline::TargetFeatures features = baseline::TargetFeatures::host();
  return baseline::FunctionCompiler(module, function, options, features).compile(arena);
}

}  // namespace hindsight::jit
