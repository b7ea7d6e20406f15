// Distinct integers are distinct types: a function index is never a wasm offset. Strong<> wraps an integer
// with explicit construction, comparison and hashing, and nothing else; use .value to compute.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace hindsight {

template <typename Tag, typename Int>
struct Strong {
  using Value = Int;
  Int value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Int v) : value(v) {}
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

using FuncIndex = Strong<struct FuncIndexTag, uint32_t>;    // module function index space, imports first
using TypeIndex = Strong<struct TypeIndexTag, uint32_t>;    // module type index space
using WasmOffset = Strong<struct WasmOffsetTag, uint32_t>;  // byte offset from the start of the module file
using CodeOffset = Strong<struct CodeOffsetTag, uint32_t>;  // byte offset from the start of a code version
using LoopIndex = Strong<struct LoopIndexTag, uint32_t>;    // n-th `loop` of a function, in byte order
using VersionId = Strong<struct VersionIdTag, uint64_t>;    // one compilation of one function, never reused

}  // namespace hindsight

template <typename Tag, typename Int>
struct std::hash<hindsight::Strong<Tag, Int>> {
  size_t operator()(hindsight::Strong<Tag, Int> id) const noexcept { return std::hash<Int>()(id.value); }
};
