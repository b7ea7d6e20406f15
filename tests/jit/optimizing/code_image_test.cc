// Optimized code moved to another place, as if by another process.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "jit/code/code_image.h"
#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Constants in memory, tables of jumps, calls of the C library, inlined bodies, a loop to enter, traps.
constexpr std::string_view kEverything = R"((module
  (memory (export "memory") 1)
  (func $half (param f64) (result f64) (f64.mul (local.get 0) (f64.const 0.5)))
  (func (export "clear") (param $at i32) (param $n i32) (result i32)
    (local $i i32)
    (loop $l
      (i32.store8 (i32.add (local.get $at) (local.get $i)) (i32.const 7))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.load8_u (i32.add (local.get $at) (i32.sub (local.get $n) (i32.const 1)))))
  (func (export "choose") (param i32) (result i32)
    (block $d (block $c (block $b (block $a
      (br_table $a $b $c $d (local.get 0)))
      (return (call $third)))
      (return (i32.const 20)))
      (return (i32.const 30)))
    (i32.const 40))
  (func $third (result i32) (i32.const 3))
  (func (export "scale") (param f64) (result f64) (f64.add (call $half (local.get 0)) (f64.const 1234.5678)))
  (func (export "divide") (param i32) (result i32) (i32.div_u (i32.const 12) (local.get 0)))))";

std::vector<std::byte> image_of(const CodeVersion& version) {
  auto image = write_code_image(version);
  EXPECT_TRUE(image) << image.error().describe();
  return image ? *image : std::vector<std::byte>();
}

// All functions of a module compiled, written, and placed in another arena.
struct Moved {
  explicit Moved(std::string_view wat) : original(wat), arena(std::move(*CodeArena::create())) {
    // So that nothing lies where it lay.
    padding = std::move(*arena->allocate(12345));
    instance = std::make_unique<TestInstance>(
        original.module, *arena, [this](const wasm::Module& module, FuncIndex function) -> const void* {
          const CodeVersion* version = original.compile(function);
          if (version == nullptr) return nullptr;
          auto placed = place_code_image(image_of(*version), module, *arena);
          if (!placed) {
            ADD_FAILURE() << placed.error().describe();
            return nullptr;
          }
          // Whatever the moved code still has of the original, it stops at.
          original.versions.clear();
          versions.push_back(std::move(*placed));
          return versions.back()->entry;
        });
  }
  Outcome call(std::string_view name, std::vector<Value> args = {}) {
    return instance->call(name, std::move(args));
  }
  Optimized original;
  std::unique_ptr<CodeArena> arena;
  CodeAllocation padding;
  std::vector<std::unique_ptr<CodeVersion>> versions;
  std::unique_ptr<TestInstance> instance;
};

TEST(CodeImage, ComputesElsewhereWhatItComputedWhereItWasCompiled) {
  Moved moved(kEverything);
  EXPECT_EQ(moved.call("clear", {i32(100), i32(5000)}), returns({i32(7)}));
  EXPECT_EQ(moved.call("choose", {i32(0)}), returns({i32(3)}));
  EXPECT_EQ(moved.call("choose", {i32(1)}), returns({i32(20)}));
  EXPECT_EQ(moved.call("choose", {i32(99)}), returns({i32(40)}));
  EXPECT_EQ(moved.call("scale", {f64(3)}), returns({f64(1236.0678)}));
  EXPECT_EQ(moved.call("divide", {i32(4)}), returns({i32(3)}));
  EXPECT_EQ(moved.call("divide", {i32(0)}), traps(TrapCode::kIntegerDivideByZero));
}

TEST(CodeImage, KeepsThePlaceOfATrap) {
  Moved moved(kEverything);
  EXPECT_EQ(moved.call("divide", {i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  const CodeVersion& version = *moved.versions.back();
  const auto at =
      static_cast<uint32_t>(static_cast<const std::byte*>(moved.instance->trap_pc) - version.begin());
  const auto row = version.pc_map.find(CodeOffset(at - 1));
  ASSERT_TRUE(row);
  const FuncIndex divide(moved.original.module->find_export("divide")->index);
  EXPECT_EQ(moved.original.module->function_at(row->wasm), divide);
}

TEST(CodeImage, OfTheSameFunctionIsTheSameWhereverTheCodeLies) {
  for (const char* name : {"clear", "choose", "scale", "divide"}) {
    Optimized one(kEverything), other(kEverything);
    const CodeAllocation padding = std::move(*other.arena->allocate(777));
    const CodeVersion* a = one.compile(name);
    const CodeVersion* b = other.compile(name);
    ASSERT_TRUE(a && b);
    const_cast<CodeVersion*>(a)->compile_seconds = const_cast<CodeVersion*>(b)->compile_seconds = 0;
    EXPECT_EQ(image_of(*a), image_of(*b)) << name;
    auto placed = place_code_image(image_of(*a), *one.module, *other.arena);
    ASSERT_TRUE(placed) << placed.error().describe();
    EXPECT_EQ(image_of(**placed), image_of(*a)) << name;
  }
}

constexpr std::string_view kIndirect = R"((module (memory (export "memory") 32)
  (func (export "sum") (param $n i32) (result i32)
    (local $i i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s)
        (i32.load (i32.and (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 0xffffc)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $s))))";

TEST(CodeImage, GivesPrefetchesLoopCellsOfTheirOwn) {
  Hinted hinted(kIndirect, "sum", {1}, /*osr=*/true);
  ASSERT_TRUE(hinted.version);
  ASSERT_EQ(hinted.version->loop_cells.size(), 1u) << hinted.sites();
  auto placed =
      place_code_image(image_of(*hinted.version), *hinted.optimized.module, *hinted.optimized.arena);
  ASSERT_TRUE(placed) << placed.error().describe();
  const CodeVersion& version = **placed;
  ASSERT_EQ(version.loop_cells.size(), 1u);
  EXPECT_EQ(version.osr_entries.size(), hinted.version->osr_entries.size());
  ASSERT_EQ(version.answers.size(), 1u);
  EXPECT_EQ(version.answers[0].why, hinted.version->answers[0].why);
  EXPECT_TRUE(version.answers[0].is_applied());

  LoopCell& old_cell = *hinted.version->loop_cells[0];
  LoopCell& cell = *version.loop_cells[0];
  cell.enabled = 1;
  cell.strip_length = 1 << 20;
  cell.countdown = 1 << 20;
  const int32_t before = old_cell.countdown;
  func_refs(hinted.optimized.instance->context())[0].code = version.entry;
  EXPECT_EQ(hinted.optimized.call("sum", {i32(5000)}), returns({i32(0)}));
  EXPECT_EQ(old_cell.countdown, before);
  EXPECT_EQ(cell.countdown, (1 << 20) - 5000);
}

TEST(CodeImage, MayBeOfRunningLoopsAlone) {
  OptimizeRequest request;
  request.osr_loops = {LoopIndex(0)};
  request.loop_entries_only = true;
  Optimized m(kEverything, request);
  const CodeVersion* version = m.compile("clear");
  ASSERT_TRUE(version);
  ASSERT_EQ(version->entry, nullptr);
  auto placed = place_code_image(image_of(*version), *m.module, *m.arena);
  ASSERT_TRUE(placed) << placed.error().describe();
  EXPECT_EQ((*placed)->entry, nullptr);
  ASSERT_EQ((*placed)->osr_entries.size(), 1u);
  using Loop = uint32_t (*)(VmContext*, const uint64_t* frame);
  const uint64_t frame[] = {100, 9, 0};  // at, n, i
  EXPECT_EQ(reinterpret_cast<Loop>((*placed)->osr_entries[0].code)(m.instance->context(), frame), 7u);
}

TEST(CodeImage, IsNotMadeOfBaselineCode) {
  Optimized guest(kEverything);
  auto version = compile_baseline(*guest.module, FuncIndex(0), {}, *guest.arena);
  ASSERT_TRUE(version);
  const auto image = write_code_image(**version);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind, ErrorKind::kUnsupported);
}

TEST(CodeImage, IsRefusedByAModuleThatHasNoSuchFunction) {
  Optimized guest(kEverything);
  const auto image = image_of(*guest.compile("divide"));
  const auto other = TestInstance::module_of("(module (func))");
  const auto placed = place_code_image(image, *other, *guest.arena);
  ASSERT_FALSE(placed);
  EXPECT_THAT(placed.error().message, HasSubstr("does not define"));
}

TEST(CodeImage, IsRefusedIfAnythingIsMissing) {
  Hinted hinted(kIndirect, "sum", {1}, /*osr=*/true);
  const auto image = image_of(*hinted.version);
  for (size_t length = 0; length < image.size(); ++length) {
    EXPECT_FALSE(
        place_code_image(std::span(image).first(length), *hinted.optimized.module, *hinted.optimized.arena))
        << length;
  }
  auto longer = image;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(place_code_image(longer, *hinted.optimized.module, *hinted.optimized.arena));
}

// Whatever an accepted image says has to be good for what is done with versions that nobody enters.
void look_at_everything(const CodeVersion& version, const wasm::Module& module) {
  for (uint32_t at = 0; at < version.code_size.value; ++at) {
    const auto row = version.pc_map.find(CodeOffset(at));
    uint32_t depth = 0;
    for (uint32_t site = row && row->inline_site != kLoopGoesOn ? row->inline_site : kNoInlineSite;
         site != kNoInlineSite;) {
      const InlineSite& inlined = version.pc_map.inline_sites()[site];
      EXPECT_FALSE(module.function_name(inlined.callee).empty());
      site = inlined.caller_site;
      ASSERT_LT(++depth, 100'000u);
    }
    (void)version.landing_of(version.begin() + at + 1);
  }
  for (const Answer& site : version.answers) {
    if (site.is_applied()) {
      EXPECT_NE(version.loop_cells.at(site.cell), nullptr);
    }
  }
  (void)module.body(version.function);
}

TEST(CodeImage, IsReadWithinItsBoundsWhateverItSays) {
  Hinted hinted(kIndirect, "sum", {1}, /*osr=*/true);
  const wasm::Module& module = *hinted.optimized.module;
  CodeArena& arena = *hinted.optimized.arena;
  const auto image = image_of(*hinted.version);
  size_t accepted = 0;
  for (size_t at = 0; at < image.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      auto changed = image;
      changed[at] ^= static_cast<std::byte>(flip);
      if (const auto placed = place_code_image(changed, module, arena)) {
        ++accepted;
        look_at_everything(**placed, module);
      }
    }
  }
  std::mt19937 random(20);
  for (int round = 0; round < 3000; ++round) {
    auto changed = image;
    for (int i = 0; i < 4; ++i) {
      // Words, because that is what lengths and offsets are.
      const size_t at = random() % (changed.size() - 4);
      const uint32_t word = round % 2 ? random() : random() % 64;
      std::memcpy(changed.data() + at, &word, sizeof word);
    }
    if (const auto placed = place_code_image(changed, module, arena)) look_at_everything(**placed, module);
  }
  EXPECT_GT(accepted, 0u);                // instructions cannot be judged
  EXPECT_LT(accepted, 3 * image.size());  // tables can
}

}  // namespace
}  // namespace hindsight::jit::testing
