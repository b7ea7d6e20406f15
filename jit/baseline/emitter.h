// Emitter: machine code into one growing buffer.
//
// It has asmjit's assembler interface, a method a mnemonic, and encodes the forms that nearly all code consists of by
// itself. What it does not know goes through an asmjit assembler and comes back as bytes. Jumps have labels of their
// own, which cost a word each. A jump to a label that is not bound yet holds the position of the previous such jump,
// where its distance will be.
//
// Code is position-independent but for calls of runtime entries (call_near), which are resolved when the code is
// placed. One emitter serves many functions one after the other: reset() keeps its memory. One thread at a time.
#pragma once

#include <asmjit/asmjit.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/result.h"
#include "jit/abi/vm_context.h"
#include "jit/baseline/place_code.h"
#include "jit/code/code_arena.h"

namespace hindsight::jit::baseline {

namespace x86 = asmjit::x86;

struct Label {
  uint32_t id = ~0u;
};

class Emitter : public x86::EmitterImplicitT<Emitter> {
  using Base = x86::EmitterImplicitT<Emitter>;

 public:
  Emitter();
  ~Emitter();
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  // Forgets code, labels and errors.
  void reset();
  size_t offset() const { return static_cast<size_t>(at_ - begin_.get()); }
  // The first instruction that could not be encoded; kErrorOk without one.
  asmjit::Error error() const { return errors_.first; }

  // --- labels
  Label new_label() {
    labels_.push_back({});
    return {static_cast<uint32_t>(labels_.size() - 1)};
  }
  // The first of `count` labels with consecutive ids.
  Label new_labels(uint32_t count) {
    const auto first = static_cast<uint32_t>(labels_.size());
    labels_.resize(labels_.size() + count);
    return {first};
  }
  // Here, or `ahead` bytes further on.
  void bind(Label label, uint32_t ahead = 0);
  // Precondition: bound.
  uint32_t offset_of(Label label) const { return labels_[label.id].offset; }
  using Base::jmp;
  void jmp(Label to);
  void j(x86::CondCode cc, Label to);
  void jo(Label to) { j(x86::CondCode::kO, to); }
  void jb(Label to) { j(x86::CondCode::kB, to); }
  void jae(Label to) { j(x86::CondCode::kAE, to); }
  void je(Label to) { j(x86::CondCode::kE, to); }
  void jz(Label to) { j(x86::CondCode::kE, to); }
  void jne(Label to) { j(x86::CondCode::kNE, to); }
  void jnz(Label to) { j(x86::CondCode::kNE, to); }
  void jbe(Label to) { j(x86::CondCode::kBE, to); }
  void ja(Label to) { j(x86::CondCode::kA, to); }
  void js(Label to) { j(x86::CondCode::kS, to); }
  void jns(Label to) { j(x86::CondCode::kNS, to); }
  void jp(Label to) { j(x86::CondCode::kP, to); }
  void jnp(Label to) { j(x86::CondCode::kNP, to); }
  // The operand that is at the label, whether bound or not. Relative to the instruction.
  static x86::Mem at(Label label, uint32_t size = 0) {
    return x86::ptr(x86::rip, static_cast<int32_t>(label.id), size);
  }

  // --- jumps without a label
  // Emits a conditional jump to be directed later. Returns the offset after it, by which the jump is named.
  uint32_t j_later(x86::CondCode cc);
  void direct_here(uint32_t jump);
  // Calls of stubs, through r14: 4 bytes.
  void call(RareStub stub) {
    room();
    put32(call_bytes(stub));
  }
  // Jumped over where the condition holds.
  void call_unless(x86::CondCode cc, RareStub stub) {
    room();
    *at_++ = static_cast<uint8_t>(0x70 | static_cast<uint8_t>(cc));
    *at_++ = 4;
    put32(call_bytes(stub));
  }
  // `sub dword [r14 + at], n`, and a call of `stub` where the result is negative.
  void count_down(int32_t at, uint32_t n, RareStub stub);
  // The same for whoever makes the call out of line, with a jump to what comes next. Returns what j_later() returns, which is where that is.
  uint32_t count_down_and_leave(int32_t at, uint32_t n);
  // `cmp dword [r14 + at], 0`, and a jump back to `earlier`, a position, unless that is negative.
  void look_and_go_back(int32_t at, uint32_t earlier);
  // Ends what is out of line: jumps back to `at`.
  void return_to(uint32_t at);
  static constexpr uint32_t kJumpBytes = 5;  // of that jump
  // Counts `n` instructions and a branch down, with one call for either: of the instructions', without the branch being
  // counted, or of the branch's.
  void count_run_and_branch(uint32_t n, RareStub stub);

  void push_byte(uint8_t value) {  // sign-extended
    room();
    *at_++ = 0x6a;
    *at_++ = value;
  }

  // A call of a function of the process. Clobbers nothing itself.
  void call_near(const void* function);

  // --- data and space
  Emitter& lock() {
    room();
    *at_++ = 0xf0;
    return *this;
  }
  void align_code(uint32_t alignment);
  void align_data(uint32_t alignment);
  void embed32(uint32_t value) { embed(&value, sizeof value); }
  void embed64(uint64_t value) { embed(&value, sizeof value); }
  void embed_zeros(size_t bytes);

  // Resolves what is open and copies the code into the arena. Every label used must be bound.
  Result<CodeAllocation> place(CodeArena& arena, size_t alignment = 64);

  // --- the commonest instructions, without the look at which one it is
  using Base::call;
  using Base::mov;
  asmjit::Error mov(const x86::Gp& to, const x86::Gp& from) {
    if (to.type() != from.type() || (to.size() & 12) == 0) [[unlikely]]
      return _emitI(x86::Inst::kIdMov, to, from);
    op_reg(0, to.size() == 8, 0x89, from.id(), to.id());
    return asmjit::kErrorOk;
  }
  asmjit::Error mov(const x86::Gp& to, const x86::Mem& from) {
    if (!plain(from) || (to.size() & 12) == 0) [[unlikely]]
      return _emitI(x86::Inst::kIdMov, to, from);
    move_memory(0x8b, to, from);
    return asmjit::kErrorOk;
  }
  asmjit::Error mov(const x86::Mem& to, const x86::Gp& from) {
    if (!plain(to) || (from.size() & 12) == 0) [[unlikely]]
      return _emitI(x86::Inst::kIdMov, to, from);
    move_memory(0x89, from, to);
    return asmjit::kErrorOk;
  }

  // add, or, and, sub, xor or cmp by its number, 0 to 7, with 32 or 64 bits. `b` is a register, an immediate that fits,
  // or a frame slot.
  void alu(uint32_t number, bool wide, uint32_t a, const asmjit::Operand& b) {
    if (b.isReg()) return op_reg(0, wide, number << 3 | 1, b.id(), a);
    if (b.isMem()) return op_mem(0, wide, number << 3 | 3, a, b.as<x86::Mem>());
    const auto value = static_cast<int32_t>(b.as<asmjit::Imm>().value());
    const bool small = value == static_cast<int8_t>(value);
    op_reg(0, wide, small ? 0x83 : 0x81, number, a);
    std::memcpy(at_, &value, sizeof value);
    at_ += small ? 1 : 4;
  }

  // --- instructions: what asmjit's methods call, and emit() for instructions chosen at run time
  template <typename... Operands>
  asmjit::Error emit(asmjit::InstId inst, const Operands&... operands) {
    return _emitI(inst, operands...);
  }
  asmjit::Error _emitI(asmjit::InstId inst);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Mem& a);
  asmjit::Error _emitI(asmjit::InstId inst, const asmjit::Operand_& a) { return by_asmjit(inst, &a, 1); }
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Mem& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const asmjit::Imm& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Mem& a, const x86::Gp& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Mem& a, const asmjit::Imm& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Xmm& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Mem& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Mem& a, const x86::Xmm& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Gp& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Xmm& b);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b, const asmjit::Imm& c);
  asmjit::Error _emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b, const x86::Gp& c);
  asmjit::Error _emitI(asmjit::InstId inst, const asmjit::Operand_& a, const asmjit::Operand_& b);
  template <typename... Operands>
  requires(sizeof...(Operands) >= 3) asmjit::Error _emitI(asmjit::InstId inst, const Operands&... operands) {
    const asmjit::Operand_ all[] = {operands...};
    return by_asmjit(inst, all, sizeof...(Operands));
  }

 private:
  static constexpr uint32_t kUnbound = ~0u;
  static constexpr uint32_t kNoUse = ~0u;
  struct LabelState {
    uint32_t offset = kUnbound;
    uint32_t uses = kNoUse;  // while unbound: position of the last jump's distance
  };
  // A memory operand that is relative to the instruction: `position` is that of its displacement, and the instruction
  // ends `trailing` bytes after it.
  struct DataUse {
    uint32_t position, label, trailing;
  };
  struct NearCall {
    uint32_t position;
    const void* function;
  };

  // Space for one instruction with its prefixes, twice over.
  void room() {
    if (end_ - at_ < 32) [[unlikely]]
      grow(32);
  }
  void grow(size_t bytes);
  void embed(const void* data, size_t bytes);
  void put32(uint32_t value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void use_label(Label label);  // its distance, in the four bytes to come
  asmjit::Error by_asmjit(asmjit::InstId inst, const asmjit::Operand_* operands, size_t count);
  void subtract_from_counter(int32_t at, uint32_t n);
  // call [r14 + a displacement of 8 bits]
  static uint32_t call_bytes(RareStub stub) {
    static_assert(kThreadRareStubs + 8 * kRareStubs <= 128);
    return 0x0056ff41u | (static_cast<uint32_t>(kThreadRareStubs) + 8 * static_cast<uint32_t>(stub)) << 24;
  }
  // A memory operand that this class encodes itself.
  static bool plain(const x86::Mem& mem) {
    if (mem.hasSegment()) return false;
    if (mem.baseType() == asmjit::RegType::kX86_Rip) return !mem.hasIndex();
    return mem.baseType() == asmjit::RegType::kX86_Gpq &&
           (!mem.hasIndex() || mem.indexType() == asmjit::RegType::kX86_Gpq);
  }
  void op_reg(uint32_t prefix, bool wide, uint32_t opcode, uint32_t reg, uint32_t rm, bool force_rex = false);
  void op_mem(uint32_t prefix, bool wide, uint32_t opcode, uint32_t reg, const x86::Mem& mem,
              uint32_t trailing = 0, bool force_rex = false);
  // `mov` one way or the other. With the frame, relative to rbp alone, it is by far the commonest instruction.
  void move_memory(uint8_t opcode, const x86::Gp& reg, const x86::Mem& mem) {
    const bool wide = reg.size() == 8;
    if (mem.baseId() != x86::Gp::kIdBp || mem.hasIndex()) return op_mem(0, wide, opcode, reg.id(), mem);
    room();
    const int32_t disp = mem.offsetLo32();
    const uint32_t rex = (wide ? 8u : 0u) | ((reg.id() & 8) >> 1);
    if (rex) *at_++ = static_cast<uint8_t>(0x40 | rex);
    *at_++ = opcode;
    const bool near = disp == static_cast<int8_t>(disp);
    *at_++ = static_cast<uint8_t>((near ? 0x45u : 0x85u) | (reg.id() & 7) << 3);
    std::memcpy(at_, &disp, sizeof disp);
    at_ += near ? 1 : 4;
  }
  void immediate(int64_t value, uint32_t bytes);

  std::unique_ptr<uint8_t[]> begin_;
  uint8_t* at_ = nullptr;
  uint8_t* end_ = nullptr;
  std::vector<LabelState> labels_;
  std::vector<DataUse> data_uses_;
  std::vector<NearCall> near_calls_;
  asmjit::CodeHolder code_;
  FirstError errors_;
  x86::Assembler rare_;
};

}  // namespace hindsight::jit::baseline
