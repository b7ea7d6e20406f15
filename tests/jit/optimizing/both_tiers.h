// The same module in both tiers, each with a memory of its own.
#pragma once

#include <cstring>

#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {

struct BothTiers {
  explicit BothTiers(const std::string& text, BoundsChecks bounds = BoundsChecks::kGuardPages)
      : optimized(text, with_dump(bounds)), arena(std::move(*CodeArena::create())) {
    baseline = std::make_unique<TestInstance>(
        optimized.module, *arena,
        [this, bounds](const wasm::Module& module, FuncIndex function) -> const void* {
          auto version = compile_baseline(module, function, {.bounds = bounds}, *arena);
          if (!version) return nullptr;
          versions.push_back(std::move(*version));
          return versions.back()->entry;
        },
        TestInstance::Options{});
  }

  // Results and the first page of memory.
  void expect_same(const char* name, const std::vector<Value>& arguments, const std::string& words) {
    EXPECT_EQ(optimized.call(name, arguments), baseline->call(name, arguments)) << words;
    EXPECT_EQ(std::memcmp(optimized.instance->memory(), baseline->memory(), 65536), 0) << words;
  }

  static OptimizeRequest with_dump(BoundsChecks bounds) {
    OptimizeRequest request;
    request.dump_ir = true;
    request.options.bounds = bounds;
    return request;
  }

  Optimized optimized;
  std::unique_ptr<CodeArena> arena;
  std::vector<std::unique_ptr<CodeVersion>> versions;
  std::unique_ptr<TestInstance> baseline;
};

}  // namespace hindsight::jit::testing
