#include "feedback/pmu/processor.h"

#include <cstring>
#include <span>

namespace hindsight::pmu {
namespace {

// One row covers a range of models of one family; the first row that fits wins.
struct ModelRange {
  uint32_t family;
  uint32_t first_model;
  uint32_t last_model;
  uint32_t first_stepping;  // inclusive; later steppings of one model can be another product generation
  std::string_view name;
};

constexpr ModelRange kIntelModels[] = {
    // NetBurst
    {0x0F, 0x00, 0x02, 0, "Northwood"},
    {0x0F, 0x03, 0x04, 0, "Prescott"},
    {0x0F, 0x06, 0x06, 0, "Cedar Mill"},
    // Pentium M and Core
    {0x06, 0x09, 0x09, 0, "Banias"},
    {0x06, 0x0D, 0x0D, 0, "Dothan"},
    {0x06, 0x0E, 0x0E, 0, "Yonah"},
    {0x06, 0x0F, 0x0F, 0, "Merom"},
    {0x06, 0x16, 0x16, 0, "Merom"},
    {0x06, 0x17, 0x17, 0, "Penryn"},
    {0x06, 0x1D, 0x1D, 0, "Penryn"},
    {0x06, 0x1A, 0x1A, 0, "Nehalem"},
    {0x06, 0x1E, 0x1F, 0, "Nehalem"},
    {0x06, 0x2E, 0x2E, 0, "Nehalem"},
    {0x06, 0x25, 0x25, 0, "Westmere"},
    {0x06, 0x2C, 0x2C, 0, "Westmere"},
    {0x06, 0x2F, 0x2F, 0, "Westmere"},
    {0x06, 0x2A, 0x2A, 0, "Sandy Bridge"},
    {0x06, 0x2D, 0x2D, 0, "Sandy Bridge"},
    {0x06, 0x3A, 0x3A, 0, "Ivy Bridge"},
    {0x06, 0x3E, 0x3E, 0, "Ivy Bridge"},
    {0x06, 0x3C, 0x3C, 0, "Haswell"},
    {0x06, 0x3F, 0x3F, 0, "Haswell"},
    {0x06, 0x45, 0x46, 0, "Haswell"},
    {0x06, 0x3D, 0x3D, 0, "Broadwell"},
    {0x06, 0x47, 0x47, 0, "Broadwell"},
    {0x06, 0x4F, 0x4F, 0, "Broadwell"},
    {0x06, 0x56, 0x56, 0, "Broadwell"},
    {0x06, 0x8A, 0x8A, 0, "Lakefield"},
    {0x06, 0x4E, 0x4E, 0, "Skylake"},
    {0x06, 0x5E, 0x5E, 0, "Skylake"},
    {0x06, 0x55, 0x55, 10, "Cooper Lake"},
    {0x06, 0x55, 0x55, 5, "Cascade Lake"},
    {0x06, 0x55, 0x55, 0, "Skylake"},
    {0x06, 0x8E, 0x8E, 11, "Whiskey Lake"},
    {0x06, 0x8E, 0x8E, 0, "Kaby Lake"},
    {0x06, 0x9E, 0x9E, 10, "Coffee Lake"},
    {0x06, 0x9E, 0x9E, 0, "Kaby Lake"},
    {0x06, 0xA5, 0xA6, 0, "Comet Lake"},
    {0x06, 0x66, 0x66, 0, "Cannon Lake"},
    {0x06, 0x6A, 0x6A, 0, "Ice Lake"},
    {0x06, 0x6C, 0x6C, 0, "Ice Lake"},
    {0x06, 0x7D, 0x7E, 0, "Ice Lake"},
    {0x06, 0x9D, 0x9D, 0, "Ice Lake"},
    {0x06, 0x8C, 0x8D, 0, "Tiger Lake"},
    {0x06, 0xA7, 0xA7, 0, "Rocket Lake"},
    {0x06, 0x8F, 0x8F, 0, "Sapphire Rapids"},
    {0x06, 0xCF, 0xCF, 0, "Emerald Rapids"},
    {0x06, 0xAD, 0xAE, 0, "Granite Rapids"},
    {0x06, 0x97, 0x97, 0, "Alder Lake"},
    {0x06, 0x9A, 0x9A, 0, "Alder Lake"},
    {0x06, 0xB7, 0xB7, 0, "Raptor Lake"},
    {0x06, 0xBA, 0xBA, 0, "Raptor Lake"},
    {0x06, 0xBF, 0xBF, 0, "Raptor Lake"},
    {0x06, 0xAA, 0xAA, 0, "Meteor Lake"},
    {0x06, 0xAC, 0xAC, 0, "Meteor Lake"},
    {0x06, 0xB5, 0xB5, 0, "Arrow Lake"},
    {0x06, 0xC5, 0xC6, 0, "Arrow Lake"},
    {0x06, 0xBD, 0xBD, 0, "Lunar Lake"},
    {0x06, 0xCC, 0xCC, 0, "Panther Lake"},
    {0x06, 0xD5, 0xD5, 0, "Wildcat Lake"},
    {0x12, 0x01, 0x03, 0, "Nova Lake"},
    {0x13, 0x01, 0x01, 0, "Diamond Rapids"},
    // Atom, and the servers built from it
    {0x06, 0x1C, 0x1C, 0, "Bonnell"},
    {0x06, 0x26, 0x26, 0, "Bonnell"},
    {0x06, 0x27, 0x27, 0, "Saltwell"},
    {0x06, 0x35, 0x36, 0, "Saltwell"},
    {0x06, 0x37, 0x37, 0, "Silvermont"},
    {0x06, 0x4A, 0x4A, 0, "Silvermont"},
    {0x06, 0x4D, 0x4D, 0, "Silvermont"},
    {0x06, 0x5A, 0x5A, 0, "Silvermont"},
    {0x06, 0x5D, 0x5D, 0, "Silvermont"},
    {0x06, 0x4C, 0x4C, 0, "Airmont"},
    {0x06, 0x75, 0x75, 0, "Airmont"},
    {0x06, 0x5C, 0x5C, 0, "Goldmont"},
    {0x06, 0x5F, 0x5F, 0, "Goldmont"},
    {0x06, 0x7A, 0x7A, 0, "Goldmont Plus"},
    {0x06, 0x86, 0x86, 0, "Tremont"},
    {0x06, 0x96, 0x96, 0, "Tremont"},
    {0x06, 0x9C, 0x9C, 0, "Tremont"},
    {0x06, 0xBE, 0xBE, 0, "Gracemont"},
    {0x06, 0xAF, 0xAF, 0, "Sierra Forest"},
    {0x06, 0xB6, 0xB6, 0, "Grand Ridge"},
    {0x06, 0xDD, 0xDD, 0, "Clearwater Forest"},
    // Xeon Phi
    {0x06, 0x57, 0x57, 0, "Knights Landing"},
    {0x06, 0x85, 0x85, 0, "Knights Mill"},
};

constexpr ModelRange kAmdModels[] = {
    {0x0F, 0x00, 0xFF, 0, "K8"},           {0x10, 0x00, 0xFF, 0, "K10"},
    {0x11, 0x00, 0xFF, 0, "Griffin (K8)"}, {0x12, 0x00, 0xFF, 0, "Llano (K10)"},
    {0x14, 0x00, 0xFF, 0, "Bobcat"},       {0x15, 0x00, 0x01, 0, "Bulldozer"},
    {0x15, 0x02, 0x02, 0, "Piledriver"},   {0x15, 0x10, 0x1F, 0, "Piledriver"},
    {0x15, 0x30, 0x3F, 0, "Steamroller"},  {0x15, 0x60, 0x7F, 0, "Excavator"},
    {0x16, 0x00, 0x0F, 0, "Jaguar"},       {0x16, 0x30, 0x3F, 0, "Puma"},
    {0x17, 0x08, 0x08, 0, "Zen+"},         {0x17, 0x18, 0x18, 0, "Zen+"},
    {0x17, 0x00, 0x2F, 0, "Zen"},          {0x17, 0x50, 0x5F, 0, "Zen"},
    {0x17, 0x30, 0x4F, 0, "Zen 2"},        {0x17, 0x60, 0xAF, 0, "Zen 2"},
    {0x19, 0x40, 0x4F, 0, "Zen 3+"},       {0x19, 0x00, 0x0F, 0, "Zen 3"},
    {0x19, 0x20, 0x5F, 0, "Zen 3"},        {0x19, 0xA0, 0xAF, 0, "Zen 4c"},
    {0x19, 0x10, 0x1F, 0, "Zen 4"},        {0x19, 0x60, 0x7F, 0, "Zen 4"},
    {0x1A, 0x00, 0x2F, 0, "Zen 5"},        {0x1A, 0x40, 0x4F, 0, "Zen 5"},
    {0x1A, 0x60, 0x7F, 0, "Zen 5"},        {0x1A, 0x50, 0x5F, 0, "Zen 6"},
    {0x1A, 0x80, 0xAF, 0, "Zen 6"},        {0x1A, 0xC0, 0xCF, 0, "Zen 6"},
};

constexpr ModelRange kHygonModels[] = {{0x18, 0x00, 0xFF, 0, "Dhyana (Zen)"}};

constexpr ModelRange kZhaoxinModels[] = {
    {0x06, 0x0F, 0x0F, 0, "Isaiah"},   {0x06, 0x19, 0x19, 0, "ZhangJiang"}, {0x07, 0x1B, 0x1B, 0, "WuDaoKou"},
    {0x07, 0x3B, 0x3B, 0, "LuJiaZui"}, {0x07, 0x5B, 0x5B, 0, "YongFeng"},
};

// What hybrid products are made of.
struct HybridCores {
  std::string_view product, performance, efficiency;
};
constexpr HybridCores kHybrids[] = {
    {"Lakefield", "Sunny Cove", "Tremont"},      {"Alder Lake", "Golden Cove", "Gracemont"},
    {"Raptor Lake", "Raptor Cove", "Gracemont"}, {"Meteor Lake", "Redwood Cove", "Crestmont"},
    {"Arrow Lake", "Lion Cove", "Skymont"},      {"Lunar Lake", "Lion Cove", "Skymont"},
    {"Panther Lake", "Cougar Cove", "Darkmont"}, {"Wildcat Lake", "Cougar Cove", "Darkmont"},
    {"Nova Lake", "Coyote Cove", "Arctic Wolf"},
};

std::string_view find(std::span<const ModelRange> table, const ProcessorSignature& s) {
  for (const ModelRange& row : table) {
    if (row.family == s.family && s.model >= row.first_model && s.model <= row.last_model &&
        s.stepping >= row.first_stepping) {
      return row.name;
    }
  }
  return {};
}

// The twelve characters that vendors and hypervisors put into three registers.
std::string name_of(uint32_t a, uint32_t b, uint32_t c) {
  char text[13] = {};
  std::memcpy(text, &a, 4);
  std::memcpy(text + 4, &b, 4);
  std::memcpy(text + 8, &c, 4);
  return text;
}

std::string brand_string() {
  char text[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const CpuidRegisters r = cpuid(0x80000002u + i);
    std::memcpy(text + 16 * i, &r, 16);
  }
  std::string brand = text;
  while (!brand.empty() && brand.back() == ' ') brand.pop_back();
  return brand.substr(std::min(brand.find_first_not_of(' '), brand.size()));
}

}  // namespace

std::string_view to_string(Vendor vendor) {
  switch (vendor) {
    case Vendor::kIntel:
      return "Intel";
    case Vendor::kAmd:
      return "AMD";
    case Vendor::kHygon:
      return "Hygon";
    case Vendor::kZhaoxin:
      return "Zhaoxin";
    case Vendor::kUnknown:
      break;
  }
  return "unknown";
}

ProcessorSignature decode_signature(uint32_t eax) {
  const uint32_t base_family = bits(eax, 11, 8);
  ProcessorSignature s;
  s.family = base_family == 0xF ? base_family + bits(eax, 27, 20) : base_family;
  s.model = bits(eax, 7, 4);
  if (base_family == 0x6 || base_family == 0x7 || base_family == 0xF) s.model |= bits(eax, 19, 16) << 4;
  s.stepping = bits(eax, 3, 0);
  return s;
}

Vendor decode_vendor(const CpuidRegisters& leaf0) {
  const std::string name = name_of(leaf0.ebx, leaf0.edx, leaf0.ecx);
  if (name == "GenuineIntel") return Vendor::kIntel;
  if (name == "AuthenticAMD") return Vendor::kAmd;
  if (name == "HygonGenuine") return Vendor::kHygon;
  if (name == "CentaurHauls" || name == "  Shanghai  ") return Vendor::kZhaoxin;
  return Vendor::kUnknown;
}

std::string_view microarchitecture(Vendor vendor, const ProcessorSignature& signature) {
  switch (vendor) {
    case Vendor::kIntel:
      return find(kIntelModels, signature);
    case Vendor::kAmd:
      return find(kAmdModels, signature);
    case Vendor::kHygon:
      return find(kHygonModels, signature);
    case Vendor::kZhaoxin:
      return find(kZhaoxinModels, signature);
    case Vendor::kUnknown:
      break;
  }
  return {};
}

std::string_view to_string(CoreType type) {
  switch (type) {
    case CoreType::kUniform:
      return "uniform";
    case CoreType::kPerformance:
      return "performance";
    case CoreType::kEfficiency:
      return "efficiency";
    case CoreType::kUnknown:
      break;
  }
  return "unknown";
}

CoreType decode_core_type(uint32_t leaf7_edx, uint32_t leaf1a_eax) {
  if (!bit(leaf7_edx, 15)) return CoreType::kUniform;
  switch (bits(leaf1a_eax, 31, 24)) {
    case 0x20:
      return CoreType::kEfficiency;
    case 0x40:
      return CoreType::kPerformance;
    default:
      return CoreType::kUnknown;
  }
}

std::string_view core_microarchitecture(std::string_view product, CoreType type) {
  if (type == CoreType::kUniform) return product;
  for (const HybridCores& row : kHybrids) {
    if (row.product != product) continue;
    if (type == CoreType::kPerformance) return row.performance;
    if (type == CoreType::kEfficiency) return row.efficiency;
  }
  return {};
}

ProcessorInfo identify_processor() {
  ProcessorInfo info;
  info.vendor = decode_vendor(cpuid(0));
  const CpuidRegisters leaf1 = cpuid(1);
  info.signature = decode_signature(leaf1.eax);
  info.microarchitecture = microarchitecture(info.vendor, info.signature);
  if (info.vendor == Vendor::kIntel) info.core_type = decode_core_type(cpuid(7).edx, cpuid(0x1A).eax);
  info.core = core_microarchitecture(info.microarchitecture, info.core_type);
  info.brand = brand_string();
  info.virtualized = bit(leaf1.ecx, 31);
  if (info.virtualized) {
    const CpuidRegisters leaf = hypervisor_leaf();
    info.hypervisor = name_of(leaf.ebx, leaf.ecx, leaf.edx);
  }
  return info;
}

}  // namespace hindsight::pmu
