// What in a version's bytes depends on where things lie in this process. With it the bytes can be copied to another
// place, of another process too (code_image.h). Everything else in optimized code is relative to itself, or reached
// through the VmContext.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jit/abi/loop_cell.h"
#include "jit/code/code_arena.h"

namespace hindsight::jit {

// The C library's functions that generated code may call. A number here is a number in files: append only.
enum class OutsideFunction : uint8_t { kMemcpy, kMemmove, kMemset, kMemcmp };
inline constexpr uint32_t kOutsideFunctions = 4;
const void* address_of(OutsideFunction function);

struct CodeRelocation {
  enum class Kind : uint8_t {
    kImageAddress,     // 8 bytes: the address of the allocation's byte `value`
    kFunctionAddress,  // 8 bytes: OutsideFunction `index`, plus `value`
    kCellAddress,      // 8 bytes: CodeVersion::loop_cells[index], plus `value`
    // The last 4 bytes of a call or jump. It goes straight to OutsideFunction `index` where that is within reach. Else
    // it goes to the stub at offset `value`, which jumps through a kFunctionAddress.
    kCall,
    // 4 bytes in the hot part (CodeVersion::hot_bytes): how far it is to something after that part. Stays as it is
    // where both are moved together.
    kDistance,
  };
  Kind kind = Kind::kImageAddress;
  uint32_t at = 0;  // offset of the field in the allocation
  uint32_t index = 0;
  int64_t value = 0;
};
inline constexpr uint32_t kRelocationKinds = 5;

constexpr uint32_t field_bytes(CodeRelocation::Kind kind) {
  return kind == CodeRelocation::Kind::kCall || kind == CodeRelocation::Kind::kDistance ? 4 : 8;
}

// Writes all fields for where `memory` and the cells are. Precondition: every field lies in the allocation,
// every index names something.
void relocate(std::span<const CodeRelocation> relocations, const CodeAllocation& memory,
              std::span<const std::shared_ptr<LoopCell>> cells);
// Writes the fields of a copy of the bytes' beginning: `hot` bytes at `hot_memory`, whose rest stays in `memory`. What
// is reached by its distance is there from now on. False: something is out of reach.
[[nodiscard]] bool relocate_hot_part(std::span<const CodeRelocation> relocations,
                                     const CodeAllocation& memory, const CodeAllocation& hot_memory,
                                     size_t hot);
// The same fields in a copy of the bytes, as if it lay nowhere: equal code has equal bytes.
void unrelocate(std::span<const CodeRelocation> relocations, std::span<std::byte> bytes);

}  // namespace hindsight::jit
