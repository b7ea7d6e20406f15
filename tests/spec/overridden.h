// Assertions that do not hold any more. The suite's core and each of its proposals call invalid what another
// proposal allows: where they meet, the newer language counts. And its copies of proposals are of drafts.
#pragma once

#include <string_view>

namespace hindsight::spec {

// Why a module that an assertion expects to be refused with `text` is accepted; null: it must be refused.
inline const char* overridden_because(std::string_view text) {
  if (text == "multiple memories") return "multi-memory allows several memories";
  if (text == "multiple tables") return "reference types allow several tables";
  if (text == "zero byte expected" || text == "zero flag expected")
    return "multi-memory made the reserved byte of memory instructions the index of a memory, in any LEB128 "
           "form";
  if (text == "unknown global") return "constant expressions may read the globals before them by now";
  if (text == "integer representation too long" || text == "integer too large")
    return "offsets of accesses are of 64 bits by now, in up to ten bytes";
  return nullptr;
}

// Why nothing of a file can be run; null: it can.
inline const char* unreadable_because(std::string_view file) {
  if (file == "relaxed_dot_product.wast")
    return "it uses f32x4.relaxed_dot_bf16x8_add_f32x4, which the proposal gave up, and is no module without "
           "it";
  return nullptr;
}

// Why a module that a script instantiates may be refused as unsupported with `message`; null: it must not.
inline const char* unsupported_because(std::string_view message) {
  for (const char* feature : {"garbage collection (struct, array and recursive types)",
                              "garbage collection (reference types)", "garbage collection (instructions)",
                              "memory64 (tables with 64-bit indices)", "too many table elements"})
    if (message.find(feature) != std::string_view::npos) return feature;
  return nullptr;
}

// Why calls of an exported function may have other results than the file says; null: they must not.
inline const char* changed_because(std::string_view function) {
  if (function == "f32x4.relaxed_nmadd" || function == "f64x2.relaxed_nmadd")
    return "in the final proposal it is -(a * b) + c, not a * b - c";
  return nullptr;
}

}  // namespace hindsight::spec
