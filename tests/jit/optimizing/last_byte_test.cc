// An access traps exactly if its last byte is out of bounds, whatever is made of it
// (jit/optimizing/generate/last_byte.h). Every load is tried, in every use that lets a compiler read less than its width.
// It is tried at each place around the end of memory, in straight code and in loops. Each has to end as it does in
// baseline code, and what it leaves in memory and globals has to be the same.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <span>

#include "tests/jit/optimizing/replaced.h"
#include "tests/jit/optimizing/tiers.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint32_t kTurns = 9;  // of the loops

struct ByteAccess {
  const char* name;
  uint32_t bytes;
  char type;  // i: i32, l: i64, f, d: floats, v: vector
};

constexpr ByteAccess kByteLoads[] = {
    {"i32.load", 4, 'i'},          {"i32.load16_u", 2, 'i'},      {"i32.load16_s", 2, 'i'},
    {"i32.load8_u", 1, 'i'},       {"i64.load", 8, 'l'},          {"i64.load32_u", 4, 'l'},
    {"i64.load32_s", 4, 'l'},      {"i64.load16_s", 2, 'l'},      {"i64.load8_s", 1, 'l'},
    {"f32.load", 4, 'f'},          {"f64.load", 8, 'd'},          {"v128.load", 16, 'v'},
    {"v128.load8x8_u", 8, 'v'},    {"v128.load16x4_s", 8, 'v'},   {"v128.load32x2_u", 8, 'v'},
    {"v128.load16_splat", 2, 'v'}, {"v128.load32_splat", 4, 'v'}, {"v128.load64_splat", 8, 'v'},
    {"v128.load32_zero", 4, 'v'},  {"v128.load64_zero", 8, 'v'},  {"v128.load32_lane", 4, 'v'},
    {"v128.load64_lane", 8, 'v'},
};

// What is made of a value, as statements: % is the value, ! stores 8 bytes that it is given where results are kept.
constexpr const char* kOfI32[] = {
    "(i32.store8 (local.get $o) %)",
    "(i32.store16 (local.get $o) %)",
    "(drop %)",
    "(i32.store (local.get $o) (i32.and % (i32.const 255)))",
    "(i32.store (local.get $o) (i32.and % (i32.const 0xff00)))",
    "(i32.store (local.get $o) (i32.and % (i32.const 0x01000000)))",
    "(i32.store (local.get $o) (i32.and % (local.get $m)))",
    "(i32.store (local.get $o) (i32.shl % (i32.const 24)))",
    "(i32.store (local.get $o) (i32.shr_u % (i32.const 9)))",
    "(i32.store (local.get $o) (i32.extend8_s %))",
    "(i32.store (local.get $o) (i32.extend16_s %))",
    "(i32.store (local.get $o) (i32.mul % (local.get $m)))",
    "(i32.store (local.get $o) (i32.mul % (local.get $n)))",
    "(i32.store (local.get $o) (i32.mul % (i32.const 0x10000)))",
    "(i32.store (local.get $o) (i32.rotl % (i32.const 8)))",
    "(i32.store (local.get $o) (i32.rem_u % (i32.const 16)))",
    "(i32.store (local.get $o) (i32.div_u % (i32.const 10)))",
    "(i32.store (local.get $o) (i32.lt_u % (local.get $n)))",
    "(i32.store (local.get $o) (i32.lt_u % (i32.const 65536)))",
    "(i32.store (local.get $o) (i32.eqz (i32.and % (i32.const 1))))",
    "(i32.store (local.get $o) (i32.popcnt %))",
    "(if (i32.and % (i32.const 2)) (then (i32.store (local.get $o) (i32.const 5))))",
    "(i32.store (local.get $o) (select (i32.const 3) (local.get $m) (i32.and % (i32.const 4))))",
    "(i32.store (local.get $o) (select % (i32.const 9) (local.get $m)))",
    "(i32.store (local.get $p) (i32.xor % (i32.const 77)))",
    "(i32.store (local.get $p) (i32.and % (i32.const 0xffff00ff)))",
    "(i32.store (local.get $p) (i32.or (i32.and % (i32.const -256)) (i32.and (local.get $m) (i32.const "
    "255))))",
    "(i32.store (local.get $p) (i32.add % (i32.const 1)))",
    "(i32.store (local.get $p) %)",
    "(local.set $s (i32.add (local.get $s) (i32.and % (i32.const 255))))",
    "(local.set $s (i32.add (local.get $s) %))",
    "(local.set $s (i32.xor (i32.shl (local.get $s) (i32.const 5)) %))",
    "(f32.store (local.get $o) (f32.convert_i32_s (i32.extend8_s %)))",
    "(v128.store (local.get $o) (i8x16.splat %))",
};
constexpr const char* kOfI64[] = {
    "(i64.store8 (local.get $o) %)",
    "(i64.store16 (local.get $o) %)",
    "(i64.store32 (local.get $o) %)",
    "(drop %)",
    "(i32.store (local.get $o) (i32.wrap_i64 %))",
    "(i64.store (local.get $o) (i64.and % (i64.const 0xffffffff)))",
    "(i64.store (local.get $o) (i64.and % (i64.const 0xff0000)))",
    "(i64.store (local.get $o) (i64.shr_u % (i64.const 32)))",
    "(i64.store (local.get $o) (i64.shl % (i64.const 40)))",
    "(i64.store (local.get $o) (i64.extend32_s %))",
    "(i32.store (local.get $o) (i32.wrap_i64 (i64.shr_u % (i64.const 8))))",
    "(i32.store (local.get $o) (i32.wrap_i64 (i64.shr_u % (i64.const 40))))",
    "(i64.store (local.get $o) (i64.mul % (i64.const 0x100000000)))",
    "(i64.store (local.get $o) (i64.extend8_s %))",
    "(i64.store (local.get $o) (i64.and % (i64.extend_i32_u (local.get $m))))",
    "(i64.store (local.get $p) (i64.or % (i64.const 0xff00)))",
    "(i64.store (local.get $p) (i64.xor % (i64.const 1)))",
    "(i64.store (local.get $p) (i64.and % (i64.const -0x100000000)))",
    "(i32.store (local.get $o) (i64.eqz (i64.and % (i64.const 8))))",
    "(i64.store (local.get $p) (select % (i64.const 5) (local.get $m)))",
    "(i64.store32 (local.get $p) %)",
    "(local.set $s (i32.add (local.get $s) (i32.wrap_i64 %)))",
};
constexpr const char* kOfF32[] = {
    "(i32.store8 (local.get $o) (i32.reinterpret_f32 %))",
    "(i32.store (local.get $o) (i32.and (i32.reinterpret_f32 %) (i32.const 1)))",
    "(f32.store (local.get $o) (f32.abs %))",
    "(f32.store (local.get $o) (f32.copysign (f32.const 2) %))",
    "(f32.store (local.get $o) (f32.mul % (f32.const 0)))",
    "(f32.store (local.get $o) (f32.max % (f32.const 1)))",
    "(drop %)",
    "(f64.store (local.get $o) (f64.promote_f32 %))",
    "(i32.store (local.get $o) (f32.lt % (f32.const 1)))",
};
constexpr const char* kOfF64[] = {
    "(i32.store (local.get $o) (i32.wrap_i64 (i64.reinterpret_f64 %)))",
    "(f64.store (local.get $o) (f64.neg %))",
    "(i64.store8 (local.get $o) (i64.reinterpret_f64 %))",
    "(f32.store (local.get $o) (f32.demote_f64 %))",
    "(drop %)",
    "(f64.store (local.get $o) (f64.add % (f64.const 0)))",
    "(i32.store (local.get $o) (i32.trunc_sat_f64_s %))",
    "(i32.store (local.get $o) (i32.and (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 %) (i64.const 16))) "
    "(i32.const 255)))",
};
constexpr const char* kOfV128[] = {
    "(drop %)",
    "(i32.store (local.get $o) (i32x4.extract_lane 0 %))",
    "(i32.store (local.get $o) (i32x4.extract_lane 2 %))",
    "(i64.store (local.get $o) (i64x2.extract_lane 0 %))",
    "(i64.store (local.get $o) (i64x2.extract_lane 1 %))",
    "(i32.store8 (local.get $o) (i8x16.extract_lane_u 3 %))",
    "(f32.store (local.get $o) (f32x4.extract_lane 1 %))",
    "(f64.store (local.get $o) (f64x2.extract_lane 0 %))",
    "(v128.store64_lane 0 (local.get $o) %)",
    "(v128.store32_lane 1 (local.get $o) %)",
    "(v128.store8_lane 15 (local.get $o) %)",
    "(v128.store (local.get $o) (i16x8.extend_low_i8x16_u %))",
    "(v128.store (local.get $o) (i32x4.extend_high_i16x8_s %))",
    "(v128.store (local.get $o) (f64x2.promote_low_f32x4 %))",
    "(v128.store (local.get $o) (f64x2.convert_low_i32x4_s %))",
    "(v128.store (local.get $o) (i8x16.shuffle 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3 % (v128.const i64x2 0 0)))",
    "(v128.store (local.get $o) (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 % (v128.const i64x2 1 "
    "2)))",
    "(v128.store (local.get $o) (i8x16.swizzle % (v128.const i64x2 0x0001020304050607 0x0001020304050607)))",
    "(v128.store (local.get $o) (i32x4.replace_lane 3 % (local.get $m)))",
    "(v128.store (local.get $p) (i32x4.replace_lane 3 % (local.get $m)))",
    "(v128.store (local.get $p) (i32x4.replace_lane 0 % (local.get $m)))",
    "(v128.store (local.get $p) (i64x2.replace_lane 1 % (i64.const 4)))",
    "(v128.store (local.get $o) (v128.and % (v128.const i64x2 -1 0)))",
    "(v128.store (local.get $p) (v128.and % (v128.const i64x2 -1 0)))",
    "(v128.store (local.get $p) (v128.or % (v128.const i64x2 0xff 0)))",
    "(v128.store (local.get $o) (i64x2.shl % (i32.const 56)))",
    "(v128.store (local.get $o) (i64x2.shr_u % (i32.const 60)))",
    "(v128.store (local.get $o) (v128.bitselect % (v128.const i64x2 3 4) (v128.const i64x2 -1 0)))",
    "(v128.store (local.get $o) (i16x8.narrow_i32x4_s % (v128.const i64x2 0 0)))",
    "(i32.store (local.get $o) (i32.and (i8x16.bitmask %) (i32.const 15)))",
    "(i32.store (local.get $o) (i32x4.all_true %))",
    "(v128.store (local.get $o) (f32x4.splat (f32x4.extract_lane 0 %)))",
    "(i64.store (local.get $o) (i64x2.extract_lane 0 (i32x4.add % %)))",
    "(v128.store (local.get $o) (i64x2.extmul_low_i32x4_u % (v128.const i64x2 3 4)))",
};

std::span<const char* const> uses_of(char type) {
  switch (type) {
    case 'i':
      return kOfI32;
    case 'l':
      return kOfI64;
    case 'f':
      return kOfF32;
    case 'd':
      return kOfF64;
    default:
      return kOfV128;
  }
}

std::string load_of(const ByteAccess& access, const std::string& address) {
  const std::string name(access.name);
  if (name.ends_with("_lane")) return "(" + name + " 1 " + address + " (v128.const i64x2 7 8))";
  return "(" + name + " " + address + ")";
}

// Around one use: straight, at an address that is known, in a loop up or down, and in one that LLVM unrolls.
enum class Around { kStraight, kKnown, kUp, kDown, kFew, kArm };
constexpr Around kArounds[] = {Around::kStraight, Around::kKnown, Around::kUp,
                               Around::kDown,     Around::kFew,   Around::kArm};

struct AccessForm {
  std::string name, text;
  uint32_t bytes;
  uint32_t past;  // bytes past the end of memory, in the iteration that is furthest
  Around around;
};

AccessForm form_of(const ByteAccess& access, size_t use, Around around, uint32_t past) {
  const uint32_t place = kEnd - access.bytes + past;
  const std::string step = std::to_string(access.bytes);
  std::string value = load_of(
      access, around == Around::kKnown ? "(i32.const " + std::to_string(place) + ")" : "(local.get $p)");
  std::string body = replaced(uses_of(access.type)[use], "%", value);
  if (around == Around::kKnown)
    body = replaced(body, "(local.get $p)", "(i32.const " + std::to_string(place) + ")");
  const auto turns = [&](const char* direction, const std::string& count) {
    return "(loop $l " + body + " (local.set $p (i32." + direction + " (local.get $p) (i32.const " + step +
           "))) (local.set $o (i32.add (local.get $o) (i32.const 16)))"
           " (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) " +
           count + ")))";
  };
  if (around == Around::kUp) body = turns("add", "(local.get $count)");
  if (around == Around::kDown) body = turns("sub", "(local.get $count)");
  if (around == Around::kFew) body = turns("sub", "(i32.const 6)");
  if (around == Around::kArm)
    body = "(if (local.get $m) (then " + body + " (local.set $s (i32.add (local.get $s) (i32.const 1)))))";
  const std::string name = std::string(access.name) + " #" + std::to_string(use) + " around " +
                           std::to_string(static_cast<int>(around)) + " past " + std::to_string(past);
  return {name,
          "(func (export \"" + name +
              "\") (param $p i32) (param $o i32) (param $m i32) (param $count i32) (result i32)"
              " (local $s i32) (local $n i32) " +
              body + " (local.get $s))",
          access.bytes, past, around};
}

class LastByte : public ::testing::TestWithParam<ByteAccess> {};

TEST_P(LastByte, OfALoadDecidesWhetherItTraps) {
  const ByteAccess& access = GetParam();
  std::vector<AccessForm> forms;
  for (size_t use = 0; use < uses_of(access.type).size(); ++use) {
    for (const Around around : kArounds) {
      if (around == Around::kKnown) {
        for (const uint32_t past : std::set{1u, access.bytes / 2, access.bytes - 1})
          if (past > 0 && past < access.bytes) forms.push_back(form_of(access, use, around, past));
      } else {
        forms.push_back(form_of(access, use, around, 0));
      }
    }
  }
  std::string text = "(module (memory 1) ";
  for (const AccessForm& form : forms) text += form.text + "\n";
  const auto module = TestInstance::module_of(text + ")");
  ASSERT_NE(module, nullptr);
  Tier expected(Tier::Kind::kBaseline, module), optimized(Tier::Kind::kOptimized, module),
      checked(Tier::Kind::kOptimizedWithChecks, module);
  int wrong = 0;
  for (const AccessForm& form : forms) {
    for (uint32_t past = 0; past <= access.bytes; ++past) {
      if (form.around == Around::kKnown && past != 0) break;
      uint32_t place = kEnd - access.bytes + past;
      if (form.around == Around::kUp) place -= access.bytes * (kTurns - 1);
      const std::vector<Value> args = {i32(place), i32(256), i32(0x10101), i32(kTurns)};
      const Outcome outcome = expected.call(form.name, args);
      for (Tier* tier : {&optimized, &checked}) {
        const Outcome other = tier->call(form.name, args);
        const std::string memory = first_difference(expected.memory(), tier->memory());
        if (other == outcome && memory.empty()) continue;
        if (++wrong > 12) continue;
        ADD_FAILURE() << form.name << (tier == &checked ? " with checks" : "") << ", at " << past << ": "
                      << ::testing::PrintToString(other) << " instead of "
                      << ::testing::PrintToString(outcome) << memory << "\n"
                      << form.text;
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, LastByte, ::testing::ValuesIn(kByteLoads),
                         [](const auto& info) { return replaced(info.param.name, ".", "_"); });

// Lines of stores, loads and global.sets at places around the end of memory, drawn by lot. What comes before the trap has
// to be there, and nothing that comes after it.
std::string line_of_accesses(std::mt19937& lots) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(lots() % n); };
  const auto place = [&](uint32_t bytes) -> std::string {
    // A quarter at numbers, most of them well inside; neighbours often.
    if (below(4) == 0)
      return "offset=" + std::to_string(below(3) ? 8 * below(16) : kEnd - bytes - below(3)) +
             " (i32.const 0)";
    return "offset=" + std::to_string(bytes * below(6)) + " (local.get " + (below(3) ? "$p" : "$q") + ")";
  };
  const auto value = [&](bool wide) -> std::string {
    const std::string type = wide ? "i64" : "i32";
    switch (below(4)) {
      case 0:
        return wide ? "(i64.load " + place(8) + ")" : "(i32.load " + place(4) + ")";
      case 1:
        return "(" + type + ".const " + std::to_string(below(100)) + ")";
      case 2:
        return wide ? "(i64.extend_i32_u (local.get $x))" : "(local.get $x)";
      default:
        return "(" + type + ".add (" + type + ".const " + std::to_string(below(9)) + ") " +
               (wide ? "(i64.load " + place(8) + ")" : "(i32.load16_u " + place(2) + ")") + ")";
    }
  };
  std::string body;
  for (int i = 0; i < 14; ++i) {
    switch (below(7)) {
      case 0:
        body += "(global.set $g " + value(false) + ")";
        break;
      case 1:
        body += "(i64.store " + place(8) + value(true) + ")";
        break;
      case 2:
        body += "(i32.store8 " + place(1) + value(false) + ")";
        break;
      case 3:
        body += "(local.set $x (i32.add (local.get $x) (i32.load " + place(4) + ")))";
        break;
      case 4:
        if (below(3) == 0)
          body += "(if (i32.and (local.get $x) (i32.const 1)) (then (i32.store " + place(4) + value(false) +
                  "))(else (global.set $g (local.get $x))))";
        else
          body += "(v128.store " + place(16) + "(v128.load " + place(16) + "))";
        break;
      default:
        body += "(i32.store " + place(4) + value(false) + ")";
        break;
    }
  }
  return body;
}

TEST(OrderOfAccesses, OfAStraightLineShowsBehindATrap) {
  constexpr int kLines = 150;
  std::mt19937 lots(20);
  std::string text = "(module (memory 1) (global $g (mut i32) (i32.const 0)) ";
  for (int i = 0; i < kLines; ++i)
    text += "(func (export \"" + std::to_string(i) +
            "\") (param $p i32) (param $q i32) (result i32) (local $x i32) " + line_of_accesses(lots) +
            " (local.get $x))\n";
  const auto module = TestInstance::module_of(text + ")");
  ASSERT_NE(module, nullptr);
  Tier expected(Tier::Kind::kBaseline, module), optimized(Tier::Kind::kOptimized, module),
      checked(Tier::Kind::kOptimizedWithChecks, module);
  for (int i = 0; i < kLines; ++i) {
    const std::string name = std::to_string(i);
    for (uint32_t before = 0; before < 64; before += 1 + before / 8) {
      const std::vector<Value> args = {i32(kEnd - before), i32(i % 2 == 0 ? 1000 : kEnd - 2 * before)};
      const Outcome outcome = expected.call(name, args);
      for (Tier* tier : {&optimized, &checked}) {
        ASSERT_EQ(tier->call(name, args), outcome) << i << " at " << before;
        ASSERT_EQ(first_difference(expected.memory(), tier->memory()), "")
            << i << " at " << before << (tier == &checked ? " with checks" : "");
        ASSERT_EQ(std::memcmp(expected.instance().global(0).bytes, tier->instance().global(0).bytes, 4), 0)
            << i << " at " << before << (tier == &checked ? " with checks" : "");
      }
    }
  }
}

// Each on its own, since one of them had its own cause in LLVM.
TEST(OrderOfAccesses, OfStoresAndGlobalsAroundALoadThatTrapsIsTheProgrammers) {
  constexpr std::string_view kText = R"((module (memory 1) (global $g (mut i32) (i32.const 0))
    (func (export "overwritten global") (param $p i32) (result i32) (local $x i32)
      (global.set $g (i32.const 1)) (local.set $x (i32.load (local.get $p))) (global.set $g (i32.const 2)) (local.get $x))
    (func (export "overwritten store") (param $p i32) (result i32) (local $x i32)
      (i32.store (i32.const 65528) (i32.const 1)) (local.set $x (i32.load (i32.const 65533)))
      (i32.store (i32.const 65528) (i32.const 2)) (local.get $x))
    (func (export "neighbours") (param $p i32) (result i32)
      (i32.store (local.get $p) (i32.const 1)) (i32.store offset=4 (local.get $p) (i32.const 2))
      (i32.store offset=8 (local.get $p) (i32.const 3)) (i32.store offset=12 (local.get $p) (i32.const 4)) (i32.const 0))
    (func (export "bytes") (param $p i32) (result i32)
      (i32.store8 (local.get $p) (i32.const 1)) (i32.store8 offset=1 (local.get $p) (i32.const 1))
      (i32.store8 offset=2 (local.get $p) (i32.const 1)) (i32.store8 offset=3 (local.get $p) (i32.const 1)) (i32.const 0))
    (func (export "behind") (param $p i32) (result i32) (local $x i32)
      (local.set $x (i32.load offset=8 (local.get $p))) (i32.store (local.get $p) (i32.const 7))
      (global.set $g (i32.const 3)) (local.get $x))
    (func (export "in both arms") (param $p i32) (result i32)
      (if (i32.and (local.get $p) (i32.const 1))
        (then (global.set $g (i32.const 5)) (drop (i32.load (local.get $p))))
        (else (global.set $g (i32.const 6)) (drop (i32.load (local.get $p))))) (i32.const 1))
    (func (export "global of a loop") (param $p i32) (result i32) (local $n i32)
      (loop $l (global.set $g (i32.add (global.get $g) (i32.const 1)))
        (i32.store8 (i32.add (local.get $p) (local.get $n)) (i32.const 1))
        (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 40)))) (i32.const 0))))";
  const auto module = TestInstance::module_of(kText);
  ASSERT_NE(module, nullptr);
  Tier expected(Tier::Kind::kBaseline, module), optimized(Tier::Kind::kOptimized, module);
  for (const wasm::Export& exported : module->exports) {
    for (uint32_t p = kEnd - 20; p < kEnd + 4; ++p) {
      const std::string name(exported.name);
      ASSERT_EQ(optimized.call(name, {i32(p)}), expected.call(name, {i32(p)})) << name << " at " << p;
      EXPECT_EQ(first_difference(expected.memory(), optimized.memory()), "") << name << " at " << p;
      EXPECT_EQ(std::memcmp(expected.instance().global(0).bytes, optimized.instance().global(0).bytes, 4), 0)
          << name << " at " << p;
    }
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
