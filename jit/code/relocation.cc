#include "jit/code/relocation.h"

#include <cstring>
#include <limits>

namespace hindsight::jit {
namespace {

template <typename Field>
void store(std::byte* at, Field value) {
  std::memcpy(at, &value, sizeof value);
}

// What a call at `at` adds to the pc after it to arrive at the stub.
int32_t to_stub(const CodeRelocation& r) {
  return static_cast<int32_t>(r.value - (int64_t{r.at} + 4));
}

}  // namespace

const void* address_of(OutsideFunction function) {
  switch (function) {
    case OutsideFunction::kMemcpy:
      return reinterpret_cast<const void*>(&std::memcpy);
    case OutsideFunction::kMemmove:
      return reinterpret_cast<const void*>(&std::memmove);
    case OutsideFunction::kMemset:
      return reinterpret_cast<const void*>(&std::memset);
    case OutsideFunction::kMemcmp:
      return reinterpret_cast<const void*>(&std::memcmp);
  }
  return nullptr;
}

void relocate(std::span<const CodeRelocation> relocations, const CodeAllocation& memory,
              std::span<const std::shared_ptr<LoopCell>> cells) {
  const auto base = reinterpret_cast<int64_t>(memory.executable());
  const CodeWriting writing = memory.write();
  for (const CodeRelocation& r : relocations) {
    std::byte* const field = writing.bytes().data() + r.at;
    switch (r.kind) {
      case CodeRelocation::Kind::kImageAddress:
        store(field, base + r.value);
        break;
      case CodeRelocation::Kind::kFunctionAddress:
        store(field, reinterpret_cast<int64_t>(address_of(static_cast<OutsideFunction>(r.index))) + r.value);
        break;
      case CodeRelocation::Kind::kCellAddress:
        store(field, reinterpret_cast<int64_t>(cells[r.index].get()) + r.value);
        break;
      case CodeRelocation::Kind::kCall: {
        const auto target = reinterpret_cast<int64_t>(address_of(static_cast<OutsideFunction>(r.index)));
        const int64_t distance = target - (base + r.at + 4);
        const bool in_reach = distance >= std::numeric_limits<int32_t>::min() &&
                              distance <= std::numeric_limits<int32_t>::max();
        store(field, in_reach ? static_cast<int32_t>(distance) : to_stub(r));
        break;
      }
      case CodeRelocation::Kind::kDistance:
        break;
    }
  }
}

bool relocate_hot_part(std::span<const CodeRelocation> relocations, const CodeAllocation& memory,
                       const CodeAllocation& hot_memory, size_t hot) {
  const int64_t moved = memory.executable() - hot_memory.executable();
  const CodeWriting writing = hot_memory.write();
  for (const CodeRelocation& r : relocations) {
    if (r.at >= hot) continue;
    int64_t distance = 0;
    if (r.kind == CodeRelocation::Kind::kDistance) {
      int32_t there = 0;
      std::memcpy(&there, memory.writable().data() + r.at, sizeof there);
      distance = there + moved;
    } else if (r.kind == CodeRelocation::Kind::kCall) {
      distance = to_stub(r) + moved;
    } else {
      continue;  // whole addresses, which name the same things as before
    }
    if (distance < std::numeric_limits<int32_t>::min() || distance > std::numeric_limits<int32_t>::max())
      return false;
    store(writing.bytes().data() + r.at, static_cast<int32_t>(distance));
  }
  return true;
}

void unrelocate(std::span<const CodeRelocation> relocations, std::span<std::byte> bytes) {
  for (const CodeRelocation& r : relocations) {
    std::byte* const field = bytes.data() + r.at;
    if (r.kind == CodeRelocation::Kind::kDistance) continue;
    if (r.kind == CodeRelocation::Kind::kCall)
      store(field, to_stub(r));
    else
      store(field, int64_t{0});
  }
}

}  // namespace hindsight::jit
