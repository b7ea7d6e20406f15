// Value, function, memory and table types of WebAssembly, as the rest of the project names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hindsight::wasm {

// Byte values are those of the binary format.
enum class ValType : uint8_t {
  kI32 = 0x7f,
  kI64 = 0x7e,
  kF32 = 0x7d,
  kF64 = 0x7c,
  kV128 = 0x7b,
  kFuncRef = 0x70,
  kExternRef = 0x6f,
  kExnRef = 0x69,  // a caught exception, or null
};

const char* to_string(ValType type);
constexpr bool is_reference(ValType t) {
  return t == ValType::kFuncRef || t == ValType::kExternRef || t == ValType::kExnRef;
}
constexpr bool is_float(ValType t) {
  return t == ValType::kF32 || t == ValType::kF64;
}

// Travels in vector registers: floating point and v128.
constexpr bool in_vector_register(ValType t) {
  return is_float(t) || t == ValType::kV128;
}

struct FuncType {
  std::vector<ValType> params;
  std::vector<ValType> results;
  friend bool operator==(const FuncType&, const FuncType&) = default;
};
std::string to_string(const FuncType& type);  // "(i32, i64) -> (f32)"

struct Limits {
  uint64_t min = 0;
  std::optional<uint64_t> max;
  friend bool operator==(const Limits&, const Limits&) = default;
};

inline constexpr uint64_t kPageBytes = 65536;
inline constexpr uint64_t kMaxPages = 65536;  // 4 GiB
inline constexpr uint64_t kMaxPages64 = uint64_t{1}
                                        << 48;  // of a memory with 64-bit addresses: all they reach

struct MemoryType {
  Limits limits;      // in pages
  bool is64 = false;    // addresses and sizes are i64
  bool shared = false;  // between threads; has a maximum
  uint64_t most_pages() const { return is64 ? kMaxPages64 : kMaxPages; }
  ValType address() const { return is64 ? ValType::kI64 : ValType::kI32; }
};
struct TableType {
  ValType element = ValType::kFuncRef;
  Limits limits;  // in elements
};
struct GlobalType {
  ValType type = ValType::kI32;
  bool mutable_ = false;
  friend bool operator==(const GlobalType&, const GlobalType&) = default;
};

enum class ExternKind : uint8_t { kFunc = 0, kTable = 1, kMemory = 2, kGlobal = 3, kTag = 4 };
const char* to_string(ExternKind kind);

}  // namespace hindsight::wasm
