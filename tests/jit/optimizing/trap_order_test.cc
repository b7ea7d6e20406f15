// "Certain instructions may produce a trap, which immediately aborts execution". So memory and globals hold
// after it what was stored before it, and nothing that comes after it. Tried are every store and every load,
// at, across and beyond the end of memory. They stand in straight code and in each iteration of loops that
// become vectors, fills and copies. Each has to leave both as baseline code does.
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "tests/jit/optimizing/replaced.h"
#include "tests/jit/optimizing/tiers.h"

namespace hindsight::jit::testing {
namespace {

struct Access {
  const char* name;
  uint32_t bytes;
  char type;  // of the value, i: i32, l: i64, f, d: floats, v: vector
};

constexpr Access kStores[] = {
    {"i32.store", 4, 'i'},
    {"i32.store8", 1, 'i'},
    {"i32.store16", 2, 'i'},
    {"i64.store", 8, 'l'},
    {"i64.store8", 1, 'l'},
    {"i64.store16", 2, 'l'},
    {"i64.store32", 4, 'l'},
    {"f32.store", 4, 'f'},
    {"f64.store", 8, 'd'},
    {"v128.store", 16, 'v'},
    {"v128.store8_lane", 1, 'v'},
    {"v128.store16_lane", 2, 'v'},
    {"v128.store32_lane", 4, 'v'},
    {"v128.store64_lane", 8, 'v'},
    {"i32.atomic.store", 4, 'i'},
    {"i32.atomic.store8", 1, 'i'},
    {"i32.atomic.store16", 2, 'i'},
    {"i64.atomic.store", 8, 'l'},
    {"i64.atomic.store8", 1, 'l'},
    {"i64.atomic.store16", 2, 'l'},
    {"i64.atomic.store32", 4, 'l'},
    {"i32.atomic.rmw.add", 4, 'i'},
    {"i32.atomic.rmw8.xchg_u", 1, 'i'},
    {"i64.atomic.rmw.or", 8, 'l'},
};
constexpr Access kLoads[] = {
    {"i32.load", 4, 'i'},
    {"i32.load8_s", 1, 'i'},
    {"i32.load8_u", 1, 'i'},
    {"i32.load16_s", 2, 'i'},
    {"i32.load16_u", 2, 'i'},
    {"i64.load", 8, 'l'},
    {"i64.load8_s", 1, 'l'},
    {"i64.load8_u", 1, 'l'},
    {"i64.load16_s", 2, 'l'},
    {"i64.load16_u", 2, 'l'},
    {"i64.load32_s", 4, 'l'},
    {"i64.load32_u", 4, 'l'},
    {"f32.load", 4, 'f'},
    {"f64.load", 8, 'd'},
    {"v128.load", 16, 'v'},
    {"v128.load8x8_s", 8, 'v'},
    {"v128.load8x8_u", 8, 'v'},
    {"v128.load16x4_s", 8, 'v'},
    {"v128.load16x4_u", 8, 'v'},
    {"v128.load32x2_s", 8, 'v'},
    {"v128.load32x2_u", 8, 'v'},
    {"v128.load8_splat", 1, 'v'},
    {"v128.load16_splat", 2, 'v'},
    {"v128.load32_splat", 4, 'v'},
    {"v128.load64_splat", 8, 'v'},
    {"v128.load32_zero", 4, 'v'},
    {"v128.load64_zero", 8, 'v'},
    {"v128.load8_lane", 1, 'v'},
    {"v128.load16_lane", 2, 'v'},
    {"v128.load32_lane", 4, 'v'},
    {"v128.load64_lane", 8, 'v'},
    {"i32.atomic.load", 4, 'i'},
    {"i32.atomic.load8_u", 1, 'i'},
    {"i32.atomic.load16_u", 2, 'i'},
    {"i64.atomic.load", 8, 'l'},
    {"i64.atomic.load8_u", 1, 'l'},
    {"i64.atomic.load16_u", 2, 'l'},
    {"i64.atomic.load32_u", 4, 'l'},
};

// $p: the place that comes to the end; $o: one that stays inside; $i: iterations so far; $n: how many there
// are to be.
constexpr const char* kStoring[] = {
    // Straight: between two others; neighbours; given up in an arm.
    "(i32.store (i32.const 64) (i32.const 1)) !0 (i32.store (i32.const 68) (i32.const 2))",
    "!0 !1 (global.set $g (i32.const 5)) !2",
    "(if (local.get $n) (then !1 (i32.store (local.get $o) (i32.const 9)))) !0",
    // Loops.
    "(loop $l !c % (br_if $l @))",
    "(loop $l !0 % (br_if $l @))",
    "(loop $l !0 - (br_if $l @))",
    "(loop $l !0 3 (br_if $l @))",
    "(loop $l !0 !1 2 (br_if $l @))",
    "(loop $l !1 !0 2 (br_if $l @))",
    "(loop $l !0 (i32.store (local.get $o) (local.get $i)) (local.set $o (i32.add (local.get $o) (i32.const "
    "4))) % (br_if $l @))",
    "(loop $l (i32.store (local.get $o) (local.get $i)) (local.set $o (i32.add (local.get $o) (i32.const "
    "4))) !0 % (br_if $l @))",
    "(loop $l (if (i32.and (i32.load (local.get $o)) (i32.const 1)) (then !0)) (i32.store (local.get $o) "
    "(local.get $i))"
    " (local.set $o (i32.add (local.get $o) (i32.const 4))) % (br_if $l @))",
    "(loop $l (global.set $g (local.get $i)) !0 % (br_if $l @))",
};
constexpr const char* kLoading[] = {
    "(i32.store (i32.const 64) (i32.const 1)) !0 (i32.store (i32.const 68) (i32.const 2))",
    "(global.set $g (i32.const 5)) !1 !0 (global.set $g (i32.const 6))",
    "(loop $l !0 + % (br_if $l @))",
    "(loop $l (i64.store offset=8192 (local.get $o) (i64.const 7)) !0 + % (br_if $l @))",
    "(loop $l !0 + - (br_if $l @))",
    "(loop $l !0 + 3 (br_if $l @))",
    "(loop $l !0 !1 + 2 (br_if $l @))",
    "(loop $l (global.set $g (local.get $i)) !0 + % (br_if $l @))",
    // The place does not change: the first turn stores before it comes there.
    "(loop $l (i64.store offset=8192 (local.get $o) (i64.const 7)) !0 + (br_if $l @))",
    "(loop $l (global.set $g (local.get $i)) !0 (i32.store8 offset=9000 (local.get $o) (local.get $i)) + "
    "(br_if $l @))",
};

std::string value_of(char type, bool constant) {
  const std::string number = constant ? "(i32.const 0x5a5a5a5a)" : "(local.get $i)";
  switch (type) {
    case 'i':
      return number;
    case 'l':
      return "(i64.extend_i32_u " + number + ")";
    case 'f':
      return "(f32.convert_i32_u " + number + ")";
    case 'd':
      return "(f64.convert_i32_u " + number + ")";
    default:
      return "(i32x4.splat " + number + ")";
  }
}

bool is_lane(const Access& access) {
  return std::string_view(access.name).ends_with("_lane");
}

std::string store_of(const Access& access, uint32_t neighbour, bool constant) {
  const std::string name(access.name);
  const std::string text = "(" + name + " offset=" + std::to_string(neighbour * access.bytes) +
                           (is_lane(access) ? " 0" : "") + " (local.get $p) " +
                           value_of(access.type, constant) + ")";
  return name.find(".rmw") == std::string::npos ? text : "(drop " + text + ")";
}

std::string load_beside(const Access& access, uint32_t neighbour) {
  const std::string load = "(" + std::string(access.name) +
                           " offset=" + std::to_string(neighbour * access.bytes) +
                           (is_lane(access) ? " 0" : "") + " (local.get $p)" +
                           (is_lane(access) ? " (v128.const i64x2 7 8))" : ")");
  const std::string to = " offset=" + std::to_string(16 * neighbour) + " (local.get $o) " + load + ")";
  switch (access.type) {
    case 'i':
      return "(i32.store" + to;
    case 'l':
      return "(i64.store" + to;
    case 'f':
      return "(f32.store" + to;
    case 'd':
      return "(f64.store" + to;
    default:
      return "(v128.store" + to;
  }
}

std::string body_of(const Access& access, std::string text, bool stores) {
  const auto step = [&](const char* direction, uint32_t times) {
    return std::string("(local.set $p (i32.") + direction + " (local.get $p) (i32.const " +
           std::to_string(access.bytes * times) + ")))";
  };
  // Steps stand between blanks: what is put in for the accesses has such characters too.
  text = replaced(text, " % ", " " + step("add", 1) + " ");
  text = replaced(text, " - ", " " + step("sub", 1) + " ");
  text = replaced(text, " 2 ", " " + step("add", 2) + " ");
  text = replaced(text, " 3 ", " " + step("add", 3) + " ");
  text = replaced(text, " + ", " (local.set $o (i32.add (local.get $o) (i32.const 32))) ");
  text =
      replaced(text, "@", "(i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))");
  for (uint32_t neighbour = 0; neighbour < 3; ++neighbour)
    text = replaced(text, "!" + std::to_string(neighbour),
                    stores ? store_of(access, neighbour, false) : load_beside(access, neighbour));
  return replaced(text, "!c", store_of(access, 0, true));
}

void compare_tiers(const Access& access, std::span<const char* const> forms, bool stores) {
  std::string text = "(module (memory 1) (global $g (mut i32) (i32.const 0)) ";
  std::vector<std::string> bodies;
  for (const char* form : forms) {
    bodies.push_back(body_of(access, form, stores));
    text += "(func (export \"" + std::to_string(bodies.size() - 1) +
            "\") (param $p i32) (param $o i32) (param $n i32) (local $i i32) " + bodies.back() + ")\n";
  }
  const auto module = TestInstance::module_of(text + ")");
  ASSERT_NE(module, nullptr);
  Tier expected(Tier::Kind::kBaseline, module), optimized(Tier::Kind::kOptimized, module),
      checked(Tier::Kind::kOptimizedWithChecks, module);
  constexpr uint32_t kTurns = 70;
  int wrong = 0;
  size_t traps = 0;
  for (size_t form = 0; form < forms.size(); ++form) {
    const uint32_t step = std::string_view(forms[form]).find(" 3 ") != std::string_view::npos   ? 3
                          : std::string_view(forms[form]).find(" 2 ") != std::string_view::npos ? 2
                                                                                                : 1;
    const bool down = std::string_view(forms[form]).find(" - ") != std::string_view::npos;
    for (const uint32_t turn : {0u, 1u, 5u, 16u, 37u, 69u, 71u}) {
      for (const uint32_t past : std::set{0u, 1u, access.bytes / 2, access.bytes - 1, access.bytes}) {
        // This iteration's access ends so far past the end of memory.
        const uint32_t way = access.bytes * step * turn;
        const uint32_t place = kEnd - access.bytes + past - (down ? 0 : way);
        for (const uint32_t count : {kTurns, 3u}) {
          const std::vector<Value> args = {i32(place), i32(256), i32(count)};
          const std::string name = std::to_string(form);
          const Outcome outcome = expected.call(name, args);
          traps += outcome.trap != TrapCode::kNone;
          for (Tier* tier : {&optimized, &checked}) {
            const Outcome other = tier->call(name, args);
            const std::string memory = first_difference(expected.memory(), tier->memory());
            const bool same_global =
                std::memcmp(expected.instance().global(0).bytes, tier->instance().global(0).bytes, 4) == 0;
            if (other == outcome && memory.empty() && same_global) continue;
            if (++wrong > 8) continue;
            ADD_FAILURE() << access.name << (tier == &checked ? " with checks" : "") << ", " << count
                          << " turns, in turn " << turn << " " << past
                          << " bytes too far: " << ::testing::PrintToString(other) << " instead of "
                          << ::testing::PrintToString(outcome) << " " << memory
                          << (same_global ? "" : " the global differs") << "\n"
                          << bodies[form];
          }
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(traps, forms.size() * 5);
}

class OrderAtATrap : public ::testing::TestWithParam<Access> {};

TEST_P(OrderAtATrap, OfEveryStoreIsTheProgrammers) {
  compare_tiers(GetParam(), kStoring, true);
}

INSTANTIATE_TEST_SUITE_P(Of, OrderAtATrap, ::testing::ValuesIn(kStores),
                         [](const auto& info) { return replaced(info.param.name, ".", "_"); });

class OrderAtATrapOfALoad : public ::testing::TestWithParam<Access> {};

TEST_P(OrderAtATrapOfALoad, OfEveryStoreAroundItIsTheProgrammers) {
  compare_tiers(GetParam(), kLoading, false);
}

INSTANTIATE_TEST_SUITE_P(Of, OrderAtATrapOfALoad, ::testing::ValuesIn(kLoads),
                         [](const auto& info) { return replaced(info.param.name, ".", "_"); });

// Each has its own cause in one of LLVM's passes, or in our own.
struct Case {
  const char* name;
  const char* text;  // statements with $p, $q, $n, $x; and a counter
};
constexpr Case kCases[] = {
    {"ALoadOnOneWayOfTwoBehindAStore",
     "(if (local.get $n) (then (local.set $x (i32.load offset=8 (local.get $p)))) (else (local.set $x "
     "(i32.const 3))))"
     " (i32.store (local.get $p) (local.get $x))"
     " (i32.store (i32.const 64) (i32.load offset=8 (local.get $p)))"},
    {"AFixedLoadBehindAStoreOfTheSameTurn",
     "(loop $l (i32.store (local.get $p) (local.get $i)) (local.set $x (i32.add (local.get $x) (i32.load "
     "offset=4 (local.get $p))))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"
     " (i32.store (i32.const 64) (local.get $x))"},
    {"ALoadOfWhatTheTurnBeforeStored",
     "(loop $l (i32.store (local.get $q) (local.get $i)) (i32.store offset=4 (local.get $p) (i32.add "
     "(i32.load (local.get $p))"
     " (local.get $i))) (local.set $p (i32.add (local.get $p) (i32.const 4))) (local.set $q (i32.add "
     "(local.get $q) (i32.const 8)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"ACopy",
     "(loop $l (i64.store (local.get $q) (i64.load (local.get $p)))"
     " (local.set $p (i32.add (local.get $p) (i32.const 8))) (local.set $q (i32.add (local.get $q) "
     "(i32.const 8)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"ACopyTheOtherWay",
     "(loop $l (i64.store (local.get $p) (i64.load (local.get $q)))"
     " (local.set $p (i32.add (local.get $p) (i32.const 8))) (local.set $q (i32.add (local.get $q) "
     "(i32.const 8)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"PlacesFromData",
     "(loop $l (i32.store8 (local.get $q) (local.get $i))"
     " (i32.store8 (i32.add (local.get $p) (i32.load8_u (local.get $i))) (local.get $i)) (local.set $q "
     "(i32.add (local.get $q)"
     " (i32.const 1))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get "
     "$n))))"},
    {"ATableByBytes",
     "(loop $l (i32.store16 (local.get $q)"
     " (i32.load16_u (i32.add (local.get $p) (i32.shl (i32.load8_u (local.get $i)) (i32.const 1))))) "
     "(local.set $q (i32.add"
     " (local.get $q) (i32.const 2)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"AStepThatIsAnArgument",
     "(loop $l (i32.store (local.get $p) (local.get $i)) (local.set $p (i32.add (local.get $p) (local.get "
     "$q)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"AnIndexThatWraps",
     "(loop $l (i32.store8 (i32.sub (local.get $p) (local.get $i)) (local.get $i)) (i32.store8 (i32.add "
     "(i32.sub (local.get $q)"
     " (i32.const 1020)) (local.get $i)) (i32.const 1))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))"},
    {"ABranchWhoseWaysComeToTheSameNumber",
     "(if (i32.and (i32.load (local.get $p)) (i32.const 0x1000000)) (then (loop $l (local.set $x (i32.add "
     "(local.get $x) (local.get $i)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))"
     " (i32.store (i32.const 8) (local.get $x))) (else (i32.store (i32.const 8) (i32.const 45))))"},
    {"ABranchBetweenEqualChoices",
     "(if (i32.load8_u (i32.const 100)) (then (local.set $i (i32.load (i32.const 104)))) (else (local.set $i "
     "(i32.load (i32.const 108)))))"
     " (if (i32.load8_u (i32.const 100)) (then (local.set $x (i32.load (i32.const 104)))) (else (local.set "
     "$x (i32.load (i32.const 108)))))"
     " (if (i32.load (local.get $p)) (then (i32.store (i32.const 8) (local.get $i))) (else (i32.store "
     "(i32.const 8) (local.get $x))))"},
    {"ABranchToTheSameEnd",
     "(loop $l (local.set $x (i32.add (local.get $x) (i32.const 2)))"
     " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))"
     " (if (i32.load (local.get $p)) (then (local.set $q (local.get $x))) (else (local.set $q (i32.const "
     "24))))"
     " (i32.store (i32.const 8) (local.get $q))"},
    {"AnEndOfTheLoopThatTheCountIsAsWell",
     "(block $out (loop $l (br_if $out (i32.eq (i32.load (i32.add (local.get $p) (local.get $i))) "
     "(i32.const 5))) (local.set $i (i32.add (local.get $i) (i32.const 4))) (br_if $l (i32.lt_u "
     "(local.get $i) (i32.const 16))))) (i32.store (i32.const 8) (i32.const 7))"},
    {"ASearchThatNothingAsksAbout",
     "(block $out (loop $l (br_if $out (i32.eq (i32.load (i32.add (local.get $p) (local.get $i))) "
     "(i32.const 5))) (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u "
     "(local.get $i) (local.get $n))))) (i32.store (i32.const 8) (i32.const 7))"},
    {"AnEndThatIsFoundLateNeverToCome",
     "(loop $t (local.set $x (i32.add (local.get $x) (i32.const 30))) (br_if $t (i32.lt_u (local.tee "
     "$i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (block $out (loop $m (br_if $out "
     "(i32.eq (i32.load8_u (local.get $p)) (local.get $x))) (local.set $p (i32.add (local.get $p) "
     "(i32.const 1))) (br $m)))"},
    {"AChoiceOfThreeThatAreOne",
     "(loop $t (local.set $x (i32.add (local.get $x) (i32.const 30))) (br_if $t (i32.lt_u (local.tee "
     "$i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (block $end (block $one (block "
     "$zero (br_table $zero $one $end (i32.load8_u (local.get $p)))) (local.set $i (local.get $x)) "
     "(br $end)) (local.set $i (i32.const 300))) (if (i32.ne (local.get $i) (i32.const 10)) (then "
     "(i32.store (i32.const 8) (i32.const 300))) (else (i32.store (i32.const 8) (i32.const 300))))"},
    {"AStoreOfWhatIsThereAlready",
     "(loop $t (local.set $x (i32.add (local.get $x) (i32.const 30))) (br_if $t (i32.lt_u (local.tee "
     "$i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (i32.store (local.get $q) "
     "(i32.const 300)) (if (i32.load (local.get $p)) (then (i32.store (local.get $q) (local.get $x))))"},
    {"AByteThatIsComparedWithAWord",
     "(loop $t (local.set $x (i32.add (local.get $x) (i32.const 30))) (br_if $t (i32.lt_u (local.tee "
     "$i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (if (i32.eq (i32.load8_u "
     "(local.get $p)) (local.get $x)) (then (unreachable)))"},
    {"ASumThatIsNeverZero",
     "(loop $t (local.set $x (i32.add (local.get $x) (i32.const 30))) (br_if $t (i32.lt_u (local.tee "
     "$i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (if (i32.eqz (i32.add (i32.load8_u "
     "(local.get $p)) (local.get $x))) (then (unreachable)))"},
    {"ALoadThatIsComparedWithItself",
     "(local.set $x (i32.const -45)) (loop $t (local.set $x (i32.add (local.get $x) (local.get $i))) "
     "(br_if $t (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10)))) (if "
     "(i32.ne (i32.load (local.get $p)) (i32.load (i32.add (local.get $p) (local.get $x)))) (then "
     "(unreachable)))"},
    {"AWayThatHasNoEnd",
     "(local.set $x (i32.load (local.get $p))) (if (i32.gt_u (local.get $p) (i32.const 65532)) (then "
     "(loop $l (i32.store (i32.const 64) (local.get $i)) (if (i32.gt_u (local.tee $i (i32.add "
     "(local.get $i) (i32.const 1))) (i32.const 5)) (then (unreachable))) (br $l)))) (i32.store "
     "(i32.const 8) (local.get $x))"},
    {"AStoreOfALoadThatIsOverwritten",
     "(local.set $x (i32.load (local.get $p))) (local.set $i (i32.load offset=16 (local.get $q))) "
     "(i32.store (local.get $q) (local.get $x)) (i32.store (local.get $q) (i32.load offset=16 "
     "(local.get $q))) (i32.store (i32.const 8) (local.get $i))"},
    {"AStoreOfALoadThatIsCovered",
     "(i32.store8 offset=3 (local.get $q) (i32.load8_u (local.get $p))) (i32.store (local.get $q) "
     "(i32.const 5)) (i32.store (i32.const 8) (i32.load (i32.const 0)))"},
    {"ANumberOfTwoHalves",
     "(i64.store (local.get $p) (i64.or (i64.extend_i32_u (i32.add (local.get $q) (i32.const "
     "0x5a5a5a5a))) (i64.shl (i64.extend_i32_u (i32.reinterpret_f32 (f32.convert_i32_u (i32.add "
     "(local.get $n) (i32.const 3))))) (i64.const 32))))"},
    {"ACopyOfWhatWasStoredInPart",
     "(i32.store (i32.const 4) (i32.add (local.get $q) (i32.const 0x5a5a5a5a))) (v128.store "
     "(i32.const 65528) (v128.load (i32.const 0)))"},
    {"AConditionOfEachTurnBehindAGlobal",
     "(loop $l (global.set $g (i32.add (local.get $i) (i32.const 1001))) (if (i32.load (local.get "
     "$p)) (then (i32.store (local.get $p) (local.get $i)) (local.set $x (i32.add (local.get $x) "
     "(i32.const 3))))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) "
     "(local.get $n)))) (i32.store (i32.const 8) (local.get $x))"},
    {"AFixedLoadBehindAGlobalOfTheSameTurn",
     "(loop $l (global.set $g (i32.const 9)) (local.set $x (i32.add (local.get $x) (i32.load "
     "(local.get $p)))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) "
     "(local.get $n)))) (i32.store (i32.const 8) (local.get $x))"},
    {"ALoadBeforeAStoreThatNotEachTurnMakes",
     "(local.set $p (i32.sub (local.get $p) (i32.const 320))) (loop $l (local.set $q (i32.load "
     "offset=100 (local.get $p))) (if (i32.and (local.get $p) (i32.const 4)) (then (i32.store "
     "(local.get $p) (i32.const 7)))) (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 31)) "
     "(local.get $q))) (local.set $p (i32.add (local.get $p) (i32.add (i32.and (local.get $n) "
     "(i32.const 1)) (i32.const 4)))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) "
     "(i32.const 1))) (local.get $n)))) (i32.store (i32.const 8) (local.get $x))"},
    {"ALoopInALoop",
     "(loop $m (local.set $x (i32.const 0)) (loop $l (i32.store (i32.add (local.get $p) (i32.shl (local.get "
     "$x) (i32.const 2)))"
     " (i32.add (local.get $x) (local.get $i))) (br_if $l (i32.lt_u (local.tee $x (i32.add (local.get $x) "
     "(i32.const 1)))"
     " (local.get $n)))) (local.set $p (i32.add (local.get $p) (i32.const 40)))"
     " (br_if $m (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5))))"},
};

class OrderAtATrapOfAShape : public ::testing::TestWithParam<Case> {};

TEST_P(OrderAtATrapOfAShape, IsTheProgrammers) {
  const auto module =
      TestInstance::module_of(std::string("(module (memory 1) (global $g (mut i32) (i32.const 0)) "
                                          "(func (export \"run\") (param $p i32) (param "
                                          "$q i32) (param $n i32) (local $i i32)"
                                          " (local $x i32) ") +
                              GetParam().text + "))");
  ASSERT_NE(module, nullptr);
  Tier expected(Tier::Kind::kBaseline, module), optimized(Tier::Kind::kOptimized, module),
      checked(Tier::Kind::kOptimizedWithChecks, module);
  for (const uint32_t n : {0u, 1u, 3u, 40u, 200u}) {
    for (const uint32_t q : {4u, 1000u, 4096u, kEnd - 600}) {
      for (uint32_t before = 0; before < 1200; before += 1 + before / 3) {
        const std::vector<Value> args = {i32(kEnd - before), i32(q), i32(n)};
        const Outcome outcome = expected.call("run", args);
        for (Tier* tier : {&optimized, &checked}) {
          ASSERT_EQ(tier->call("run", args), outcome)
              << before << " bytes before the end, " << q << ", " << n;
          ASSERT_EQ(first_difference(expected.memory(), tier->memory()), "")
              << before << " bytes before the end, " << q << ", " << n
              << (tier == &checked ? " with checks" : "");
          ASSERT_EQ(std::memcmp(expected.instance().global(0).bytes, tier->instance().global(0).bytes, 4), 0)
              << "the global, " << before << " bytes before the end, " << q << ", " << n;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(With, OrderAtATrapOfAShape, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hindsight::jit::testing
