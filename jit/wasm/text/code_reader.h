// Reads sequences of instructions, folded or not, and writes their code.
//
// Problem: expressions nest as deeply as a text likes, and an operator's code comes after that of operands that follow it in the text.
// Idea: a stack of what is open in place of recursion. An operator's code, immediates included, is made where it stands. It waits on a
// second stack of bytes (`waiting_`) until the parenthesis that closes its operands. Each byte is so copied once, and the stacks are never
// larger than the text.
// Invariant: waiting_ holds exactly the code of the open kOperator and kIfOperands frames, in their order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "jit/wasm/text/instructions.h"
#include "jit/wasm/text/module_parts.h"
#include "jit/wasm/text/type_reader.h"

namespace hindsight::wasm::text {

class CodeReader {
 public:
  explicit CodeReader(ModuleParts& parts) : parts_(parts), in_(parts.in), types_(parts) {}

  // All instructions up to a closing parenthesis, which is left, and the final `end`. `function`: the index of the function
  // whose body that is, for hints; none: a constant expression. Local names are those of `locals`.
  bool expression(const IndexSpace& locals, std::optional<uint32_t> function, Encoder& out);
  // One instruction in parentheses, and the final `end`.
  bool folded_expression(const IndexSpace& locals, Encoder& out);

 private:
  enum class FrameKind : uint8_t {
    kOperator,  // (op immediates ... : operands, until ')'
    kBlock,     // block, loop, try_table ... until `end`
    kIf,        // if ... until `else` or `end`
    kElse,
    kTry,  // try ... until `catch`, `catch_all`, `delegate` or `end`
    kCatch,
    kCatchAll,     // only `end` may follow
    kFoldedBlock,  // (block ... until ')'
    kIfOperands,   // (if type ... : operands, until `(then`
    kAfterThen,    // `(else` or ')'
    kBeforeDo,     // (try type : `(do`
    kAfterDo,      // `(catch`, `(catch_all`, `(delegate` or ')'
    kAfterCatch,
    kBeforeClose,  // only ')'
    kClause,       // (then, (else, (do, (catch ... until ')'
  };

  // What opened a block, and what an instruction in waiting will be written with.
  struct Frame {
    FrameKind kind = FrameKind::kOperator;
    std::string_view label{};  // of a block
    size_t waiting = 0;        // where its code begins in waiting_
    size_t text = 0;           // of its keyword
    bool ends_block = true;    // a ')' ends a block: false after `(delegate`
    std::optional<bool> hint{};
  };

  bool sequence(bool only_one);
  bool takes_instructions() const;
  bool takes_folded() const;
  bool open_parenthesis();
  bool close_parenthesis();
  bool open_clause(bool& was_clause);
  bool flat();
  bool flat_end(const Token& keyword, Opcode opcode);
  bool folded();
  bool start_block(const Instruction& instruction, Frame& frame);
  bool hint();
  bool check_hint(const Instruction& instruction);

  void push(Frame frame) { frames_.push_back(frame); }
  void push_label(std::string_view name);
  void pop_label();
  bool ending_label(std::string_view label);

  // The code of an instruction whose keyword was taken, into waiting_.
  bool encode(const Instruction& instruction, const Token& keyword);
  bool immediates(const Instruction& instruction, const Token& keyword);
  bool gc_immediates(const Instruction& instruction);
  bool label(uint32_t& out);
  bool put_label();
  bool put_index(Space space);
  bool put_optional_index(Space space);
  bool branch_table();
  bool indirect_call();
  bool memory_argument(Opcode opcode, bool with_lane);
  bool segment_and(Space segment, Space target);
  bool two_or_none(Space space);
  bool number(unsigned bits);
  bool float_number(unsigned bits);
  bool vector_constant();
  bool lane();
  bool shuffle();
  bool catch_clauses();
  bool branch_cast();
  bool memory_option(std::string_view prefix, uint64_t& out, bool& found);

  // Writes what waits from `waiting` on.
  void flush(size_t waiting, size_t text, std::optional<bool> hint);
  void put_opcode(Opcode opcode) { encode_opcode(static_cast<uint16_t>(opcode), *out_); }

  ModuleParts& parts_;
  Cursor& in_;
  TypeReader types_;
  Encoder* out_ = nullptr;
  const IndexSpace* locals_ = nullptr;
  std::optional<uint32_t> function_;
  Encoder waiting_;
  std::vector<Frame> frames_;
  std::vector<std::string_view> labels_;  // of the open blocks, the outermost first; empty where unnamed
  std::map<std::string_view, std::vector<uint32_t>>
      label_places_;  // in labels_, of each name the inner ones last
  std::optional<bool> pending_hint_;
  size_t hint_begin_ = 0;
};

}  // namespace hindsight::wasm::text
