// What assemble_text and its helper program hindsight-wat agree on. The text is the helper's standard input,
// the answer its standard output; both are anonymous files, not pipes, so that neither side can block on the
// other.
//
// Invariant: the helper writes the header last. An answer without a whole header means that it died, whatever
// its exit status says.
#pragma once

#include <cstdint>

namespace hindsight::wasm {

struct WatAnswer {
  static constexpr uint32_t kMagic = 0x54415748;  // "HWAT"
  enum Status : uint32_t { kModule = 1, kError = 2 };

  uint32_t magic = 0;
  uint32_t status = 0;
  uint64_t bytes = 0;  // of the module or the message that follows
};

inline constexpr uint64_t kWatMemoryLimit = 4ull << 30;  // the helper's address space
inline constexpr uint64_t kWatCpuSeconds = 30;
inline constexpr uint64_t kWatMaxAnswerBytes = (1ull << 30) + sizeof(WatAnswer);

}  // namespace hindsight::wasm
