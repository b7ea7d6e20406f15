// The bridges between C++ and guest code.
//
// Frame of invoke, from high to low addresses. ThreadState::entry_sp points to its lowest word. The unwinder,
// which knows nothing but the ThreadState, finds everything there that it must restore:
//     return address, rbp (rbp points here), rbx, r12, r13, r14, r15, previous entry_sp, thread, slots
#include "jit/abi/trampolines.h"

#include <cstring>
#include <map>
#include <mutex>

#include "base/fork_gate.h"
#include "jit/abi/builtins.h"
#include "jit/abi/call_layout.h"
#include "jit/abi/type_registry.h"
#include "jit/baseline/baseline_compiler.h"
#include "jit/baseline/place_code.h"
#include "jit/baseline/stubs.h"

namespace hindsight::jit {
namespace {

using namespace asmjit::x86;  // register names

constexpr int32_t kEntryToFrame = 8 * 8;  // from entry_sp up to the saved rbp
constexpr Gp kIntArgs[] = {rdi, rsi, rdx, rcx, r8, r9};
constexpr uint32_t kFloatArgs = 8;
constexpr uint32_t kStubsPerChunk = 256;
constexpr uint32_t kStubBytes = 16;

void pop_entry_frame(Assembler& a) {
  a.add(rsp, 8);  // slots
  a.pop(rdx);     // thread
  a.pop(rcx);
  // Relaxed is enough for entry_sp's readers: this thread's own handlers and, as a hint, other threads.
  a.mov(qword_ptr(rdx, kThreadEntrySp), rcx);
  a.pop(r15);
  a.pop(r14);
  a.pop(r13);
  a.pop(r12);
  a.pop(rbx);
  a.pop(rbp);
  a.ret();
}

bool is_small(wasm::ValType type) {
  return type == wasm::ValType::kI32 || type == wasm::ValType::kF32;
}

// Copies the slots of `types` through rcx; small values are zero-extended.
void copy_slots(Assembler& a, const std::vector<wasm::ValType>& types, Gp from, int32_t from_offset, Gp to,
                int32_t to_offset) {
  int32_t at = 0;
  for (const wasm::ValType type : types) {
    if (is_small(type))
      a.mov(ecx, dword_ptr(from, from_offset + at));
    else
      a.mov(rcx, qword_ptr(from, from_offset + at));
    a.mov(qword_ptr(to, to_offset + at), rcx);
    if (type == wasm::ValType::kV128) {
      a.mov(rcx, qword_ptr(from, from_offset + at + 8));
      a.mov(qword_ptr(to, to_offset + at + 8), rcx);
    }
    at += static_cast<int32_t>(8 * words_of(type));
  }
}

void emit_invoke(Assembler& a, const wasm::FuncType& type) {
  const CallLayout layout(type);
  a.push(rbp);
  a.mov(rbp, rsp);
  a.push(rbx);
  a.push(r12);
  a.push(r13);
  a.push(r14);
  a.push(r15);
  a.push(qword_ptr(rdi, kThreadEntrySp));
  a.push(rdi);
  a.push(rcx);
  a.mov(qword_ptr(rdi, kThreadEntrySp), rsp);
  // The callee saves what it uses of rbx and r12-r15; guest code pins its own.
  a.mov(rax, rsi);
  a.mov(r10, rcx);
  if (layout.thread_bytes) a.mov(rbx, rdi);  // the thread; rbx is saved above
  a.mov(rdi, rdx);
  int32_t slot = 0;
  for (size_t i = 0; i < type.params.size(); slot += static_cast<int32_t>(8 * words_of(type.params[i++]))) {
    const ArgPlace place = layout.params[i];
    const bool vector = type.params[i] == wasm::ValType::kV128;
    switch (place.kind) {
      case ArgPlace::Kind::kInt:
        a.mov(kIntArgs[place.index], qword_ptr(r10, slot));
        break;
      case ArgPlace::Kind::kFloat:
        if (vector)
          a.movups(xmm(place.index), ptr(r10, slot));
        else
          a.movsd(xmm(place.index), qword_ptr(r10, slot));
        break;
      case ArgPlace::Kind::kThread:
        a.mov(r11, qword_ptr(r10, slot));
        a.mov(qword_ptr(rbx, kThreadArguments + static_cast<int32_t>(place.index)), r11);
        if (vector) {
          a.mov(r11, qword_ptr(r10, slot + 8));
          a.mov(qword_ptr(rbx, kThreadArguments + static_cast<int32_t>(place.index) + 8), r11);
        }
        break;
    }
  }
  a.call(rax);
  a.lea(rsp, ptr(rbp, -kEntryToFrame));
  a.mov(rdx, qword_ptr(rsp));     // slots
  a.mov(rsi, qword_ptr(rsp, 8));  // thread
  if (type.results.size() == 1) {
    switch (type.results[0]) {
      case wasm::ValType::kI32:
        a.mov(eax, eax);
        break;
      case wasm::ValType::kF32:
        a.movd(eax, xmm0);
        break;
      case wasm::ValType::kF64:
        a.movq(rax, xmm0);
        break;
      default:
        break;
    }
    if (type.results[0] == wasm::ValType::kV128)
      a.movups(ptr(rdx), xmm0);
    else
      a.mov(qword_ptr(rdx), rax);
  } else if (layout.results_in_thread) {
    copy_slots(a, type.results, rsi, kThreadResults, rdx, 0);
  }
  a.xor_(eax, eax);
  pop_entry_frame(a);
}

void emit_unwind(Assembler& a) {
  a.mov(rsp, qword_ptr(rdi, kThreadEntrySp));
  a.lea(rbp, ptr(rsp, kEntryToFrame));
  a.mov(eax, 1);
  pop_entry_frame(a);
}

void emit_host_call(Assembler& a, const wasm::FuncType& type, const void* unwind) {
  const CallLayout layout(type);
  const size_t slots = call_words(type);
  const auto frame = static_cast<int32_t>((8 + 8 * slots + 15) & ~size_t{15});
  a.push(rbp);
  a.mov(rbp, rsp);
  a.sub(rsp, frame);
  a.mov(qword_ptr(rbp, -8), rdi);
  if (layout.thread_bytes) a.mov(r10, qword_ptr(rdi, offsetof(HostCallee, thread)));
  int32_t at = 0;
  for (size_t i = 0; i < type.params.size(); at += static_cast<int32_t>(8 * words_of(type.params[i++]))) {
    const Mem slot = qword_ptr(rsp, at);
    const ArgPlace place = layout.params[i];
    if (type.params[i] == wasm::ValType::kV128) {
      const bool in_thread = place.kind == ArgPlace::Kind::kThread;
      if (in_thread) a.movups(xmm8, ptr(r10, kThreadArguments + static_cast<int32_t>(place.index)));
      a.movups(ptr(rsp, at), in_thread ? xmm8 : xmm(place.index));
      continue;
    }
    const bool small = is_small(type.params[i]);
    switch (place.kind) {
      case ArgPlace::Kind::kInt:
        if (small)
          a.mov(eax, kIntArgs[place.index].r32());
        else
          a.mov(rax, kIntArgs[place.index]);
        break;
      case ArgPlace::Kind::kFloat:
        if (small)
          a.movd(eax, xmm(place.index));
        else
          a.movq(rax, xmm(place.index));
        break;
      case ArgPlace::Kind::kThread: {
        const int32_t at = kThreadArguments + static_cast<int32_t>(place.index);
        if (small)
          a.mov(eax, dword_ptr(r10, at));
        else
          a.mov(rax, qword_ptr(r10, at));
        break;
      }
    }
    a.mov(slot, rax);
  }
  a.mov(rsi, rsp);
  a.call(qword_ptr(rdi, offsetof(HostCallee, dispatch)));
  a.test(eax, eax);
  const asmjit::Label failed = a.newLabel();
  a.jnz(failed);
  if (type.results.size() == 1) {
    switch (type.results[0]) {
      case wasm::ValType::kI32:
        a.mov(eax, dword_ptr(rsp));
        break;
      case wasm::ValType::kF32:
        a.movss(xmm0, dword_ptr(rsp));
        break;
      case wasm::ValType::kF64:
        a.movsd(xmm0, qword_ptr(rsp));
        break;
      case wasm::ValType::kV128:
        a.movups(xmm0, ptr(rsp));
        break;
      default:
        a.mov(rax, qword_ptr(rsp));
        break;
    }
  } else if (layout.results_in_thread) {
    a.mov(rdx, qword_ptr(rbp, -8));
    a.mov(rdx, qword_ptr(rdx, offsetof(HostCallee, thread)));
    copy_slots(a, type.results, rsp, 0, rdx, kThreadResults);
  }
  a.leave();
  a.ret();
  a.bind(failed);
  a.mov(rdi, qword_ptr(rbp, -8));
  a.mov(rdi, qword_ptr(rdi, offsetof(HostCallee, thread)));
  a.mov(rax, asmjit::imm(reinterpret_cast<uint64_t>(unwind)));
  a.jmp(rax);
}

// eax = function index; every argument register as the caller of the function set it.
void emit_lazy_common(Assembler& a) {
  a.push(rbp);
  a.mov(rbp, rsp);
  constexpr int32_t kInts = static_cast<int32_t>(std::size(kIntArgs));
  a.sub(rsp, 8 * kInts + 16 * static_cast<int32_t>(kFloatArgs));
  for (int32_t i = 0; i < kInts; ++i) a.mov(qword_ptr(rsp, 8 * i), kIntArgs[i]);
  for (uint32_t i = 0; i < kFloatArgs; ++i)
    a.movups(ptr(rsp, 8 * kInts + 16 * static_cast<int32_t>(i)), xmm(i));
  a.mov(esi, eax);
  a.mov(rax, qword_ptr(rdi, kVmBuiltins));
  a.call(qword_ptr(rax, offsetof(Builtins, compile_lazily)));
  for (int32_t i = 0; i < kInts; ++i) a.mov(kIntArgs[i], qword_ptr(rsp, 8 * i));
  for (uint32_t i = 0; i < kFloatArgs; ++i)
    a.movups(xmm(i), ptr(rsp, 8 * kInts + 16 * static_cast<int32_t>(i)));
  a.leave();
  a.jmp(rax);
}

class AsmjitTrampolines final : public Trampolines {
 public:
  explicit AsmjitTrampolines(CodeArena& arena) : arena_(arena) {}

  Status init() {
    HINDSIGHT_ASSIGN(unwind_, emit(emit_unwind));
    HINDSIGHT_ASSIGN(lazy_common_, emit(emit_lazy_common));
    return {};
  }

  Result<InvokeFn> invoke(const wasm::FuncType& type) override {
    HINDSIGHT_ASSIGN(const void* code, cached(invokes_, type, [&](Assembler& a) { emit_invoke(a, type); }));
    return reinterpret_cast<InvokeFn>(const_cast<void*>(code));
  }

  Result<const void*> host_call(const wasm::FuncType& type) override {
    return cached(host_calls_, type, [&](Assembler& a) { emit_host_call(a, type, unwind()); });
  }

  Result<const void*> lazy_stub(uint32_t func_index) override {
    const std::lock_guard lock(mutex_);
    CodeAllocation& chunk = stubs_[func_index / kStubsPerChunk];
    if (!chunk) {
      auto made = make_stubs(func_index / kStubsPerChunk * kStubsPerChunk);
      if (!made) return std::unexpected(made.error());
      chunk = std::move(*made);
    }
    return static_cast<const void*>(chunk.executable() + size_t{func_index % kStubsPerChunk} * kStubBytes);
  }

  const void* unwind() const override { return unwind_.executable(); }

  void prepare(ThreadState& thread) const override {
    for (uint32_t i = 0; i < kRareStubs; ++i)
      thread.rare_stubs[i] = baseline::rare_stub(static_cast<RareStub>(i));
  }

 private:
  struct OfType {
    TypeId type;  // held, since its number is the key
    CodeAllocation code;
  };

  template <typename Emit>
  Result<CodeAllocation> emit(const Emit& body) {
    asmjit::CodeHolder code;
    if (const auto e = code.init(code_environment())) return asmjit_error(e, "cannot start a trampoline");
    Assembler a(&code);
    FirstError errors;
    code.setErrorHandler(&errors);
    body(a);
    if (errors.first) return asmjit_error(errors.first, "cannot make a trampoline");
    return place_code(code, arena_);
  }

  template <typename Emit>
  Result<const void*> cached(std::map<uint32_t, OfType>& cache, const wasm::FuncType& type,
                             const Emit& body) {
    TypeId id(type);
    const std::lock_guard lock(mutex_);
    OfType& entry = cache[id.value()];
    if (!entry.code) {
      auto made = emit(body);
      if (!made) return std::unexpected(made.error());
      entry = {std::move(id), std::move(*made)};
    }
    return static_cast<const void*>(entry.code.executable());
  }

  // A stub is `mov eax, index; jmp common`: written by hand, since a module may need a hundred thousand.
  Result<CodeAllocation> make_stubs(uint32_t first) {
    HINDSIGHT_ASSIGN(CodeAllocation memory, arena_.allocate(size_t{kStubsPerChunk} * kStubBytes));
    const CodeWriting writing = memory.write();
    for (uint32_t i = 0; i < kStubsPerChunk; ++i) {
      const uint32_t index = first + i;
      const std::byte* address = memory.executable() + size_t{i} * kStubBytes;
      // Invariant: one arena is less than 2 GiB, so the distance fits.
      const auto distance = static_cast<int32_t>(lazy_common_.executable() - (address + 10));
      std::byte* out = writing.bytes().data() + size_t{i} * kStubBytes;
      std::memset(out, 0xcc, kStubBytes);
      out[0] = std::byte{0xb8};
      std::memcpy(out + 1, &index, 4);
      out[5] = std::byte{0xe9};
      std::memcpy(out + 6, &distance, 4);
    }
    return memory;
  }

  CodeArena& arena_;
  CodeAllocation unwind_;       // constant after init()
  CodeAllocation lazy_common_;  // constant after init()
  ForkSafeMutex mutex_;         // protects what follows
  std::map<uint32_t, OfType> invokes_;
  std::map<uint32_t, OfType> host_calls_;
  std::map<uint32_t, CodeAllocation> stubs_;  // by chunk
};

}  // namespace

Result<std::unique_ptr<Trampolines>> make_trampolines(CodeArena& arena) {
  auto trampolines = std::make_unique<AsmjitTrampolines>(arena);
  HINDSIGHT_TRY(trampolines->init());
  return trampolines;
}

}  // namespace hindsight::jit
