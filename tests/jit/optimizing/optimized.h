// Compiles text with the optimizing tier and runs it in a TestInstance.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jit/optimizing/optimizer.h"
#include "tests/jit/harness.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace hindsight::jit::testing {

inline Optimizer& optimizer() {
  static const std::unique_ptr<Optimizer> instance(hindsight_create_optimizer());
  return *instance;
}

// A module whose functions are all compiled by the optimizing tier, lazily.
struct Optimized {
  explicit Optimized(std::string_view wat, OptimizeRequest settings = {}, TestInstance::Options options = {})
      : Optimized(TestInstance::module_of(wat), std::move(settings), std::move(options)) {}
  explicit Optimized(std::shared_ptr<const wasm::Module> guest, OptimizeRequest settings = {},
                     TestInstance::Options options = {})
      : module(std::move(guest)), arena(std::move(*CodeArena::create())), request(std::move(settings)) {
    request.module = module;
    instance = std::make_unique<TestInstance>(
        module, *arena,
        [this](const wasm::Module&, FuncIndex function) -> const void* {
          const CodeVersion* version = compile(function);
          return version ? version->entry : nullptr;
        },
        std::move(options));
  }

  // Null after a test failure.
  const CodeVersion* compile(FuncIndex function) {
    OptimizeRequest wanted = request;
    wanted.function = function;
    wanted.verify = true;
    auto result = optimizer().compile(wanted, *arena);
    if (!result) {
      ADD_FAILURE() << result.error().describe();
      return nullptr;
    }
    dump = std::move(result->dump);
    versions.push_back(std::move(result->version));
    return versions.back().get();
  }
  const CodeVersion* compile(std::string_view name) {
    const wasm::Export* found = module->find_export(name);
    EXPECT_NE(found, nullptr) << name;
    return found ? compile(FuncIndex(found->index)) : nullptr;
  }
  Outcome call(std::string_view name, std::vector<Value> args = {}) {
    return instance->call(name, std::move(args));
  }

  std::shared_ptr<const wasm::Module> module;
  std::unique_ptr<CodeArena> arena;
  OptimizeRequest request;
  std::vector<std::unique_ptr<CodeVersion>> versions;
  std::string dump;
  std::unique_ptr<TestInstance> instance;
};

}  // namespace hindsight::jit::testing
