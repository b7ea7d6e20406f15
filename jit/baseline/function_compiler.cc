// The driver: prologue, epilogue, out-of-line code, constants.
#include "jit/baseline/function_compiler.h"

#include "base/monotonic_clock.h"
#include "jit/baseline/baseline_compiler.h"
#include "jit/baseline/stubs.h"
#include "jit/code/code_registry.h"

namespace hindsight::jit {
namespace baseline {
namespace {

constexpr uint64_t kMaxFrameBytes = 64 << 20;  // no stack is that large
constexpr x86::Gp kIntParameters[] = {x86::rdi, x86::rsi, x86::rdx, x86::rcx, x86::r8, x86::r9};

// Of a parameter.
RegId register_of(const ArgPlace& place) {
  switch (place.kind) {
    case ArgPlace::Kind::kThread:
      return kNoReg;
    case ArgPlace::Kind::kFloat:
      return static_cast<RegId>(16 + place.index);
    case ArgPlace::Kind::kInt:
      return static_cast<RegId>(kIntParameters[place.index].id());
  }
  return kNoReg;
}

// Not the thread's CPU time, which takes a system call: a tenth of the time that a small function takes.
double seconds_now() {
  return 1e-9 * static_cast<double>(monotonic_ns());
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
  PcMapBuilder pc_map;
  std::vector<Entry> stack;
  std::vector<uint32_t> last_ref;
  std::vector<RegId> local_reg;
  CallLayout call_layout;
  std::vector<Argument> arguments;
  std::vector<Control> controls;
  std::vector<OutOfLine> out_of_line;
  std::vector<Body> bodies;
  std::vector<Place> places;
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
      places_(workspace_->places),
      out_of_line_(workspace_->out_of_line),
      bodies_(workspace_->bodies),
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
  constexpr size_t kKeptBytes = size_t{1} << 20;
  if (pc_map_.heap_bytes() > kKeptBytes) return;  // a giant's; the next compiler begins anew
  a_.reset();
  pc_map_.clear();
  stack_.clear();
  controls_.clear();
  out_of_line_.clear();
  bodies_.clear();
  places_.clear();
  if (!constants8_.empty()) constants8_.clear();
  constants8_order_.clear();
  Workspace::spare = std::move(workspace_);
}

void FunctionCompiler::out_of_line(const Label& entry, std::function<void()> body) {
  out_of_line_.push_back({kBody, offset_, static_cast<uint32_t>(bodies_.size())});
  bodies_.push_back({entry, std::move(body)});
}

void FunctionCompiler::open_frame() {
  const int32_t below_saved = -frame_disp_ - saved_bytes();
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
  row(offset_);
  a_.call_unless(x86::CondCode::kAE, RareStub::kStackCheck);
  row(kNoWasmOffset);
  a_.sub(x86::rsp, below_saved);
  a_.mov(x86::rbx, x86::rdi);
  if (body_.has_memory_access) a_.mov(x86::r15, x86::qword_ptr(x86::rdi, kVmMemoryBase));
}

Status FunctionCompiler::prologue() {
  const uint64_t slots_bytes =
      slot_bytes_ * (uint64_t{locals_count()} + body_.max_stack + (has_turns() ? 1 : 0));
  // rbp is 16-byte aligned; so must rsp be below the saved registers and the slots.
  const uint64_t frame = (static_cast<uint64_t>(saved_bytes()) + slots_bytes + 15) & ~uint64_t{15};
  if (frame > kMaxFrameBytes)
    return make_error(ErrorKind::kResource, "the frame of a function is too large",
                      module_.function_name(function_), body_.begin.value);
  frame_disp_ = -static_cast<int32_t>(frame);
  open_frame();
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
    const RegId reg = register_of(place);
    // I1: the caller's upper half is undefined.
    if (type == ValType::kI32) a_.mov(gp(reg, false), gp(reg, false));
    store_reg(slot(i), reg, type);
  }
  cache_parameters();
  zero_locals();
  return {};
}

// As call_layout_ says, which is the function's own.
void FunctionCompiler::cache_parameters() {
  for (uint32_t i = 0; i < type_.params.size(); ++i)
    if (const RegId reg = register_of(call_layout_.params[i]); reg != kNoReg) cache_local(i, reg);
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

void FunctionCompiler::emit_loop_entries() {
  for (LoopEntry& loop : loop_entries_) {
    a_.align_code(16);  // an odd address in a slot would be a nest's
    loop.offset = CodeOffset(static_cast<uint32_t>(a_.offset()));
    open_frame();
    // The frame of OsrEntry is laid out as ours is.
    const uint32_t words = loop.slots * slot_bytes_ / 8;
    constexpr uint32_t kUnrolled = 16;
    if (words <= kUnrolled) {
      for (uint32_t i = 0; i < words; ++i) {
        a_.mov(x86::r11, x86::qword_ptr(x86::rsi, static_cast<int32_t>(8 * i)));
        a_.mov(x86::qword_ptr(x86::rbp, frame_disp_ + static_cast<int32_t>(8 * i)), x86::r11);
      }
    } else {
      a_.mov(x86::eax, asmjit::imm(words));
      const Label again = a_.new_label();
      a_.bind(again);
      a_.mov(x86::r11, x86::ptr(x86::rsi, x86::rax, 3, -8, 8));
      a_.mov(x86::ptr(x86::rbp, x86::rax, 3, frame_disp_ - 8, 8), x86::r11);
      a_.dec(x86::rax);
      a_.jnz(again);
    }
    if (has_turns()) begin_turns();
    a_.jmp(loop.header);
  }
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

void FunctionCompiler::emit_out_of_line() {
  // Bodies may add others.
  for (size_t i = 0; i < out_of_line_.size(); ++i) {
    if (a_.offset() > kMaxCodeBytes) return;
    const OutOfLine part = out_of_line_[i];
    offset_ = part.offset;
    row(part.offset);
    if (part.jump == kBody) {
      const Body body = std::move(bodies_[part.detail]);
      a_.bind(body.entry);
      body.emit();
    } else if (part.detail >= kStubs) {
      a_.direct_here(part.jump);
      a_.call(static_cast<RareStub>(part.detail - kStubs));
      a_.return_to(part.jump);
    } else {
      a_.direct_here(part.jump);
      trap_here(static_cast<TrapCode>(part.detail));
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
    for (const Label& target : table.targets) a_.embed32(static_cast<uint32_t>(a_.offset_of(target) - base));
  }
  emit_nest_tables();
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
  count_entry();
  compile_body();
  HINDSIGHT_TRY(compile_recording_body());
  if (a_.offset() <= kMaxCodeBytes) emit_out_of_line();
  if (a_.offset() <= kMaxCodeBytes) emit_loop_entries();
  if (a_.offset() <= kMaxCodeBytes) emit_resume_points();
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
  version->pc_map = pc_map_.finish();
  version->types = std::move(types_);
  if (options_.osr_polls && !body_.loops.empty()) {
    static_assert(sizeof(std::atomic<const void*>) == 8);
    const size_t offset = a_.offset_of(osr_slots_);
    // The bytes are zeros already; this begins the lifetimes of the atomics in the writable view.
    const CodeWriting writing = version->memory.write();
    auto* slots = reinterpret_cast<std::atomic<const void*>*>(writing.bytes().data() + offset);
    for (size_t i = 0; i < body_.loops.size(); ++i) new (slots + i) std::atomic<const void*>(nullptr);
    version->osr_slots = slots;
    version->osr_slot_count = static_cast<uint32_t>(body_.loops.size());
  }
  for (const LoopEntry& loop : loop_entries_)
    version->osr_entries.push_back({loop.loop, version->memory.executable() + loop.offset.value});
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
