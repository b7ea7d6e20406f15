// Branches under hints: their counts, and their other form in one of two versions of their loop. Nobody can
// tell the versions apart but by the clock.
#include <cstring>
#include <random>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

// What a branch is to be in the code, beside its weights.
enum class Form : uint8_t { kAsItComes, kSelect, kBranch };
using wasm::Opcode;

constexpr uint32_t kWords = 16384;

// The offset of the n-th instruction of a kind in an exported function.
WasmOffset place_of(const wasm::Module& module, std::string_view name, Opcode opcode, uint32_t n) {
  const FuncIndex function(module.find_export(name)->index);
  wasm::InstrReader reader(module, module.body(function));
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode == opcode && n-- == 0) return instr.offset;
  }
  ADD_FAILURE() << "no such instruction";
  return {};
}

uint32_t count_of(const wasm::Module& module, Opcode opcode) {
  wasm::InstrReader reader(module, module.body(FuncIndex(module.find_export("f")->index)));
  wasm::Instr instr;
  uint32_t count = 0;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode == opcode) ++count;
  }
  return count;
}

// What strip_ended does in these tests: the other version's turn, every time.
uint64_t iterations_told = 0;
void take_turns_of_branches(VmContext*, LoopCell* cell) {
  iterations_told += static_cast<uint64_t>(int64_t{cell->strip_length} - 1 - cell->countdown);
  cell->enabled ^= 1;
  cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
}

struct Branches {
  struct Asked {
    Opcode opcode;
    uint32_t n;
    Form form;
    double mispredicted;
    uint64_t taken = 500, not_taken = 500;
  };
  Branches(std::string_view wat, std::vector<Asked> asked, OptimizeRequest settings = {}, bool osr = false)
      : hinted(wat, settings), plain(wat, settings) {
    for (const Asked& a : asked) {
      const WasmOffset at = place_of(*hinted.module, "f", a.opcode, a.n);
      const BranchCounts counts{a.taken, a.not_taken, a.mispredicted};
      const auto ask = [&](ChangeKind kind) {
        hinted.request.changes.push_back({.site = {kind, at}, .what = counts});
      };
      ask(ChangeKind::kWeighBranches);
      if (a.form == Form::kSelect) ask(ChangeKind::kSelect);
      if (a.form == Form::kBranch) ask(ChangeKind::kBranch);
    }
    if (osr) hinted.request.osr_loops = {LoopIndex(0)};
    version = hinted.compile("f");
    if (version)
      func_refs(hinted.instance->context())[hinted.module->find_export("f")->index].code = version->entry;
    hinted.instance->builtins().strip_ended = take_turns_of_branches;
    for (const auto& cell : version->loop_cells) {
      cell->strip_length = 64;
      cell->countdown = 63;
    }
    iterations_told = 0;
  }
  const Answer& site(size_t i = 0) const { return version->answers.at(i); }
  uint8_t* bytes(Optimized& of) const { return reinterpret_cast<uint8_t*>(of.instance->memory()); }
  uint32_t* words() { return reinterpret_cast<uint32_t*>(bytes(hinted)); }
  void fill_random(uint32_t seed, uint32_t bound = 0) {
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < kWords; ++i) words()[i] = bound ? random() % bound : random();
    std::memcpy(bytes(plain), bytes(hinted), 4 * kWords);
  }
  // In either version, and in strips of both.
  void expect_same(std::vector<Value> args, const std::string& what = {}) {
    const Outcome expected = plain.call("f", args);
    std::vector<uint8_t> before(bytes(hinted), bytes(hinted) + 4 * kWords);
    for (const uint32_t first : {1u, 0u}) {
      std::memcpy(bytes(hinted), before.data(), before.size());
      for (const auto& cell : version->loop_cells) cell->enabled = first;
      EXPECT_EQ(hinted.call("f", args), expected) << what << " beginning with " << first;
      EXPECT_EQ(std::memcmp(bytes(plain), bytes(hinted), 4 * kWords), 0)
          << what << " beginning with " << first;
    }
  }

  Optimized hinted, plain;
  const CodeVersion* version = nullptr;
};

// for (i = 0; i < n; ++i) step
std::string loop(std::string_view locals, std::string_view step,
                 std::string_view result = "(local.get $count)") {
  return "(module (memory 1) (func $other (param i32) (result i32) (local.get 0)) "
         "(func (export \"f\") (param $n i32) (param $limit i32) (result i32) (local $i i32) (local $v i32) "
         "(local $count i32) " +
         std::string(locals) + "(block $out (br_if $out (i32.eqz (local.get $n))) (loop $l " +
         "(local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2)))) " + std::string(step) +
         " (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))) " +
         std::string(result) + "))";
}

// if (v < limit) out[count++] = i
constexpr const char* kFilter = R"(
  (if (i32.lt_u (local.get $v) (local.get $limit)) (then
    (i32.store offset=32768 (i32.shl (local.get $count) (i32.const 2)) (local.get $i))
    (local.set $count (i32.add (local.get $count) (i32.const 1))))))";

TEST(BranchHints, AStoreThatIsATossOfACoinIsMadeWithoutABranch) {
  Branches b(loop("", kFilter), {{Opcode::kIf, 0, Form::kSelect, 0.4}});
  ASSERT_TRUE(b.site().is_applied()) << b.site().why;
  EXPECT_EQ(b.site().site.kind, ChangeKind::kSelect);
  EXPECT_EQ(b.site().loop, place_of(*b.hinted.module, "f", Opcode::kLoop, 0));
  ASSERT_EQ(b.version->loop_cells.size(), 1u);
  b.fill_random(1);
  for (uint32_t n : {0u, 1u, 2u, 63u, 64u, 65u, 128u, 700u, 8000u})
    for (uint32_t limit : {0u, 1u << 31, ~0u}) b.expect_same({i32(n), i32(limit)}, std::to_string(n));
  // Every turn of the loop, which may be several of the program's, was told or is still in the countdown.
  LoopCell& cell = *b.version->loop_cells[0];
  iterations_told = 0;
  cell.countdown = 63;
  b.hinted.call("f", {i32(8000), i32(1u << 31)});
  const uint64_t turns = iterations_told + static_cast<uint64_t>(63 - cell.countdown);
  EXPECT_GE(turns, 500u);
  EXPECT_EQ(8000 % turns, 0u) << turns;
}

TEST(BranchHints, LoadsOfAnArmReadNothingThatItWouldNotHaveRead) {
  // if (v & 1) count += words[v]: the other v are far out of bounds.
  Branches b(loop("", R"((if (i32.and (local.get $v) (i32.const 1)) (then
                        (local.set $count (i32.add (local.get $count)
                          (i32.load (i32.and (local.get $v) (i32.const 0xfffffffe))))))))"),
             {{Opcode::kIf, 0, Form::kSelect, 0.4}});
  ASSERT_TRUE(b.site().is_applied()) << b.site().why;
  std::mt19937 random(2);
  for (uint32_t i = 0; i < 4000; ++i)
    b.words()[i] = random() % 2 ? (random() % 60000) | 1 : 0xfffffff0u - 2 * (random() % 1000);
  std::memcpy(b.bytes(b.plain), b.bytes(b.hinted), 4 * kWords);
  b.expect_same({i32(4000), i32(0)});
  // One that would have been read and is out of bounds traps as it did.
  b.words()[3500] = 0xfffffff1u;
  std::memcpy(b.bytes(b.plain), b.bytes(b.hinted), 4 * kWords);
  EXPECT_EQ(b.plain.call("f", {i32(4000), i32(0)}).trap, TrapCode::kMemoryOutOfBounds);
  b.expect_same({i32(4000), i32(0)}, "out of bounds");
}

TEST(BranchHints, BothArmsMayCompute) {
  Branches b(loop("(local $x i32) (local $y i32)", R"(
    (if (i32.lt_u (local.get $v) (local.get $limit))
      (then (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 5)) (local.get $v)))
            (i32.store offset=32768 (i32.const 8) (local.get $x)))
      (else (local.set $y (i32.xor (i32.rotl (local.get $y) (i32.const 3)) (local.get $v)))
            (i32.store offset=32768 (i32.const 12) (local.get $y)))))",
                  "(i32.add (local.get $x) (local.get $y))"),
             {{Opcode::kIf, 0, Form::kSelect, 0.45}});
  ASSERT_TRUE(b.site().is_applied()) << b.site().why;
  b.fill_random(3);
  for (uint32_t n : {1u, 64u, 1000u}) b.expect_same({i32(n), i32(1u << 31)});
}

TEST(BranchHints, ABranchWithinAnArmGoesFirst) {
  Branches b(loop("", R"(
    (if (i32.lt_u (local.get $v) (local.get $limit)) (then
      (local.set $count (i32.add (local.get $count) (i32.const 1)))
      (if (i32.and (local.get $v) (i32.const 4)) (then
        (i32.store offset=32768 (i32.const 16) (local.get $v))
        (local.set $count (i32.xor (local.get $count) (local.get $v))))))))"),
             {{Opcode::kIf, 0, Form::kSelect, 0.5}, {Opcode::kIf, 1, Form::kSelect, 0.5}});
  EXPECT_TRUE(b.site(1).is_applied()) << b.site(1).why;
  b.fill_random(4);
  b.expect_same({i32(3000), i32(1u << 31)});
}

// What is left in the bucket: two choices on the way from iteration to iteration.
constexpr const char* kBucket = R"(
  (local.set $count (i32.add (local.get $count) (i32.and (local.get $v) (i32.const 255))))
  (local.set $count (select (local.get $limit) (local.get $count)
    (i32.gt_u (local.get $count) (local.get $limit))))
  (local.set $w (i32.shr_u (local.get $v) (i32.const 24)))
  (local.set $count (i32.sub (local.get $count)
    (select (local.get $w) (i32.const 0) (i32.le_u (local.get $w) (local.get $count))))))";

TEST(BranchHints, AChoiceThatAChainWaitsForBecomesABranch) {
  Branches b(loop("(local $w i32)", kBucket), {{Opcode::kSelect, 0, Form::kBranch, 0.02, 20, 980},
                                               {Opcode::kSelect, 1, Form::kBranch, 0.02, 980, 20}});
  EXPECT_TRUE(b.site(0).is_applied()) << b.site(0).why;
  EXPECT_TRUE(b.site(1).is_applied()) << b.site(1).why;
  EXPECT_EQ(b.site(0).site.kind, ChangeKind::kBranch);
  EXPECT_EQ(b.site(0).cell, b.site(1).cell);
  ASSERT_EQ(b.version->loop_cells.size(), 1u);
  b.fill_random(6);
  for (uint32_t n : {0u, 1u, 63u, 64u, 65u, 5000u})
    for (uint32_t limit : {0u, 100u, 1000u, ~0u}) b.expect_same({i32(n), i32(limit)});
}

TEST(BranchHints, AMaximumThatHardlyEverGrowsBecomesABranch) {
  Branches b(loop("", R"((local.set $count (i32.add (i32.const 1) (i32.mul (i32.const 3)
      (select (local.get $v) (local.get $count) (i32.gt_s (local.get $v) (local.get $count)))))))"),
             {{Opcode::kSelect, 0, Form::kBranch, 0.01, 10, 990}});
  EXPECT_TRUE(b.site().is_applied()) << b.site().why;
  b.fill_random(7);
  for (uint32_t n : {1u, 2u, 100u, 3000u}) b.expect_same({i32(n), i32(0)});
}

TEST(BranchHints, AChoiceThatNothingWaitsForStaysOne) {
  Branches b(loop("", R"((i32.store offset=32768 (i32.shl (local.get $i) (i32.const 2))
      (select (local.get $v) (local.get $limit) (i32.and (local.get $v) (i32.const 64)))))"),
             {{Opcode::kSelect, 0, Form::kBranch, 0.01, 10, 990}});
  EXPECT_FALSE(b.site().is_applied()) << b.site().why;
  b.fill_random(8);
  b.expect_same({i32(3000), i32(77)});
}

// A search that is left in the middle: what was done until then is told.
TEST(BranchHints, LoopsThatAreLeftInTheMiddleAreCountedAsFarAsTheyWent) {
  Branches b(loop("", std::string(kFilter) + "(br_if $out (i32.eq (local.get $v) (i32.const 0x12345678)))"),
             {{Opcode::kIf, 0, Form::kSelect, 0.5}});
  ASSERT_TRUE(b.site().is_applied()) << b.site().why;
  for (uint32_t at : {0u, 1u, 62u, 63u, 64u, 1000u}) {
    b.fill_random(9);
    b.words()[at] = 0x12345678;
    std::memcpy(b.bytes(b.plain), b.bytes(b.hinted), 4 * kWords);
    b.expect_same({i32(4000), i32(1u << 31)}, "left at " + std::to_string(at));
  }
}

// A short loop inside: both are had twice, and the outer one is counted.
TEST(BranchHints, ShortLoopsAreTakenWithTheLoopAroundThem) {
  const std::string nest = loop("(local $j i32)", R"((local.set $j (i32.const 5)) (loop $inner
      (local.set $v (i32.add (i32.mul (local.get $v) (i32.const 1103515245)) (i32.const 12345)))
      (if (i32.lt_u (local.get $v) (local.get $limit)) (then
        (i32.store offset=32768 (i32.and (local.get $count) (i32.const 1020)) (local.get $v))
        (local.set $count (i32.add (local.get $count) (i32.const 4)))))
      (br_if $inner (local.tee $j (i32.sub (local.get $j) (i32.const 1))))))");
  Branches b(nest,
             {{Opcode::kIf, 0, Form::kSelect, 0.5}, {Opcode::kBrIf, 1, Form::kAsItComes, 0, 4000, 1000}});
  b.fill_random(10);
  for (uint32_t n : {1u, 63u, 64u, 700u}) b.expect_same({i32(n), i32(1u << 31)});
  EXPECT_TRUE(b.site().is_applied()) << b.site().why;
  EXPECT_EQ(b.version->loop_cells.size(), 1u);
}

TEST(BranchHints, RunningLoopsAreEnteredInTheMiddleToo) {
  Branches b(loop("", kFilter), {{Opcode::kIf, 0, Form::kSelect, 0.4}}, {}, true);
  ASSERT_TRUE(b.site().is_applied()) << b.site().why;
  ASSERT_EQ(b.version->osr_entries.size(), 1u);
  EXPECT_EQ(b.version->loop_cells.size(), 1u);
  b.fill_random(11);
  b.expect_same({i32(3000), i32(1u << 31)});
}

TEST(BranchHints, AMispredictionLosesWhatTheRequestSays) {
  const auto answer = [](double cycles) {
    OptimizeRequest settings;
    settings.mispredict_cycles = cycles;
    return Branches(loop("", kFilter), {{Opcode::kIf, 0, Form::kSelect, 0.4}}, settings).site();
  };
  const Answer dear = answer(10), cheap = answer(0.5);
  EXPECT_TRUE(dear.is_applied()) << dear.why;
  EXPECT_NE(dear.why.find("as a branch it loses 4.0 cycles"), std::string::npos) << dear.why;
  EXPECT_FALSE(cheap.is_applied()) << cheap.why;
  EXPECT_NE(cheap.why.find("as a branch it loses 0.2 cycles"), std::string::npos) << cheap.why;
}

TEST(BranchHints, ChecksOfBoundsInAnArmAreExitsOfIt) {
  OptimizeRequest settings;
  settings.options.bounds = BoundsChecks::kExplicit;
  Branches b(loop("", kFilter), {{Opcode::kIf, 0, Form::kSelect, 0.4}}, settings);
  EXPECT_TRUE(b.site().is_applied()) << b.site().why;
  b.fill_random(12);
  b.expect_same({i32(3000), i32(1u << 31)});
}

TEST(BranchHints, AnyHintHoweverWrongGivesTheSameAnswers) {
  std::mt19937 random(13);
  for (const char* step : {kFilter, kBucket}) {
    for (int i = 0; i < 6; ++i) {
      std::vector<Branches::Asked> asked;
      for (const Opcode opcode : {Opcode::kIf, Opcode::kSelect, Opcode::kBrIf}) {
        const bool there = opcode == Opcode::kBrIf || (opcode == Opcode::kIf) == (step == kFilter);
        if (there)
          asked.push_back({opcode, opcode == Opcode::kBrIf ? static_cast<uint32_t>(random() % 2) : 0u,
                           static_cast<Form>(random() % 3), random() % 2 ? 0.5 : 0.0, random() % 5000,
                           random() % 5000});
      }
      Branches wrong(loop("(local $w i32)", step), asked);
      wrong.fill_random(static_cast<uint32_t>(i));
      wrong.expect_same({i32(2000), i32(1000 * static_cast<uint32_t>(i))});
    }
  }
}

// Loops full of branches and selects, one in another, over five values and a memory.
class BranchyText {
 public:
  explicit BranchyText(uint32_t seed) : random_(seed) {}
  std::string make() {
    return "(module (memory 1) (func (export \"f\") (param $n i32) (param $limit i32) (result i32) "
           "(local $a i32) (local $b i32) (local $c i32) (local $d i32) (local $i i32) (local $j i32) "
           "(block $also (block $out (br_if $out (i32.eqz (local.get $n))) (loop $l " +
           statements(3, 3) +
           "(br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))"
           "(return (i32.xor (local.get $b) (i32.rotl (i32.sub (local.get $c) (local.get $a)) (i32.const "
           "5)))))"
           "(i32.xor (i32.add (local.get $a) (i32.rotl (local.get $b) (i32.const 7))) "
           "(i32.add (local.get $c) (i32.rotl (local.get $d) (i32.const 9))))))";
  }

 private:
  uint32_t below(uint32_t n) { return random_() % n; }
  std::string local() { return std::string("$") + "abcd"[below(4)]; }
  std::string place() { return "(i32.and " + value(1) + " (i32.const 0x7ffc))"; }
  std::string condition(int depth) {
    static constexpr const char* kCompare[] = {"i32.lt_u", "i32.gt_s", "i32.eq",
                                               "i32.ne",   "i32.le_s", "i32.and"};
    return std::string("(") + kCompare[below(6)] + " " + value(depth - 1) + " " + value(depth - 1) + ")";
  }
  std::string value(int depth) {
    if (depth <= 0) {
      switch (below(4)) {
        case 0:
          return "(i32.const " + std::to_string(static_cast<int32_t>(random_()) % 1000) + ")";
        case 1:
          return "(local.get $limit)";
        case 2:
          return "(local.get $i)";
        default:
          return "(local.get " + local() + ")";
      }
    }
    static constexpr const char* kCompute[] = {"i32.add", "i32.sub", "i32.mul",
                                               "i32.xor", "i32.or",  "i32.shr_u"};
    switch (below(5)) {
      case 0:
        return "(i32.load " + place() + ")";
      case 1:
        return "(select " + value(depth - 1) + " " + value(depth - 1) + " " + condition(depth) + ")";
      default:
        return std::string("(") + kCompute[below(6)] + " " + value(depth - 1) + " " + value(depth - 1) + ")";
    }
  }
  std::string statements(uint32_t most, int depth) {
    std::string text;
    for (uint32_t n = 1 + below(most); n != 0; --n) text += statement(depth) + "\n";
    return text;
  }
  std::string statement(int depth) {
    switch (depth > 0 ? below(9) : below(4)) {
      case 3:
      case 7:
        // Leaves the loop, seldom, by one of two ways.
        return std::string("(br_if ") + (below(2) ? "$out" : "$also") + " (i32.eq (i32.and " + value(2) +
               " (i32.const 255)) (i32.const " + std::to_string(below(256)) + ")))";
      case 0:
        return "(i32.store " + place() + " " + value(2) + ")";
      case 1:
      case 2:
        return "(local.set " + local() + " " + value(2) + ")";
      case 4:
      case 8:
        return "(if " + condition(2) + " (then " + statements(2, depth - 1) + ") (else " +
               statements(2, depth - 1) + "))";
      case 5:
        return "(block $skip (br_if $skip " + condition(2) + ") " + statements(2, depth - 1) + ")";
      default:
        if (in_loop_) return "(if " + condition(2) + " (then " + statements(2, depth - 1) + "))";
        in_loop_ = true;
        const std::string body = statements(2, depth - 1);
        in_loop_ = false;
        return "(local.set $j (i32.const " + std::to_string(1 + below(9)) + ")) (block $left (loop $inner " +
               body + "(br_if $left " + condition(1) +
               ") (br_if $inner (local.tee $j (i32.sub (local.get $j) (i32.const 1))))))";
    }
  }
  std::mt19937 random_;
  bool in_loop_ = false;
};

class BranchyLoops : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, BranchyLoops, ::testing::Range(0u, 8u));

TEST_P(BranchyLoops, ComputeTheSameInAllFormsOfTheirBranches) {
  size_t applied = 0;
  for (uint32_t seed = 100 * GetParam(); seed < 100 * GetParam() + 15; ++seed) {
    const std::string text = BranchyText(seed).make();
    std::mt19937 random(seed);
    std::vector<Branches::Asked> asked;
    const auto module = TestInstance::module_of(text);
    for (const Opcode opcode : {Opcode::kIf, Opcode::kBrIf, Opcode::kSelect}) {
      const uint32_t there = count_of(*module, opcode);
      for (uint32_t n = 0; n < there; ++n) {
        const Form form = opcode == Opcode::kSelect || random() % 4 == 0 ? Form::kBranch : Form::kSelect;
        asked.push_back(
            {opcode, n, form, form == Form::kSelect ? 1.0 : 0.0, random() % 3000, random() % 3000});
      }
    }
    OptimizeRequest settings;
    if (seed % 3 == 0) settings.options.bounds = BoundsChecks::kExplicit;
    Branches b(text, asked, std::move(settings), random() % 2 == 0);
    for (const Answer& site : b.version->answers) applied += site.is_applied() ? 1 : 0;
    b.fill_random(seed);
    for (uint32_t n : {1u, 5u, 63u, 64u, 65u, 300u})
      b.expect_same({i32(n), i32(random())}, std::to_string(seed));
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << text;
      return;
    }
  }
  EXPECT_GT(applied, 15u) << "hardly anything was tested";
}

}  // namespace
}  // namespace hindsight::jit::testing
