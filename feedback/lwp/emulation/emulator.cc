#include "feedback/lwp/emulation/emulator.h"

#include <algorithm>

namespace hindsight::lwp {
namespace {

constexpr uint64_t kPageSize = 4096;

uint64_t page_end(uint64_t address) {
  return (address | (kPageSize - 1)) + 1;
}

uint64_t truncate(uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

uint64_t read_register(const Registers& registers, RegisterNumber number, unsigned bits) {
  return truncate(registers.general[number], bits);
}

void write_register(Registers& registers, RegisterNumber number, uint64_t value, unsigned bits) {
  registers.general[number] = truncate(value, bits);
}

Outcome<uint32_t> load_operand(const Instruction& instruction, const Registers& registers, Memory& memory) {
  if (!instruction.memory) {
    return static_cast<uint32_t>(registers.general[instruction.second]);
  }
  const uint64_t address = effective_address(*instruction.memory, registers, instruction.length);
  constexpr uint64_t kBytes = sizeof(uint32_t);
  if (registers.width == CodeWidth::k64 && (!is_canonical(address) || !is_canonical(address + kBytes - 1))) {
    return std::unexpected(
        Fault{FaultKind::kGeneralProtection, address, "the operand's address is not canonical"});
  }
  uint32_t value = 0;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  if (memory.read(address, bytes)) return value;
  // One of at most two pages is not there: the first, or else the second.
  uint64_t culprit = address;
  const uint64_t on_first_page = page_end(address) - address;
  if (on_first_page < kBytes && memory.read(address, bytes.first(on_first_page))) culprit += on_first_page;
  return std::unexpected(Fault{FaultKind::kPageFault, culprit, "the operand cannot be read"});
}

}  // namespace

std::optional<Instruction> fetch_lwp(Memory& memory, uint64_t ip, CodeWidth width) {
  std::array<std::byte, kMaxInstructionBytes> code;
  // The instruction may be the last thing before a page that is not there. So what lies after the first page
  // is read only where the instruction needs it: then the processor has read it as well.
  const size_t on_first_page = std::min<uint64_t>(code.size(), page_end(ip) - ip);
  if (!memory.read(ip, std::span(code).first(on_first_page))) return std::nullopt;
  const auto decoded = decode_lwp(std::span(code).first(on_first_page), width);
  if (decoded || on_first_page == code.size()) return decoded;
  if (!memory.read(ip + on_first_page, std::span(code).subspan(on_first_page))) return std::nullopt;
  return decode_lwp(code, width);
}

uint64_t effective_address(const MemoryOperand& operand, const Registers& registers, uint8_t length) {
  uint64_t sum = static_cast<uint64_t>(int64_t{operand.displacement});
  if (operand.base != kNoRegister) sum += registers.general[operand.base];
  if (operand.index != kNoRegister) sum += registers.general[operand.index] * operand.scale;
  if (operand.ip_relative) sum += registers.ip + length;
  sum = truncate(sum, operand.address_bits);
  if (operand.segment == Segment::kFs) sum += registers.fs_base;
  if (operand.segment == Segment::kGs) sum += registers.gs_base;
  return truncate(sum, registers.width == CodeWidth::k32 ? 32 : 64);
}

Outcome<void> execute(const Instruction& instruction, Registers& registers, Memory& memory,
                      SoftwareLwp& lwp) {
  switch (instruction.operation) {
    case Operation::kLlwpcb: {
      const Outcome<void> done =
          lwp.llwpcb(read_register(registers, instruction.second, instruction.operand_bits));
      if (!done) return done;
      break;
    }
    case Operation::kSlwpcb: {
      const Outcome<uint64_t> block = lwp.slwpcb();
      if (!block) return std::unexpected(block.error());
      write_register(registers, instruction.second, *block, instruction.operand_bits);
      break;
    }
    case Operation::kLwpins:
    case Operation::kLwpval: {
      uint32_t data1 = 0;
      if (lwp.on()) {
        const Outcome<uint32_t> operand = load_operand(instruction, registers, memory);
        if (!operand) return std::unexpected(operand.error());
        data1 = *operand;
      }
      const uint64_t data2 = read_register(registers, instruction.first, instruction.operand_bits);
      const auto flags = static_cast<uint16_t>(instruction.immediate);
      if (instruction.operation == Operation::kLwpval) {
        const Outcome<bool> done = lwp.lwpval(registers.ip, data2, data1, flags);
        if (!done) return std::unexpected(done.error());
      } else {
        const Outcome<bool> full = lwp.lwpins(registers.ip, data2, data1, flags);
        if (!full) return std::unexpected(full.error());
        registers.flags = (registers.flags & ~kCarryFlag) | (*full ? kCarryFlag : 0);
      }
      break;
    }
  }
  registers.ip = truncate(registers.ip + instruction.length, registers.width == CodeWidth::k32 ? 32 : 64);
  return {};
}

Capabilities emulated_capabilities() {
  Capabilities c = software_capabilities();
  const FeatureSet offered{.available = true, .value = true, .continuous = true, .timestamps = true};
  c.usable = c.hardware = offered;
  c.latency_bits = 0;
  c.latency_rounded_bits = 0;
  c.data_address = false;
  c.branch_prediction = false;
  c.cache_level_filtering = false;
  c.latency_filtering = false;
  return c;
}

pmu::CpuidRegisters with_emulated_lwp(uint32_t leaf, pmu::CpuidRegisters real) {
  constexpr uint32_t kHighest = 0x80000000, kFeatures = 0x80000001, kLwp = 0x8000001C;
  const EncodedCapabilities offered = encode_capabilities(emulated_capabilities());
  if (leaf == kHighest) real.eax = std::max(real.eax, kLwp);
  if (leaf == kFeatures) real.ecx |= offered.ecx_80000001;
  if (leaf == kLwp) real = offered.leaf_8000001c;
  return real;
}

siginfo_t segmentation_fault(const Fault& fault) {
  siginfo_t info{};
  info.si_signo = SIGSEGV;
  if (fault.kind == FaultKind::kPageFault) {
    info.si_code = SEGV_MAPERR;
    info.si_addr = reinterpret_cast<void*>(fault.address);
  } else {
    info.si_code = SI_KERNEL;
  }
  return info;
}

}  // namespace hindsight::lwp
