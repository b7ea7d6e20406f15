#include "jit/wasm/text/code_reader.h"

#include <fmt/format.h>

#include <utility>

namespace hindsight::wasm::text {

bool CodeReader::expression(const IndexSpace& locals, std::optional<uint32_t> function, Encoder& out) {
  locals_ = &locals;
  function_ = function;
  out_ = &out;
  if (function) push_label({});  // a function is a block of its own
  if (!sequence(false)) return false;
  if (function) pop_label();
  put_opcode(Opcode::kEnd);
  return true;
}

bool CodeReader::folded_expression(const IndexSpace& locals, Encoder& out) {
  locals_ = &locals;
  function_.reset();
  out_ = &out;
  if (!in_.at(TokenKind::kOpen)) return in_.fail_expected("an instruction in parentheses");
  if (!sequence(true)) return false;
  put_opcode(Opcode::kEnd);
  return true;
}

void CodeReader::push_label(std::string_view name) {
  if (!name.empty()) label_places_[name].push_back(static_cast<uint32_t>(labels_.size()));
  labels_.push_back(name);
}

void CodeReader::pop_label() {
  const std::string_view name = labels_.back();
  labels_.pop_back();
  if (name.empty()) return;
  const auto found = label_places_.find(name);
  found->second.pop_back();
  if (found->second.empty()) label_places_.erase(found);
}

void CodeReader::flush(size_t waiting, size_t text, std::optional<bool> hint) {
  if (function_) {
    parts_.mark(Section::kCode, out_->size(), text);
    if (hint)
      parts_.hints.push_back(
          {.function = *function_, .offset = static_cast<uint32_t>(out_->size()), .likely = *hint});
  }
  out_->raw(waiting_.bytes().subspan(waiting));
  waiting_.cut(waiting);
}

bool CodeReader::takes_instructions() const {
  if (frames_.empty()) return true;
  switch (frames_.back().kind) {
    case FrameKind::kBlock:
    case FrameKind::kIf:
    case FrameKind::kElse:
    case FrameKind::kTry:
    case FrameKind::kCatch:
    case FrameKind::kCatchAll:
    case FrameKind::kFoldedBlock:
    case FrameKind::kClause:
      return true;
    default:
      return false;
  }
}

bool CodeReader::takes_folded() const {
  return takes_instructions() || frames_.back().kind == FrameKind::kOperator ||
         frames_.back().kind == FrameKind::kIfOperands;
}

bool CodeReader::sequence(bool only_one) {
  do {
    switch (in_.peek().kind) {
      case TokenKind::kOpen:
        if (!open_parenthesis()) return false;
        break;
      case TokenKind::kClose:
        if (frames_.empty()) {
          if (!pending_hint_) return true;
          return in_.fail(hint_begin_, "misplaced annotation: no instruction follows the branch hint");
        }
        if (!close_parenthesis()) return false;
        break;
      case TokenKind::kAnnotation:
        if (!hint()) return false;
        break;
      case TokenKind::kWord:
        if (!takes_instructions())
          return in_.fail_expected(frames_.back().kind == FrameKind::kOperator ||
                                           frames_.back().kind == FrameKind::kIfOperands
                                       ? "an operand in parentheses or ')'"
                                       : "a clause of the instruction or ')'");
        if (!flat()) return false;
        break;
      default:
        return in_.fail_expected("an instruction");
    }
  } while (!only_one || !frames_.empty());
  return true;
}

// --- folded instructions

// At a '(': an operand, an instruction, or a clause of the instruction that is open.
bool CodeReader::open_parenthesis() {
  if (!frames_.empty()) {
    bool was_clause = false;
    if (!open_clause(was_clause)) return false;
    if (was_clause && !pending_hint_) return true;
    if (was_clause)
      return in_.fail(hint_begin_, "misplaced annotation: no instruction follows the branch hint");
    if (!takes_folded()) return in_.fail_expected("a clause of the instruction or ')'");
  }
  in_.take();
  return folded();
}

bool CodeReader::open_clause(bool& was_clause) {
  Frame& frame = frames_.back();
  const auto clause = [&](FrameKind next) {
    frame.kind = next;
    was_clause = true;
    push({.kind = FrameKind::kClause});
    return true;
  };
  switch (frame.kind) {
    case FrameKind::kIfOperands:
      if (!in_.accept_open("then")) return true;
      flush(frame.waiting, frame.text, frame.hint);
      push_label(frame.label);
      return clause(FrameKind::kAfterThen);
    case FrameKind::kAfterThen:
      if (!in_.accept_open("else")) return true;
      put_opcode(Opcode::kElse);
      return clause(FrameKind::kBeforeClose);
    case FrameKind::kBeforeDo:
      if (!in_.open("do")) return false;
      flush(frame.waiting, frame.text, frame.hint);
      push_label(frame.label);
      return clause(FrameKind::kAfterDo);
    case FrameKind::kAfterDo:
      if (in_.accept_open("delegate")) {
        pop_label();  // the label that it names is one around the whole block
        uint32_t depth = 0;
        if (!label(depth) || !in_.close()) return false;
        put_opcode(Opcode::kDelegate);
        out_->unsigned_leb(depth);
        frame.kind = FrameKind::kBeforeClose;
        frame.ends_block = false;
        was_clause = true;
        return true;
      }
      [[fallthrough]];
    case FrameKind::kAfterCatch:
      if (in_.accept_open("catch")) {
        uint32_t tag = 0;
        if (!parts_.index(Space::kTag, tag)) return false;
        put_opcode(Opcode::kCatch);
        out_->unsigned_leb(tag);
        return clause(FrameKind::kAfterCatch);
      }
      if (in_.accept_open("catch_all")) {
        put_opcode(Opcode::kCatchAll);
        return clause(FrameKind::kBeforeClose);
      }
      return true;
    default:
      return true;
  }
}

bool CodeReader::close_parenthesis() {
  const Frame frame = frames_.back();
  if (pending_hint_)
    return in_.fail(hint_begin_, "misplaced annotation: no instruction follows the branch hint");
  switch (frame.kind) {
    case FrameKind::kOperator:
      flush(frame.waiting, frame.text, frame.hint);
      break;
    case FrameKind::kFoldedBlock:
    case FrameKind::kAfterThen:
    case FrameKind::kAfterDo:
    case FrameKind::kAfterCatch:
    case FrameKind::kBeforeClose:
      if (!frame.ends_block) break;
      put_opcode(Opcode::kEnd);
      pop_label();
      break;
    case FrameKind::kClause:
      break;
    case FrameKind::kIfOperands:
      return in_.fail_expected("'(then'");
    case FrameKind::kBeforeDo:
      return in_.fail_expected("'(do'");
    default:
      return in_.fail_expected("an instruction or 'end'");
  }
  in_.take();
  frames_.pop_back();
  return true;
}

// After the '('.
bool CodeReader::folded() {
  const Instruction* instruction = in_.at(TokenKind::kWord) ? find_instruction(in_.peek().text) : nullptr;
  if (instruction == nullptr) return in_.fail_expected("an instruction");
  const Token keyword = in_.peek();
  Frame frame{.waiting = waiting_.size(), .text = keyword.begin};
  switch (static_cast<Opcode>(instruction->code)) {
    case Opcode::kElse:
    case Opcode::kEnd:
    case Opcode::kCatch:
    case Opcode::kCatchAll:
    case Opcode::kDelegate:
      return in_.fail_expected("an instruction that can stand in parentheses");
    case Opcode::kBlock:
    case Opcode::kLoop:
    case Opcode::kTryTable:
      frame.kind = FrameKind::kFoldedBlock;
      break;
    case Opcode::kIf:
      frame.kind = FrameKind::kIfOperands;
      break;
    case Opcode::kTry:
      frame.kind = FrameKind::kBeforeDo;
      break;
    default:
      break;
  }
  in_.take();
  if (!check_hint(*instruction)) return false;
  frame.hint = std::exchange(pending_hint_, std::nullopt);
  if (frame.kind == FrameKind::kOperator) {
    if (!encode(*instruction, keyword)) return false;
  } else {
    if (!start_block(*instruction, frame)) return false;
    if (frame.kind == FrameKind::kFoldedBlock) {
      flush(frame.waiting, frame.text, frame.hint);
      push_label(frame.label);
    }
  }
  push(frame);
  return true;
}

// --- instructions without parentheses

bool CodeReader::start_block(const Instruction& instruction, Frame& frame) {
  frame.label = in_.optional_id();
  encode_opcode(instruction.code, waiting_);
  if (!types_.block_type(waiting_)) return false;
  // Clauses name labels around the block, so that they come before its own.
  return !instruction.is(Opcode::kTryTable) || catch_clauses();
}

// An `end`, `else` or the like may repeat the label.
bool CodeReader::ending_label(std::string_view label) {
  if (!in_.at(TokenKind::kId)) return true;
  const Token id = in_.take();
  return in_.id_name(id) == label ||
         in_.fail(id.begin,
                  fmt::format("mismatching label: {} is not the label of the block that is open", id.text));
}

bool CodeReader::flat_end(const Token& keyword, Opcode opcode) {
  const auto misplaced = [&] {
    return in_.fail(
        keyword.begin,
        fmt::format("expected an instruction or ')', found '{}' that belongs to no block", keyword.text));
  };
  if (pending_hint_)
    return in_.fail(hint_begin_, "misplaced annotation: no instruction follows the branch hint");
  if (frames_.empty()) return misplaced();
  Frame& frame = frames_.back();
  const bool in_try = frame.kind == FrameKind::kTry || frame.kind == FrameKind::kCatch;
  switch (opcode) {
    case Opcode::kElse:
      if (frame.kind != FrameKind::kIf) return misplaced();
      frame.kind = FrameKind::kElse;
      put_opcode(opcode);
      return ending_label(frame.label);
    case Opcode::kCatch: {
      if (!in_try) return misplaced();
      frame.kind = FrameKind::kCatch;
      uint32_t tag = 0;
      if (!parts_.index(Space::kTag, tag)) return false;
      put_opcode(opcode);
      out_->unsigned_leb(tag);
      return true;
    }
    case Opcode::kCatchAll:
      if (!in_try) return misplaced();
      frame.kind = FrameKind::kCatchAll;
      put_opcode(opcode);
      return true;
    case Opcode::kDelegate: {
      if (frame.kind != FrameKind::kTry) return misplaced();
      pop_label();
      frames_.pop_back();
      uint32_t depth = 0;
      if (!label(depth)) return false;
      put_opcode(opcode);
      out_->unsigned_leb(depth);
      return true;
    }
    default:
      break;
  }
  if (frame.kind == FrameKind::kFoldedBlock || frame.kind == FrameKind::kClause) return misplaced();
  const std::string_view label = frame.label;
  frames_.pop_back();
  pop_label();
  put_opcode(Opcode::kEnd);
  return ending_label(label);
}

bool CodeReader::flat() {
  const Token keyword = in_.peek();
  const Instruction* instruction = find_instruction(keyword.text);
  if (instruction == nullptr) return in_.fail_expected("an instruction");
  in_.take();
  Frame frame{.kind = FrameKind::kBlock, .waiting = waiting_.size(), .text = keyword.begin};
  const auto opcode = static_cast<Opcode>(instruction->code);
  switch (opcode) {
    case Opcode::kElse:
    case Opcode::kEnd:
    case Opcode::kCatch:
    case Opcode::kCatchAll:
    case Opcode::kDelegate:
      if (function_) parts_.mark(Section::kCode, out_->size(), keyword.begin);
      return flat_end(keyword, opcode);
    case Opcode::kIf:
      frame.kind = FrameKind::kIf;
      break;
    case Opcode::kTry:
      frame.kind = FrameKind::kTry;
      break;
    case Opcode::kBlock:
    case Opcode::kLoop:
    case Opcode::kTryTable:
      break;
    default:
      frame.kind = FrameKind::kOperator;
      break;
  }
  if (!check_hint(*instruction)) return false;
  const std::optional<bool> hint = std::exchange(pending_hint_, std::nullopt);
  if (frame.kind == FrameKind::kOperator) {
    if (!encode(*instruction, keyword)) return false;
    flush(frame.waiting, keyword.begin, hint);
    return true;
  }
  if (!start_block(*instruction, frame)) return false;
  flush(frame.waiting, keyword.begin, hint);
  push_label(frame.label);
  push(frame);
  return true;
}

// --- branch hints

// (@metadata.code.branch_hint "\00") or "\01", in front of an instruction.
bool CodeReader::hint() {
  const size_t begin = in_.peek().begin;
  if (!in_.at_annotation(kBranchHintAnnotation) || !function_)
    return in_.fail(begin, fmt::format("misplaced annotation (@{}", in_.peek().text));
  in_.take();
  std::string value;
  while (in_.at(TokenKind::kString)) {
    std::string part;
    if (!in_.string(part)) return false;
    value += part;
  }
  if (!in_.close()) return false;
  if (value.size() != 1 || static_cast<unsigned char>(value[0]) > 1)
    return in_.fail(begin, "a branch hint is a string of one byte, \"\\00\" or \"\\01\"");
  if (pending_hint_)
    return in_.fail(begin, "a second branch hint (duplicate annotation) for one instruction");
  pending_hint_ = value[0] == 1;
  hint_begin_ = begin;
  return true;
}

bool CodeReader::check_hint(const Instruction& instruction) {
  if (!pending_hint_ || instruction.is(Opcode::kIf) || instruction.is(Opcode::kBrIf)) return true;
  return in_.fail(hint_begin_,
                  fmt::format("a branch hint in front of {}: it belongs to if and br_if (invalid target)",
                              instruction.name));
}

}  // namespace hindsight::wasm::text
