// A module of one page in baseline code, in optimized code and in optimized code with explicit checks, to be
// compared.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "jit/baseline/baseline_compiler.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {

inline constexpr uint32_t kEnd = 65536;

// An engine of one tier on one module.
class Tier {
 public:
  enum class Kind : uint8_t { kBaseline, kOptimized, kOptimizedWithChecks };
  Tier(Kind kind, std::shared_ptr<const wasm::Module> module)
      : arena_(std::move(*CodeArena::create(size_t{256} << 20))) {
    instance_ = std::make_unique<TestInstance>(
        module, *arena_, [this, kind](const wasm::Module& guest, FuncIndex function) -> const void* {
          Result<std::unique_ptr<CodeVersion>> version = kind == Kind::kBaseline
                                                             ? compile_baseline(guest, function, {}, *arena_)
                                                             : optimized(guest, function, kind);
          EXPECT_TRUE(version) << version.error().describe();
          if (!version) return nullptr;
          versions_.push_back(std::move(*version));
          return versions_.back()->entry;
        });
  }

  TestInstance& instance() { return *instance_; }

  // Memory and the global are as before each call.
  Outcome call(const std::string& name, const std::vector<Value>& args) {
    for (uint32_t i = 0; i < kEnd; ++i) memory()[i] = static_cast<uint8_t>(i * 37 + (i >> 8) + 1);
    if (!instance_->module().globals.empty()) std::memset(instance_->global(0).bytes, 0, 8);
    return instance_->call(name, args);
  }
  uint8_t* memory() { return instance_->memory(); }

 private:
  Result<std::unique_ptr<CodeVersion>> optimized(const wasm::Module& guest, FuncIndex function, Kind kind) {
    OptimizeRequest request;
    request.module = std::shared_ptr<const wasm::Module>(std::shared_ptr<void>(), &guest);
    request.function = function;
    if (kind == Kind::kOptimizedWithChecks) request.options.bounds = BoundsChecks::kExplicit;
    auto result = optimizer().compile(request, *arena_);
    if (!result) return std::unexpected(result.error());
    return std::move(result->version);
  }

  std::unique_ptr<CodeArena> arena_;
  std::vector<std::unique_ptr<CodeVersion>> versions_;
  std::unique_ptr<TestInstance> instance_;
};

inline std::string first_difference(const uint8_t* a, const uint8_t* b) {
  for (uint32_t i = 0; i < kEnd; ++i)
    if (a[i] != b[i]) return "memory differs at " + std::to_string(i);
  return {};
}

}  // namespace hindsight::jit::testing
