// Who the processor is: vendor, family, model, stepping, and the name of its microarchitecture, from Intel's
// Prescott and AMD's K8 to today's. Used to say on what a measurement was taken, and to explain which
// counters may be expected. Also used to choose the events that the hardware unit asks for. Pure decoders
// plus one reader of the running machine; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "feedback/pmu/x86_64.h"

namespace hindsight::pmu {

enum class Vendor : uint8_t { kUnknown, kIntel, kAmd, kHygon, kZhaoxin };  // Zhaoxin with Centaur (VIA)

std::string_view to_string(Vendor vendor);

struct ProcessorSignature {
  uint32_t family = 0;    // base family + extended family
  uint32_t model = 0;     // base model | extended model << 4
  uint32_t stepping = 0;  // of the die, not of the microcode
  friend bool operator==(const ProcessorSignature&, const ProcessorSignature&) = default;
};

// Decodes EAX of CPUID leaf 1. The extended family counts only where the base family is 0FH. The extended
// model counts only where it is 06H or 0FH (Intel's and AMD's CPUID manuals) or 07H (Zhaoxin).
ProcessorSignature decode_signature(uint32_t leaf1_eax);

// The vendor that the twelve characters of CPUID leaf 0 (EBX, EDX, ECX) name.
Vendor decode_vendor(const CpuidRegisters& leaf0);

// "Zen 4", "Sandy Bridge", ...; empty where the table does not know the model: a guess would be worse.
std::string_view microarchitecture(Vendor vendor, const ProcessorSignature& signature);

// Hybrid processors have cores of several kinds; the product's name then says too little.
enum class CoreType : uint8_t {
  kUniform,      // not a hybrid processor
  kPerformance,  // 40H
  kEfficiency,   // 20H
  kUnknown,      // hybrid, of a kind that has no name yet
};
std::string_view to_string(CoreType type);

// CPUID leaf 1AH EAX[31:24], meaningful where leaf 7 EDX[15] says hybrid.
CoreType decode_core_type(uint32_t leaf7_edx, uint32_t leaf1a_eax);

// "Golden Cove" for Alder Lake's performance cores, "Gracemont" for its efficient ones. It is the product's
// own name where that is not hybrid, and empty where the table does not know.
std::string_view core_microarchitecture(std::string_view product, CoreType type);

struct ProcessorInfo {
  Vendor vendor = Vendor::kUnknown;
  std::string brand;  // CPUID 8000_0002..4, trimmed; may be empty
  ProcessorSignature signature;
  std::string microarchitecture;            // empty where unknown
  CoreType core_type = CoreType::kUniform;  // of the processor that was asked; others may differ
  std::string core;                         // microarchitecture of that core; empty where unknown
  std::string hypervisor;                   // its twelve-character name; empty on bare metal
  bool virtualized = false;                 // CPUID 1 ECX[31]
};

// The processor that the calling thread runs on.
ProcessorInfo identify_processor();

}  // namespace hindsight::pmu
