// FunctionValidator for typed function references: their instructions, and which locals have a value where. A
// local whose type has no default value may be read only after code that has written it. That code is of the
// same block, or of one around it.
#include <fmt/format.h>

#include <algorithm>

#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

bool FunctionValidator::pop_reference(Operand& type) {
  if (!pop_any(type)) return false;
  if (type == kUnknown) type = kUnknownRef;
  return type == kUnknownRef || is_reference(static_cast<ValType>(type)) ||
         mismatch("a reference", name_of(type));
}

bool FunctionValidator::call_ref(bool tail) {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.types.size()) return fail(fmt::format("unknown type {}", index));
  if (!pop(typed_ref(module_.canonical_types[index]))) return false;
  const FuncType& callee = module_.types[index];
  return tail ? return_call(callee) : call(callee.params, callee.results);
}

bool FunctionValidator::ref_as_non_null() {
  Operand operand = 0;
  return pop_reference(operand) && push(operand | kNonNullBit);
}

bool FunctionValidator::br_on_null() {
  const Frame* target = nullptr;
  Operand operand = 0;
  if (!branch(target) || !pop_reference(operand)) return false;
  return pop_all(target->label_types()) && push_all(target->label_types()) && push(operand | kNonNullBit);
}

bool FunctionValidator::br_on_non_null() {
  const Frame* target = nullptr;
  Operand operand = 0;
  if (!branch(target)) return false;
  const std::span<const ValType> types = target->label_types();
  if (types.empty() || !is_reference(types.back()))
    return fail("type mismatch: br_on_non_null to a label that does not take a reference");
  if (!pop_reference(operand)) return false;
  if (!fits(operand | kNonNullBit, types.back())) return mismatch(to_string(types.back()), name_of(operand));
  const std::span<const ValType> others = types.first(types.size() - 1);
  return pop_all(others) && push_all(others);
}

void FunctionValidator::track_locals(const FunctionBody& body, size_t params) {
  local_has_value_.clear();
  set_locals_.clear();
  const auto first = body.locals.begin() + static_cast<ptrdiff_t>(params);
  if (std::find_if(first, body.locals.end(), is_non_null) == body.locals.end()) return;
  local_has_value_.resize(body.locals.size(), true);
  for (size_t i = params; i < body.locals.size(); ++i) local_has_value_[i] = !is_non_null(body.locals[i]);
}

void FunctionValidator::local_was_set(uint32_t index) {
  if (local_has_value_[index]) return;
  local_has_value_[index] = true;
  set_locals_.push_back(index);
}

// At the end of a block or of its first arm.
void FunctionValidator::forget_set_locals(const Frame& frame) {
  for (; set_locals_.size() > frame.set_locals; set_locals_.pop_back())
    local_has_value_[set_locals_.back()] = false;
}

}  // namespace hindsight::wasm
