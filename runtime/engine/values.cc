#include "runtime/engine/values.h"

#include <array>
#include <bit>

#include "jit/abi/vm_context.h"

namespace hindsight {

Value Value::i32(int32_t v) {
  return {ValueKind::kI32, static_cast<uint32_t>(v)};
}
Value Value::i64(int64_t v) {
  return {ValueKind::kI64, static_cast<uint64_t>(v)};
}
Value Value::f32(float v) {
  return {ValueKind::kF32, std::bit_cast<uint32_t>(v)};
}
Value Value::f64(double v) {
  return {ValueKind::kF64, std::bit_cast<uint64_t>(v)};
}
Value Value::v128(const V128& v) {
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(v.bytes);
  return {ValueKind::kV128, halves[0], halves[1]};
}
int32_t Value::as_i32() const {
  return static_cast<int32_t>(static_cast<uint32_t>(bits));
}
int64_t Value::as_i64() const {
  return static_cast<int64_t>(bits);
}
float Value::as_f32() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}
double Value::as_f64() const {
  return std::bit_cast<double>(bits);
}
V128 Value::as_v128() const {
  return {std::bit_cast<std::array<uint8_t, 16>>(std::array{bits, high})};
}

namespace rt {

ValueKind to_public(wasm::ValType type) {
  if (wasm::is_func_ref(type)) return ValueKind::kFuncRef;
  type = wasm::kind_of(type);
  switch (type) {
    case wasm::ValType::kI64:
      return ValueKind::kI64;
    case wasm::ValType::kF32:
      return ValueKind::kF32;
    case wasm::ValType::kF64:
      return ValueKind::kF64;
    case wasm::ValType::kExternRef:
      return ValueKind::kExternRef;
    case wasm::ValType::kV128:
      return ValueKind::kV128;
    case wasm::ValType::kExnRef:
      return ValueKind::kExnRef;
    default:
      break;
  }
  return ValueKind::kI32;
}

wasm::ValType from_public(ValueKind kind) {
  static constexpr wasm::ValType kTypes[] = {
      wasm::ValType::kI32,     wasm::ValType::kI64,       wasm::ValType::kF32,  wasm::ValType::kF64,
      wasm::ValType::kFuncRef, wasm::ValType::kExternRef, wasm::ValType::kV128, wasm::ValType::kExnRef};
  return kTypes[static_cast<size_t>(kind)];
}

FunctionType to_public(const wasm::FuncType& type) {
  FunctionType result;
  for (wasm::ValType t : type.params) result.params.push_back(to_public(t));
  for (wasm::ValType t : type.results) result.results.push_back(to_public(t));
  return result;
}

wasm::FuncType from_public(const FunctionType& type) {
  wasm::FuncType result;
  for (ValueKind k : type.params) result.params.push_back(from_public(k));
  for (ValueKind k : type.results) result.results.push_back(from_public(k));
  return result;
}

std::string to_string(ValueKind kind) {
  return wasm::to_string(from_public(kind));
}

std::string describe(const Value& value) {
  const bool null = wasm::is_reference(from_public(value.kind)) && value.bits == 0;
  const bool function = value.kind == ValueKind::kFuncRef && !null;
  return (null ? "null " : function ? "this " : "") + to_string(value.kind);
}

bool fits(const Value& value, wasm::ValType type, const Store& store) {
  if (value.kind != to_public(type)) return false;
  if (!wasm::is_reference(type)) return true;
  if (value.bits == 0) return !wasm::is_non_null(type);
  if (wasm::is_exn_ref(type)) return false;
  if (!wasm::is_func_ref(type)) return true;
  if (!store.is_function(reinterpret_cast<const void*>(value.bits))) return false;
  return !wasm::is_typed_ref(type) ||
         reinterpret_cast<const jit::FuncRef*>(value.bits)->type_id == wasm::type_index(type);
}

uint64_t slot_of(const Value& value) {
  const bool small = value.kind == ValueKind::kI32 || value.kind == ValueKind::kF32;
  return small ? static_cast<uint32_t>(value.bits) : value.bits;
}

void write_slots(const Value& value, uint64_t*& slots) {
  *slots++ = slot_of(value);
  if (value.kind == ValueKind::kV128) *slots++ = value.high;
}

Value read_slots(wasm::ValType type, const uint64_t*& slots) {
  Value value{to_public(type), *slots++};
  value.bits = slot_of(value);
  if (type == wasm::ValType::kV128) value.high = *slots++;
  return value;
}

}  // namespace rt
}  // namespace hindsight
