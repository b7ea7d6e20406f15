// Assertions that a later part of the language took back: the suite's core and each of its proposals call
// invalid what another proposal allows. Where they meet, the newer language counts.
#pragma once

#include <string_view>

namespace hindsight::spec {

// Why a module that an assertion expects to be refused with `text` is accepted; null: it must be refused.
inline const char* overridden_because(std::string_view text) {
  if (text == "multiple memories") return "multi-memory allows several memories";
  if (text == "zero byte expected" || text == "zero flag expected")
    return "multi-memory made the reserved byte of memory instructions the index of a memory, in any LEB128 "
           "form";
  return nullptr;
}

}  // namespace hindsight::spec
