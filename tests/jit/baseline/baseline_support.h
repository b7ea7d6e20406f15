// Instances whose functions are compiled by the baseline tier.
#pragma once

#include <map>

#include "jit/baseline/function_compiler.h"
#include "tests/jit/harness.h"

namespace hindsight::jit::testing {

class BaselineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arena = CodeArena::create(size_t{256} << 20);
    ASSERT_TRUE(arena) << arena.error().describe();
    arena_ = std::move(*arena);
  }

  std::unique_ptr<TestInstance> instantiate(std::string_view wat, TestInstance::Options options = {}) {
    return instantiate(TestInstance::module_of(wat), std::move(options));
  }
  std::unique_ptr<TestInstance> instantiate(std::shared_ptr<const wasm::Module> module,
                                            TestInstance::Options options = {}) {
    if (!module) return nullptr;
    return std::make_unique<TestInstance>(
        module, *arena_,
        [this](const wasm::Module& m, FuncIndex f) -> const void* {
          auto version = baseline::FunctionCompiler(m, f, compile_options_, features_).compile(*arena_);
          EXPECT_TRUE(version) << version.error().describe();
          if (!version) return nullptr;
          const void* entry = (*version)->entry;
          // Other instances of the fixture may run older versions: all live until the test ends.
          versions_[f.value] = version->get();
          all_versions_.push_back(std::move(*version));
          return entry;
        },
        std::move(options));
  }

  // The wasm offset that the newest version of `function` maps `pc` to; pc may be a return address.
  std::optional<WasmOffset> wasm_offset(uint32_t function, const void* pc, bool return_address) {
    const CodeVersion& v = *versions_.at(function);
    const auto* p = static_cast<const std::byte*>(pc) - (return_address ? 1 : 0);
    if (p < v.begin() || p >= v.end()) return std::nullopt;
    const auto row = v.pc_map.find(CodeOffset(static_cast<uint32_t>(p - v.begin())));
    if (!row) return std::nullopt;
    return row->wasm;
  }

  std::unique_ptr<CodeArena> arena_;
  CompileOptions compile_options_;
  baseline::TargetFeatures features_ = baseline::TargetFeatures::host();
  std::map<uint32_t, CodeVersion*> versions_;  // the newest of each function
  std::vector<std::unique_ptr<CodeVersion>> all_versions_;
};

}  // namespace hindsight::jit::testing
