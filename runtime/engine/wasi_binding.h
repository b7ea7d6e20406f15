// WASI preview 1 as host functions of a store.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/hindsight.h"
#include "runtime/instance/host_function.h"

namespace hindsight::rt {

struct BoundWasiFunction {
  std::string module;
  std::string name;
  wasm::FuncType type;
  RawHostFunction body;  // shares one WASI context with the others
};

// Opens the preopened directories; interruptions of the store also wake blocked WASI calls. Errors: as
// wasi::WasiContext::create.
Result<std::vector<BoundWasiFunction>> bind_wasi(Store& store, WasiConfig config);

}  // namespace hindsight::rt
