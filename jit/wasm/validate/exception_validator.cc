// The typing of exceptions: try_table with its clauses, throw and throw_ref. And the form that came before
// them (try, catch, catch_all, delegate, rethrow), which compilers still emit.
#include <fmt/format.h>

#include <algorithm>

#include "jit/wasm/limits.h"
#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

bool FunctionValidator::tag(std::span<const ValType>& params) {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.tags.size()) return fail(fmt::format("unknown tag {}", index));
  params = module_.type_of_tag(index).params;
  return true;
}

// The label is one outside of the try_table, whose frame does not exist yet.
bool FunctionValidator::catch_clause() {
  const uint32_t kind_at = reader_.offset();
  CatchClause clause;
  ++steps_;
  if (!reader_.u8(clause.kind)) return false;
  if (clause.kind >= CatchClause::kKinds)
    return reader_.fail(kind_at, fmt::format("malformed catch clause: kind 0x{:02x}", clause.kind));
  std::span<const ValType> values;
  if (!clause.catches_all() && !tag(values)) return false;
  const Frame* target = nullptr;
  if (!branch(target)) return false;
  std::span<const ValType> expected = target->label_types();
  steps_ += expected.size();
  if (clause.takes_reference()) {
    if (expected.empty() || !is_subtype(non_null(ValType::kExnRef), expected.back()))
      return fail("type mismatch: the label of a catch clause with a reference must take an exnref last");
    expected = expected.first(expected.size() - 1);
  }
  if (!std::ranges::equal(values, expected, is_subtype))
    return fail("type mismatch: the label of a catch clause takes other values than the tag has");
  return true;
}

bool FunctionValidator::catch_clauses(bool& any) {
  const uint32_t count_at = reader_.offset();
  uint32_t count = 0;
  if (!reader_.u32(count)) return false;
  if (count >= reader_.remaining())
    return reader_.fail(count_at, "unexpected end: the catch clauses do not fit into the function");
  if (count > kMaxCatchClauses)
    return reader_.too_many(count_at, count, "catch clauses of one try_table", kMaxCatchClauses);
  for (uint32_t i = 0; i < count; ++i)
    if (!catch_clause()) return false;
  any = count > 0;
  return true;
}

bool FunctionValidator::begin_catch(Opcode opcode) {
  const char* name = opcode == Opcode::kCatch ? "catch" : "catch_all";
  std::span<const ValType> values;
  if (opcode == Opcode::kCatch && !tag(values)) return false;
  Frame& frame = frames_.back();
  if (frame.opcode != Opcode::kTry && frame.opcode != Opcode::kCatch)
    return fail(fmt::format("unexpected {}: it does not belong to a try", name));
  if (!pop_all(frame.results)) return false;
  if (height_ != frame.height)
    return fail("type mismatch: values remain on the stack at the end of the block");
  forget_set_locals(frame);  // what the body set may not have been
  if (frame.opcode == Opcode::kTry) max_catches_ = std::max(max_catches_, ++open_catches_);
  frame.opcode = opcode;
  frame.unreachable = false;
  unreachable_ = false;
  return push_all(values);
}

// Ends the try like `end`, and hands its exceptions to the handler around the label.
bool FunctionValidator::delegate(FunctionBody& body) {
  uint32_t depth = 0;
  if (!reader_.u32(depth)) return false;
  if (frames_.back().opcode != Opcode::kTry) return fail("unexpected delegate: it does not belong to a try");
  // Labels are counted from outside of the try.
  if (depth >= frames_.size() - 1) return fail(fmt::format("unknown label {}", depth));
  return end(body);
}

bool FunctionValidator::rethrow() {
  const Frame* target = nullptr;
  if (!label(target)) return false;
  if (target->opcode != Opcode::kCatch && target->opcode != Opcode::kCatchAll)
    return fail("invalid rethrow label: it is not that of a catch");
  set_unreachable();
  return true;
}

bool FunctionValidator::throw_tag() {
  std::span<const ValType> values;
  if (!tag(values) || !pop_all(values)) return false;
  set_unreachable();
  return true;
}

bool FunctionValidator::exceptions(FunctionBody& body, Opcode opcode) {
  switch (opcode) {
    case Opcode::kTry:
    case Opcode::kTryTable:
      has_handlers_ = true;
      return block(body, opcode);
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      return begin_catch(opcode);
    case Opcode::kDelegate:
      return delegate(body);
    default:
      break;
  }
  has_calls_ = true;  // throwing is a call into the runtime
  if (opcode == Opcode::kThrow) return throw_tag();
  if (opcode == Opcode::kRethrow) return rethrow();
  if (!pop(ValType::kExnRef)) return false;  // throw_ref
  set_unreachable();
  return true;
}

}  // namespace hindsight::wasm
