// Tag: what exceptions of one kind have in common. Its address is its identity: two instances have a tag in
// common if one imported it from the other. Owned by a store.
#pragma once

#include <string>

#include "jit/abi/type_registry.h"
#include "jit/wasm/types.h"

namespace hindsight::rt {

struct Tag {
  wasm::FuncType type;   // parameters: an exception's values; canonical, as in jit/abi/type_registry.h
  uint32_t type_id = 0;  // canonical
  std::string name;      // in the module that defines it; for messages
  jit::TypeId held{};    // type_id
};

}  // namespace hindsight::rt
