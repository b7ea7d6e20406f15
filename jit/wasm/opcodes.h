// The opcode table: every instruction of the supported language, defined once (name, immediates, signature,
// and, for memory instructions, access size). The validator and both tiers are generated from or check
// against it.
//
// HINDSIGHT_WASM_OPCODES(V): V(Enumerator, code, "text name", ImmKind, "signature")
//   code: one byte, or prefix << 8 | sub-opcode (relaxed vector operators: 0xff00).
//   signature: parameter letters ':' result letters with i=i32 I=i64 f=f32 F=f64 v=v128, e.g. "ii:i"; "*"
//   where typing is special.
#pragma once

#include <cstdint>

#include "jit/wasm/atomic_opcodes.h"
#include "jit/wasm/simd_opcodes.h"

namespace hindsight::wasm {

enum class ImmKind : uint8_t {
  kNone,
  kBlock,        // block type
  kLabel,        // u32 depth
  kBrTable,      // vector of labels + default
  kFunc,         // u32
  kIndirect,     // type index, table index
  kType,         // type index
  kSelectTypes,  // vector of value types
  kLocal,        // u32
  kGlobal,       // u32
  kTable,        // u32
  kMemArg,       // align (log2), with kMemArgHasMemory set a memory, offset
  kMemory,       // memory index
  kI32,
  kI64,
  kF32,
  kF64,
  kRefType,     // heap/reference type
  kMemoryInit,  // data index, memory index
  kData,        // data index
  kMemoryCopy,  // two memory indices
  kTableInit,   // element index, table index
  kElem,        // element index
  kTableCopy,   // destination table, source table
  kFence,       // a zero byte
  kV128,        // 16 bytes
  kShuffle,     // 16 lane numbers below 32
  kLane,        // lane number
  kMemArgLane,  // align (log2), offset, lane number
  kTag,         // u32
  kTryTable,    // block type, vector of catch clauses
};

// clang-format off
#define HINDSIGHT_WASM_OPCODES(V) \
  V(Unreachable, 0x00, "unreachable", kNone, "*") \
  V(Nop, 0x01, "nop", kNone, ":") \
  V(Block, 0x02, "block", kBlock, "*") \
  V(Loop, 0x03, "loop", kBlock, "*") \
  V(If, 0x04, "if", kBlock, "*") \
  V(Else, 0x05, "else", kNone, "*") \
  V(Try, 0x06, "try", kBlock, "*") \
  V(Catch, 0x07, "catch", kTag, "*") \
  V(Throw, 0x08, "throw", kTag, "*") \
  V(Rethrow, 0x09, "rethrow", kLabel, "*") \
  V(ThrowRef, 0x0a, "throw_ref", kNone, "*") \
  V(End, 0x0b, "end", kNone, "*") \
  V(Br, 0x0c, "br", kLabel, "*") \
  V(BrIf, 0x0d, "br_if", kLabel, "*") \
  V(BrTable, 0x0e, "br_table", kBrTable, "*") \
  V(Return, 0x0f, "return", kNone, "*") \
  V(Call, 0x10, "call", kFunc, "*") \
  V(CallIndirect, 0x11, "call_indirect", kIndirect, "*") \
  V(ReturnCall, 0x12, "return_call", kFunc, "*") \
  V(ReturnCallIndirect, 0x13, "return_call_indirect", kIndirect, "*") \
  V(CallRef, 0x14, "call_ref", kType, "*") \
  V(ReturnCallRef, 0x15, "return_call_ref", kType, "*") \
  V(Delegate, 0x18, "delegate", kLabel, "*") \
  V(CatchAll, 0x19, "catch_all", kNone, "*") \
  V(Drop, 0x1a, "drop", kNone, "*") \
  V(Select, 0x1b, "select", kNone, "*") \
  V(SelectT, 0x1c, "select", kSelectTypes, "*") \
  V(TryTable, 0x1f, "try_table", kTryTable, "*") \
  V(LocalGet, 0x20, "local.get", kLocal, "*") \
  V(LocalSet, 0x21, "local.set", kLocal, "*") \
  V(LocalTee, 0x22, "local.tee", kLocal, "*") \
  V(GlobalGet, 0x23, "global.get", kGlobal, "*") \
  V(GlobalSet, 0x24, "global.set", kGlobal, "*") \
  V(TableGet, 0x25, "table.get", kTable, "*") \
  V(TableSet, 0x26, "table.set", kTable, "*") \
  V(I32Load, 0x28, "i32.load", kMemArg, "i:i") \
  V(I64Load, 0x29, "i64.load", kMemArg, "i:I") \
  V(F32Load, 0x2a, "f32.load", kMemArg, "i:f") \
  V(F64Load, 0x2b, "f64.load", kMemArg, "i:F") \
  V(I32Load8S, 0x2c, "i32.load8_s", kMemArg, "i:i") \
  V(I32Load8U, 0x2d, "i32.load8_u", kMemArg, "i:i") \
  V(I32Load16S, 0x2e, "i32.load16_s", kMemArg, "i:i") \
  V(I32Load16U, 0x2f, "i32.load16_u", kMemArg, "i:i") \
  V(I64Load8S, 0x30, "i64.load8_s", kMemArg, "i:I") \
  V(I64Load8U, 0x31, "i64.load8_u", kMemArg, "i:I") \
  V(I64Load16S, 0x32, "i64.load16_s", kMemArg, "i:I") \
  V(I64Load16U, 0x33, "i64.load16_u", kMemArg, "i:I") \
  V(I64Load32S, 0x34, "i64.load32_s", kMemArg, "i:I") \
  V(I64Load32U, 0x35, "i64.load32_u", kMemArg, "i:I") \
  V(I32Store, 0x36, "i32.store", kMemArg, "ii:") \
  V(I64Store, 0x37, "i64.store", kMemArg, "iI:") \
  V(F32Store, 0x38, "f32.store", kMemArg, "if:") \
  V(F64Store, 0x39, "f64.store", kMemArg, "iF:") \
  V(I32Store8, 0x3a, "i32.store8", kMemArg, "ii:") \
  V(I32Store16, 0x3b, "i32.store16", kMemArg, "ii:") \
  V(I64Store8, 0x3c, "i64.store8", kMemArg, "iI:") \
  V(I64Store16, 0x3d, "i64.store16", kMemArg, "iI:") \
  V(I64Store32, 0x3e, "i64.store32", kMemArg, "iI:") \
  V(MemorySize, 0x3f, "memory.size", kMemory, ":i") \
  V(MemoryGrow, 0x40, "memory.grow", kMemory, "i:i") \
  V(I32Const, 0x41, "i32.const", kI32, ":i") \
  V(I64Const, 0x42, "i64.const", kI64, ":I") \
  V(F32Const, 0x43, "f32.const", kF32, ":f") \
  V(F64Const, 0x44, "f64.const", kF64, ":F") \
  V(I32Eqz, 0x45, "i32.eqz", kNone, "i:i") \
  V(I32Eq, 0x46, "i32.eq", kNone, "ii:i") \
  V(I32Ne, 0x47, "i32.ne", kNone, "ii:i") \
  V(I32LtS, 0x48, "i32.lt_s", kNone, "ii:i") \
  V(I32LtU, 0x49, "i32.lt_u", kNone, "ii:i") \
  V(I32GtS, 0x4a, "i32.gt_s", kNone, "ii:i") \
  V(I32GtU, 0x4b, "i32.gt_u", kNone, "ii:i") \
  V(I32LeS, 0x4c, "i32.le_s", kNone, "ii:i") \
  V(I32LeU, 0x4d, "i32.le_u", kNone, "ii:i") \
  V(I32GeS, 0x4e, "i32.ge_s", kNone, "ii:i") \
  V(I32GeU, 0x4f, "i32.ge_u", kNone, "ii:i") \
  V(I64Eqz, 0x50, "i64.eqz", kNone, "I:i") \
  V(I64Eq, 0x51, "i64.eq", kNone, "II:i") \
  V(I64Ne, 0x52, "i64.ne", kNone, "II:i") \
  V(I64LtS, 0x53, "i64.lt_s", kNone, "II:i") \
  V(I64LtU, 0x54, "i64.lt_u", kNone, "II:i") \
  V(I64GtS, 0x55, "i64.gt_s", kNone, "II:i") \
  V(I64GtU, 0x56, "i64.gt_u", kNone, "II:i") \
  V(I64LeS, 0x57, "i64.le_s", kNone, "II:i") \
  V(I64LeU, 0x58, "i64.le_u", kNone, "II:i") \
  V(I64GeS, 0x59, "i64.ge_s", kNone, "II:i") \
  V(I64GeU, 0x5a, "i64.ge_u", kNone, "II:i") \
  V(F32Eq, 0x5b, "f32.eq", kNone, "ff:i") \
  V(F32Ne, 0x5c, "f32.ne", kNone, "ff:i") \
  V(F32Lt, 0x5d, "f32.lt", kNone, "ff:i") \
  V(F32Gt, 0x5e, "f32.gt", kNone, "ff:i") \
  V(F32Le, 0x5f, "f32.le", kNone, "ff:i") \
  V(F32Ge, 0x60, "f32.ge", kNone, "ff:i") \
  V(F64Eq, 0x61, "f64.eq", kNone, "FF:i") \
  V(F64Ne, 0x62, "f64.ne", kNone, "FF:i") \
  V(F64Lt, 0x63, "f64.lt", kNone, "FF:i") \
  V(F64Gt, 0x64, "f64.gt", kNone, "FF:i") \
  V(F64Le, 0x65, "f64.le", kNone, "FF:i") \
  V(F64Ge, 0x66, "f64.ge", kNone, "FF:i") \
  V(I32Clz, 0x67, "i32.clz", kNone, "i:i") \
  V(I32Ctz, 0x68, "i32.ctz", kNone, "i:i") \
  V(I32Popcnt, 0x69, "i32.popcnt", kNone, "i:i") \
  V(I32Add, 0x6a, "i32.add", kNone, "ii:i") \
  V(I32Sub, 0x6b, "i32.sub", kNone, "ii:i") \
  V(I32Mul, 0x6c, "i32.mul", kNone, "ii:i") \
  V(I32DivS, 0x6d, "i32.div_s", kNone, "ii:i") \
  V(I32DivU, 0x6e, "i32.div_u", kNone, "ii:i") \
  V(I32RemS, 0x6f, "i32.rem_s", kNone, "ii:i") \
  V(I32RemU, 0x70, "i32.rem_u", kNone, "ii:i") \
  V(I32And, 0x71, "i32.and", kNone, "ii:i") \
  V(I32Or, 0x72, "i32.or", kNone, "ii:i") \
  V(I32Xor, 0x73, "i32.xor", kNone, "ii:i") \
  V(I32Shl, 0x74, "i32.shl", kNone, "ii:i") \
  V(I32ShrS, 0x75, "i32.shr_s", kNone, "ii:i") \
  V(I32ShrU, 0x76, "i32.shr_u", kNone, "ii:i") \
  V(I32Rotl, 0x77, "i32.rotl", kNone, "ii:i") \
  V(I32Rotr, 0x78, "i32.rotr", kNone, "ii:i") \
  V(I64Clz, 0x79, "i64.clz", kNone, "I:I") \
  V(I64Ctz, 0x7a, "i64.ctz", kNone, "I:I") \
  V(I64Popcnt, 0x7b, "i64.popcnt", kNone, "I:I") \
  V(I64Add, 0x7c, "i64.add", kNone, "II:I") \
  V(I64Sub, 0x7d, "i64.sub", kNone, "II:I") \
  V(I64Mul, 0x7e, "i64.mul", kNone, "II:I") \
  V(I64DivS, 0x7f, "i64.div_s", kNone, "II:I") \
  V(I64DivU, 0x80, "i64.div_u", kNone, "II:I") \
  V(I64RemS, 0x81, "i64.rem_s", kNone, "II:I") \
  V(I64RemU, 0x82, "i64.rem_u", kNone, "II:I") \
  V(I64And, 0x83, "i64.and", kNone, "II:I") \
  V(I64Or, 0x84, "i64.or", kNone, "II:I") \
  V(I64Xor, 0x85, "i64.xor", kNone, "II:I") \
  V(I64Shl, 0x86, "i64.shl", kNone, "II:I") \
  V(I64ShrS, 0x87, "i64.shr_s", kNone, "II:I") \
  V(I64ShrU, 0x88, "i64.shr_u", kNone, "II:I") \
  V(I64Rotl, 0x89, "i64.rotl", kNone, "II:I") \
  V(I64Rotr, 0x8a, "i64.rotr", kNone, "II:I") \
  V(F32Abs, 0x8b, "f32.abs", kNone, "f:f") \
  V(F32Neg, 0x8c, "f32.neg", kNone, "f:f") \
  V(F32Ceil, 0x8d, "f32.ceil", kNone, "f:f") \
  V(F32Floor, 0x8e, "f32.floor", kNone, "f:f") \
  V(F32Trunc, 0x8f, "f32.trunc", kNone, "f:f") \
  V(F32Nearest, 0x90, "f32.nearest", kNone, "f:f") \
  V(F32Sqrt, 0x91, "f32.sqrt", kNone, "f:f") \
  V(F32Add, 0x92, "f32.add", kNone, "ff:f") \
  V(F32Sub, 0x93, "f32.sub", kNone, "ff:f") \
  V(F32Mul, 0x94, "f32.mul", kNone, "ff:f") \
  V(F32Div, 0x95, "f32.div", kNone, "ff:f") \
  V(F32Min, 0x96, "f32.min", kNone, "ff:f") \
  V(F32Max, 0x97, "f32.max", kNone, "ff:f") \
  V(F32Copysign, 0x98, "f32.copysign", kNone, "ff:f") \
  V(F64Abs, 0x99, "f64.abs", kNone, "F:F") \
  V(F64Neg, 0x9a, "f64.neg", kNone, "F:F") \
  V(F64Ceil, 0x9b, "f64.ceil", kNone, "F:F") \
  V(F64Floor, 0x9c, "f64.floor", kNone, "F:F") \
  V(F64Trunc, 0x9d, "f64.trunc", kNone, "F:F") \
  V(F64Nearest, 0x9e, "f64.nearest", kNone, "F:F") \
  V(F64Sqrt, 0x9f, "f64.sqrt", kNone, "F:F") \
  V(F64Add, 0xa0, "f64.add", kNone, "FF:F") \
  V(F64Sub, 0xa1, "f64.sub", kNone, "FF:F") \
  V(F64Mul, 0xa2, "f64.mul", kNone, "FF:F") \
  V(F64Div, 0xa3, "f64.div", kNone, "FF:F") \
  V(F64Min, 0xa4, "f64.min", kNone, "FF:F") \
  V(F64Max, 0xa5, "f64.max", kNone, "FF:F") \
  V(F64Copysign, 0xa6, "f64.copysign", kNone, "FF:F") \
  V(I32WrapI64, 0xa7, "i32.wrap_i64", kNone, "I:i") \
  V(I32TruncF32S, 0xa8, "i32.trunc_f32_s", kNone, "f:i") \
  V(I32TruncF32U, 0xa9, "i32.trunc_f32_u", kNone, "f:i") \
  V(I32TruncF64S, 0xaa, "i32.trunc_f64_s", kNone, "F:i") \
  V(I32TruncF64U, 0xab, "i32.trunc_f64_u", kNone, "F:i") \
  V(I64ExtendI32S, 0xac, "i64.extend_i32_s", kNone, "i:I") \
  V(I64ExtendI32U, 0xad, "i64.extend_i32_u", kNone, "i:I") \
  V(I64TruncF32S, 0xae, "i64.trunc_f32_s", kNone, "f:I") \
  V(I64TruncF32U, 0xaf, "i64.trunc_f32_u", kNone, "f:I") \
  V(I64TruncF64S, 0xb0, "i64.trunc_f64_s", kNone, "F:I") \
  V(I64TruncF64U, 0xb1, "i64.trunc_f64_u", kNone, "F:I") \
  V(F32ConvertI32S, 0xb2, "f32.convert_i32_s", kNone, "i:f") \
  V(F32ConvertI32U, 0xb3, "f32.convert_i32_u", kNone, "i:f") \
  V(F32ConvertI64S, 0xb4, "f32.convert_i64_s", kNone, "I:f") \
  V(F32ConvertI64U, 0xb5, "f32.convert_i64_u", kNone, "I:f") \
  V(F32DemoteF64, 0xb6, "f32.demote_f64", kNone, "F:f") \
  V(F64ConvertI32S, 0xb7, "f64.convert_i32_s", kNone, "i:F") \
  V(F64ConvertI32U, 0xb8, "f64.convert_i32_u", kNone, "i:F") \
  V(F64ConvertI64S, 0xb9, "f64.convert_i64_s", kNone, "I:F") \
  V(F64ConvertI64U, 0xba, "f64.convert_i64_u", kNone, "I:F") \
  V(F64PromoteF32, 0xbb, "f64.promote_f32", kNone, "f:F") \
  V(I32ReinterpretF32, 0xbc, "i32.reinterpret_f32", kNone, "f:i") \
  V(I64ReinterpretF64, 0xbd, "i64.reinterpret_f64", kNone, "F:I") \
  V(F32ReinterpretI32, 0xbe, "f32.reinterpret_i32", kNone, "i:f") \
  V(F64ReinterpretI64, 0xbf, "f64.reinterpret_i64", kNone, "I:F") \
  V(I32Extend8S, 0xc0, "i32.extend8_s", kNone, "i:i") \
  V(I32Extend16S, 0xc1, "i32.extend16_s", kNone, "i:i") \
  V(I64Extend8S, 0xc2, "i64.extend8_s", kNone, "I:I") \
  V(I64Extend16S, 0xc3, "i64.extend16_s", kNone, "I:I") \
  V(I64Extend32S, 0xc4, "i64.extend32_s", kNone, "I:I") \
  V(RefNull, 0xd0, "ref.null", kRefType, "*") \
  V(RefIsNull, 0xd1, "ref.is_null", kNone, "*") \
  V(RefFunc, 0xd2, "ref.func", kFunc, "*") \
  V(RefAsNonNull, 0xd4, "ref.as_non_null", kNone, "*") \
  V(BrOnNull, 0xd5, "br_on_null", kLabel, "*") \
  V(BrOnNonNull, 0xd6, "br_on_non_null", kLabel, "*") \
  V(I32TruncSatF32S, 0xfc00, "i32.trunc_sat_f32_s", kNone, "f:i") \
  V(I32TruncSatF32U, 0xfc01, "i32.trunc_sat_f32_u", kNone, "f:i") \
  V(I32TruncSatF64S, 0xfc02, "i32.trunc_sat_f64_s", kNone, "F:i") \
  V(I32TruncSatF64U, 0xfc03, "i32.trunc_sat_f64_u", kNone, "F:i") \
  V(I64TruncSatF32S, 0xfc04, "i64.trunc_sat_f32_s", kNone, "f:I") \
  V(I64TruncSatF32U, 0xfc05, "i64.trunc_sat_f32_u", kNone, "f:I") \
  V(I64TruncSatF64S, 0xfc06, "i64.trunc_sat_f64_s", kNone, "F:I") \
  V(I64TruncSatF64U, 0xfc07, "i64.trunc_sat_f64_u", kNone, "F:I") \
  V(MemoryInit, 0xfc08, "memory.init", kMemoryInit, "iii:") \
  V(DataDrop, 0xfc09, "data.drop", kData, ":") \
  V(MemoryCopy, 0xfc0a, "memory.copy", kMemoryCopy, "iii:") \
  V(MemoryFill, 0xfc0b, "memory.fill", kMemory, "iii:") \
  V(TableInit, 0xfc0c, "table.init", kTableInit, "iii:") \
  V(ElemDrop, 0xfc0d, "elem.drop", kElem, ":") \
  V(TableCopy, 0xfc0e, "table.copy", kTableCopy, "iii:") \
  V(TableGrow, 0xfc0f, "table.grow", kTable, "*") \
  V(TableSize, 0xfc10, "table.size", kTable, "*") \
  V(TableFill, 0xfc11, "table.fill", kTable, "*") \
  HINDSIGHT_WASM_ATOMIC_OPCODES(V)
// clang-format on

enum class Opcode : uint16_t {
#define HINDSIGHT_ENUMERATOR(name, code, text, imm, signature) k##name = code,
  HINDSIGHT_WASM_OPCODES(HINDSIGHT_ENUMERATOR) HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_ENUMERATOR)
#undef HINDSIGHT_ENUMERATOR
};

struct OpcodeInfo {
  const char* name;
  ImmKind imm;
  const char* signature;
};
// Null for an opcode that is not in the table. O(1).
const OpcodeInfo* find_opcode(uint16_t code);

// In the alignment of a kMemArg: the index of a memory follows. Without it the memory is 0.
inline constexpr uint32_t kMemArgHasMemory = 0x40;

// One-byte codes below it are control, parametric, variable and table instructions: none reads a memory.
inline constexpr uint8_t kFirstMemoryOpcode = 0x28;

// Structure, not work: what is never counted as an instruction executed.
constexpr bool is_structure(Opcode opcode) {
  return opcode == Opcode::kNop || opcode == Opcode::kBlock || opcode == Opcode::kLoop ||
         opcode == Opcode::kElse || opcode == Opcode::kEnd || opcode == Opcode::kTry ||
         opcode == Opcode::kCatch || opcode == Opcode::kCatchAll || opcode == Opcode::kDelegate ||
         opcode == Opcode::kTryTable;
}

// A clause of try_table: an exception of this tag, or any, goes on at a label with the exception's values.
// The exception itself goes along if the clause takes a reference.
struct CatchClause {
  static constexpr uint8_t kAny = 2;  // flag of the binary format's kind: no tag
  static constexpr uint8_t kRef = 1;  // flag: the label takes the exception, too
  static constexpr uint8_t kKinds = 4;
  uint8_t kind = 0;
  uint32_t tag = 0;
  uint32_t label = 0;  // depth, counted from outside of the try_table
  bool catches_all() const { return (kind & kAny) != 0; }
  bool takes_reference() const { return (kind & kRef) != 0; }
};

inline constexpr uint8_t kSimdPrefix = 0xfd;

// The least codes of opcodes with a prefix; atomic ones have kAtomicPrefix.
inline constexpr uint16_t kFirstPrefixedCode = 0xfc00;
inline constexpr uint16_t kFirstSimdCode = 0xfd00;
inline constexpr uint16_t kFirstRelaxedSimdCode = 0xff00;

// In front of a heap type: (ref null ht), (ref ht).
inline constexpr uint8_t kNullableRef = 0x63;
inline constexpr uint8_t kNonNullRef = 0x64;

// The vector instructions, relaxed ones included.
constexpr bool is_simd(Opcode opcode) {
  const auto page = static_cast<uint16_t>(opcode) >> 8;
  return page == 0xfd || page == 0xff;
}

// The same for loads and stores of vectors and their lanes.
constexpr uint32_t simd_access_log2(Opcode opcode) {
  const auto sub = static_cast<uint16_t>(opcode) & 0xff;
  constexpr uint8_t kWhole[] = {4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4};  // v128.load to v128.store
  if (sub <= 0x0b) return kWhole[sub];
  if (sub >= 0x5c) return sub - 0x5c + 2;  // v128.load32_zero, v128.load64_zero
  return sub & 3;                          // lanes
}

// log2 of the bytes that a load or store (ImmKind::kMemArg, kMemArgLane) touches, which is also its natural
// alignment.
constexpr uint32_t access_log2(Opcode opcode) {
  if (is_simd(opcode)) return simd_access_log2(opcode);
  if (is_atomic_access(static_cast<uint16_t>(opcode)))
    return atomic_access(static_cast<uint16_t>(opcode)).log2;
  if (static_cast<uint16_t>(opcode) >= kAtomicPrefix)
    return opcode == Opcode::kMemoryAtomicWait64 ? 3 : 2;  // waiting and notifying
  constexpr uint8_t kLog2[] = {2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 3, 2, 3, 0, 1, 0, 1, 2};
  return kLog2[static_cast<uint16_t>(opcode) - static_cast<uint16_t>(Opcode::kI32Load)];
}

}  // namespace hindsight::wasm
