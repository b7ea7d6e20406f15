// WASI preview 1 as host functions of a store.
#pragma once

#include <functional>
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

struct WasiBinding {
  std::vector<BoundWasiFunction> functions;
  // With true: calls that block, on any thread, end at once, until it is called with false. Any thread.
  std::function<void(bool interrupted)> interrupt;
};

// Opens the preopened directories. The functions may be called for instances of several stores, on several threads.
// `max_descriptors`: open at a time. No guest reaches what an engine of `engine` keeps, or what others may keep in the
// usual places. Errors: as wasi::WasiContext::create.
Result<WasiBinding> bind_wasi(WasiConfig config, const EngineConfig& engine, uint64_t max_descriptors);

}  // namespace hindsight::rt
