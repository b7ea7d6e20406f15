// Loops of searches, several at once: which ones, and that nobody can tell but by the clock.
#include "tests/jit/optimizing/searches.h"

namespace hindsight::jit::testing {
namespace {

TEST(Interleave, LookUpsInATreeGoSeveralAtOnce) {
  Searches s(searches("", kTreeSearch, std::string(kAddValue) + kEnd, "(local.get $sum)") + kEnd, 1);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  EXPECT_EQ(s.site().site.kind, ChangeKind::kInterleave);
  ASSERT_EQ(s.version->loop_cells.size(), 1u);
  s.fill(fill_tree);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(kData)}; });
  EXPECT_GT(s.interleaved.instance->strips_ended, 0u);
  // No tree at all.
  s.expect_same({i32(100), i32(0)}, "without a tree");
}

// Trees of a model in C++, not only of other generated code.
TEST(Interleave, LookUpsInATreeFindWhatIsThere) {
  Searches s(searches("", kTreeSearch, std::string(kAddValue) + kEnd, "(local.get $sum)") + kEnd, 1);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill(fill_tree);
  uint64_t sum = 0x7fff1234567;
  for (uint32_t i = 0; i < kMost; ++i) {
    const uint32_t key = s.words(s.interleaved)[i];
    if (key % 2 == 1 && key < 10000) sum = sum * 31 + (key / 2) * 2654435761u;
  }
  EXPECT_EQ(s.interleaved.call("f", {i32(kMost), i32(kData)}), returns({i64(sum)}));
}

// The bytes of a record go through a table, each look-up with what the one before gave.
constexpr const char* kChecksum = R"(
  (local.set $c (i32.const -1))
  (local.set $p (i32.const 0))
  (loop $bytes
    (local.set $c (i32.xor (i32.shr_u (local.get $c) (i32.const 8))
      (i32.load offset=65536 (i32.shl (i32.and (i32.const 255) (i32.xor (local.get $c)
        (i32.load8_u offset=70000 (i32.add (local.get $p) (i32.shl (local.get $key) (i32.const 5)))))) (i32.const 2)))))
    (br_if $bytes (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (local.get $root)))))";

TEST(Interleave, AStreamThatASearchWaitsForIsAPartOfIt) {
  for (const uint32_t load : {1u, 2u}) {  // the byte, whose address is a stride; the table's word
    Searches s(searches("(local $c i32)", kChecksum,
                        "(local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) "
                        "(i64.extend_i32_u (local.get $c))))",
                        "(local.get $sum)") +
                   kEnd,
               load);
    ASSERT_TRUE(s.site().is_applied()) << load << ": " << s.site().why;
    s.fill([](uint32_t* words) {
      std::mt19937 random(2);
      for (uint32_t i = 0; i < kWords; ++i) words[i] = random();
      for (uint32_t i = 0; i < kMost; ++i) words[i] %= 4000;
    });
    s.expect_same_at_all_widths([](uint32_t n) {
      return std::vector<Value>{i32(n), i32(n % 5 == 0 ? 1 : 29)};
    });
    EXPECT_GT(s.interleaved.instance->strips_ended, 0u);
  }
}

TEST(Interleave, RunningLoopsAreEnteredInTheMiddleToo) {
  Searches s(searches("", kTreeSearch, std::string(kAddValue) + kEnd, "(local.get $sum)") + kEnd, 1, true);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  ASSERT_EQ(s.version->osr_entries.size(), 1u);
  s.fill(fill_tree);
  s.expect_same({i32(kMost), i32(kData)}, "entered at the top");
}

// Steps without branches go in the lanes of vectors where the processor has them.
void expect_lanes(const Searches& s) {
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_NE(s.site().why.find("lanes in a vector"), std::string::npos) << s.site().why;
  }
}

TEST(Interleave, BinarySearchesGoSeveralAtOnceAndFloatsAreAddedInOrder) {
  Searches s(searches("(local $hi i32) (local $mid i32) (local $f f64)", kBinarySearch,
                      "(local.set $f (f64.add (f64.mul (local.get $f) (f64.const 0.75)) "
                      "(f64.convert_i32_u (i32.xor (local.get $p) (local.get $i)))))",
                      "(local.get $f)", "f64") +
                 kEnd,
             1);
  expect_lanes(s);
  s.fill(fill_table);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(20000)}; });
  s.expect_same({i32(1000), i32(0)}, "of nothing");
  s.expect_same({i32(1000), i32(1)}, "of one");
}

TEST(Interleave, ALaneThatLeavesMemoryTrapsAsInOrder) {
  // The search for one key goes through a table that is larger than the memory.
  const std::string search =
      "(local.set $root (select (i32.const 100000) (local.get $root) (i32.eq (local.get $i) (i32.const "
      "205))))" +
      std::string(kBinarySearch) + "(local.set $root (i32.const 20000))";
  Searches s(searches("(local $hi i32) (local $mid i32)", search,
                      "(local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $p))))",
                      "(local.get $sum)") +
                 kEnd,
             1);
  expect_lanes(s);
  s.fill(fill_table);
  EXPECT_EQ(s.plain.call("f", {i32(205), i32(20000)}).trap, TrapCode::kNone);
  EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(20000)}), traps(TrapCode::kMemoryOutOfBounds));
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(20000)}; });
}

// What its last comparison said is all that a search leaves: one bit, which LLVM keeps as one.
TEST(Interleave, ABitMayBeWhatASearchFinds) {
  std::string search = kBinarySearch;
  const std::string compared =
      "(i32.lt_u (i32.load offset=65536 (i32.shl (local.get $mid) (i32.const 2))) (local.get $key))";
  const size_t at = search.find(compared);
  ASSERT_NE(at, std::string::npos);
  search.replace(at, compared.size(), "(local.tee $less " + compared + ")");
  Searches s(searches("(local $hi i32) (local $mid i32) (local $less i32)",
                      "(local.set $less (i32.const 0))" + search,
                      "(local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 3)) "
                      "(select (i64.const 1000003) (i64.const 77) (local.get $less))))",
                      "(local.get $sum)") +
                 kEnd,
             1);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill(fill_table);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(20000)}; });
}

// What a search loads for nothing may be what traps.
TEST(Interleave, ALoadThatNothingNeedsTrapsAsItDidBefore) {
  std::string search = kBinarySearch;
  search.insert(search.find("(if (i32.lt_u"),
                "(drop (i32.load offset=180000 (i32.shl (local.get $mid) (i32.const 2))))");
  Searches s(searches("(local $hi i32) (local $mid i32)", search,
                      "(local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $p))))",
                      "(local.get $sum)") +
                 kEnd,
             2);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill([](uint32_t* words) {
    fill_table(words);
    for (uint32_t i = 0; i < 400; ++i) words[i] = i;  // to the left: the other load stays in memory
  });
  EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(40000)}), traps(TrapCode::kMemoryOutOfBounds));
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(40000)}; });
}

// A walk that depends on what it reads in all ways that lanes have. It has words of both widths, sums of its own,
// smaller and greater, and shifts. It has a way out at the end of the step that is taken at different times.
TEST(Interleave, LanesComputeWhatOneSearchAtATimeComputes) {
  const std::string walk = R"(
    (local.set $p (i32.and (local.get $key) (i32.const 0xfff8))) (local.set $k (i32.const 0))
    (local.set $w (i64.extend_i32_s (local.get $key)))
    (loop $step
      (local.set $d (i64.load offset=65536 (local.get $p)))
      (local.set $w (select (i64.add (local.get $w) (local.get $d))
                            (i64.xor (i64.shl (local.get $w) (i64.const 3)) (local.get $d))
                            (i64.lt_s (local.get $w) (local.get $d))))
      (local.set $sum (i64.add (local.get $sum) (local.get $w)))
      (local.set $p (i32.and (i32.mul (i32.add (i32.wrap_i64 (local.get $d)) (i32.add (local.get $p) (i32.const 24)))
                              (i32.const 5)) (i32.const 0x1fff8)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $step (i32.and (i32.ne (i32.and (i32.wrap_i64 (local.get $w)) (i32.const 7)) (i32.const 0))
                            (i32.lt_u (local.get $k) (i32.const 40))))))";
  Searches s(
      searches("(local $k i32) (local $w i64) (local $d i64)", walk,
               "(local.set $sum (i64.mul (i64.xor (local.get $sum) (i64.add (local.get $w) (i64.extend_i32_u "
               "(i32.add (local.get $p) (local.get $k))))) (i64.const 31)))",
               "(local.get $sum)") +
          kEnd,
      1);
  expect_lanes(s);
  s.fill([](uint32_t* words) {
    std::mt19937 random(5);
    for (uint32_t i = 0; i < kWords; ++i) words[i] = random();
  });
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(0)}; });

  const std::string floats = R"(
    (local.set $p (i32.and (local.get $key) (i32.const 0xfff8))) (local.set $k (i32.const 0))
    (local.set $x (f64.convert_i32_s (local.get $key)))
    (loop $step
      (local.set $x (f64.add (f64.mul (local.get $x) (f64.const 0.25))
                             (f64.reinterpret_i64 (i64.or (i64.and (i64.load offset=65536 (local.get $p))
                               (i64.const 0x800fffffffffffff)) (i64.const 0x3ff0000000000000)))))
      (local.set $p (i32.and (i32.add (i32.load offset=65540 (local.get $p)) (local.get $p)) (i32.const 0x1fff8)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $step (i32.and (f64.gt (local.get $x) (f64.const -1)) (i32.lt_u (local.get $k) (i32.const 30))))))";
  Searches f(
      searches("(local $k i32) (local $x f64) (local $y f64)", floats,
               "(local.set $y (f64.add (f64.mul (local.get $y) (f64.const 0.5)) (f64.add (local.get $x) "
               "(f64.convert_i32_u (local.get $p)))))",
               "(local.get $y)", "f64") +
          kEnd,
      1);
  expect_lanes(f);
  f.fill([](uint32_t* words) {
    std::mt19937 random(6);
    for (uint32_t i = 0; i < kWords; ++i) words[i] = random();
  });
  f.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(0)}; });
}

TEST(Interleave, ProbesOfHashChainsGoSeveralAtOnceThoughTheySumUpInTheChain) {
  for (const char* operation : {"i64.add", "i64.sub", "i64.xor", "i64.or", "i64.and", "i64.mul"}) {
    Searches s(searches("", chain(operation), "", "(local.get $sum)") + kEnd, 2);
    ASSERT_TRUE(s.site().is_applied()) << operation << ": " << s.site().why;
    s.fill(fill_chains);
    s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(0)}; });
  }
}

TEST(Interleave, ASumThatBeginsAnewIsPartOfTheSearch) {
  Searches s(searches("(local $all i64)", chain("i64.add", "(local.set $sum (i64.const 7))"),
                      "(local.set $all (i64.xor (i64.rotl (local.get $all) (i64.const 3)) (local.get $sum)))",
                      "(local.get $all)") +
                 kEnd,
             2);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill(fill_chains);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(0)}; });
}

TEST(Interleave, TheLastSearchesValuesLeaveTheLoop) {
  Searches s(
      searches("(local $before i32) (local $last i32)", kTreeSearch,
               "(local.set $before (local.get $last)) (local.set $last (local.get $p))",
               "(i64.add (i64.mul (i64.extend_i32_u (local.get $before)) (i64.const 1000003)) "
               "(i64.extend_i32_u (i32.add (local.get $last) (i32.add (local.get $key) (local.get $i)))))") +
          kEnd,
      1);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill(fill_tree);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(kData)}; });
}

TEST(Interleave, ALoadOutOfBoundsTrapsInAGroupAsInOrder) {
  Searches s(searches("", kTreeSearch, std::string(kAddValue) + kEnd, "(local.get $sum)") + kEnd, 1);
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  s.fill([](uint32_t* words) {
    fill_tree(words);
    words[kData / 4 + 400 * 4] = 0xfffffff0;  // some subtree is gone
  });
  EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(kData)}), traps(TrapCode::kMemoryOutOfBounds));
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(kData)}; });
}

// The key is divided before the search: by zero for one of them, which comes after one whose search leaves memory.
TEST(Interleave, TheTrapThatComesIsTheFirstInTheProgramsOrder) {
  const std::string divided =
      "(local.set $key (i32.div_u (i32.const 100000) (local.get $key))) " + std::string(kTreeSearch);
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    OptimizeRequest settings;
    settings.options.bounds = bounds;
    Searches s(searches("", divided, std::string(kAddValue) + kEnd, "(local.get $sum)") + kEnd, 1, false, {},
               settings);
    ASSERT_TRUE(s.site().is_applied()) << s.site().why;
    s.fill([](uint32_t* words) {
      fill_tree(words);
      for (uint32_t i = 0; i < kMost; ++i) words[i] = words[i] % 1000 + 1;
      words[205] = 0;
    });
    EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(kData)}), traps(TrapCode::kIntegerDivideByZero));
    s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(kData)}; });
    if (bounds == BoundsChecks::kGuardPages) continue;
    // Checked accesses trap in order.
    s.fill([](uint32_t* words) {
      fill_tree(words);
      for (uint32_t i = 0; i < kMost; ++i) words[i] = words[i] % 1000 + 1;
      words[205] = 0;
      words[kData / 4] = 0xfffffff0;
    });
    s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(kData)}; });
  }
}

// An iteration's tail leaves memory, which ends the program before it comes to what never ends: the next iteration's search, or
// a loop within its head or its step.
TEST(Interleave, ATrapComesBeforeASearchThatNeverEnds) {
  constexpr uint32_t kTraps = 100, kRing = kData + 16 * 3000;
  const std::string list =
      "(loop $list (local.set $c (i32.add (local.get $c) (i32.load offset=4 (local.get $q)))) "
      "(br_if $list (local.tee $q (i32.load (local.get $q))))) ";
  const std::string begin =
      "(local.set $c (i32.const 0)) (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) "
      "(i32.const 4)))) ";
  const std::string chain =
      "(block $found (loop $chain "
      "(br_if $found (i32.eq (i32.load offset=4 (local.get $p)) (i32.const 77))) "
      "(br_if $chain (local.tee $p (i32.load (local.get $p)))))) ";
  const std::string in_lanes =
      "(loop $chain (local.set $c (i32.load offset=4 (local.get $p))) "
      "(local.set $p (i32.load (local.get $p))) (br_if $chain (i32.and "
      "(i32.ne (local.get $c) (i32.const 77)) (i32.ne (local.get $p) (i32.const 0))))) ";
  const std::string its_list = "(local.set $q (i32.load offset=8 (local.get $p))) " + list;
  const std::string with_lists =
      "(loop $chain " + its_list + "(br_if $chain (local.tee $p (i32.load (local.get $p))))) ";
  struct Case {
    std::string search;
    uint32_t load;
    uint32_t rings_at;  // in the node that the endless search begins with
  };
  const Case cases[] = {{begin + chain, 1, 0},
                        {begin + in_lanes, 1, 0},
                        {begin + its_list + chain, 4, 2},
                        {begin + with_lists, 1, 2},
                        {begin + its_list + in_lanes, 4, 2}};
  for (const Case& its : cases) {
    for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
      OptimizeRequest settings;
      settings.options.bounds = bounds;
      Searches s(
          searches("(local $q i32) (local $c i32)", its.search,
                   "(local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u "
                   "(i32.add (i32.add (local.get $p) (local.get $c)) "
                   "(i32.load (i32.load offset=16384 (i32.shl (local.get $i) (i32.const 2))))))))",
                   "(local.get $sum)") +
              kEnd,
          its.load, false, {}, settings);
      ASSERT_TRUE(s.site().is_applied()) << its.search << s.site().why;
      EXPECT_EQ(s.site().why.find("a dry run"), std::string::npos) << s.site().why;
      s.fill([&](uint32_t* words) {
        std::mt19937 random(4);
        for (uint32_t i = 0; i < kMost; ++i) {
          words[i] = random() % 2000;
          words[16384 / 4 + i] = random() % 10000;
          const uint32_t next = kData + 16 * (i + 1);
          uint32_t* const node = &words[kData / 4 + 4 * i];
          node[0] = i % 7 == 6 ? 0 : next;
          node[1] = random() % 100 == 0 ? 77 : 5;
          node[2] = next;
        }
        words[16384 / 4 + kTraps] = 0xfffffff0;
        words[kTraps + 1] = 2001;
        words[kRing / 4] = kRing;
        words[kRing / 4 + 1] = 5;
        words[kData / 4 + 4 * 2001 + its.rings_at] = kRing;
      });
      EXPECT_EQ(s.plain.call("f", {i32(kTraps), i32(0)}).trap, TrapCode::kNone);
      EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(0)}), traps(TrapCode::kMemoryOutOfBounds));
      for (const uint32_t width : {2u, 16u, 64u}) {
        s.cell().distance = width;
        for (const uint32_t n : {kTraps, kMost}) s.expect_same({i32(n), i32(0)}, its.search);
      }
    }
  }
}

// All shapes of heads, searches and tails together: what is skipped, what is computed early for later, loops
// in heads and tails.
TEST(Interleave, AnyHeadGoesWithAnySearchAndAnyTail) {
  const std::pair<std::string, std::string> heads[] = {
      {"", ""},
      // Every third search is not made at all.
      {"(local.set $p (i32.const 12)) (if (i32.rem_u (local.get $key) (i32.const 3)) (then ", "))"},
      // The key is looked up, at a place that is not strided.
      {"(local.set $key (i32.load (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 77)) (i32.const "
       "2047)) "
       "(i32.const 2)))) ",
       ""},
      // What only tails need is computed in front of the search.
      {"(local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 37)) (i64.extend_i32_u (local.get "
       "$i)))) ",
       ""},
      // A loop of its own.
      {"(local.set $k (i32.const 5)) (loop $mix (local.set $key (i32.rem_u (i32.xor (i32.rotl (local.get "
       "$key) "
       "(i32.const 3)) (local.get $k)) (i32.const 4001))) (br_if $mix (local.tee $k (i32.sub (local.get $k) "
       "(i32.const 1))))) ",
       ""},
  };
  const std::pair<std::string, uint32_t> bodies[] = {
      {kTreeSearch, 1}, {kBinarySearch, 1}, {chain("i64.add"), 2}};
  const std::string tails[] = {
      "(local.set $sum (i64.add (i64.rotl (local.get $sum) (i64.const 7)) (i64.extend_i32_u (local.get "
      "$p))))",
      "(if (i32.and (local.get $p) (i32.const 16)) (then (local.set $sum (i64.xor (local.get $sum) "
      "(i64.extend_i32_u "
      "(i32.mul (local.get $i) (local.get $key)))))) (else (local.set $k (local.get $key))))",
      "(local.set $k (i32.and (local.get $key) (i32.const 3))) (loop $times (local.set $sum (i64.add "
      "(i64.mul (local.get "
      "$sum) (i64.const 3)) (i64.extend_i32_u (i32.load offset=65536 (i32.and (i32.add (local.get $p) "
      "(local.get $k)) "
      "(i32.const 0xfffc)))))) (br_if $times (i32.gt_s (local.tee $k (i32.sub (local.get $k) (i32.const 1))) "
      "(i32.const "
      "0))))",
  };
  uint32_t applied = 0;
  for (size_t h = 0; h < std::size(heads); ++h) {
    for (size_t b = 0; b < std::size(bodies); ++b) {
      for (size_t t = 0; t < std::size(tails); ++t) {
        const std::string what =
            "head " + std::to_string(h) + ", search " + std::to_string(b) + ", tail " + std::to_string(t);
        // The load's number: those of the head come first.
        const uint32_t load = bodies[b].second + (h == 2 ? 1 : 0);
        Searches s(searches("(local $k i32) (local $hi i32) (local $mid i32)",
                            heads[h].first + bodies[b].first + heads[h].second, tails[t],
                            "(i64.add (local.get $sum) (i64.extend_i32_u (local.get $k)))") +
                       kEnd,
                   load);
        ASSERT_NE(s.version, nullptr) << what;
        // A sum in the search that also changes in between is no sum of the search.
        applied += s.site().is_applied() ? 1 : 0;
        const bool chained = b == 2;
        if (!chained) {
          EXPECT_TRUE(s.site().is_applied()) << what << ": " << s.site().why;
        }
        s.fill(chained ? fill_chains : b == 0 ? fill_tree : fill_table);
        const uint32_t root = b == 0 ? kData : 10000;
        for (uint32_t width : {1u, 3u, 16u, 64u}) {
          if (s.site().is_applied()) s.cell().distance = width;
          for (uint32_t n : {1u, 17u, 700u})
            s.expect_same({i32(n), i32(root)},
                          what + ", " + std::to_string(n) + " of " + std::to_string(width));
        }
      }
    }
  }
  EXPECT_GE(applied, 40u);
}

// A load that is hinted at is kept as it is for the pass, which costs what becomes of it otherwise. Here these are the
// three loads of an iteration, of which two are those of the iterations before.
TEST(Interleave, AndPrefetchesThatCannotBeLeaveTheCodeThatThereIsWithoutHints) {
  const std::string wat = R"((module (memory 4)
    (func (export "f") (param $n i32) (local $i i32)
      (loop $l
        (i32.store8 offset=131072 (local.get $i)
          (i32.shr_u (i32.add (i32.add (i32.load8_u (local.get $i)) (i32.load8_u offset=1 (local.get $i)))
                              (i32.load8_u offset=2 (local.get $i))) (i32.const 2)))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))))";
  Optimized plain(wat);
  const CodeVersion* const without = plain.compile("f");
  ASSERT_NE(without, nullptr);
  for (const bool prefetches : {false, true}) {
    Optimized hinted(wat);
    for (uint32_t load = 0; load < 3; ++load) {
      const WasmOffset at = load_of(*hinted.module, "f", load);
      hinted.request.changes.push_back(change(ChangeKind::kInterleave, at, 0.2));
      if (prefetches) hinted.request.changes.push_back(change(ChangeKind::kPrefetch, at, 0.2));
    }
    const CodeVersion* const with = hinted.compile("f");
    ASSERT_NE(with, nullptr);
    EXPECT_EQ(with->code_size, without->code_size) << prefetches;
    EXPECT_TRUE(with->loop_cells.empty());
    ASSERT_EQ(with->answers.size(), prefetches ? 6u : 3u);
    for (const Answer& site : with->answers) {
      EXPECT_FALSE(site.is_applied());
      EXPECT_FALSE(site.why.empty());
    }
  }
}

TEST(Interleave, PrefetchesInAnInterleavedLoopWait) {
  Searches s(searches("", chain("i64.add"), "", "(local.get $sum)") + kEnd, 2);
  OptimizeRequest& request = s.interleaved.request;
  request.changes.push_back(change(ChangeKind::kPrefetch, load_of(*s.interleaved.module, "f", 1), 0.2));
  const CodeVersion* version = s.interleaved.compile("f");
  ASSERT_GE(version->answers.size(), 2u);
  // The other loads of the loop share its change: nothing else is to be tried on them.
  for (size_t i = 2; i < version->answers.size(); ++i) {
    EXPECT_TRUE(version->answers[i].follows());
    EXPECT_EQ(version->answers[i].cell, version->answers[1].cell);
  }
  EXPECT_EQ(version->answers.size(), 2u + 4u);
  EXPECT_FALSE(version->answers[0].is_applied());
  EXPECT_TRUE(version->answers[0].waits());
  EXPECT_TRUE(version->answers[1].is_applied()) << version->answers[1].why;
  EXPECT_EQ(version->loop_cells.size(), 1u);
  // Without the one the other has its turn.
  request.changes.erase(request.changes.begin());
  version = s.interleaved.compile("f");
  EXPECT_TRUE(version->answers.at(0).is_applied()) << version->answers[0].why;
}

}  // namespace
}  // namespace hindsight::jit::testing
