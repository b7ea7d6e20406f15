#include "jit/code/code_version.h"

#include <algorithm>

namespace hindsight::jit {

const char* to_string(Tier tier) {
  switch (tier) {
    case Tier::kBaseline:
      return "baseline";
    case Tier::kOptimized:
      return "optimized";
  }
  return "unknown tier";
}

const void* CodeVersion::landing_of(const void* return_address) const {
  const auto at = static_cast<uint32_t>(static_cast<const std::byte*>(return_address) - begin() - 1);
  const auto it =
      std::upper_bound(handlers.begin(), handlers.end(), at,
                       [](uint32_t offset, const ExceptionHandler& h) { return offset < h.end.value; });
  if (it == handlers.end() || at < it->begin.value) return nullptr;
  return begin() + it->landing.value;
}

void CodeVersion::add_exit(LoopIndex loop, CodeOffset offset) {
  // The bytes are zeros already; this begins the lifetime of the atomic in the writable view.
  const CodeWriting writing = memory.write();
  auto* const slot = new (writing.bytes().data() + offset.value) std::atomic<const void*>(nullptr);
  osr_exits.push_back({loop, slot});
}

}  // namespace hindsight::jit
