// What can be said of a loop as a unit of compiling (jit/code/unit.h) from the module alone, so without opening a compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "jit/wasm/module.h"

namespace hindsight::wasm {

// Frames around a loop that LoopInfo::targets can name.
inline constexpr uint32_t kMostLoopLevels = 63;

// Why the loop cannot be compiled as a nest; empty: it can. Linear in the loop and the frames around it.
std::string_view why_no_nest(const Module& module, FuncIndex function, LoopIndex root);

// Bytes of the loop, and of the functions that it calls by name and that are generated in place of the call. What the optimizer inlines
// depends on more than sizes, so this is an estimate. Linear in the loop.
uint32_t nest_bytes(const Module& module, FuncIndex function, LoopIndex root);

// Sizes of callees, in bytes of their bodies, by which the optimizer inlines. An operator with its operands takes about four bytes. So 48
// bytes are about what a call's own moves, spills and branch cost, and 240 what LLVM's inliner accepts at -O2.
inline constexpr uint32_t kAlwaysInlined = 48;
inline constexpr uint32_t kInlinedInLoops = 240;  // callees without loops
inline constexpr uint32_t kInlinedWithLoop =
    96;  // callees with one, which often ends early: strings are compared by such
inline constexpr uint32_t kMostInlinedLocals = 64;
// By its size alone, where a loop calls it.
bool is_inlined_in_loops(const FunctionBody& callee);
// Callees with loads that stall, which only the loop around the call can have early. The insertion into a hash table of the C++ library
// takes 1,000 to 1,500 bytes.
inline constexpr uint32_t kMostInlinedForLoads = 2000;
// Whether a callee may be inlined for its loads.
bool may_be_inlined_for_loads(const FunctionBody& callee);

// Bytes that may be inlined into a nest whose root has so many.
constexpr uint32_t most_inlined_into_nest(uint32_t root_bytes) {
  return std::clamp<uint32_t>(2 * std::min(root_bytes, 12000u), 400, 12000);
}

}  // namespace hindsight::wasm
