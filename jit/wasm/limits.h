// What a module may ask for. The language itself bounds little. These bounds keep a hostile module from
// making the decoder, the compilers or an instance allocate more than its size justifies. The figures follow
// the limits that web engines agreed on in the WebAssembly JavaScript interface; those marked (own) have no
// counterpart there. A module beyond one of them is refused with ErrorKind::kUnsupported: it may be valid
// elsewhere.
#pragma once

#include <cstdint>

namespace hindsight::wasm {

inline constexpr uint64_t kMaxModuleBytes = 1ull << 30;
inline constexpr uint32_t kMaxTypes = 1'000'000;
inline constexpr uint32_t kMaxFunctions = 1'000'000;  // imported ones included
inline constexpr uint32_t kMaxImports = 1'000'000;
inline constexpr uint32_t kMaxExports = 1'000'000;
inline constexpr uint32_t kMaxGlobals = 1'000'000;
inline constexpr uint32_t kMaxDataSegments = 100'000;
inline constexpr uint32_t kMaxElementSegments = 10'000'000;
inline constexpr uint32_t kMaxTables = 100'000;
inline constexpr uint32_t kMaxMemories = 100;
inline constexpr uint32_t kMaxTags = 1'000'000;
inline constexpr uint32_t kMaxTableElements = 10'000'000;  // initial size, and entries of one element segment
inline constexpr uint32_t kMaxParams = 1'000;
inline constexpr uint32_t kMaxResults = 1'000;
inline constexpr uint32_t kMaxLocals = 50'000;  // of one function, parameters included
inline constexpr uint32_t kMaxBodyBytes = 7'654'321;
inline constexpr uint32_t kMaxBrTableTargets = 65'520;  // without the default
inline constexpr uint32_t kMaxCatchClauses = 65'520;    // of one try_table
inline constexpr uint32_t kMaxControlDepth = 50'000;    // (own) nesting of blocks
inline constexpr uint32_t kMaxOperands = 100'000;       // (own) operand-stack height of one function

// (own) Locals are declared in groups, so that six bytes can ask for fifty thousand. All functions together
// may have this many.
constexpr uint64_t max_total_locals(uint64_t module_bytes) {
  return 1'000'000 + 16 * module_bytes;
}

}  // namespace hindsight::wasm
