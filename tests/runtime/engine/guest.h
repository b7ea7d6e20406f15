// Small guests for tests: text in, instance out.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "runtime/engine/hindsight.h"

namespace hindsight {

struct Mode {
  const char* name;
  TierMode tier = TierMode::kBaseline;
  bool guard_pages = true;
};
inline void PrintTo(const Mode& mode, std::ostream* out) {
  *out << mode.name;
}
inline std::string mode_name(const testing::TestParamInfo<Mode>& info) {
  return info.param.name;
}
inline const auto kEveryMode = testing::Values(
    Mode{"baseline"}, Mode{"baseline_explicit", TierMode::kBaseline, false},
    Mode{"optimized", TierMode::kOptimized}, Mode{"optimized_explicit", TierMode::kOptimized, false},
    Mode{"automatic", TierMode::kAuto});

inline std::shared_ptr<Engine> make_engine(const Mode& mode = {"baseline"}) {
  EngineConfig config;
  config.tier = mode.tier;
  config.profiling = mode.tier == TierMode::kAuto;
  config.guard_pages = mode.guard_pages;
  auto engine = Engine::create(config);
  EXPECT_TRUE(engine) << engine.error().describe();
  return engine ? *engine : nullptr;
}

inline std::shared_ptr<const Module> load(Engine& engine, std::string_view wat, std::string name = "guest") {
  auto module = engine.load(std::as_bytes(std::span(wat)), std::move(name));
  EXPECT_TRUE(module) << module.error().describe();
  return module ? *module : nullptr;
}

inline std::shared_ptr<Instance> instantiate(Linker& linker, Engine& engine, std::string_view wat) {
  auto instance = linker.instantiate(load(engine, wat));
  EXPECT_TRUE(instance) << instance.error().describe();
  return instance ? *instance : nullptr;
}

inline std::string trap_of(Instance& instance, std::string_view function, std::vector<Value> args = {}) {
  auto result = instance.call(function, args);
  if (result) return "no trap";
  return result.error().kind == ErrorKind::kTrap ? result.error().message : result.error().describe();
}

inline std::vector<std::string> functions_of(const Trap* trap) {
  std::vector<std::string> names;
  if (trap != nullptr)
    for (const Frame& frame : trap->backtrace) names.push_back(frame.function);
  return names;
}

}  // namespace hindsight
