#include "jit/wasm/validate/const_expr.h"

#include <fmt/format.h>

#include "jit/wasm/limits.h"
#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

namespace {

bool is_const(const ConstOp& op) {
  return op.opcode == Opcode::kI32Const || op.opcode == Opcode::kI64Const;
}

// The form for expressions of one instruction.
ConstExpr single(const ConstOp& op) {
  using Kind = ConstExpr::Kind;
  switch (op.opcode) {
    case Opcode::kI32Const:
      return {.kind = Kind::kI32, .bits = op.bits, .index = 0};
    case Opcode::kI64Const:
      return {.kind = Kind::kI64, .bits = op.bits, .index = 0};
    case Opcode::kF32Const:
      return {.kind = Kind::kF32, .bits = op.bits, .index = 0};
    case Opcode::kF64Const:
      return {.kind = Kind::kF64, .bits = op.bits, .index = 0};
    case Opcode::kGlobalGet:
      return {.kind = Kind::kGlobalGet, .bits = 0, .index = static_cast<uint32_t>(op.bits)};
    case Opcode::kV128Const:
      return {.kind = Kind::kV128, .bits = op.bits, .index = 0, .high = op.high};
    case Opcode::kRefFunc:
      return {.kind = Kind::kRefFunc, .bits = 0, .index = static_cast<uint32_t>(op.bits)};
    default:
      return {.kind = Kind::kRefNull, .bits = 0, .index = 0};
  }
}

}  // namespace

uint64_t const_arithmetic(Opcode opcode, uint64_t a, uint64_t b) {
  switch (opcode) {
    case Opcode::kI32Add:
      return static_cast<uint32_t>(a + b);
    case Opcode::kI32Sub:
      return static_cast<uint32_t>(a - b);
    case Opcode::kI32Mul:
      return static_cast<uint32_t>(a * b);
    case Opcode::kI64Add:
      return a + b;
    case Opcode::kI64Sub:
      return a - b;
    default:
      return a * b;
  }
}

bool ConstExprReader::push(ValType type, ConstOp op) {
  if (operands_.size() >= kMaxOperands)
    return reader_.too_many(reader_.offset(), operands_.size() + 1, "operands on the stack", kMaxOperands);
  operands_.push_back({type, ops_.size()});
  ops_.push_back(op);
  return true;
}

bool ConstExprReader::arithmetic(uint32_t at, Opcode opcode) {
  const ValType type = opcode == Opcode::kI32Add || opcode == Opcode::kI32Sub || opcode == Opcode::kI32Mul
                           ? ValType::kI32
                           : ValType::kI64;
  if (operands_.size() < 2)
    return reader_.fail(at, "type mismatch: the constant expression lacks an operand");
  const Operand b = operands_.back();
  operands_.pop_back();
  const Operand a = operands_.back();
  for (const Operand& operand : {a, b})
    if (operand.type != type)
      return reader_.fail(
          at, fmt::format("type mismatch: expected {}, found {}", to_string(type), to_string(operand.type)));
  const bool known = b.first_op == a.first_op + 1 && ops_.size() == b.first_op + 1 &&
                     is_const(ops_[a.first_op]) && is_const(ops_[b.first_op]);
  if (known) {
    ops_[a.first_op].bits = const_arithmetic(opcode, ops_[a.first_op].bits, ops_[b.first_op].bits);
    ops_.pop_back();
  } else {
    ops_.push_back({.opcode = opcode, .bits = 0});
  }
  return true;
}

// Any earlier global: the module holds those that were read so far and no others.
bool ConstExprReader::global_get(uint32_t at) {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.globals.size()) return reader_.fail(at, fmt::format("unknown global {}", index));
  const Global& global = module_.globals[index];
  if (global.type.mutable_)
    return reader_.fail(at, fmt::format("constant expression required: global {} is mutable", index));
  return push(global.type.type, {.opcode = Opcode::kGlobalGet, .bits = index});
}

// With the vector prefix: the only constant among the vector instructions.
bool ConstExprReader::vector(uint32_t at) {
  uint32_t sub = 0;
  ConstOp op{.opcode = Opcode::kV128Const};
  if (!reader_.u32(sub)) return false;
  if (sub >= 0x100 || (kFirstSimdCode | sub) != static_cast<uint32_t>(Opcode::kV128Const))
    return reader_.fail(at, fmt::format("constant expression required, found opcode 0xfd 0x{:02x}", sub));
  return reader_.f64(op.bits) && reader_.f64(op.high) && push(ValType::kV128, op);
}

bool ConstExprReader::step(bool& end) {
  const uint32_t at = reader_.offset();
  uint8_t code = 0;
  ++module_.decode_stats.steps;
  if (!reader_.u8(code)) return false;
  const auto opcode = static_cast<Opcode>(code);
  int32_t i32 = 0;
  int64_t i64 = 0;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  ValType type{};
  switch (opcode) {
    case Opcode::kI32Const:
      return reader_.s32(i32) && push(ValType::kI32, {.opcode = opcode, .bits = static_cast<uint32_t>(i32)});
    case Opcode::kI64Const:
      return reader_.s64(i64) && push(ValType::kI64, {.opcode = opcode, .bits = static_cast<uint64_t>(i64)});
    case Opcode::kF32Const:
      return reader_.f32(u32) && push(ValType::kF32, {.opcode = opcode, .bits = u32});
    case Opcode::kF64Const:
      return reader_.f64(u64) && push(ValType::kF64, {.opcode = opcode, .bits = u64});
    case Opcode::kRefNull:
      return read_heap_type(reader_, module_, type) && push(type, {.opcode = opcode, .bits = 0});
    case Opcode::kRefFunc: {
      const uint32_t index_at = reader_.offset();
      if (!reader_.u32(u32)) return false;
      if (u32 >= module_.functions.size())
        return reader_.fail(index_at, fmt::format("unknown function {}", u32));
      return push(non_null(typed_ref(module_.canonical_types[module_.functions[u32].value])),
                  {.opcode = opcode, .bits = u32});
    }
    case Opcode::kGlobalGet:
      return global_get(at);
    case Opcode::kI32Add:
    case Opcode::kI32Sub:
    case Opcode::kI32Mul:
    case Opcode::kI64Add:
    case Opcode::kI64Sub:
    case Opcode::kI64Mul:
      return arithmetic(at, opcode);
    case Opcode::kEnd:
      end = true;
      return true;
    default:
      break;
  }
  if (code == kSimdPrefix) return vector(at);
  if (const char* feature = feature_of_opcode(code)) return reader_.unsupported(at, feature);
  return reader_.fail(at, fmt::format("constant expression required, found opcode 0x{:02x}", code));
}

bool ConstExprReader::read(ValType expected, ConstExpr& out) {
  const uint32_t at = reader_.offset();
  operands_.clear();
  ops_.clear();
  for (bool end = false; !end;)
    if (!step(end)) return false;
  if (operands_.empty()) return reader_.fail(at, "type mismatch: the constant expression is empty");
  if (operands_.size() > 1)
    return reader_.fail(reader_.offset() - 1,
                        "type mismatch: the constant expression has more than one value");
  if (!is_subtype(operands_[0].type, expected))
    return reader_.fail(at, fmt::format("type mismatch: the constant expression has type {}, expected {}",
                                        to_string(operands_[0].type), to_string(expected)));
  if (ops_.size() == 1) {
    out = single(ops_[0]);
    return true;
  }
  // Invariant: at most one operation a byte, so that the index and the count fit.
  out = {.kind = ConstExpr::Kind::kCode,
         .bits = ops_.size(),
         .index = static_cast<uint32_t>(module_.const_ops.size())};
  module_.const_ops.insert(module_.const_ops.end(), ops_.begin(), ops_.end());
  return true;
}

}  // namespace hindsight::wasm
