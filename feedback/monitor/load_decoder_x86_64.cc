#include "feedback/monitor/load_decoder.h"

#include <Zydis/Zydis.h>

namespace hindsight::feedback {

namespace {

// Zydis register -> x86 encoding number of its 64-bit form, or -1.
int encoding_of(ZydisRegister reg) {
  ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15) return -1;
  return wide - ZYDIS_REGISTER_RAX;  // Zydis numbers them in encoding order
}

const ZydisDecoder& decoder() {
  static const ZydisDecoder instance = [] {
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return d;
  }();
  return instance;
}

// The sampler went by less than all of the code: does its lane belong to the indices of this gather or scatter?
bool is_lane_of(const lwp::VectorIndex& lane, const ZydisDecodedInstruction& instruction,
                ZydisRegister indices) {
  const uint8_t bits = instruction.opcode & 1 ? 64 : 32;
  return lane.bits == bits && lane.vector == static_cast<uint8_t>(ZydisRegisterGetId(indices));
}

}  // namespace

std::optional<PrecedingAccess> access_before(const jit::CodeVersion& version, CodeOffset pc,
                                             const uint64_t (&registers)[16],
                                             const lwp::VectorIndex& vector_index) {
  if (pc.value == 0) return std::nullopt;
  const auto row = version.pc_map.find(CodeOffset(pc.value - 1));  // begins at an instruction
  if (!row) return std::nullopt;
  const auto* code = reinterpret_cast<const uint8_t*>(version.begin());

  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  uint32_t at = row->code.value;
  uint32_t start = at;
  while (at < pc.value) {
    start = at;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code + at, version.code_size.value - at,
                                             &instruction, operands))) {
      return std::nullopt;
    }
    at += instruction.length;
  }
  if (at != pc.value) return std::nullopt;  // pc is not an instruction boundary: not ours to judge

  for (int i = 0; i < instruction.operand_count_visible; ++i) {
    const ZydisDecodedOperand& op = operands[i];
    if (op.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    const bool has_lanes = op.mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    if (op.mem.type != ZYDIS_MEMOP_TYPE_MEM && !has_lanes) continue;
    const bool is_store = !(op.actions & ZYDIS_OPERAND_ACTION_MASK_READ);
    if (!(op.actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_MASK_WRITE))) continue;
    if (instruction.meta.category == ZYDIS_CATEGORY_PREFETCH) continue;
    if (op.mem.base == ZYDIS_REGISTER_RIP) continue;  // constants of the code
    int base = op.mem.base == ZYDIS_REGISTER_NONE ? -1 : encoding_of(op.mem.base);
    int index = op.mem.index == ZYDIS_REGISTER_NONE || has_lanes ? -1 : encoding_of(op.mem.index);
    if (!has_lanes && index < 0 && (base == 4 || base == 5)) continue;  // rsp, rbp: the frame
    PrecedingAccess load;
    load.version = &version;
    load.instruction = CodeOffset(start);
    load.has_lanes = has_lanes;
    load.is_store = is_store;
    const bool index_known = has_lanes ? is_lane_of(vector_index, instruction, op.mem.index)
                                       : op.mem.index == ZYDIS_REGISTER_NONE || index >= 0;
    bool known = (op.mem.base == ZYDIS_REGISTER_NONE || base >= 0) && index_known &&
                 op.mem.segment != ZYDIS_REGISTER_FS && op.mem.segment != ZYDIS_REGISTER_GS;
    for (int j = 0; j < instruction.operand_count && known; ++j) {
      const ZydisDecodedOperand& written = operands[j];
      if (written.type != ZYDIS_OPERAND_TYPE_REGISTER || !(written.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        continue;
      int encoding = encoding_of(written.reg.value);
      if (encoding >= 0 && (encoding == base || encoding == index)) known = false;
    }
    if (known) {
      uint64_t address = static_cast<uint64_t>(op.mem.disp.has_displacement ? op.mem.disp.value : 0);
      if (base >= 0) address += registers[base];
      if (index >= 0) address += registers[index] * op.mem.scale;
      if (has_lanes) address += vector_index.value * op.mem.scale;
      load.address = address;
    }
    return load;
  }
  return std::nullopt;
}

}  // namespace hindsight::feedback
