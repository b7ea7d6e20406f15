// Compile time is linear in the function's size: measured in allocator steps and bytes, not in seconds.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

struct Work {
  double steps, bytes, wasm;
};

class GrowthTest : public BaselineTest {
 protected:
  Work work(const std::string& body, const std::string& locals = "(param i32 i32) (local i32 i32 f64)") {
    const auto module =
        TestInstance::module_of("(module (memory 1) (func (export \"f\") " + locals + " " + body + "))");
    baseline::FunctionCompiler compiler(*module, FuncIndex(0), compile_options_, features_);
    auto version = compiler.compile(*arena_);
    EXPECT_TRUE(version);
    return {static_cast<double>(compiler.allocator_steps()), static_cast<double>((*version)->code_size.value),
            static_cast<double>(module->bodies[0].end.value - module->bodies[0].begin.value)};
  }
  void expect_linear(const std::function<std::string(int)>& body) {
    const Work small = work(body(200));
    const Work large = work(body(2000));
    const double growth = large.wasm / small.wasm;
    EXPECT_LE(large.steps, 1.3 * growth * small.steps + 10);  // some shapes need none
    EXPECT_LT(large.bytes, 1.3 * growth * small.bytes);
  }
  static std::string repeat(int n, const std::string& text) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text + " ";
    return all;
  }
};

TEST_F(GrowthTest, LongFunctions) {
  expect_linear([](int n) {
    return repeat(n,
                  "local.get 0 local.get 1 i32.add local.tee 2 i32.load local.set 3 local.get 3 if local.get "
                  "2 local.set 0 end");
  });
}

TEST_F(GrowthTest, DeepNesting) {
  expect_linear([](int n) { return repeat(n, "block local.get 0 br_if 0") + repeat(n, "end"); });
  expect_linear([](int n) { return repeat(n, "local.get 0 if local.get 1 local.set 0") + repeat(n, "end"); });
  expect_linear([](int n) { return repeat(n, "loop local.get 0 br_if 0") + repeat(n, "end"); });
}

TEST_F(GrowthTest, DeepOperandStacks) {
  expect_linear([](int n) { return repeat(n, "local.get 0") + repeat(n, "drop"); });
  expect_linear(
      [](int n) { return repeat(n, "local.get 0 i32.const 1 i32.add block end") + repeat(n, "drop"); });
  // Locals named at the bottom of a deep stack are found without a walk through it.
  expect_linear([](int n) {
    return repeat(n, "local.get 0") +
           repeat(n, "local.get 1 local.get 1 local.set 1 local.get 1 i32.const 1 i32.add local.set 1") +
           repeat(2 * n, "drop");
  });
}

TEST_F(GrowthTest, LargeBranchTables) {
  expect_linear([](int n) { return "block block local.get 0 br_table " + repeat(n, "0 1") + "0 end end"; });
}

TEST_F(GrowthTest, ManyLocals) {
  const auto locals = [](int n) { return "(param i32) (local" + repeat(n, " i32") + ")"; };
  const auto body = [](int n) {
    std::string text;
    for (int i = 1; i <= n; ++i)
      text += "local.get 0 i32.const 1 i32.add local.set " + std::to_string(i) + " ";
    return text;
  };
  const Work small = work(body(500), locals(500));
  const Work large = work(body(5000), locals(5000));
  EXPECT_LT(large.steps, 1.3 * 10 * small.steps);
  EXPECT_LT(large.bytes, 1.5 * 10 * small.bytes);
}

}  // namespace
}  // namespace hindsight::jit::testing
