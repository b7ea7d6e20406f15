// Leaving a running loop: what the code at the other end finds in the frame. Going on there gives what
// staying would have given.
#include <fmt/format.h>

#include <array>
#include <thread>

#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

Optimized with_exits(std::string_view wat, std::vector<LoopIndex> osr_loops = {},
                     TestInstance::Options options = {}) {
  OptimizeRequest request;
  request.loop_exits = true;
  request.osr_loops = std::move(osr_loops);
  return Optimized(wat, request, std::move(options));
}

const OsrExit* exit_of(const CodeVersion& version, uint32_t loop) {
  for (const OsrExit& exit : version.osr_exits)
    if (exit.loop == LoopIndex(loop)) return &exit;
  return nullptr;
}
const void* entry_of(const CodeVersion& version, uint32_t loop) {
  for (const OsrEntry& entry : version.osr_entries)
    if (entry.loop == LoopIndex(loop)) return entry.code;
  return nullptr;
}

// What is at the other end of an exit: keeps the frame.
std::array<uint64_t, 64> left_with;
uint64_t leave(VmContext*, const uint64_t* frame) {
  std::copy(frame, frame + left_with.size(), left_with.begin());
  return 4711;
}
double leave_with_float(VmContext*, const uint64_t* frame) {
  std::copy(frame, frame + left_with.size(), left_with.begin());
  return 47.11;
}

// Outer iterations of some length, each of which asks the host; 1000 stands on the operand stack all the
// time.
constexpr const char* kRounds = R"((module (import "host" "round" (func $round (param i32)))
  (func (export "f") (param $n i32) (result i32) (local $i i32) (local $k i32) (local $r i32) (local $gone i32)
    i32.const 1000
    (local.set $gone (i32.const 77))
    (loop $rounds
      (call $round (local.get $i))
      (local.set $k (i32.const 100))
      (loop $inner
        (local.set $r (i32.add (i32.mul (local.get $r) (i32.const 5)) (i32.xor (local.get $k) (local.get $i))))
        (local.set $r (i32.rotl (i32.add (i32.mul (local.get $r) (local.get $r)) (i32.const 3)) (local.get $k)))
        (local.set $r (i32.sub (i32.shl (local.get $r) (i32.const 3)) (i32.shr_u (local.get $r) (i32.const 2))))
        (local.set $r (i32.rotl (i32.add (i32.mul (local.get $r) (local.get $r)) (i32.const 5)) (local.get $i)))
        (br_if $inner (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (br_if $rounds (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.add (local.get $r)))))";

struct Rounds {
  explicit Rounds(std::vector<LoopIndex> osr_loops = {})
      : m(with_exits(kRounds, std::move(osr_loops),
                     {.host = {{"host.round", [this](TestInstance&, uint64_t* slots) {
                                  if (at_round) at_round(static_cast<uint32_t>(slots[0]));
                                  return true;
                                }}}})) {}
  std::function<void(uint32_t)> at_round;
  Optimized m;
};

TEST(LoopExits, AreWhereALoopContainsLoopsAndNowhereElse) {
  Rounds rounds;
  const CodeVersion* version = rounds.m.compile("f");
  ASSERT_NE(version, nullptr);
  EXPECT_NE(exit_of(*version, 0), nullptr);
  EXPECT_EQ(exit_of(*version, 1), nullptr);
  rounds.m.request.loop_exits = false;
  EXPECT_TRUE(rounds.m.compile("f")->osr_exits.empty());
}

TEST(LoopExits, HandOverTheLocalsThatAreReadAgainAndTheOperands) {
  Rounds rounds;
  const CodeVersion* version = rounds.m.compile("f");
  ASSERT_NE(exit_of(*version, 0), nullptr);
  func_refs(rounds.m.instance->context())[rounds.m.module->find_export("f")->index].code = version->entry;
  const Outcome three = rounds.m.call("f", {i32(3)});
  rounds.at_round = [&](uint32_t i) {
    if (i == 2) exit_of(*version, 0)->slot->store(reinterpret_cast<const void*>(&leave));
  };
  EXPECT_EQ(rounds.m.call("f", {i32(1000)}), returns({i32(4711)}));
  EXPECT_EQ(static_cast<uint32_t>(left_with[0]), 1000u);                            // $n
  EXPECT_EQ(static_cast<uint32_t>(left_with[1]), 3u);                               // $i
  EXPECT_EQ(static_cast<uint32_t>(left_with[3]) + 1000, three.results.at(0).bits);  // $r
  EXPECT_EQ(static_cast<uint32_t>(left_with[5]), 1000u);                            // the operand
  EXPECT_NE(static_cast<uint32_t>(left_with[4]), 77u) << "$gone is";
}

TEST(LoopExits, GoOnInAnotherVersionAsIfNothingHadHappened) {
  for (const bool running : {false, true}) {
    Rounds rounds({LoopIndex(0)});
    const CodeVersion* first = rounds.m.compile("f");
    const CodeVersion* second = rounds.m.compile("f");
    ASSERT_NE(exit_of(*first, 0), nullptr);
    func_refs(rounds.m.instance->context())[rounds.m.module->find_export("f")->index].code = second->entry;
    const Outcome all = rounds.m.call("f", {i32(50)});
    // From one to the other and back, again and again: the stack must not grow.
    rounds.at_round = [&](uint32_t i) {
      exit_of(*first, 0)->slot->store(i % 2 ? entry_of(*second, 0) : nullptr);
      exit_of(*second, 0)->slot->store(i % 2 ? nullptr : entry_of(*first, 0));
    };
    if (running) {
      const uint64_t frame[] = {50, 0, 0, 0, 0, 1000};
      rounds.at_round(0);
      const auto enter =
          reinterpret_cast<uint64_t (*)(VmContext*, const uint64_t*)>(const_cast<void*>(entry_of(*first, 0)));
      EXPECT_EQ(static_cast<uint32_t>(enter(rounds.m.instance->context(), frame)), all.results.at(0).bits);
    } else {
      func_refs(rounds.m.instance->context())[rounds.m.module->find_export("f")->index].code = first->entry;
      EXPECT_EQ(rounds.m.call("f", {i32(50)}), all);
    }
  }
}

TEST(LoopExits, DoNotLetTheStackGrow) {
  Rounds rounds({LoopIndex(0)});
  const CodeVersion* first = rounds.m.compile("f");
  const CodeVersion* second = rounds.m.compile("f");
  exit_of(*first, 0)->slot->store(entry_of(*second, 0));
  exit_of(*second, 0)->slot->store(entry_of(*first, 0));
  uint64_t lowest = ~uint64_t{0}, highest = 0;
  rounds.at_round = [&](uint32_t) {
    const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    lowest = std::min(lowest, here);
    highest = std::max(highest, here);
    // Each header is passed in the one and then in the other: neither may be left at once again.
    const bool in_first = exit_of(*first, 0)->slot->load() == nullptr;
    exit_of(*first, 0)->slot->store(in_first ? entry_of(*second, 0) : nullptr);
    exit_of(*second, 0)->slot->store(in_first ? nullptr : entry_of(*first, 0));
  };
  exit_of(*second, 0)->slot->store(nullptr);
  func_refs(rounds.m.instance->context())[rounds.m.module->find_export("f")->index].code = first->entry;
  (void)rounds.m.call("f", {i32(2000)});
  EXPECT_LT(highest - lowest, 4096u);
}

// A loop that stands alone and is counted: left between strips, so that it may become vectors.
TEST(LoopExits, OfALoopThatStandsAloneAreInCodeForRunningLoops) {
  Optimized m = with_exits(R"((module (memory 16)
    (func (export "f") (param $n i64) (result i64) (local $i i64) (local $sum i64) (local $last i32)
      (loop $l
        (local.set $last (i32.and (i32.wrap_i64 (local.get $i)) (i32.const 0xffff)))
        (local.set $sum (i64.add (local.get $sum) (i64.load32_u (i32.shl (local.get $last) (i32.const 2)))))
        (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $n))))
      (i64.add (local.get $sum) (i64.extend_i32_u (local.get $last))))))",
                           {LoopIndex(0)});
  const CodeVersion* version = m.compile("f");
  ASSERT_NE(version, nullptr);
  ASSERT_NE(exit_of(*version, 0), nullptr);
  uint8_t* const memory = m.instance->context()->memory->base;
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    const uint32_t value = i * 2654435761u;
    std::memcpy(memory + 4 * i, &value, 4);
  }
  const auto sum_to = [](uint64_t n) {
    uint64_t sum = 0, of_all = 0;
    for (uint64_t i = 0; i < 1 << 16; ++i) {
      const uint32_t value = static_cast<uint32_t>(i) * 2654435761u;
      of_all += value;
      if (i < n % (1 << 16)) sum += value;
    }
    return sum + of_all * (n >> 16);
  };
  const auto enter =
      reinterpret_cast<uint64_t (*)(VmContext*, const uint64_t*)>(const_cast<void*>(entry_of(*version, 0)));
  constexpr uint64_t kSome = 1'000'003;
  const uint64_t short_frame[] = {kSome, 17, sum_to(17), 0};
  EXPECT_EQ(enter(m.instance->context(), short_frame), sum_to(kSome) + ((kSome - 1) & 0xffff));
  // One that would not end today is left as soon as another thread wants it.
  left_with.fill(0);
  std::thread other([&] { exit_of(*version, 0)->slot->store(reinterpret_cast<const void*>(&leave)); });
  const uint64_t long_frame[] = {~uint64_t{0}, 17, sum_to(17), 0};
  EXPECT_EQ(enter(m.instance->context(), long_frame), 4711u);
  other.join();
  EXPECT_GE(left_with[1], 17u);
  EXPECT_EQ(left_with[2], sum_to(left_with[1])) << "after " << left_with[1];
}

// What an iteration calls may take long, and a strip as many times that.
TEST(LoopExits, OfACountedLoopThatCallsComeAfterAFewCalls) {
  std::function<void(uint64_t)> at_call;
  uint64_t calls = 0;
  Optimized m = with_exits(R"((module (import "host" "call" (func $call (param i64)))
    (func (export "f") (param $n i64) (result i64) (local $i i64)
      (loop $l
        (call $call (local.get $i))
        (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $n))))
      (local.get $i))))",
                           {LoopIndex(0)}, {.host = {{"host.call", [&](TestInstance&, uint64_t* slots) {
                                                        ++calls;
                                                        at_call(slots[0]);
                                                        return true;
                                                      }}}});
  const CodeVersion* version = m.compile("f");
  ASSERT_NE(version, nullptr);
  ASSERT_NE(exit_of(*version, 0), nullptr);
  const auto enter =
      reinterpret_cast<uint64_t (*)(VmContext*, const uint64_t*)>(const_cast<void*>(entry_of(*version, 0)));
  at_call = [&](uint64_t i) {
    if (i == 1000) exit_of(*version, 0)->slot->store(reinterpret_cast<const void*>(&leave));
  };
  const uint64_t frame[] = {100'000, 0};
  EXPECT_EQ(enter(m.instance->context(), frame), 4711u);
  EXPECT_EQ(left_with[1], calls);
  EXPECT_GT(calls, 1000u);
  EXPECT_LE(calls, 1000u + 512u);
}

TEST(LoopExits, OfALoopWithoutACountPollEachIteration) {
  Optimized m = with_exits(R"((module (memory 1)
    (func (export "f") (param $at i32) (result i32) (local $steps i32)
      (loop $l
        (local.set $steps (i32.add (local.get $steps) (i32.const 1)))
        (br_if $l (local.tee $at (i32.load (local.get $at)))))
      local.get $steps)))",
                           {LoopIndex(0)});
  const CodeVersion* version = m.compile("f");
  ASSERT_NE(version, nullptr);
  ASSERT_NE(exit_of(*version, 0), nullptr);
  // A ring: it never ends.
  uint8_t* const memory = m.instance->context()->memory->base;
  const uint32_t ring[] = {0, 8, 0, 4};
  std::memcpy(memory, ring, sizeof ring);
  const uint32_t first = 8, second = 4;
  std::memcpy(memory + 4, &first, 4);
  std::memcpy(memory + 8, &second, 4);
  const auto enter =
      reinterpret_cast<uint64_t (*)(VmContext*, const uint64_t*)>(const_cast<void*>(entry_of(*version, 0)));
  std::thread other([&] { exit_of(*version, 0)->slot->store(reinterpret_cast<const void*>(&leave)); });
  const uint64_t frame[] = {4, 0};
  EXPECT_EQ(static_cast<uint32_t>(enter(m.instance->context(), frame)), 4711u);
  other.join();
  EXPECT_EQ(static_cast<uint32_t>(left_with[0]), left_with[1] % 2 ? 8u : 4u);
}

TEST(LoopExits, OfShortIterationsWithoutACountAreMadeOnlyIfAskedFor) {
  // A loop of an interpreter: one of sixteen operations of some forty instructions each. All in a row are long.
  const auto loop_of = [](bool chooses) {
    std::string blocks, cases, table;
    for (int i = 0; i < 16; ++i) {
      std::string operation = "(local.get $r)";
      for (int k = 0; k < 20; ++k)
        operation = fmt::format("(i32.{} (i32.mul {} (i32.const {})) (local.get $at))", k % 2 ? "add" : "xor",
                                operation, 2 * i + 4 * k + 3);
      table += fmt::format(" {}", i);
      blocks += "(block ";
      cases += fmt::format(") (local.set $r {}) {}", operation, chooses ? "(br $next)" : "");
    }
    const std::string choice =
        chooses ? fmt::format("(br_table {} (i32.and (local.get $at) (i32.const 15)))", table) : "";
    return fmt::format(R"((module (memory 1)
      (func (export "f") (param $at i32) (result i32) (local $r i32)
        (loop $l
          (block $next {} {} {})
          (br_if $l (local.tee $at (i32.load (local.get $at)))))
        local.get $r)))",
                       blocks, choice, cases);
  };
  const auto has_exit = [&](bool chooses, bool short_loop_exits) {
    OptimizeRequest request;
    request.loop_exits = true;
    request.short_loop_exits = short_loop_exits;
    request.nest = LoopIndex(0);
    Optimized m(loop_of(chooses), request, {});
    const CodeVersion* version = m.compile("f");
    EXPECT_NE(version, nullptr);
    return version && exit_of(*version, 0) != nullptr;
  };
  EXPECT_TRUE(has_exit(/*chooses=*/true, /*short_loop_exits=*/true));
  EXPECT_FALSE(has_exit(/*chooses=*/true, /*short_loop_exits=*/false));
  EXPECT_TRUE(has_exit(/*chooses=*/false, /*short_loop_exits=*/false)) << "what it costs is nothing to that";
}

TEST(LoopExits, HandOverFloatsVectorsAndManyLocals) {
  std::string locals, sets, sum = "(f64.const 0)";
  constexpr int kLocals = 40;
  for (int i = 0; i < kLocals; ++i) {
    const std::string name = "$d" + std::to_string(i);
    locals += "(local " + name + " f64)";
    sets +=
        "(local.set " + name + " (f64.add (local.get " + name + ") (f64.const " + std::to_string(i) + ".5)))";
    sum =
        "(f64.add " + sum + " (f64.mul (local.get " + name + ") (f64.const " + std::to_string(i + 1) + ")))";
  }
  const std::string text =
      R"((module (func (export "f") (param $n i32) (result f64) (local $i i32) (local $k i32)
      (local $f f32) (local $v v128) )" +
      locals + R"(
    (loop $outer
      (local.set $f (f32.add (local.get $f) (f32.const 0.25)))
      (local.set $v (i32x4.add (local.get $v) (v128.const i32x4 1 2 3 4)))
      )" +
      sets + R"((local.set $k (i32.const 3))
      (loop $inner (local.set $v (i32x4.add (local.get $v) (i32x4.splat (local.get $k))))
        (br_if $inner (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (f64.add )" +
      sum + R"( (f64.add (f64.promote_f32 (local.get $f))
      (f64.convert_i32_u (i32x4.extract_lane 3 (local.get $v))))))))";
  Optimized m = with_exits(text, {LoopIndex(0)});
  const CodeVersion* first = m.compile("f");
  const CodeVersion* second = m.compile("f");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(exit_of(*first, 0), nullptr);
  const uint32_t index = m.module->find_export("f")->index;
  func_refs(m.instance->context())[index].code = second->entry;
  const Outcome stayed = m.call("f", {i32(25)});
  exit_of(*first, 0)->slot->store(entry_of(*second, 0));
  func_refs(m.instance->context())[index].code = first->entry;
  EXPECT_EQ(m.call("f", {i32(25)}), stayed) << "left at its first header";
  // From the middle: entered with values, left at once with the same.
  alignas(16) uint64_t frame[2 * (5 + kLocals)] = {};
  frame[0] = 25;
  frame[2] = 7;
  frame[6] = std::bit_cast<uint32_t>(1.75f);
  frame[8] = 0x0000000200000001;
  frame[9] = 0x0000000400000003;
  for (int i = 0; i < kLocals; ++i) frame[2 * (5 + i)] = std::bit_cast<uint64_t>(7 * (i + 0.5));
  exit_of(*first, 0)->slot->store(reinterpret_cast<const void*>(&leave_with_float));
  const auto enter =
      reinterpret_cast<double (*)(VmContext*, const uint64_t*)>(const_cast<void*>(entry_of(*first, 0)));
  EXPECT_EQ(enter(m.instance->context(), frame), 47.11);
  EXPECT_EQ(static_cast<uint32_t>(left_with[2]), 7u);
  EXPECT_EQ(static_cast<uint32_t>(left_with[6]), std::bit_cast<uint32_t>(1.75f));
  EXPECT_EQ(left_with[8], frame[8]);
  EXPECT_EQ(left_with[9], frame[9]);
  for (int i = 0; i < 27; ++i) EXPECT_EQ(left_with[2 * (5 + i)], frame[2 * (5 + i)]) << i;
}

// Stores of the loop must have reached memory when it is left, however LLVM would like to keep them.
TEST(LoopExits, LeaveMemoryAndGlobalsAsTheProgramHasThemThere) {
  Optimized m = with_exits(R"((module (memory (export "m") 1) (global $g (mut i32) (i32.const 0))
    (func (export "f") (param $n i32) (result i32) (local $i i32) (local $k i32)
      (loop $outer
        (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 3)))
        (global.set $g (i32.add (global.get $g) (i32.const 5)))
        (local.set $k (i32.const 100))
        (loop $inner
          (global.set $g (i32.xor (i32.mul (global.get $g) (i32.const 3)) (local.get $k)))
          (i32.store (i32.const 68) (i32.add (i32.load (i32.const 68)) (global.get $g)))
          (br_if $inner (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
        (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (i32.add (i32.add (global.get $g) (i32.load (i32.const 64))) (i32.load (i32.const 68))))
    (func (export "clear") (global.set $g (i32.const 0)) (i64.store (i32.const 64) (i64.const 0)))))",
                           {LoopIndex(0)});
  const CodeVersion* first = m.compile("f");
  const CodeVersion* second = m.compile("f");
  ASSERT_NE(exit_of(*first, 0), nullptr);
  const uint32_t index = m.module->find_export("f")->index;
  func_refs(m.instance->context())[index].code = second->entry;
  const Outcome stayed = m.call("f", {i32(100'000)});
  (void)m.call("clear");
  func_refs(m.instance->context())[index].code = first->entry;
  std::thread other([&] { exit_of(*first, 0)->slot->store(entry_of(*second, 0)); });
  EXPECT_EQ(m.call("f", {i32(100'000)}), stayed);
  other.join();
}

TEST(LoopExits, AreNotMadeWhereExceptionsAreCaughtOrTheFrameHasNoRoom) {
  const auto exits_of = [](const std::string& locals, const std::string& more) {
    Optimized m = with_exits(
        "(module (func (export \"f\") (param $n i32) (result i32) (local $i i32) " + locals +
            "(loop $a (local.set $i (i32.const 9)) (loop $b (br_if $b (local.tee $i (i32.sub "
            "(local.get $i) (i32.const 1)))))" +
            more + "(br_if $a (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) local.get $n))",
        {LoopIndex(0)});
    const CodeVersion* version = m.compile("f");
    return version ? version->osr_exits.size() : 99;
  };
  EXPECT_EQ(exits_of("", ""), 1u);
  EXPECT_EQ(exits_of("", "(try (do nop) (catch_all nop))"), 0u);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "(local i64)";
  EXPECT_EQ(exits_of(many, ""), 0u);
}

}  // namespace
}  // namespace hindsight::jit::testing
