// Value, function, memory and table types of WebAssembly, as the rest of the project names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hindsight::wasm {

// The lowest seven bits are those of the binary format. The bit above them says of a reference that it is
// never null. What refers to functions of one type of the module has that type's index in the other bits. It
// is an index of Module::canonical_types, so that types are equal exactly if their ValTypes are. (Between
// modules: jit/abi/type_registry.h.)
enum class ValType : uint32_t {
  kI32 = 0x7f,
  kI64 = 0x7e,
  kF32 = 0x7d,
  kF64 = 0x7c,
  kV128 = 0x7b,
  kFuncRef = 0x70,
  kExternRef = 0x6f,
  kExnRef = 0x69,    // a caught exception, or null
  kTypedRef = 0x63,  // (ref null 0); see typed_ref
};

inline constexpr uint32_t kNonNullBit = 0x80;
inline constexpr uint32_t kTypeIndexShift = 8;
inline constexpr uint32_t kMaxTypeIndex = UINT32_MAX >> kTypeIndexShift;

// "i32", "funcref", "(ref null 3)", "(ref extern)"
std::string to_string(ValType type);

// The kind of a type: one of the enumerators.
constexpr ValType kind_of(ValType t) {
  return static_cast<ValType>(static_cast<uint32_t>(t) & 0x7f);
}
constexpr bool is_reference(ValType t) {
  return kind_of(t) <= ValType::kFuncRef;
}
constexpr bool is_typed_ref(ValType t) {
  return kind_of(t) == ValType::kTypedRef;
}
// funcref, or references to functions of one type.
constexpr bool is_func_ref(ValType t) {
  return kind_of(t) == ValType::kFuncRef || is_typed_ref(t);
}
constexpr uint32_t type_index(ValType t) {  // of a typed reference
  return static_cast<uint32_t>(t) >> kTypeIndexShift;
}
constexpr ValType non_null(ValType t) {
  return static_cast<ValType>(static_cast<uint32_t>(t) | kNonNullBit);
}
constexpr ValType nullable(ValType t) {
  return static_cast<ValType>(static_cast<uint32_t>(t) & ~kNonNullBit);
}
constexpr bool is_non_null(ValType t) {
  return (static_cast<uint32_t>(t) & kNonNullBit) != 0;
}
// (ref null index); index <= kMaxTypeIndex.
constexpr ValType typed_ref(uint32_t index) {
  return static_cast<ValType>(static_cast<uint32_t>(ValType::kTypedRef) | index << kTypeIndexShift);
}
// A caught exception, or null if the type allows that.
constexpr bool is_exn_ref(ValType t) {
  return kind_of(t) == ValType::kExnRef;
}
// Whether each value of type `a` is one of type `b`.
constexpr bool is_subtype(ValType a, ValType b) {
  if (a == b || a == non_null(b)) return true;
  return is_typed_ref(a) && kind_of(b) == ValType::kFuncRef && (is_non_null(a) || !is_non_null(b));
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
  Limits limits;        // in pages
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
