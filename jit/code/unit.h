// What is compiled as one: a function, or one loop of it with all that is in that loop.
#pragma once

#include <compare>
#include <optional>

#include "base/ids.h"

namespace hindsight::jit {

struct Unit {
  FuncIndex function;
  std::optional<LoopIndex> nest = {};  // the nest's outermost loop; none: the whole function
  friend auto operator<=>(const Unit&, const Unit&) = default;
};

}  // namespace hindsight::jit
