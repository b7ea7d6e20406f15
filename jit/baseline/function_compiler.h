// FunctionCompiler: the state of one baseline compilation. One pass, every step O(1) amortized.
//
// The model. A wasm operand is an Entry: a constant, a local not copied yet, a register, or its frame slot.
// Each entry has one canonical slot, after the locals' slots:
//
//   rbp -> saved rbp;  [rbp-8] rbx, [rbp-16] r14, [rbp-24] r15;  in functions that catch exceptions [rbp-32]
//   r12, [rbp-40] r13, [rbp-48] the VmContext*;  frame: local 0 .. local n-1, operand 0 .. max-1
//
// frame()[i] ascends with i, which is what the OSR contract (jit/code/code_version.h) wants. Slots have 8
// bytes, in functions that use v128 16.
//
// Invariants, relied on everywhere:
//   I1  A register that holds an i32 holds it zero-extended to 64 bits. So an i32 register may be an address
//       index as it is. Everything that makes an i32 ends in a 32-bit write of its register.
//   I2  A local's slot always holds its value (locals are written through). A register may cache a local; to
//       forget the cache is always right.
//   I3  At a label reached by jumps every entry is in its slot and no register is an operand; the cached locals
//       are those on which all jumps and the fall through agree (none at a loop header).
//   I4  Entries below `flushed_` are in their slots. Each entry is flushed once, so flushing is linear overall.
//   I5  r11 and xmm15 belong to the instruction being emitted; no entry or cache ever lives there.
//
// Pinned: rbx = VmContext*, r14 = ThreadState*, r15 = memory base, rbp = frame.
#pragma once

#include <asmjit/asmjit.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "jit/abi/builtins.h"
#include "jit/abi/call_layout.h"
#include "jit/abi/nest_exits.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/vm_context.h"
#include "jit/baseline/emitter.h"
#include "jit/baseline/operators/vector_inst.h"
#include "jit/baseline/run_recorder.h"
#include "jit/baseline/target_features.h"
#include "jit/code/code_version.h"
#include "jit/compile_options.h"
#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::baseline {

namespace x86 = asmjit::x86;
using wasm::Instr;
using wasm::Opcode;
using wasm::ValType;

inline constexpr uint32_t kNoIndex = ~0u;

// 0..15 general purpose, 16..31 xmm, as asmjit numbers them.
using RegId = uint8_t;
inline constexpr RegId kNoReg = 0xff;
inline constexpr uint32_t kRegs = 32;
constexpr uint32_t bit(RegId r) {
  return 1u << r;
}

struct Entry {
  enum class Kind : uint8_t { kSlot, kReg, kConst, kLocal };
  Kind kind = Kind::kSlot;
  RegId reg = kNoReg;  // kReg
  ValType type = ValType::kI32;
  uint32_t index = 0;  // place on the operand stack, so its canonical slot
  uint32_t local = 0;  // kLocal
  uint64_t bits = 0;   // kConst; kLocal: the next lower entry that names the same local
  uint64_t high = 0;   // kConst, v128: the upper half
  bool is_const() const { return kind == Kind::kConst; }
  bool in_reg() const { return kind == Kind::kReg; }
};
static_assert(sizeof(Entry) == 32);

// A comparison not emitted yet: it can be emitted again out of line, where a branch record needs its outcome.
struct Condition {
  asmjit::InstId inst = 0;
  asmjit::Operand a;
  asmjit::Operand b;
  x86::CondCode cc = x86::CondCode::kE;
  enum class Parity : uint8_t { kIgnore, kAndOrdered, kOrUnordered } parity = Parity::kIgnore;
  Condition inverted() const;
};

// Which local each register caches.
struct LocalCache {
  uint32_t registers = 0;             // that cache one, a bit each
  std::array<uint32_t, kRegs> local;  // of those
  LocalCache() {}                     // NOLINT: `local` is not worth clearing
  // Forgets what `other` does not have.
  void agree(const LocalCache& other) {
    registers &= other.registers;
    for (uint32_t left = registers; left; left &= left - 1) {
      const auto r = static_cast<uint32_t>(__builtin_ctz(left));
      if (local[r] != other.local[r]) registers &= ~(1u << r);
    }
  }
};

struct Control {
  enum class Kind : uint8_t { kFunction, kBlock, kLoop, kIf, kElse, kTry, kCatch, kTryTable };
  Kind kind = Kind::kBlock;
  bool targeted = false;           // some jump leads to `label`
  bool in_innermost_loop = false;  // the loop around this, or this one, contains no loops
  bool counts_turns = false;       // kLoop, for a value record at its end
  bool varies = false;             // of such a loop: its last comparison is not with a constant
  uint32_t loop = kNoIndex;        // the innermost loop around this, or this one, in controls_
  uint32_t branches = 0;           // kLoop: those in it, and in no loop of it, so far; back edges are none
  bool has_conditional_back_edge = false;  // kLoop
  uint32_t selects = 0;                    // kLoop: in it, and in no loop of it
  // kLoop: an iteration may take from the counter of branches by more than one of its back edges.
  bool counts_otherwise = false;
  WasmOffset offset;   // of a loop that counts turns
  uint32_t base = 0;   // operand-stack height below the block's parameters
  uint32_t stamp = 0;  // the last br_table that saw this block, and what it jumps to
  Label stamped;
  Label label;            // loop: header; others: end
  Label else_label;       // kIf; kCatch: where the next clause is tried, if one may be
  bool has_else = false;  // kCatch
  // Exceptions: the handler in force around the block, and that of its body (kTry, kTryTable).
  uint32_t outer_handler = kNoIndex;
  uint32_t handler = kNoIndex;
  uint32_t resume = kNoIndex;              // where nests go on after this, in resume_points_
  std::vector<wasm::CatchClause> catches;  // kTryTable
  wasm::BlockType type;
  LocalCache at_label;  // valid if targeted
  LocalCache at_else;   // kIf
  Control() {}          // NOLINT: clears nothing but what has an initializer
};

class FunctionCompiler {
 public:
  FunctionCompiler(const wasm::Module& module, FuncIndex function, const CompileOptions& options,
                   const TargetFeatures& features);
  ~FunctionCompiler();
  Result<std::unique_ptr<CodeVersion>> compile(CodeArena& arena);

  // Deterministic measures of the work done, for growth tests.
  uint64_t allocator_steps() const { return steps_; }

 private:
  // --- driver (function_compiler.cc)
  Status prologue();
  void cache_parameters();
  void open_frame();  // rsi and the other argument registers stay
  void emit_loop_entries();
  void zero_locals();
  void leave_frame();  // all but the return; keeps rax and every argument register
  void epilogue();
  void compile_body();
  // What compiles an opcode of one byte.
  using CompileOpcode = void (*)(FunctionCompiler&, const Instr&);
  struct Dispatch;
  void compile_prefixed(const Instr& instr);
  void begin_instruction(const Instr& instr);
  void finish_instruction();
  void skip_dead(const Instr& instr);
  void emit_out_of_line();
  void emit_constants();
  void out_of_line(const Label& entry, std::function<void()> body);
  void row(WasmOffset offset);

  // --- operands and registers (operands.cc)
  Entry pop();
  const Entry& top(uint32_t depth = 0) const { return stack_[stack_.size() - 1 - depth]; }
  void push_reg(ValType type, RegId reg);
  void push_const(ValType type, uint64_t bits, uint64_t high = 0);
  void push_local(uint32_t local);
  void push_slot(ValType type);
  void pop_to(size_t height);
  RegId alloc(bool floating);
  RegId take_register(bool floating);
  void claim(
      RegId reg);  // makes a given register a temporary of this instruction; before operands are popped
  void own_by_stack(RegId reg, uint32_t index) {
    operand_regs_ |= bit(reg);
    stack_owner_[reg] = index;
  }
  void release(RegId reg);
  void spill(RegId reg);
  void spill_all();  // before calls: nothing live in a register afterwards, except temporaries
  void flush_all();  // every entry in its slot
  void materialize_local(uint32_t local);
  void forget_local(uint32_t local);
  void forget_locals();
  void cache_local(uint32_t local, RegId reg);
  RegId use(const Entry& entry);  // readable until the end of the instruction
  RegId own(const Entry& entry);  // writable
  RegId result_like(const Entry& entry,
                    bool floating);               // the entry's own register if it has one, else a new one
  void load_into(RegId reg, const Entry& entry);  // only touches `reg`
  void store_entry(const x86::Mem& to, const Entry& entry);  // only touches scratch registers
  void move_reg(RegId to, RegId from, ValType type);
  void store_reg(const x86::Mem& to, RegId from, ValType type);
  void load_const(RegId reg, ValType type, uint64_t bits);
  void load_vector_const(RegId reg, uint64_t low, uint64_t high);
  asmjit::Operand int_operand(const Entry& entry, bool wide);  // register, slot or 32-bit immediate
  asmjit::Operand float_operand(const Entry& entry);           // register, slot or constant in memory
  bool owned(const Entry& entry) const { return entry.in_reg(); }
  x86::Mem slot(uint32_t frame_index, uint32_t size = 8) const {
    return x86::Mem(x86::rbp, frame_disp_ + static_cast<int32_t>(slot_bytes_ * frame_index), size);
  }
  x86::Mem home(const Entry& entry, uint32_t size = 8) const {
    return slot(locals_count() + entry.index, size);
  }
  x86::Mem place(const Entry& entry, uint32_t size = 8) const {
    return entry.kind == Entry::Kind::kLocal ? slot(entry.local, size) : home(entry, size);
  }
  uint32_t locals_count() const { return static_cast<uint32_t>(body_.locals.size()); }
  x86::Mem constant8(uint64_t bits);
  x86::Mem constant16(uint64_t bits, uint64_t high);
  static bool is_wide(ValType t) { return t != ValType::kI32 && t != ValType::kF32; }
  // Bytes of a value in its slot.
  static uint32_t size_of(ValType t) { return t == ValType::kV128 ? 16 : is_wide(t) ? 8 : 4; }
  static x86::Gp gp(RegId r, bool wide) { return wide ? x86::Gp(x86::gpq(r)) : x86::Gp(x86::gpd(r)); }
  static x86::Xmm xmm(RegId r) { return x86::xmm(r - 16u); }

  // --- control (control.cc)
  void control(const Instr& instr);
  void enter_block(const Instr& instr, Control::Kind kind);
  void enter_loop(const Instr& instr);
  void enter_if(const Instr& instr, const Condition& condition);
  void do_else();
  void do_end();
  void branch(uint32_t depth);
  void branch_if(uint32_t depth, const Condition& condition);
  void branch_table(const Instr& instr);
  void do_return();
  void select(const Condition& condition);
  void move_results(uint32_t arity, uint32_t to_base);
  void load_return_values();
  void merge_cache(Control& to);
  void restore_cache(const LocalCache& cache);
  void mark_unreachable();
  void set_height(size_t height, const Control& control, bool results);
  uint32_t branch_arity(const Control& to) const;
  bool needs_moves(const Control& to) const;
  Control& control_at(uint32_t depth) { return controls_[controls_.size() - 1 - depth]; }
  Condition pop_condition();
  void use_condition(Condition condition);  // fuses with the next instruction, or pushes 0 or 1
  void emit_condition(const Condition& condition);
  void set_from_condition(const Condition& condition, const x86::Gp& to);
  void jump_if(const Condition& condition, const Label& to);
  void osr_poll(uint32_t loop);

  // --- nests (nests.cc)
  // Makes the table by which a nest of the loop that was opened last goes on; null: none may be called there.
  std::optional<Label> note_nest(uint32_t loop, const Label& after_poll);
  const Label& resume_entry(Control& control);
  void call_nest(const Label& table);  // to rax
  // At the end of the frame, where nothing is pending: its nests go on here.
  void resume_here(const Control& control, const Label& label, const LocalCache& cache);
  void end_of_nests(const Control& loop);
  void emit_resume_points();
  void emit_nest_tables();

  // --- exceptions (exceptions.cc)
  void exception_instruction(const Instr& instr);
  void throw_tag(const Instr& instr);
  void throw_ref();
  void rethrow(uint32_t depth);
  void throw_by(size_t builtin);
  void never_returns();
  void note_call();  // after each call from which exceptions may come
  void enter_try(const Instr& instr);
  void do_catch(const Instr& instr);
  void do_delegate(uint32_t depth);
  void end_try(Control& control);
  void land();
  void throw_on(uint32_t outer);
  void skip_unless(uint32_t tag, const Label& next);
  // A clause of a try_table, and the block to which it leads.
  struct Clause {
    wasm::CatchClause clause;
    Label label;
    uint32_t base;  // operand slot of the first value
    bool returns;   // the function's results
  };
  void try_clauses(uint32_t outer, const std::vector<Clause>& clauses);
  void deliver(const Clause& clause);
  void copy_value(const x86::Mem& to, const x86::Mem& from, ValType type);
  void use_handler(uint32_t handler) {
    if (handler != kNoIndex) handlers_[handler].used = true;
  }
  int32_t saved_bytes() const { return body_.has_handlers ? 48 : 24; }

  // --- lwp (lwp.cc)
  // Ends a straight run of code. `end` and `moved` matter to a trace only.
  void count_instructions(TraceEnd end = TraceEnd::kFallThrough, RunRecorder::Moved moved = {});
  // Before a count_branch() or count_jump(), which counts the run unless it is traced.
  void end_traced_run(TraceEnd end, RunRecorder::Moved moved = {});
  // `loop`: of whose back edges this is one, or null.
  void count_run_and(RareStub branch, RareStub both, const Control* loop);
  enum class Jumps : uint8_t { kIfTaken, kIfNotTaken };  // what the conditional jump does
  void count_branch(const Condition& condition, const Label& taken, const Label& not_taken, Jumps jumps,
                    const Control* loop = nullptr);
  void count_jump(const Control& loop);
  void count_computed_jump(const Control* loop);  // target in r11
  void count_one_branch(RareStub stub, const Control* loop);
  // Where `jump`, as of Emitter::j_later(), leads to; what comes next is after it.
  void call_out_of_line(uint32_t jump, RareStub stub);
  // `value` is popped or about to be consumed, and nobody has changed its register or slot since. No flags
  // may be alive.
  void sample_value(const Entry& value, uint32_t site_flags);
  void sample_callee();                            // whose FuncRef is in rax
  void sample_choice(const Condition& condition);  // of a select in an innermost loop
  // The trip count of an innermost loop is counted in a slot of the frame after the operands. These loops do
  // not contain each other, so one slot is enough. Without lwp_instructions it has what the counter of branches was before the loop.
  bool has_turns() const { return samples_values() && !body_.loops.empty(); }
  x86::Mem turns() const { return slot(locals_count() + body_.max_stack, 4); }  // from 0 downwards
  void begin_turns();
  void count_turn();
  bool knows_turns(const Control& loop) const;
  void sample_turns(const Control& loop);
  template <typename Load>
  void sample_site(uint32_t site_flags, const Load& load);
  template <typename Load>
  void record_if_negative(uint32_t site_flags, const Load& load);
  // Entries and back edges alone take from the counter of branches, also for the branches that follow, and these are recorded in a body
  // of their own (bursts.cc).
  bool counts_in_bursts() const { return options_.lwp_counting && !options_.lwp_instructions && !recorder_; }
  bool counts_instructions() const { return options_.lwp_counting && options_.lwp_instructions; }
  bool samples_values() const { return options_.lwp_counting || recorder_; }

  // --- bursts (bursts.cc)
  // Before the function's first instruction.
  void count_entry();
  // A place where the two bodies may go over to each other. The quiet one counts `count` there.
  void pass_place(uint32_t count);
  // The same at a branch, which the recording one records.
  void pass_branch(uint32_t count, RareStub stub);
  // After the quiet one. Does nothing if that has no such place.
  Status compile_recording_body();

  // --- trace (trace.cc); each does nothing unless CompileOptions::trace is set. No flags may be alive.
  void trace_enter();
  void trace_land();
  void trace_run(TraceEnd end, uint32_t instructions, RunRecorder::Moved moved);
  void trace_outcome(const Condition& condition, const Label& taken, const Label& fall);
  void trace_jump(const Label& target);
  // The access that the next instruction makes through `at`, which may use r11.
  void trace_access(const x86::Mem& at);
  struct BulkWord {
    Entry entry;
    std::optional<uint32_t> memory;  // the entry is an address in it
  };
  void trace_bulk(std::initializer_list<BulkWord> words);
  void trace_word(const x86::Gp& word);  // clobbers r11
  void publish_trace(const CodeVersion& version);

  // --- families
  void floating(const Instr& instr);
  void conversion(const Instr& instr);
  void load(const Instr& instr, asmjit::InstId inst, ValType type, uint32_t size, bool wide_register);
  void store(const Instr& instr, uint32_t size);
  void bulk(const Instr& instr);  // and memory.size and .grow
  void atomic(const Instr& instr);
  void variable(const Instr& instr);
  void call(const Instr& instr);
  void call_indirect(const Instr& instr);
  void return_call(const Instr& instr);
  void return_call_indirect(const Instr& instr);
  void table(const Instr& instr);
  // references.cc
  void ref_as_non_null();
  void branch_on_null(uint32_t depth);
  void branch_on_non_null(uint32_t depth);
  void call_ref(const Instr& instr);
  void return_call_ref(const Instr& instr);
  void pop_callee();
  Condition is_null(const Entry& reference);
  void push_non_null(const Entry& reference, const Condition& tested);

  // As Emitter::alu numbers them.
  static constexpr uint32_t kAluAdd = 0, kAluOr = 1, kAluAnd = 4, kAluSub = 5, kAluXor = 6;
  void int_alu(uint32_t number, bool wide, bool commutative);
  void int_mul(bool wide);
  void int_shift(asmjit::InstId inst, asmjit::InstId bmi2, bool wide);
  void int_divide(bool wide, bool is_signed, bool remainder);
  void int_compare(x86::CondCode cc, bool wide);
  void int_eqz(bool wide);
  void int_count(const Instr& instr, bool wide);
  void int_extend(ValType to, uint32_t bits);
  void float_binary(asmjit::InstId inst, bool wide);
  void float_compare(const Instr& instr, bool wide);
  void float_min_max(bool wide, bool max);
  void float_round(bool wide, int mode);
  void float_bits(Opcode op, bool wide);
  void float_copysign(bool wide);
  void truncate(bool from_wide, bool to_wide, bool is_signed, bool saturate);
  void convert(bool from_wide, bool to_wide, bool is_signed);
  x86::Gp memory_base(uint32_t memory);
  x86::Mem address(const Entry& index, const Instr& instr, uint32_t size);
  x86::Mem checked_up_to(uint32_t memory, const x86::Gp& base, uint32_t size);
  x86::Mem address64(const Entry& index, const Instr& instr, uint32_t size);
  x86::Mem atomic_address(Entry index, const Instr& instr, uint32_t size);
  bool result_is_dropped() const;
  void atomic_load(const Instr& instr, ValType type, uint32_t size);
  void atomic_store(const Instr& instr, uint32_t size);
  void atomic_add(const Instr& instr, ValType type, uint32_t size, bool subtract);
  void atomic_logic(const Instr& instr, asmjit::InstId inst, ValType type, uint32_t size);
  void atomic_update(const Instr& instr, asmjit::InstId inst, const Entry& value, const Entry& index,
                     uint32_t size);
  void atomic_exchange(const Instr& instr, ValType type, uint32_t size);
  void atomic_compare_exchange(const Instr& instr, ValType type, uint32_t size);
  void push_narrow(ValType type, RegId reg, uint32_t size);
  void wait_or_notify(const Instr& instr);

  // --- vectors (simd.cc)
  void simd(const Instr& instr);
  asmjit::Operand vector_operand(const Entry& entry);  // register, slot or constant in memory, aligned
  void vector_op(VectorInst inst, const x86::Xmm& to, const x86::Xmm& a, const asmjit::Operand& b);
  RegId vector_binary(VectorInst inst, const Entry& a, const Entry& b);
  RegId vector_apply(VectorInst inst, const Entry& a, const asmjit::Operand& b);
  void vector_binary(VectorInst inst, bool commutative);
  void vector_binary_swapped(VectorInst inst);
  void vector_unary(asmjit::InstId inst, std::optional<int> immediate = {});
  void vector_not(const x86::Xmm& reg);  // clobbers xmm15
  x86::Mem splat8(uint8_t byte);
  x86::Mem splat16(uint16_t half);
  x86::Mem splat32(uint32_t word);
  x86::Mem splat64(uint64_t bits);
  void simd_bitwise(const Instr& instr);
  void bitselect();
  // simd_memory.cc
  void simd_memory(const Instr& instr);
  void simd_lane_access(const Instr& instr, uint32_t size);
  // simd_lanes.cc
  void simd_lanes(const Instr& instr);
  void splat(Opcode op);
  void extract_lane(const Instr& instr);
  void replace_lane(const Instr& instr);
  void shuffle(const Instr& instr);
  // simd_integer.cc
  void simd_integer(const Instr& instr);
  void vector_not_equal(VectorInst equal);
  void vector_order(VectorInst choose, VectorInst equal, bool opposite);
  void long_compare(Opcode op);
  void vector_negate(asmjit::InstId subtract);
  void vector_extend(asmjit::InstId extend, bool high);
  void all_true(asmjit::InstId equal);
  void bitmask(Opcode op);
  void vector_shift(VectorInst inst, uint32_t mask);
  void load_shift_count(const Entry& count, uint32_t mask, int32_t add);
  void byte_shift(Opcode op);
  void long_shift_signed();
  void long_multiply();
  // simd_multiply.cc
  void simd_multiply(Opcode op);
  void multiply_bytes(asmjit::InstId extend, bool high);
  void multiply_halves(asmjit::InstId multiply_high, asmjit::InstId interleave);
  void multiply_words(asmjit::InstId multiply, int order);
  void byte_popcount();
  void simd_relaxed(const Instr& instr);
  void multiply_add(VectorInst multiply, asmjit::InstId join);
  // simd_float.cc
  void simd_float(const Instr& instr);
  void simd_float_compare(const Instr& instr);
  void simd_conversion(const Instr& instr);
  void vector_min_max(bool wide, bool max);
  void convert_unsigned_words();

  void set_local(uint32_t local, bool tee);

  struct Argument {  // of a call: an entry or an immediate
    bool immediate = false;
    uint64_t value = 0;
    Entry entry;
  };
  Argument immediate_argument(uint64_t value) { return {true, value, {}}; }
  Argument entry_argument(const Entry& entry) { return {false, 0, entry}; }
  void move_arguments(std::span<const Argument> arguments, std::span<const ArgPlace> places);
  void pass_arguments(const wasm::FuncType& type, bool tail = false);
  void load_callee(FuncIndex callee);  // its context, to rdi
  void load_callee_context();          // of the FuncRef in rax, to rdi
  void check_callee(const Instr& instr);
  void trace_callee();  // whose FuncRef is in rax
  void finish_call(const wasm::FuncType& type);
  void tail_jump();  // to rax
  void call_builtin(size_t offset, std::span<const Argument> arguments);
  void trap_if(x86::CondCode cc, TrapCode code);
  void trap_here(TrapCode code);

  // r11 and xmm15 are scratch; rbx, rbp, rsp, r14, r15 pinned; r12, r13 never touched.
  static constexpr uint32_t kGpRegs = 0b0000'0111'1100'0111;
  static constexpr uint32_t kPreferredGpRegs =
      0b0000'0111'1100'0000;  // leaves rax, rcx, rdx for those who need them
  static constexpr uint32_t kFloatRegs = 0x7fffu << 16;
  static constexpr uint32_t kAllocatable = kGpRegs | kFloatRegs;

  const wasm::Module& module_;
  const FuncIndex function_;
  const wasm::FunctionBody& body_;
  const wasm::FuncType& type_;
  const CompileOptions options_;
  const TargetFeatures features_;
  const VmLayout vm_layout_;

  // What one compilation after the other uses, so that it is allocated once a thread. After it, its parts
  // under their own names.
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
  static std::unique_ptr<Workspace> borrow_workspace();

  Emitter& a_;
  wasm::InstrReader reader_;
  PcMapBuilder& pc_map_;
  WasmOffset offset_;  // of the instruction being compiled

  int32_t frame_disp_ = 0;  // of frame()[0] from rbp, negative
  const uint32_t slot_bytes_;
  std::vector<Entry>& stack_;
  size_t flushed_ = 0;
  std::vector<uint32_t>& last_ref_;  // local -> highest entry that names it
  std::vector<RegId>& local_reg_;    // local -> register that caches it
  uint32_t free_ = kAllocatable;
  uint32_t temp_ = 0;                        // belong to the instruction being compiled
  uint32_t locked_ = 0;                      // caches that the instruction being compiled reads
  uint32_t operand_regs_ = 0;                // registers that are operands
  std::array<uint32_t, kRegs> stack_owner_;  // of those
  LocalCache cache_;
  uint32_t next_victim_ = 0;

  CallLayout& call_layout_;  // of the call being compiled
  std::vector<Argument>& arguments_;

  std::vector<Control>& controls_;
  struct Handler {
    Label landing;      // rax: the exception
    bool used = false;  // some call or throw, or a handler within, may lead there
  };
  std::vector<Handler> handlers_;
  uint32_t handler_ = kNoIndex;  // in force where code is being compiled
  struct CaughtCall {
    uint32_t return_offset;
    uint32_t handler;
  };
  std::vector<CaughtCall> caught_calls_;
  bool reachable_ = true;
  uint32_t dead_depth_ = 0;  // blocks opened in dead code
  uint32_t next_loop_ = 0;
  uint32_t br_tables_ = 0;
  std::vector<bool> innermost_;
  uint32_t pending_instructions_ = 0;
  // Of the quiet body, in its order.
  struct Place {
    uint32_t jump;              // to the recording one, as of Emitter::j_later(); 0: none
    uint32_t after;             // position where the quiet body goes on
    uint32_t cached, operands;  // registers that hold locals, and operands
  };
  std::vector<Place>& places_;
  size_t next_place_ = 0;  // that the recording body comes to
  bool bodies_differ_ = false;
  bool recording_ = false;                 // that is being made
  std::unique_ptr<RunRecorder> recorder_;  // null: nothing is traced
  struct TracedBranch {
    TraceRun* run;
    Label taken, fall;
  };
  std::vector<TracedBranch> traced_branches_;
  Label epilogue_;
  Label osr_slots_;  // of the first loop; those of the others follow
  struct LoopEntry {
    LoopIndex loop;
    Label header;
    uint32_t slots;     // locals and operands there
    CodeOffset offset;  // of the entry
  };
  std::vector<TypeId> types_;            // whose ids are in the code
  std::vector<LoopEntry> loop_entries_;  // with CompileOptions::loop_entries

  struct OutOfLine {
    uint32_t jump;  // that leads to this trap, or kBody
    WasmOffset offset;
    uint32_t detail;  // the TrapCode, the stub after kStubs, or an index in bodies_
  };
  static constexpr uint32_t kBody = ~0u;
  static constexpr uint32_t kStubs = 0x100;  // above all trap codes
  std::vector<OutOfLine>& out_of_line_;
  struct Body {
    Label entry;
    std::function<void()> emit;
  };
  std::vector<Body>& bodies_;
  struct JumpTable {
    Label label;
    std::vector<Label> targets;
  };
  std::vector<JumpTable> jump_tables_;
  // What follows a frame around a nest, or the nest's loop. The entry is a piece out of line, which loads what the label wants.
  struct ResumePoint {
    Label entry, label;
    WasmOffset offset;
    LocalCache cache;
    enum class Kind : uint8_t { kNever, kLabel, kReturn } kind = Kind::kNever;
    ResumePoint() {}  // NOLINT: clears nothing but what has an initializer
  };
  std::vector<ResumePoint> resume_points_;
  struct NestTable {
    Label label;
    uint32_t first;  // of its ways; the next table's follow them
  };
  std::vector<NestTable> nest_tables_;
  std::vector<Label> nest_ways_;  // by number (jit/abi/nest_exits.h)
  std::unordered_map<uint64_t, Label>& constants8_;
  std::vector<std::pair<uint64_t, Label>>& constants8_order_;
  struct Constant16 {
    uint64_t low, high;
    Label label;
  };
  std::vector<Constant16> constants16_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> constants16_index_;
  uint64_t steps_ = 0;

  // The most code that one function may have. Two bytes of wasm can ask for a thousand moves: without a bound
  // a body of a few megabytes would take all memory there is.
  static constexpr size_t kMaxCodeBytes = size_t{256} << 20;
};

}  // namespace hindsight::jit::baseline

#include "jit/baseline/operands_inline.h"
