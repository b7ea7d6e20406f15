#include "feedback/lwp/calibration/cache_sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

namespace hindsight::lwp {
namespace {

constexpr uint32_t kMostCaches = 16;  // no processor lists as many; ends a hypervisor's endless list

void note(CacheSizes& sizes, uint32_t level, uint64_t bytes) {
  uint64_t* const places[] = {&sizes.l1_data, &sizes.l2, &sizes.l3};
  if (level >= 1 && level <= 3 && *places[level - 1] == 0) *places[level - 1] = bytes;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

CacheSizes from_sysfs() {
  CacheSizes sizes;
  for (uint32_t i = 0; i < kMostCaches; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string level = first_line(folder + "level");
    if (level.empty()) break;
    const auto bytes = parse_cache_size(first_line(folder + "size"));
    if (first_line(folder + "type") == "Instruction" || !bytes || level.size() != 1) continue;
    note(sizes, static_cast<uint32_t>(level[0] - '0'), *bytes);
  }
  return sizes;
}

}  // namespace

CacheSizes decode_cache_leaves(const std::function<pmu::CpuidRegisters(uint32_t)>& leaf) {
  CacheSizes sizes;
  for (uint32_t i = 0; i < kMostCaches; ++i) {
    const pmu::CpuidRegisters r = leaf(i);
    const uint32_t type = pmu::bits(r.eax, 4, 0);
    if (type == 0) break;
    constexpr uint32_t kInstruction = 2;
    if (type == kInstruction) continue;
    const uint64_t ways = pmu::bits(r.ebx, 31, 22) + 1;
    const uint64_t partitions = pmu::bits(r.ebx, 21, 12) + 1;
    const uint64_t line = pmu::bits(r.ebx, 11, 0) + 1;
    note(sizes, pmu::bits(r.eax, 7, 5), ways * partitions * line * (uint64_t{r.ecx} + 1));
  }
  return sizes;
}

std::optional<uint64_t> parse_cache_size(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number == 0 || number > uint64_t{1} << 40) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return number;
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return std::nullopt;
}

CacheSizes detect_cache_sizes() {
  constexpr uint32_t kAmdLeaf = 0x8000'001D, kIntelLeaf = 4;
  for (const uint32_t leaf : {kIntelLeaf, kAmdLeaf}) {
    const CacheSizes sizes = decode_cache_leaves([&](uint32_t subleaf) { return pmu::cpuid(leaf, subleaf); });
    if (sizes.l1_data != 0) return sizes;
  }
  return from_sysfs();
}

}  // namespace hindsight::lwp
