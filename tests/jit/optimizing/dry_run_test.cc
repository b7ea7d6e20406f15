// Loops of searches that are not left to run at once: a dry run of the next searches comes first, and nobody can tell but by
// the clock.
#include "tests/jit/optimizing/searches.h"

namespace hindsight::jit::testing {
namespace {

void expect_dry_run(const Searches& s) {
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  EXPECT_NE(s.site().why.find("a dry run"), std::string::npos) << s.site().why;
}

TEST(DryRun, WhatIsFoundMayBeStored) {
  Searches s(searches("", kTreeSearch,
                      "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))",
                      "(local.get $sum)") +
                 kEnd,
             1);
  expect_dry_run(s);
  ASSERT_EQ(s.version->loop_cells.size(), 1u);
  s.fill(fill_tree);
  s.expect_same_at_all_widths(of_tree);
  EXPECT_GT(s.interleaved.instance->strips_ended, 0u);
  s.expect_same({i32(100), i32(0)}, "without a tree");
}

// C++ passes keys by reference: they are stored in the frame, and loaded from there. Its slot has the distance from the stack
// pointer once in the instruction, once added before.
TEST(DryRun, AKeyThatGoesThroughTheFrameIsTheNextKeyAllTheSame) {
  const auto through_frame = [](uint32_t distance) {
    return searches("(local $sp i32)",
                    "(local.set $sp (i32.add (local.get $root) (i32.const " + std::to_string(distance) +
                        "))) (i32.store offset=24 (local.get $sp) (local.get $key)) "
                        "(local.set $key (i32.load (i32.add (local.get $sp) (i32.const 24))))" +
                        kTreeSearch,
                    kSumUp, "(local.get $sum)") +
           kEnd;
  };
  Searches s(through_frame(131072), 2);
  expect_dry_run(s);
  EXPECT_NE(s.site().why.find("words of memory beside it"), std::string::npos) << s.site().why;
  s.fill(fill_tree);
  s.expect_same_at_all_widths(of_tree);
  // Here it wraps: the key is loaded from elsewhere, and storing it traps.
  Searches wraps(through_frame(~kData - 7), 2);
  expect_dry_run(wraps);
  wraps.fill(fill_tree);
  wraps.expect_same(of_tree(100), "a frame at the end of the address space");
}

// Words that are spelled into a place that stays, and looked up letter by letter. Of `unused` bytes in front of each, the dry
// run keeps 64 beside memory, with what is behind them.
TEST(DryRun, AWordThatIsSpelledIntoABufferIsTheNextWord) {
  for (const uint32_t unused : {0u, 55u, 60u, 64u, 200u}) {
    const std::string in_front = "(i32.const " + std::to_string(unused) + ")";
    const std::string wat =
        searches("(local $buffer i32) (local $end i32) (local $rest i32) (local $at i32) (local $letter i32)",
                 R"((local.set $buffer (i32.add (local.get $root) (i32.const 131072)))
      (local.set $end )" +
                     in_front +
                     R"() (local.set $rest (local.get $key))
      (i32.store8 (i32.add (local.get $buffer) (i32.and (local.get $key) (i32.const 1))) (i32.const 3))
      (loop $spell
        (i32.store8 (i32.add (local.get $buffer) (local.get $end))
          (i32.add (i32.and (local.get $rest) (i32.const 1)) (i32.const 1)))
        (local.set $end (i32.add (local.get $end) (i32.const 1)))
        (br_if $spell (local.tee $rest (i32.shr_u (local.get $rest) (i32.const 1)))))
      (i32.store8 (i32.add (local.get $buffer) (local.get $end)) (i32.const 0))
      (local.set $p (local.get $root)) (local.set $at (i32.add (local.get $buffer) )" +
                     in_front + R"())
      (block $found (loop $down
        (br_if $found (i32.eqz (local.tee $letter (i32.load8_u (local.get $at)))))
        (br_if $found (i32.eqz (local.get $p)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $p (i32.load (i32.add (local.get $p)
          (i32.shl (i32.sub (local.get $letter) (i32.const 1)) (i32.const 2)))))
        (br $down))))",
                 kSumUp, "(local.get $sum)") +
        kEnd;
    Searches s(wat, 2);
    expect_dry_run(s);
    EXPECT_NE(s.site().why.find("with bytes of memory beside it"), std::string::npos) << s.site().why;
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
    s.expect_same({i32(100), i32(0)}, "without a tree");
    s.expect_same({i32(100), i32(131072 - 300)}, "with a buffer at the end of memory");
    s.expect_same({i32(100), i32(131072 + 300)}, "with a buffer outside of memory");
  }
}

// What goes side by side has to see the loop around the call.
TEST(DryRun, ACalleeWithALoopIsInlinedForItsLoads) {
  // Too large to be inlined for nothing.
  std::string callee =
      "(func $find (export \"find\") (param $key i32) (param $root i32) (result i32) (local $p i32)";
  for (int i = 0; i < 16; ++i) callee += "(local.set $key (i32.xor (local.get $key) (i32.const 0)))";
  callee += std::string(kTreeSearch) + " (local.get $p)) ";
  const std::string wat =
      searches("", "(local.set $p (call $find (local.get $key) (local.get $root)))",
               "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))",
               "(local.get $sum)") +
      callee + kEnd;
  Searches s(wat, 0, /*osr=*/false, {}, {}, "find");
  expect_dry_run(s);
  EXPECT_EQ(s.version->inlined.size(), 1u);
  s.fill(fill_tree);
  s.expect_same_at_all_widths(of_tree);
  Optimized unasked(wat);
  const CodeVersion* const version = unasked.compile("f");
  ASSERT_NE(version, nullptr);
  EXPECT_TRUE(version->inlined.empty()) << "a loop spends its time by itself";
  const FuncIndex find(unasked.module->find_export("find")->index);
  unasked.request.inlined = {find};
  const CodeVersion* const compared = unasked.compile("f");
  ASSERT_NE(compared, nullptr);
  EXPECT_EQ(compared->inlined, std::vector{find}) << "as in the version that it is compared with";
}

// The next keys, and the nodes on the way to them.
TEST(DryRun, WhatIsStoredMayBeWhatTheNextSearchesRead) {
  const std::string stores[] = {
      // The key after next.
      "(i32.store offset=8 (i32.shl (local.get $i) (i32.const 2)) (i32.rem_u (i32.add (local.get $p) "
      "(local.get $key)) "
      "(i32.const 10002)))",
      // A son of what was found becomes another, so that searches go elsewhere; most of them end there.
      "(if (local.get $p) (then (i32.store (local.get $p) (i32.load offset=4 (local.get $p)))))",
      // What was found gets another key.
      "(if (local.get $p) (then (i32.store offset=8 (local.get $p) (i32.add (local.get $key) (i32.const "
      "2)))))",
  };
  for (const std::string& store : stores) {
    Searches s(searches("", kTreeSearch, store + kSumUp, "(local.get $sum)") + kEnd, 1);
    expect_dry_run(s);
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
  }
}

// The data say when it is over. The last key is the memory's last word, so that dry runs read on where there is none.
TEST(DryRun, SearchesPastTheEndOfMemoryAreHarmless) {
  const std::string wat =
      R"((module (memory 4) (func (export "f") (param $at i32) (param $root i32) (result i64)
    (local $key i32) (local $p i32) (local $sum i64)
    (loop $l
      (local.set $key (i32.load (local.get $at))))" +
      std::string(kTreeSearch) + kSumUp +
      R"((local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $l (i32.ne (local.get $key) (i32.const 77777)))) (local.get $sum))))";
  Searches s(wat, 1);
  expect_dry_run(s);
  s.fill([](uint32_t* words) {
    fill_tree(words);
    std::mt19937 random(7);
    for (uint32_t i = 0; i < 1000; ++i) words[kWords - 1000 + i] = random() % 10002;
    words[kWords - 1] = 77777;
  });
  s.expect_same_at_all_widths([](uint32_t n) {
    return std::vector<Value>{i32(4 * (kWords - std::clamp(n, 1u, 1000u))), i32(kData)};
  });
  // Of wild places too, and across the end.
  s.fill([](uint32_t* words) {
    fill_tree(words);
    for (uint32_t i = 0; i < 40; ++i) words[kData / 4 + 4 * (100 + i)] = 0xffffffffu - 3 * i;
    for (uint32_t i = 0; i < 1000; ++i) words[kWords - 1000 + i] = 10 * i;
    words[kWords - 1] = 77777;
  });
  s.expect_same_at_all_widths([](uint32_t n) {
    return std::vector<Value>{i32(4 * (kWords - std::clamp(n, 1u, 1000u)) + n % 2), i32(kData)};
  });
}

TEST(DryRun, LoopsMayBeLeftWhereverTheyAre) {
  const std::string leaves[] = {
      "(br_if $out (i32.eq (local.get $i) (i32.const 333)))",
      "(br_if $out (i32.gt_u (local.get $p) (i32.const 140000)))",
      "(if (i32.eq (local.get $i) (i32.const 207)) (then (return (i64.const 7))))",
      "(br_if $l (i32.eqz (i32.and (local.get $key) (i32.const 3))))",  // and goes round for ever, but for what comes next
  };
  for (size_t i = 0; i < std::size(leaves); ++i) {
    const std::string search = i == 3 ? "(local.set $i (i32.add (local.get $i) (i32.const 1))) "
                                        "(br_if $out (i32.ge_u (local.get $i) (local.get $n)))" +
                                            std::string(kTreeSearch)
                                      : kTreeSearch;
    Searches s(searches("", search, leaves[i] + kSumUp, "(local.get $sum)") + kEnd, 1);
    expect_dry_run(s);
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
  }
}

TEST(DryRun, TrapsAreTheLoopsOwn) {
  // A subtree that is gone; a key to divide by; a result to divide by; a result to store at.
  const std::string stored = "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))";
  const struct {
    std::string head, tail;
    bool breaks_tree;
    TrapCode trap;
  } cases[] = {
      {"", stored, true, TrapCode::kMemoryOutOfBounds},
      {"(local.set $key (i32.div_u (i32.const 100000) (local.get $key)))", stored, false,
       TrapCode::kIntegerDivideByZero},
      {"", "(i32.store offset=16384 (i32.const 0) (i32.rem_s (local.get $i) (local.get $p)))", false,
       TrapCode::kIntegerDivideByZero},
      {"", "(i32.store offset=16384 (i32.mul (i32.eqz (local.get $p)) (i32.const -8)) (local.get $i))", false,
       TrapCode::kMemoryOutOfBounds},
  };
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    for (const auto& c : cases) {
      OptimizeRequest settings;
      settings.options.bounds = bounds;
      Searches s(searches("", c.head + kTreeSearch, c.tail + kSumUp, "(local.get $sum)") + kEnd, 1, false, {},
                 settings);
      expect_dry_run(s);
      s.fill([&](uint32_t* words) {
        fill_tree(words);
        for (uint32_t i = 0; i < kMost; ++i) words[i] = 2 * (i % 4999) + 1;
        words[205] = 0;
        if (c.breaks_tree) words[kData / 4 + 400 * 4] = 0xfffffff0;
      });
      EXPECT_EQ(s.plain.call("f", {i32(kMost), i32(kData)}), traps(c.trap));
      s.fill([&](uint32_t* words) { std::memcpy(words, s.words(s.plain), 4 * kWords); });
      s.expect_same_at_all_widths(of_tree);
    }
  }
}

// A random number's state, and the counter, in memory; other stores may hit them.
TEST(DryRun, WordsThatStayWhereTheyAreRunAheadToo) {
  const std::string wat =
      R"((module (memory 4) (func (export "f") (param $n i32) (param $root i32) (result i64)
    (local $key i32) (local $p i32) (local $sum i64)
    (i32.store offset=60000 (i32.const 0) (i32.const 0))
    (block $out (loop $l
      (br_if $out (i32.ge_u (i32.load offset=60000 (i32.const 0)) (local.get $n)))
      (i32.store offset=60004 (i32.const 0) (i32.add (i32.mul (i32.load offset=60004 (i32.const 0))
        (i32.const 1664525)) (i32.const 1013904223)))
      (local.set $key (i32.rem_u (i32.shr_u (i32.load offset=60004 (i32.const 0)) (i32.const 7)) (i32.const 10002))))" +
      std::string(kTreeSearch) + kSumUp +
      R"((i32.store (i32.add (i32.const 59992) (i32.and (i32.shr_u (local.get $p) (i32.const 2))
        (i32.const 12))) (local.get $p))
      (i32.store offset=60000 (i32.const 0) (i32.add (i32.load offset=60000 (i32.const 0)) (i32.const 1)))
      (br $l))) (local.get $sum))))";
  // A store of the tail goes to the state itself, now and then.
  Searches s(wat, 3);
  expect_dry_run(s);
  EXPECT_NE(s.site().why.find("words of memory"), std::string::npos) << s.site().why;
  s.fill(fill_tree);
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n % 71), i32(kData)}; });
}

// In memory as it is, these searches go round for ever: each finds what the iteration before has stored.
TEST(DryRun, GuessesThatGoRoundForEverEnd) {
  const std::string wat =
      R"((module (memory 4) (func (export "f") (param $n i32) (param $root i32) (result i64)
    (local $i i32) (local $x i32) (local $p i32) (local $sum i64)
    (i32.store offset=65540 (i32.const 0) (i32.const 0))
    (i32.store offset=32768 (i32.const 0) (i32.const 0))
    (block $out (loop $l
      (br_if $out (i32.ge_u (local.get $i) (local.get $n)))
      (local.set $x (local.get $i))
      (block $ready (loop $wait
        (br_if $ready (i32.eq (i32.load offset=32768 (i32.shl (i32.and (local.get $x) (i32.const 7)) (i32.const 2)))
                              (local.get $i)))
        (local.set $x (i32.add (local.get $x) (i32.const 1)))
        (br $wait)))
      (local.set $p (local.get $root))
      (block $found (loop $chain
        (br_if $found (i32.eq (i32.load offset=4 (local.get $p)) (local.get $i)))
        (local.set $p (i32.load (local.get $p)))
        (br $chain)))
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u (local.get $p))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (i32.store offset=4 (i32.load (i32.load (local.get $p))) (local.get $i))
      (i32.store offset=32768 (i32.shl (i32.and (i32.mul (local.get $i) (i32.const 5)) (i32.const 7)) (i32.const 2))
        (local.get $i))
      (br $l))) (local.get $sum))))";
  Searches s(wat, 2);
  expect_dry_run(s);
  s.fill([](uint32_t* words) {
    for (uint32_t i = 0; i < 10; ++i) {  // a ring
      words[kData / 4 + 4 * i] = kData + 16 * ((i + 1) % 10);
      words[kData / 4 + 4 * i + 1] = 0xffffffff;
    }
  });
  s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n % 71), i32(kData)}; });
}

TEST(DryRun, AnEmptyMemoryHasNone) {
  const std::string wat =
      R"((module (memory 0 4) (func (export "f") (param $n i32) (param $root i32) (result i64)
    (local $i i32) (local $key i32) (local $p i32) (local $sum i64)
    (loop $l
      (local.set $p (local.get $root))
      (local.set $key (local.get $i))
      (block $found (loop $down
        (br_if $found (i32.eqz (local.get $p)))
        (br_if $found (i32.eq (i32.load offset=8 (local.get $p)) (local.get $key)))
        (local.set $p (i32.load (i32.add (local.get $p)
          (i32.shl (i32.ge_u (local.get $key) (i32.load offset=8 (local.get $p))) (i32.const 2)))))
        (br $down)))
      (drop (memory.grow (i32.const 0))))" +
      std::string(kSumUp) + R"((local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (local.get $n)))) (local.get $sum))))";
  Searches s(wat, 0);
  expect_dry_run(s);
  for (uint32_t enabled : {1u, 0u}) {
    s.cell().enabled = enabled;
    EXPECT_EQ(s.interleaved.call("f", {i32(100), i32(0)}), s.plain.call("f", {i32(100), i32(0)}));
    EXPECT_EQ(s.interleaved.call("f", {i32(100), i32(16)}), traps(TrapCode::kMemoryOutOfBounds));
  }
}

// The loop around may be left in the middle of a group, and is entered there.
TEST(DryRun, RunningLoopsAreEnteredInTheMiddleToo) {
  Searches s(searches("", kTreeSearch,
                      "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))",
                      "(local.get $sum)") +
                 kEnd,
             1, true);
  expect_dry_run(s);
  ASSERT_EQ(s.version->osr_entries.size(), 1u);
  s.fill(fill_tree);
  s.expect_same({i32(kMost), i32(kData)}, "entered at the top");
}

// Strips count what the loop does, whether groups are over when it is left or not.
TEST(DryRun, IterationsAreCountedWhereTheLoopIsLeft) {
  Searches s(searches("", kTreeSearch,
                      "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))",
                      "(local.get $sum)") +
                 kEnd,
             1);
  expect_dry_run(s);
  s.fill(fill_tree);
  for (const uint32_t enabled : {1u, 0u}) {
    for (const uint32_t n : {1u, 5u, 16u, 17u, 40u, 100u}) {
      s.cell().enabled = enabled;
      s.cell().distance = 16;
      s.cell().countdown = 100000;
      s.expect_same({i32(n), i32(kData)}, "counted");
      EXPECT_EQ(s.cell().countdown, 100000 - static_cast<int32_t>(n)) << enabled;
    }
  }
}

// Lists of lists: what a step computes in front of the loop within is needed in it and behind it.
TEST(DryRun, TurnsOfALoopWithinASearchAreStepsToo) {
  const std::string walks[] = {
      // Down the levels of a skip list.
      R"((local.set $p (i32.const 65536)) (local.set $level (local.get $root))
      (loop $levels
        (local.set $low (i32.xor (i32.load offset=12 (local.get $p)) (i32.mul (local.get $level) (i32.const 77))))
        (local.set $steps (i32.const 0))
        (block $end (loop $walk
          (local.set $next (i32.load (i32.add (local.get $p) (i32.shl (local.get $level) (i32.const 2)))))
          (br_if $end (i32.gt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1)))
                                (i32.and (local.get $low) (i32.const 15))))
          (br_if $end (i32.gt_u (i32.rem_u (i32.load offset=8 (local.get $next)) (i32.const 3001)) (local.get $key)))
          (local.set $p (local.get $next))
          (br $walk)))
        (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 31)) (i32.add (local.get $low) (local.get $p))))
        (br_if $levels (i32.ge_s (local.tee $level (i32.sub (local.get $level) (i32.const 1))) (i32.const 0)))))",
      // Two walks in a step, one after the other, and one in an arm alone.
      R"((local.set $p (i32.add (i32.const 65536) (i32.shl (i32.and (local.get $key) (i32.const 1023)) (i32.const 4))))
      (local.set $level (local.get $root))
      (loop $levels
        (local.set $low (i32.add (i32.load offset=8 (local.get $p)) (local.get $level)))
        (local.set $next (local.get $p)) (local.set $steps (i32.const 0))
        (loop $one
          (local.set $next (i32.load (local.get $next)))
          (br_if $one (i32.lt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1)))
                                (i32.and (local.get $low) (i32.const 7)))))
        (local.set $steps (i32.add (i32.and (local.get $next) (i32.const 112)) (local.get $steps)))
        (if (i32.and (local.get $low) (i32.const 1)) (then
          (loop $two
            (local.set $p (i32.load offset=4 (local.get $p)))
            (br_if $two (i32.gt_s (local.tee $steps (i32.sub (local.get $steps) (i32.const 16))) (i32.const 0)))
            (br_if $two (i32.eq (i32.load offset=12 (local.get $p)) (local.get $low)))))
        (else (local.set $p (local.get $next))))
        (local.set $x (i32.xor (i32.rotl (local.get $x) (i32.const 5)) (i32.add (local.get $low) (local.get $p))))
        (br_if $levels (i32.ge_s (local.tee $level (i32.sub (local.get $level) (i32.const 1))) (i32.const 0)))))",
  };
  for (const std::string& walk : walks) {
    for (const char* stores :
         {"",
          "(i32.store offset=4 (local.get $p) (i32.add (i32.const 65536) (i32.shl (i32.and "
          "(local.get $x) (i32.const 1023)) (i32.const 4))))"}) {
      Searches s(
          searches("(local $x i32) (local $low i32) (local $level i32) (local $next i32) (local $steps i32)",
                   walk,
                   "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $x))" +
                       std::string(stores) + kSumUp,
                   "(local.get $sum)") +
              kEnd,
          2);
      expect_dry_run(s);
      EXPECT_NE(s.site().why.find("turns of loops within"), std::string::npos) << s.site().why;
      s.fill([](uint32_t* words) {
        std::mt19937 random(11);
        for (uint32_t i = 0; i < 4 * 1024; ++i) words[kData / 4 + i] = kData + 16 * (random() % 1024);
        for (uint32_t i = 0; i < kMost; ++i) words[i] = random() % 3000;
      });
      s.expect_same_at_all_widths([](uint32_t n) { return std::vector<Value>{i32(n), i32(n % 4)}; });
    }
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
