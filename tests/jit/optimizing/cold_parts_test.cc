// What hardly ever runs lies after the rest of a function, and the rest can be moved without it. Nobody can tell but
// by the clock.
#include "jit/code/move_code.h"
#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

// Two checks of which the first calls and goes on, and the second traps in one case; a table of jumps on request.
constexpr std::string_view kChecks = R"((module
  (memory 1)
  (func $report (export "report") (param i32) (result i32)
    (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
    (i32.mul (local.get 0) (i32.const 3)))
  (func (export "f") (param $x i32) (result i32)
    (local $sum i32)
    (local.set $sum (i32.mul (local.get $x) (i32.const 7)))
    (if (i32.eq (i32.and (local.get $x) (i32.const 63)) (i32.const 21))
      (then (local.set $sum (i32.xor (local.get $sum) (call $report (local.get $x))))))
    (i32.store (i32.const 128) (local.get $sum))
    (if (i32.gt_u (local.get $x) (i32.const 1000))
      (then
        (if (i32.eq (local.get $x) (i32.const 2000)) (then unreachable))
        (local.set $sum (i32.add (call $report (local.get $sum)) (i32.const 5)))))
    (i32.add (local.get $sum) (call $report (i32.load (i32.const 128))))))
)";

class ColdParts : public ::testing::Test {
 protected:
  // "f" with what its conditions were seen to do: never hold.
  std::shared_ptr<CodeVersion> compile(Optimized& optimized, bool one_sided) {
    optimized.request.split_cold = true;
    const FuncIndex function(optimized.module->find_export("f")->index);
    wasm::InstrReader reader(*optimized.module, optimized.module->body(function));
    wasm::Instr instr;
    while (!reader.at_end()) {
      reader.next(instr);
      if (one_sided && (instr.opcode == wasm::Opcode::kIf || instr.opcode == wasm::Opcode::kBrIf))
        optimized.request.changes.push_back({.site = {ChangeKind::kSplitCold, instr.offset},
                                             .what = BranchCounts{.taken = 0, .not_taken = 50}});
    }
    if (optimized.compile("f") == nullptr) return nullptr;
    std::shared_ptr<CodeVersion> version = std::move(optimized.versions.back());
    optimized.versions.pop_back();
    return version;
  }
  static void publish(Optimized& optimized, const CodeVersion& version) {
    func_refs(optimized.instance->context())[optimized.module->find_export("f")->index].code = version.entry;
  }
};

TEST_F(ColdParts, LieBehindTheRest) {
  Optimized optimized(kChecks);
  const auto version = compile(optimized, /*one_sided=*/true);
  ASSERT_NE(version, nullptr);
  EXPECT_GT(version->hot_bytes.value, 0u);
  EXPECT_LT(version->hot_bytes.value, version->code_size.value);
  EXPECT_EQ(bytes_to_move(*version), version->hot_bytes.value);
  // Each place is known in both parts.
  uint32_t hot_rows = 0, cold_rows = 0;
  for (const PcRow& row : version->pc_map.rows())
    if (row.wasm != kNoWasmOffset) ++(row.code < version->hot_bytes ? hot_rows : cold_rows);
  EXPECT_GT(hot_rows, 5u);
  EXPECT_GT(cold_rows, 5u);
}

TEST_F(ColdParts, AreSmallerWhereNothingWasSeen) {
  Optimized seen(kChecks), unseen(kChecks);
  const auto apart = compile(seen, true), together = compile(unseen, false);
  ASSERT_TRUE(apart && together);
  EXPECT_LT(apart->hot_bytes.value, bytes_to_move(*together));
}

TEST_F(ColdParts, AreReachedFromWhereverTheRestIs) {
  Optimized here(kChecks), there(kChecks);
  std::shared_ptr<CodeVersion> version = compile(there, true);
  ASSERT_NE(version, nullptr);
  // Some distance away, twice: a part of a part is a part of the whole.
  auto far = there.arena->allocate(1 << 20);
  ASSERT_TRUE(far);
  std::vector<std::shared_ptr<CodeVersion>> parts;
  const std::shared_ptr<CodeVersion>* from = &version;
  for (int i = 0; i < 2; ++i) {
    auto part = copy_version(*from, std::move(*there.arena->allocate(bytes_to_move(**from))));
    ASSERT_TRUE(part) << part.error().describe();
    EXPECT_EQ((*part)->code_size.value, version->hot_bytes.value);
    EXPECT_EQ((*part)->whole.get(), version.get());
    parts.push_back(std::move(*part));
    from = &parts.back();
  }
  for (const auto& part : parts) {
    publish(there, *part);
    for (uint32_t x = 0; x < 2100; x += x < 200 || x > 1990 ? 1 : 37) {
      const Outcome expected = here.call("f", {i32(x)}), got = there.call("f", {i32(x)});
      EXPECT_EQ(got, expected) << x;
    }
  }
  EXPECT_EQ(version->parts.load(), 2u);
  parts.clear();
  EXPECT_EQ(version->parts.load(), 0u);
}

}  // namespace
}  // namespace hindsight::jit::testing
