// FunctionGenerator: one wasm function body (or, for on-stack replacement, the remainder of one) to LLVM IR.
//
// Locals are stack slots that protect.h turns into SSA values; operand-stack values are SSA values at once
// and meet in phis of the blocks' labels. Inlining happens here. A callee that inline_cost.h likes is
// generated in place of its call, as an Activation on top of the caller's. So inline sites and debug
// locations are exact, and nothing depends on the state of LLVM's heuristics. Nesting of blocks and of
// inlined calls is on explicit stacks, never on the native one.
//
// On-stack replacement enters at a loop header whose enclosing loops are already in the middle of an
// iteration. Jumping there would give loops with two entries, which no loop pass understands. Instead the
// remainder is *peeled*. Generation starts at the requested loop, which is generated in full, with the
// enclosing blocks reconstructed from a snapshot. What is left of the current iteration of each enclosing
// loop is generated once, outside of any loop. Something in it may branch to that loop's header. Then at the
// loop's `end` the reader goes back to its start, and the whole loop is generated with those branches as its
// entry. Each enclosing level adds one copy of its loop, and every loop has one entry.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "jit/optimizing/generate/nest_shape.h"
#include "jit/optimizing/ir/ir_module.h"
#include "jit/optimizing/pass_limits.h"
#include "jit/wasm/instr_reader.h"

namespace hindsight::jit::optimizing {

struct ControlFrame {
  enum class Kind : uint8_t {
    kFunction,
    kBlock,
    kLoop,
    kIf,
    kElse,
    kPeeledLoop,
    kTry,
    kCatch,
    kTryTable,
    kOutside,      // around a nest: a branch to it leaves the nest
    kOutsideLoop,  // the same, to a loop's header
  };
  Kind kind = Kind::kBlock;
  wasm::BlockType type = {};
  WasmOffset offset = {};  // of the opcode
  uint32_t height = 0;     // operand-stack values below the parameters, in the whole generator's stack
  llvm::BasicBlock* label = nullptr;       // where a branch to this frame goes
  std::vector<llvm::PHINode*> phis = {};   // of the label: parameters of a loop, results of the others
  llvm::BasicBlock* else_block = nullptr;  // kCatch: for exceptions that no clause so far has taken
  std::vector<llvm::Value*> params = {};   // kIf: for the else arm
  llvm::BasicBlock* before = nullptr;      // of kLoop: leads into it
  // kLoop generated after its peeled iteration: what falls out of that iteration joins its own results.
  llvm::BasicBlock* peeled_exit = nullptr;
  std::vector<llvm::Value*> peeled_results = {};
  // kFunction: other bodies that may run in place of the same call; each begins when the one before it ends.
  struct OtherTarget {
    FuncIndex function;
    llvm::BasicBlock* block;
  };
  std::vector<OtherTarget> others = {};
  std::vector<llvm::Value*> args = {};        // for them
  llvm::DILocation* call_location = nullptr;  // of that call

  // kTry, kTryTable: where exceptions arrive, made when the first may. kCatch: what was caught.
  llvm::BasicBlock* landing = nullptr;          // from calls
  llvm::PHINode* exception = nullptr;           // from there and from handlers within
  std::vector<wasm::CatchClause> catches = {};  // kTryTable

  bool is_handler() const { return kind == Kind::kTry || kind == Kind::kTryTable; }
  bool is_loop() const {
    return kind == Kind::kLoop || kind == Kind::kPeeledLoop || kind == Kind::kOutsideLoop;
  }
  uint32_t label_arity() const { return is_loop() ? type.param_count() : type.result_count(); }
};

// The state at a loop header: what an OSR entry starts from.
struct OsrPoint {
  LoopIndex loop;
  WasmOffset offset;
  std::vector<ControlFrame> frames;  // enclosing; without blocks and phis
  std::vector<llvm::Type*> stack;    // types of all operand-stack values, the loop's parameters on top
};

class FunctionGenerator {
 public:
  // `function` must come from IrModule::make_function; `whole` is the one that holds the whole body (itself,
  // or for an OSR entry its sibling), for direct recursion. Both have their native types, or, if the wasm
  // function has tail calls, the erased one. A nest has no such sibling: null.
  FunctionGenerator(IrModule& ir, FuncIndex index, llvm::Function* function, llvm::Function* whole);

  // The whole function. Records an OsrPoint for every loop of request.osr_loops (in byte order).
  void generate();
  // The remainder from a loop header on; `function` has the signature osr(vmctx, frame*).
  void generate_from(const OsrPoint& point);
  // One loop and nothing else; `function` has the signature i32 nest(vmctx, frame*) (jit/abi/nest_exits.h). The loop can be a
  // nest (jit/wasm/loop_nests.h).
  void generate_nest(LoopIndex root);

  const std::vector<OsrPoint>& osr_points() const { return osr_points_; }
  // For protect.h.
  const std::vector<llvm::AllocaInst*>& slots() const { return slots_; }
  const std::vector<llvm::LoadInst*>& wasm_loads() const { return wasm_loads_; }
  // Frames up to this size need no check in functions that call nothing.
  static constexpr uint32_t kUncheckedLeafBytes = 1024;
  // For a function whose frame turned out larger than that. Before generating.
  void set_always_check_stack(bool always) { always_check_stack_ = always; }
  bool checks_stack() const { return checks_stack_; }
  // Generation ended early: two bytes of wasm can ask for a thousand phi entries or arguments.
  bool moves_too_much() const { return moved_values_ > kMostMovedValues; }
  size_t loops() const { return loops_; }  // generated, inlined and peeled ones included

 private:
  struct Activation {
    Activation(const wasm::Module& module, FuncIndex f)
        : function(f), body(module.body(f)), reader(module, module.body(f)) {}
    FuncIndex function;
    const wasm::FunctionBody& body;
    wasm::InstrReader reader;
    size_t control_base =
        0;  // index of its kFunction frame; of a nest's function, of the outermost frame that it can go to
    std::vector<llvm::AllocaInst*> locals;  // null: a nest does not use it
    llvm::DISubprogram* scope = nullptr;
    llvm::DILocation* inlined_at = nullptr;
    uint32_t site = kNoInlineSite;
    bool tail = true;             // its results are the native function's: its tail calls are jumps
    bool returns_caller = false;  // inlined in place of a tail call: its end is the end of its caller
  };

  // function_generator.cc
  void begin_entry(const NestShape* nest = nullptr);
  void finish_entry();
  void run();
  void step();
  void emit(const wasm::Instr& instr);
  void emit_parametric(const wasm::Instr& instr);
  void emit_variable(const wasm::Instr& instr);
  void emit_constant(const wasm::Instr& instr);
  void set_position(WasmOffset offset);
  llvm::AllocaInst* make_slot(llvm::Type* type);
  llvm::BasicBlock* make_block(const char* name);
  llvm::Value* pop();
  void push(llvm::Value* value) { stack_.push_back(value); }
  // i32 -> i1 and back, without going to and fro.
  llvm::Value* condition(llvm::Value* i32_value);
  void push_condition(llvm::Value* i1_value);
  Activation& top() { return activations_.back(); }

  // Runtime data. The invariant loads are done once, in the entry block.
  llvm::Value* vmctx() { return function_->getArg(0); }
  llvm::Value* runtime_field(llvm::Value* base, int64_t offset);
  llvm::LoadInst* load_runtime(llvm::Type* type, llvm::Value* base, int64_t offset, bool invariant);
  llvm::StoreInst* store_runtime(llvm::Value* value, llvm::Value* base, int64_t offset);
  llvm::Value* entry_field(int64_t vmctx_offset) { return entry_field(vmctx_offset, ir_.ptr); }
  llvm::Value* entry_field(int64_t vmctx_offset, llvm::Type* type);
  llvm::CallInst* call_builtin(size_t builtin_offset, llvm::Type* result,
                               std::initializer_list<llvm::Value*> args);
  void trap(TrapCode code);                             // ends the current block
  void trap_if(llvm::Value* condition, TrapCode code);  // goes on in a new block
  llvm::Value* int32(uint32_t value) { return llvm::ConstantInt::get(ir_.i32, value); }
  llvm::Value* int64(uint64_t value) { return llvm::ConstantInt::get(ir_.i64, value); }

  // generate_control.cc
  void emit_control(const wasm::Instr& instr);
  void skip_dead(const wasm::Instr& instr);
  void begin_block(const wasm::Instr& instr);
  void begin_loop(const wasm::Instr& instr);
  void begin_if(const wasm::Instr& instr);
  void begin_else();
  void end_block();
  void end_peeled_loop(ControlFrame frame);
  void join_back_edges(const ControlFrame& loop);
  void leave_function(ControlFrame& frame);
  void make_label(ControlFrame& frame, const char* name);
  void add_label_values(ControlFrame& frame);
  ControlFrame& frame_at(uint32_t depth) { return control_[control_.size() - 1 - depth]; }
  void branch_to(ControlFrame& frame);
  void emit_br_if(const wasm::Instr& instr);
  void emit_br_table(const wasm::Instr& instr);
  void emit_br_on_null(const wasm::Instr& instr);
  void emit_return_values();
  void record_osr_point(const wasm::Instr& instr);
  // generate_exits.cc
  void mark_exit(const wasm::Instr& instr);
  // generate_nest.cc
  ControlFrame outside_frame(const wasm::LoopFrame& frame);
  llvm::Value* slot_of_frame(uint32_t slot);
  void leave_nest(uint32_t number, uint32_t height, const std::vector<llvm::Value*>& values,
                  const std::vector<uint32_t>& locals);

  // generate_calls.cc
  void emit_call(const wasm::Instr& instr);
  void emit_call_indirect(const wasm::Instr& instr);
  void emit_call_ref(const wasm::Instr& instr);
  llvm::Value* check_callee(const wasm::Instr& instr, llvm::Value* index);
  void enter_inlined(FuncIndex callee, WasmOffset call_site, bool tail);
  Activation& begin_activation(FuncIndex callee, WasmOffset call_site, bool tail,
                               const std::vector<llvm::Value*>& args);
  bool should_inline(FuncIndex callee) const;
  bool in_loop() const;
  // `leaves`: in place of a tail call, so that handlers of the innermost activation are left.
  void call_native(const wasm::FuncType& type, llvm::Value* code, llvm::Value* context, bool leaves = false);
  void emit_stack_check();

  // generate_likely_calls.cc
  bool enter_likely_targets(const wasm::Instr& instr);
  struct LikelyTarget {
    FuncIndex function;
    double share;  // of the calls seen
  };
  std::vector<LikelyTarget> likely_targets(const wasm::Instr& instr) const;
  void enter_next_target(ControlFrame frame);
  llvm::Value* table_index();
  llvm::Value* table_element(const wasm::Instr& instr, llvm::Value* index);
  void sample_call(const wasm::Instr& instr, llvm::Value* target);
  llvm::Value* callee_index(llvm::Value* reference);
  void check_reference(const wasm::Instr& instr, llvm::Value* reference);
  llvm::Value* callee_context(llvm::Value* reference);
  void call_reference(const wasm::Instr& instr, llvm::Value* reference);

  // generate_tail_calls.cc
  bool is_erased() const { return ir_.wasm.body(index_).has_tail_calls; }
  void store_parameters();
  llvm::Value* erase(llvm::Value* value);
  llvm::Value* restore(llvm::Value* erased, llvm::Type* type);
  std::vector<llvm::Value*> pop_arguments(const wasm::FuncType& type, llvm::Value* context, bool erased);
  void emit_return_call(const wasm::Instr& instr);
  void emit_return_call_indirect(const wasm::Instr& instr);
  void emit_return_call_ref(const wasm::Instr& instr);
  void return_native(const wasm::FuncType& type, llvm::Value* code, llvm::Value* context);
  void begin_again();
  void return_from_activation();

  // generate_exceptions.cc
  bool emit_exception(const wasm::Instr& instr);  // false: it is none of these
  void begin_try(bool table);
  void begin_catch(const wasm::Instr& instr);
  void end_delegate(uint32_t depth);
  void finish_handler(const ControlFrame& frame);
  void emit_throw(uint32_t tag);
  void throw_by(size_t builtin, llvm::Value* argument, ControlFrame* handler);
  void throw_on(ControlFrame* outer, llvm::Value* exception);
  ControlFrame* handler_below(size_t end, bool leaves);
  ControlFrame* handler() { return handler_below(control_.size(), false); }
  void branch_to_handler(ControlFrame& frame, llvm::Value* exception);
  llvm::BasicBlock* landing_of(ControlFrame& frame);
  llvm::InvokeInst* invoke(ControlFrame& handler, llvm::Type* result, llvm::Value* code,
                           std::vector<llvm::Value*> args, llvm::BasicBlock* next);
  llvm::BasicBlock* branch_unless(llvm::Value* exception, uint32_t tag);
  void push_values(llvm::Value* exception, uint32_t tag);

  // generate_memory.cc
  void emit_memory(const wasm::Instr& instr);
  void emit_bulk(const wasm::Instr& instr);
  // With memory.size's order, or with the least that a check of bounds needs.
  llvm::Value* memory_length(uint32_t memory, bool ordered = false);
  llvm::Value* address(const wasm::Instr& instr, uint32_t bytes);
  llvm::Value* settled(uint32_t memory, llvm::Value* loaded);
  void check_index64(const wasm::Instr& instr, llvm::Value* index, uint32_t bytes);
  void emit_load(const wasm::Instr& instr);
  void emit_store(const wasm::Instr& instr);

  // generate_atomics.cc
  void emit_atomic(const wasm::Instr& instr);
  void emit_wait_or_notify(const wasm::Instr& instr);
  llvm::Value* opaque(llvm::Value* value);
  llvm::Value* atomic_address(const wasm::Instr& instr, uint32_t bytes);

  // generate_simd.cc. Vectors of all shapes are ir_.v128 on the operand stack.
  void emit_simd(const wasm::Instr& instr);
  llvm::Value* pop_as(llvm::Type* vector) { return b_.CreateBitCast(pop(), vector); }
  void push_vector(llvm::Value* value) { push(b_.CreateBitCast(value, ir_.v128)); }
  llvm::FixedVectorType* vector_of(llvm::Type* lane) const {
    return llvm::FixedVectorType::get(lane, 128 / static_cast<unsigned>(lane->getPrimitiveSizeInBits()));
  }
  llvm::Value* zeros(llvm::Type* vector) { return llvm::Constant::getNullValue(vector); }
  llvm::Value* splat_of(llvm::Type* vector, llvm::Value* lane);
  void emit_simd_memory(const wasm::Instr& instr);
  llvm::Value* load_part(const wasm::Instr& instr, llvm::Type* type);
  void emit_lanes(const wasm::Instr& instr);
  void emit_shuffle(const wasm::Instr& instr);
  void emit_bitwise(wasm::Opcode op);
  void emit_bitselect();
  // generate_simd_integer.cc
  void emit_simd_integer(wasm::Opcode op);
  void emit_vector_compare(wasm::Opcode op);
  void emit_vector_shift(wasm::Opcode op);
  void emit_widening(wasm::Opcode op);
  llvm::Value* half_of(llvm::Value* vector, bool high);
  void emit_pairwise(wasm::Opcode op);
  void emit_rounding_product();
  void emit_lane_tests(wasm::Opcode op);
  // generate_simd_float.cc
  void emit_simd_float(wasm::Opcode op);
  void emit_simd_conversion(wasm::Opcode op);
  void emit_simd_relaxed(wasm::Opcode op);
  void emit_multiply_add(llvm::Type* lane, bool negated);
  llvm::Value* vector_minimum_or_maximum(llvm::Value* a, llvm::Value* b, bool maximum);
  llvm::Value* chosen_if_less(llvm::Value* a, llvm::Value* b);
  llvm::Value* saturated_words(llvm::Value* f32x4, bool is_signed);

  // generate_integer.cc
  void emit_integer_compare(uint32_t which, bool wide);
  void emit_integer_operator(uint32_t which, bool wide);
  void emit_division(uint32_t which, llvm::Value* a, llvm::Value* b);
  void emit_integer_conversion(const wasm::Instr& instr);

  // generate_float.cc
  void emit_float_compare(uint32_t which);
  void emit_float_operator(uint32_t which, bool wide);
  void emit_float_conversion(const wasm::Instr& instr);
  void emit_truncation(bool from_f64, bool to_i64, bool is_signed);
  llvm::Value* minimum_or_maximum(llvm::Value* a, llvm::Value* b, bool maximum);

  // generate_reference.cc
  void emit_reference(const wasm::Instr& instr);
  llvm::Value* table_record(uint32_t table);

  IrModule& ir_;
  const FuncIndex index_;
  llvm::Function* const function_;
  llvm::Function* const whole_;
  WasmOffset begin_;                   // where what is generated begins: the body, or the nest's loop
  llvm::BasicBlock* entry_ = nullptr;  // slots and invariant loads; ends in a branch to start_
  llvm::BasicBlock* start_ = nullptr;
  llvm::IRBuilder<> b_;

  std::deque<Activation> activations_;
  std::vector<ControlFrame> control_;
  std::vector<llvm::Value*> stack_;
  bool reachable_ = true;
  uint32_t dead_depth_ = 0;  // blocks begun in dead code

  std::map<int64_t, llvm::Value*> entry_fields_;
  llvm::Value* thread_ = nullptr;
  std::vector<llvm::AllocaInst*> slots_;
  std::vector<llvm::LoadInst*> wasm_loads_;
  std::vector<OsrPoint> osr_points_;
  bool entered_running_ = false;                // generate_from
  std::vector<std::vector<bool>> live_locals_;  // at loop headers; made at first use
  bool calls_ = false;
  size_t loops_ = 0;
  size_t moved_values_ = 0;  // along branches, and to and from callees
  uint32_t inlined_bytes_ = 0;
  llvm::BasicBlock* again_ = nullptr;  // where a tail call of the function to itself goes on
  bool calls_itself_again_ = false;
  bool has_loops_ = false;
  bool always_check_stack_ = false;
  bool checks_stack_ = false;
  uint32_t frame_estimate_ = 0;
};

}  // namespace hindsight::jit::optimizing
