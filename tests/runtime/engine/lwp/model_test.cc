// The model unit from module to records.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/hindsight.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

// A record as the guest's world sees it: nothing that depends on where code or memory was put.
struct Seen {
  uint8_t event;
  uint16_t flags;
  uint32_t data1;
  std::string function;
  std::optional<uint32_t> offset;
  std::optional<uint64_t> guest_address;
  friend bool operator==(const Seen&, const Seen&) = default;
};

struct Watched {
  std::vector<Seen> records;
  std::optional<ModelReport> report;
  FeedbackReport feedback;
  std::vector<Value> results;
  std::string trap;
};

Watched run(const std::string& wat, std::string_view function, std::vector<Value> args,
            const std::string& model = {}, int times = 1) {
  Watched run;
  EngineConfig config;
  config.unit = "model";
  config.model = model;
  config.model_addresses = true;
  config.on_record = [&run](const LwpRecord& r) {
    run.records.push_back(
        {r.event_id, r.flags, r.data1, std::string(r.function), r.wasm_offset, r.guest_address});
  };
  auto engine = Engine::create(config);
  EXPECT_TRUE(engine) << engine.error().describe();
  if (!engine) return run;
  auto module = load(**engine, wat);
  Linker linker(**engine);
  auto instance = linker.instantiate(module);
  EXPECT_TRUE(instance) << instance.error().describe();
  if (!instance) return run;
  for (int i = 0; i < times; ++i) {
    auto results = (*instance)->call(function, args);
    if (results)
      run.results = *results;
    else
      run.trap = results.error().message;
  }
  run.feedback = (*engine)->feedback_report();
  run.report = (*engine)->model_report();
  return run;
}

// A random walk over 4 MiB: misses, unpredictable branches, calls.
constexpr const char* kWalk = R"((module (memory 64)
  (func $next (param i32) (result i32)
    (i32.add (i32.mul (local.get 0) (i32.const 1664525)) (i32.const 1013904223)))
  (func (export "walk") (param $n i32) (result i32) (local $x i32) (local $sum i32)
    (loop $again
      (local.set $x (call $next (local.get $x)))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.and (i32.shr_u (local.get $x) (i32.const 10)) (i32.const 0x3ffffc)))))
      (if (i32.and (i32.shr_u (local.get $x) (i32.const 20)) (i32.const 1))
        (then (local.set $sum (i32.add (local.get $sum) (i32.const 1)))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
)";

TEST(ModelUnit, GivesTheSameRecordsAgain) {
  const Watched first = run(kWalk, "walk", {Value::i32(200'000)});
  const Watched second = run(kWalk, "walk", {Value::i32(200'000)});
  EXPECT_GT(first.records.size(), 50u);
  EXPECT_EQ(first.records, second.records);
  EXPECT_EQ(first.report->cycles, second.report->cycles);
  EXPECT_EQ(first.feedback.counts.missed, 0u);
}

TEST(ModelUnit, CountsEveryInstruction) {
  const Watched r = run(kWalk, "walk", {Value::i32(1000)});
  // A turn: 2 of the if's body in half of them; walk ends with one local.get. next: 5.
  const auto& branches = r.report->branches;
  uint64_t ones = 0, turns = 0;
  for (const auto& b : branches) {
    if (b.executions != 1000) continue;
    if (b.taken == 999) {
      turns = b.executions;
    } else {
      ones = b.taken;
    }
  }
  EXPECT_EQ(turns, 1000u);
  EXPECT_GT(ones, 400u);
  EXPECT_LT(ones, 600u);
  // next: get, const, mul, const, add. walk: get call set | get get const shr const and load add set | get
  // const shr const and if | get const sub tee br_if.
  EXPECT_EQ(r.report->instructions, 1000u * (5 + 3 + 9 + 6 + 5) + 4 * ones + 1);
  EXPECT_EQ(r.report->unknown, 0u);
}

TEST(ModelUnit, NamesTheLoadThatMissesAndItsAddresses) {
  const Watched r = run(kWalk, "walk", {Value::i32(100'000)}, "l3=off,l2=256K/8/14");
  ASSERT_EQ(r.report->accesses.size(), 1u);
  const ModelReport::Access& load = r.report->accesses[0];
  EXPECT_EQ(load.executions, 100'000u);
  EXPECT_GT(load.from_level[2], 80'000u);
  EXPECT_GT(load.miss_stall_cycles, r.report->cycles / 4);
  size_t misses = 0;
  for (const Seen& seen : r.records) {
    if (seen.event != 4) continue;
    ++misses;
    EXPECT_EQ(seen.offset, load.wasm_offset);
    ASSERT_TRUE(seen.guest_address);
    EXPECT_TRUE(r.report->loaded(load.function, load.wasm_offset, *seen.guest_address));
  }
  EXPECT_GT(misses, 10u);
}

TEST(ModelUnit, SeesTheAccessesOfVectors) {
  // Strides of a page: each load misses, and each store after it goes to the same line.
  const Watched r = run(R"((module (memory 64)
    (func (export "f") (param $n i32) (result v128) (local $at i32) (local $sum v128)
      (loop $again
        (local.set $sum (i32x4.add (local.get $sum) (i32x4.mul (v128.load offset=16 (local.get $at)) (v128.load32_splat (local.get $at)))))
        (v128.store64_lane offset=32 1 (local.get $at) (local.get $sum))
        (local.set $at (i32.and (i32.add (local.get $at) (i32.const 4096)) (i32.const 0x3fffff)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $sum))))",
                        "f", {Value::i32(20'000)}, "l3=off,l2=256K/8/14");
  EXPECT_EQ(r.trap, "");
  EXPECT_EQ(r.report->unknown, 0u);
  EXPECT_EQ(r.report->instructions, 20'000u * 22 + 1);
  ASSERT_EQ(r.report->accesses.size(), 3u);
  uint64_t missed = 0;
  for (const ModelReport::Access& access : r.report->accesses) {
    EXPECT_EQ(access.executions, 20'000u);
    missed += access.from_level[2];
  }
  EXPECT_GT(missed, 19'000u);
}

TEST(ModelUnit, JudgesBranchesOneByOne) {
  const Watched r = run(kWalk, "walk", {Value::i32(100'000)});
  for (const auto& b : r.report->branches) {
    const double rate = static_cast<double>(b.mispredicted) / static_cast<double>(b.executions);
    if (b.taken == b.executions - 1)
      EXPECT_LT(rate, 0.01);  // the loop's
    else
      EXPECT_GT(rate, 0.2);  // the coin's
  }
}

TEST(ModelUnit, SurvivesTrapsAndUnwindings) {
  constexpr const char* kTraps = R"((module (memory 1) (table 4 funcref) (elem (i32.const 0) $leaf)
    (func $leaf (result i32) (i32.const 1))
    (func $deep (param i32) (result i32)
      (if (result i32) (i32.eqz (local.get 0))
        (then (i32.load (i32.const 0x7fffffff)))
        (else (i32.add (i32.load (i32.const 8)) (call $deep (i32.sub (local.get 0) (i32.const 1)))))))
    (func (export "run") (param i32) (result i32)
      (drop (call_indirect (result i32) (i32.const 0)))
      (if (i32.gt_u (local.get 0) (i32.const 100)) (then (drop (call_indirect (result i32) (local.get 0)))))
      (call $deep (local.get 0)))))";
  const Watched deep = run(kTraps, "run", {Value::i32(50)}, {}, 20);
  EXPECT_EQ(deep.trap, "out of bounds memory access");
  EXPECT_EQ(deep.report->unknown, 0u);
  EXPECT_EQ(deep.report->unfinished, 19u);  // the words of the last one wait for the rest of their run
  const Watched undefined = run(kTraps, "run", {Value::i32(101)}, {}, 20);
  EXPECT_EQ(undefined.trap, "undefined element");
  EXPECT_EQ(undefined.report->unknown, 0u);
}

TEST(ModelUnit, GivesThreadsUnitsOfTheirOwn) {
  EngineConfig config;
  config.unit = "model";
  auto engine = Engine::create(config);
  ASSERT_TRUE(engine) << engine.error().describe();
  auto module = load(**engine, kWalk);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Linker linker(**engine);
      auto instance = linker.instantiate(module);
      ASSERT_TRUE(instance);
      EXPECT_TRUE((*instance)->call("walk", std::vector{Value::i32(5000)}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(run(kWalk, "walk", {Value::i32(5000)}).report->instructions * 4,
            (*engine)->model_report()->instructions);
}

TEST(ModelUnit, RefusesWhatItCannotDo) {
  EngineConfig config;
  config.unit = "model";
  config.tier = TierMode::kOptimized;
  EXPECT_FALSE(Engine::create(config));
  config.tier = TierMode::kAuto;
  config.model = "l1=huge";
  EXPECT_FALSE(Engine::create(config));
  auto ordinary = make_engine();
  EXPECT_FALSE(ordinary->model_report());
}

}  // namespace
}  // namespace hindsight
