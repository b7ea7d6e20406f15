// InstrReader: walks the instructions of a *validated* function body. Both tiers read code through it, so
// that immediates are decoded in one place. It does not check: the validator did.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"
#include "jit/wasm/module.h"
#include "jit/wasm/opcodes.h"

namespace hindsight::wasm {

// The type of a block, loop or if. A short form has at most one result and no parameters.
struct BlockType {
  const FuncType* func_type = nullptr;   // type index form
  std::optional<ValType> single_result;  // short form
  uint32_t param_count() const { return func_type ? static_cast<uint32_t>(func_type->params.size()) : 0; }
  uint32_t result_count() const {
    return func_type ? static_cast<uint32_t>(func_type->results.size()) : (single_result ? 1 : 0);
  }
  ValType param(uint32_t i) const { return func_type->params[i]; }
  ValType result(uint32_t i) const { return func_type ? func_type->results[i] : *single_result; }
};

struct Instr {
  Opcode opcode = Opcode::kNop;
  WasmOffset offset;    // of the opcode's first byte
  BlockType block;      // kBlock, kTryTable
  uint32_t index = 0;   // label depth, tag, local, global, function, table, type (kIndirect, kType), data,
                        // element, memory, lane of kLane; copy: destination
  uint32_t index2 = 0;  // table of kIndirect and kTableInit; memory of kMemoryInit; copy: source; lane of
                        // kMemArgLane
  uint32_t align_log2 = 0;  // kMemArg
  uint64_t bits =
      0;  // constants (i32 zero-extended bit pattern, i64, f32 bits, f64 bits); kMemArg: the offset
  uint64_t high = 0;                     // kV128, kShuffle: bytes 8 to 15; bits has bytes 0 to 7
  ValType ref_type = ValType::kFuncRef;  // kRefType; kSelectTypes: the operands' type, of any kind
  uint32_t target_count = 0;  // kBrTable: labels without the default; read with InstrReader::br_table
};

class InstrReader {
 public:
  InstrReader(const Module& module, const FunctionBody& body);

  bool at_end() const { return pos_ >= end_; }
  WasmOffset position() const { return WasmOffset(static_cast<uint32_t>(pos_ - start_)); }
  // Continue at another instruction of the same body (used for on-stack-replacement entries).
  void seek(WasmOffset offset) { pos_ = start_ + offset.value; }

  // Decodes the instruction at the current position into `instr` and moves past it.
  void next(Instr& instr) {
    instr.offset = position();
    const uint8_t code = pos_[0];
    // Nearly all instructions have immediates of one byte each, or none. These are taken without asking which, as the
    // kinds follow each other in no order that a branch predictor could know.
    const Quick& quick = kQuick[code];
    if (end_ - pos_ >= 3 &&
        ((pos_[1] & quick.more_in_first) | (pos_[2] & quick.more_in_second)) == quick.never) [[likely]] {
      instr.opcode = static_cast<Opcode>(code);
      instr.index = pos_[1] & quick.index_mask;
      instr.align_log2 = pos_[1];
      instr.bits = pos_[2];
      pos_ += quick.length;
      return;
    }
    next_of_any_kind(instr);
  }

  // The two instructions that code has most of, where their immediate has one byte. Skips the instruction and returns
  // true, if that is what comes next.
  bool next_is_local_get(uint32_t& local) {
    if (pos_[0] != static_cast<uint8_t>(Opcode::kLocalGet) || pos_[1] >= 0x80) return false;
    local = pos_[1];
    pos_ += 2;
    return true;
  }
  bool next_is_i32_const(uint32_t& value) {
    if (pos_[0] != static_cast<uint8_t>(Opcode::kI32Const) || pos_[1] >= 0x80) return false;
    value = short_i32(pos_[1]);
    pos_ += 2;
    return true;
  }

  // The targets of the br_table that next() just returned: target_count labels, then the default.
  const std::vector<uint32_t>& br_table() const { return br_targets_; }
  // The clauses of the try_table that next() just returned.
  const std::vector<CatchClause>& catches() const { return catches_; }

 private:
  // How an opcode's immediates are taken if each has one byte. The masks are of bits that say that one has more.
  struct Quick {
    uint8_t length = 1;  // of the instruction
    uint8_t more_in_first = 0, more_in_second = 0;
    uint8_t index_mask = 0;  // whether the first is Instr::index
    uint8_t never = 0;       // 1: not taken like this
  };
  static const std::array<Quick, 256> kQuick;
  // The value of a LEB128 of one byte.
  static uint32_t short_i32(uint8_t byte) {
    return static_cast<uint32_t>(static_cast<int32_t>(uint32_t{byte} << 25) >> 25);
  }
  void next_of_any_kind(Instr& instr);
  void read_catches();
  ValType read_heap_type();
  ValType read_value_type();

  const Module& module_;
  const uint8_t* start_;
  const uint8_t* pos_;
  const uint8_t* end_;
  std::vector<uint32_t> br_targets_;
  std::vector<CatchClause> catches_;
};

}  // namespace hindsight::wasm
