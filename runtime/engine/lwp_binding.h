// Module hindsight_lwp as host functions of a store: a guest's way to LWPINS and LWPVAL. The contract, as a
// guest sees it, is samples/include/hindsight_lwp.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/code/record_feed.h"
#include "runtime/instance/host_function.h"

namespace hindsight::rt {

inline constexpr std::string_view kLwpModule = "hindsight_lwp";

struct BoundLwpFunction {
  std::string name;
  wasm::FuncType type;
  RawHostFunction body;  // shares the state of value sampling with the others
};

// `store` outlives the functions.
std::vector<BoundLwpFunction> bind_lwp(Store& store, RecordFeed& feed);

}  // namespace hindsight::rt
