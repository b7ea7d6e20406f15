// FunctionValidator: types the code of one function while decoding it. It follows the algorithm in the
// appendix "Validation Algorithm" of the WebAssembly 2.0 specification. There is a stack of operand types, in
// which "unknown" stands for anything below dead code, and a stack of control frames. No recursion; the work
// is linear in the bytes, times at most the arity of a block type, which limits.h bounds.
//
// It also notes what the compilers want to know beforehand (FunctionBody: stack heights, loops, calls).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "jit/wasm/byte_reader.h"
#include "jit/wasm/module.h"
#include "jit/wasm/opcodes.h"

namespace hindsight::wasm {

class FunctionValidator {
 public:
  // Everything of `module` but its bodies and data must be decoded already, and both arguments must outlive
  // the validator. One validator serves all functions of a module, so that its stacks are allocated once.
  FunctionValidator(const Module& module, std::optional<uint32_t> data_count, ByteReader& reader)
      : module_(module), data_count_(data_count), reader_(reader) {}

  // Decodes and checks the code between the reader's position and its end, and fills all of `body` but the
  // locals, which the caller decoded. False on failure; the reader holds it.
  [[nodiscard]] bool validate(FunctionBody& body, const FuncType& type);

  // Units of work done so far: instructions, operand types moved, branch targets.
  uint64_t steps() const { return steps_ + instructions_; }
  uint64_t instructions() const { return instructions_; }

 private:
  // An operand type: a ValType, kUnknown or kUnknownRef. kUnknown is for a value that dead code would have
  // produced, kUnknownRef for such a value that must have been a reference other than null.
  using Operand = uint32_t;
  static constexpr Operand kUnknown = 0;
  static constexpr Operand kUnknownRef = 1 | kNonNullBit;
  static constexpr uint32_t kNotNoted = ~0u;

  struct Frame {
    Opcode opcode = Opcode::kBlock;
    bool unreachable = false;    // the rest of this block is dead
    bool entered_dead = false;   // the whole block is
    uint32_t height = 0;         // operands below the block's parameters
    uint32_t br_table_mark = 0;  // the last br_table that checked this label
    uint32_t set_locals = 0;     // height of set_locals_
    uint32_t offset = 0;         // of the opcode
    uint32_t branched = 0;       // offset of the last branch to this label
    uint32_t noted = kNotNoted;  // in FunctionBody::loop_frames
    bool has_clauses = false;    // try_table
    std::optional<uint32_t> loop;
    std::span<const ValType> params;
    std::span<const ValType> results;

    std::span<const ValType> label_types() const { return opcode == Opcode::kLoop ? params : results; }
  };

  bool step(FunctionBody& body);
  // As many of the commonest instructions as come next and are right; the rest, and every error, is step()'s.
  void quick_steps(const FunctionBody& body);
  bool prefixed();

  bool block(FunctionBody& body, Opcode opcode);
  void open_loop(FunctionBody& body);
  void close_loop(LoopInfo& loop);
  static LoopFrame::Kind kind_of(const Frame& frame);
  bool else_branch();
  bool end(FunctionBody& body);
  bool br_table();
  bool call(std::span<const ValType> params, std::span<const ValType> results);
  bool call_indirect(bool tail);
  bool return_call(const FuncType& callee);
  bool select();
  bool select_typed();
  bool memory_access(uint8_t code);
  bool atomic();
  bool simd();
  bool lane(uint32_t lanes);
  bool ref_func();

  // exception_validator.cc
  bool exceptions(FunctionBody& body, Opcode opcode);
  bool catch_clauses(bool& any);
  bool catch_clause();
  bool begin_catch(Opcode opcode);
  bool delegate(FunctionBody& body);
  bool rethrow();
  bool throw_tag();
  bool tag(std::span<const ValType>& params);
  // reference_validator.cc
  bool call_ref(bool tail);
  bool ref_as_non_null();
  bool br_on_null();
  bool br_on_non_null();
  bool pop_reference(Operand& type);
  void track_locals(const FunctionBody& body, size_t params);
  void local_was_set(uint32_t index);
  void forget_set_locals(const Frame& frame);
  bool table_init();
  bool table_copy();

  bool block_type(std::span<const ValType>& params, std::span<const ValType>& results);
  bool memory(const MemoryType*& type);
  // `exactly`: no smaller alignment will do.
  bool memory_argument(uint32_t align_log2, const MemoryType*& type, bool exactly = false);
  bool memory_copy();
  bool label(const Frame*& frame);
  // The same, of a branch: loops around it are to know where it goes.
  bool branch(const Frame*& frame);
  void note_select() {
    if (!open_loops_.empty()) ++open_loops_.back().selects;
  }
  void note_branch(size_t target);
  // Of a branch with more than one way.
  void note_choice() {
    if (open_loops_.empty()) ++branches_outside_loops_;
  }
  bool local(const FunctionBody& body, uint32_t& index, ValType& type);
  bool table(uint32_t& index, ValType& element);
  bool global(const Global*& global);
  bool data_index();

  bool push(Operand type) {
    ++steps_;
    if (height_ == operands_.size() && !grow()) [[unlikely]]
      return false;
    operands_[height_++] = type;
    if (height_ > max_stack_) max_stack_ = height_;
    return true;
  }
  bool grow();
  bool push(ValType type) { return push(static_cast<Operand>(type)); }
  bool push_all(std::span<const ValType> types);
  bool on_top(std::span<const ValType> types);
  bool pop_any(Operand& type);
  bool pop(ValType expected) {
    ++steps_;
    if (height_ > floor_ && operands_[height_ - 1] == static_cast<Operand>(expected)) [[likely]] {
      --height_;
      return true;
    }
    return pop_unusual(expected);
  }
  bool pop_unusual(ValType expected);
  static bool fits(Operand found, ValType expected);
  static std::string name_of(Operand operand);
  std::span<const ValType> single(ValType type);
  bool pop_all(std::span<const ValType> types);
  // Checks that the types are on the stack, and leaves it as it is.
  bool peek_all(std::span<const ValType> types);
  bool push_frame(Opcode opcode, std::span<const ValType> params, std::span<const ValType> results);
  void set_unreachable();
  void enter_top();

  bool mismatch(std::string_view expected, std::string_view found);
  bool fail(std::string message);

  const Module& module_;
  std::optional<uint32_t> data_count_;
  ByteReader& reader_;

  std::vector<Operand> operands_;  // [0, height_) is the stack; the rest is capacity
  uint32_t height_ = 0;
  std::vector<Frame> frames_;
  struct OpenLoop {
    uint32_t index;
    uint32_t frame;   // in frames_
    uint32_t lowest;  // frame that a branch in the loop went to
    uint32_t selects = 0;
  };
  std::vector<OpenLoop> open_loops_;
  std::unordered_set<ValType> singles_;  // what block types of the short form refer to, beyond the usual
  // Only of functions with locals that have no default value: which locals have a value here, and those that
  // got it in open blocks.
  std::vector<bool> local_has_value_;
  std::vector<uint32_t> set_locals_;
  uint32_t floor_ = 0;        // frames_.back().height
  bool unreachable_ = false;  // frames_.back().unreachable
  uint32_t at_ = 0;           // offset of the current instruction
  uint32_t max_stack_ = 0;
  uint32_t br_table_serial_ = 0;
  bool has_calls_ = false;
  bool has_memory_access_ = false;
  bool has_tail_calls_ = false;
  bool uses_v128_ = false;
  bool has_handlers_ = false;
  uint32_t branches_outside_loops_ = 0;
  uint32_t open_catches_ = 0;  // bodies of catch and catch_all around the current instruction
  uint32_t max_catches_ = 0;
  uint64_t steps_ = 0;  // but one for each instruction
  uint64_t instructions_ = 0;
};

// The later version of the language that an opcode byte belongs to, or null where it is in none.
const char* feature_of_opcode(uint8_t code);
// Decodes a value type. The types that it may refer to are those of module.canonical_types. Fails with the
// feature's name for types of later versions.
[[nodiscard]] bool read_value_type(ByteReader& reader, const Module& module, ValType& out);
// The same, for positions where only references may stand.
[[nodiscard]] bool read_reference_type(ByteReader& reader, const Module& module, ValType& out);
// The same for a heap type; `out` is the nullable reference to it.
[[nodiscard]] bool read_heap_type(ByteReader& reader, const Module& module, ValType& out);

}  // namespace hindsight::wasm
