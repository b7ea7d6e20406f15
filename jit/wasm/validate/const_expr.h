// ConstExprReader: decodes and types the constant expressions of a module: initializers of globals, offsets
// of segments, elements. What consists of constants alone is computed here, once; what reads a
// global is left as a program for the instance (ConstExpr::Kind::kCode).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/wasm/byte_reader.h"
#include "jit/wasm/module.h"

namespace hindsight::wasm {

class ConstExprReader {
 public:
  // Both must outlive the reader. Functions and the globals that may be read must be in `module` already.
  ConstExprReader(Module& module, ByteReader& reader) : module_(module), reader_(reader) {}

  // Reads one expression up to and including its `end`. False on failure; the byte reader holds it. Linear in
  // the bytes, which it adds to the module's decode steps instruction by instruction.
  [[nodiscard]] bool read(ValType expected, ConstExpr& out);

 private:
  struct Operand {
    ValType type = ValType::kI32;
    size_t first_op = 0;  // ops_[first_op ..) compute it
  };
  // Reads one instruction. Sets `end` at the end of the expression.
  bool step(bool& end);
  bool push(ValType type, ConstOp op);
  bool arithmetic(uint32_t at, Opcode opcode);
  bool global_get(uint32_t at);
  bool vector(uint32_t at);

  Module& module_;
  ByteReader& reader_;
  std::vector<Operand> operands_;
  std::vector<ConstOp> ops_;
};

// The value of `a op b` for the operators that constant expressions allow; i32 results are zero-extended.
uint64_t const_arithmetic(Opcode opcode, uint64_t a, uint64_t b);

}  // namespace hindsight::wasm
