// A guest's own events: module hindsight_lwp, from the call to the report.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::HasSubstr;

constexpr const char* kLwpGuest = R"((module $marker
  (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
  (import "hindsight_lwp" "value_sample" (func $value (param i64 i32 i32)))
  (import "hindsight_lwp" "set_value_interval" (func $interval (param i32) (result i32)))
  (import "hindsight_lwp" "enabled" (func $enabled (result i32)))
  (import "hindsight_lwp" "name_flags" (func $name (param i32 i32 i32)))
  (type $inserter (func (param i64 i32 i32) (result i32)))
  (table 1 funcref)
  (elem (i32.const 0) $insert)
  (memory (export "memory") 1)
  (data (i32.const 16) "a phase")
  (func (export "mark") (param i64 i32 i32) (result i32)
    (call $insert (local.get 0) (local.get 1) (local.get 2)))
  (func (export "mark_indirect") (param i64 i32 i32) (result i32)
    (call_indirect (type $inserter) (local.get 0) (local.get 1) (local.get 2) (i32.const 0)))
  (func (export "mark_many") (param $n i32) (result i32) (local $full i32)
    (block $done (loop $again
      (br_if $done (i32.eqz (local.get $n)))
      (local.set $full (i32.add (local.get $full)
        (call $insert (i64.extend_i32_u (local.get $n)) (local.get $n) (i32.const 1))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $again)))
    (local.get $full))
  (func (export "values") (param $n i32)
    (block $done (loop $again
      (br_if $done (i32.eqz (local.get $n)))
      (call $value (i64.extend_i32_u (local.get $n)) (i32.const 3) (i32.const 7))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $again))))
  (func (export "set_interval") (param i32) (result i32) (call $interval (local.get 0)))
  (func (export "is_enabled") (result i32) (call $enabled))
  (func (export "name") (param i32 i32 i32) (call $name (local.get 0) (local.get 1) (local.get 2)))
  (export "insert_itself" (func $insert))))";

struct Seen {
  LwpRecord record;  // without views
  std::string function, label;
};

class Listener {
 public:
  std::function<void(const LwpRecord&)> callback() {
    return [this](const LwpRecord& record) {
      const std::lock_guard lock(mutex_);
      Seen seen{record, std::string(record.function), std::string(record.label)};
      seen.record.function = seen.record.label = {};
      seen_.push_back(std::move(seen));
    };
  }
  std::vector<Seen> of(uint8_t event, bool from_guest) const {
    const std::lock_guard lock(mutex_);
    std::vector<Seen> out;
    for (const Seen& s : seen_)
      if (s.record.event_id == event && s.record.from_guest == from_guest) out.push_back(s);
    return out;
  }

 private:
  mutable std::mutex mutex_;  // protects seen_
  std::vector<Seen> seen_;
};

struct Running {
  std::unique_ptr<Listener> listener = std::make_unique<Listener>();
  std::shared_ptr<Engine> engine;
  std::shared_ptr<Instance> instance;

  int32_t i32(const char* name, std::vector<Value> args = {}) {
    auto results = instance->call(name, args);
    EXPECT_TRUE(results) << results.error().describe();
    return results && !results->empty() ? (*results)[0].as_i32() : -1;
  }
  int32_t mark(uint64_t data2, uint32_t data1, uint32_t flags, const char* name = "mark") {
    return i32(name, {Value::i64(static_cast<int64_t>(data2)), Value::i32(static_cast<int32_t>(data1)),
                      Value::i32(static_cast<int32_t>(flags))});
  }
};

Running start(EngineConfig config, std::string_view wat = kLwpGuest) {
  Running running;
  config.guest_lwp = true;
  config.on_record = running.listener->callback();
  auto engine = Engine::create(std::move(config));
  EXPECT_TRUE(engine) << engine.error().describe();
  running.engine = *engine;
  Linker linker(*running.engine);
  running.instance = instantiate(linker, *running.engine, wat);
  return running;
}

EngineConfig with_tier(TierMode tier) {
  EngineConfig config;
  config.tier = tier;
  return config;
}

class GuestLwp : public testing::TestWithParam<TierMode> {
 protected:
  EngineConfig config() const { return with_tier(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Tiers, GuestLwp,
                         testing::Values(TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto),
                         [](const auto& info) {
                           return info.param == TierMode::kBaseline    ? "baseline"
                                  : info.param == TierMode::kOptimized ? "optimized"
                                                                       : "automatic";
                         });

TEST_P(GuestLwp, AnInsertedEventHasItsOperandsItsTimeAndItsPlace) {
  Running guest = start(config());
  EXPECT_EQ(guest.i32("is_enabled"), 1);
  EXPECT_EQ(guest.mark(0x123456789abcdef0, 0xcafe1234, 0xffff'0042), 0);
  const FeedbackReport report = guest.engine->feedback_report();
  const auto events = guest.listener->of(255, true);
  ASSERT_EQ(events.size(), 1u) << "a report asks for what the threads wrote up to now";
  const LwpRecord& r = events[0].record;
  EXPECT_EQ(r.data2, 0x123456789abcdef0u);
  EXPECT_EQ(r.data1, 0xcafe1234u);
  EXPECT_EQ(r.flags, 0x42) << "sixteen bits, as the instruction has";
  EXPECT_TRUE(r.exact_time);
  EXPECT_NE(r.time_ns, 0u);
  EXPECT_NE(r.thread, 0);
  EXPECT_EQ(events[0].function, "mark");
  EXPECT_TRUE(r.wasm_offset.has_value());
  EXPECT_EQ(r.optimized, GetParam() == TierMode::kOptimized);
  EXPECT_EQ(report.counts.guest_records, 1u);
  EXPECT_EQ(report.counts.records_unattributed, 0u);
  ASSERT_EQ(report.guest.kinds.size(), 1u);
  EXPECT_EQ(report.guest.kinds[0].flags, 0x42);
  EXPECT_EQ(report.guest.kinds[0].function, "mark");
  EXPECT_EQ(report.guest.kinds[0].count, 1u);
}

TEST_P(GuestLwp, ThePlaceIsTheCallNotTheHostFunction) {
  Running guest = start(config());
  guest.mark(0, 0, 1);
  guest.mark(0, 0, 2, "mark_indirect");
  guest.engine->feedback_report();
  const auto events = guest.listener->of(255, true);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].function, "mark_indirect");
  ASSERT_TRUE(events[0].record.wasm_offset && events[1].record.wasm_offset);
  EXPECT_LT(*events[0].record.wasm_offset, *events[1].record.wasm_offset);
}

TEST_P(GuestLwp, ValuesAreCountedAndEveryKthIsRecorded) {
  Running guest = start(config());
  EXPECT_EQ(guest.i32("set_interval", {Value::i32(9)}), 0);
  guest.i32("values", {Value::i32(95)});
  const FeedbackReport report = guest.engine->feedback_report();
  const auto values = guest.listener->of(1, true);
  ASSERT_EQ(values.size(), 9u);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].record.data2, 95 - 10 * (i + 1) + 1)
        << "the tenth, the twentieth, ... of 95, 94, ...";
    EXPECT_EQ(values[i].record.flags, 7);
    EXPECT_EQ(values[i].function, "values");
  }
  EXPECT_EQ(report.guest.values_seen, 95u);
  EXPECT_EQ(report.guest.values_stored, 9u);
  ASSERT_EQ(report.guest.kinds.size(), 1u);
  EXPECT_TRUE(report.guest.kinds[0].value);
  EXPECT_EQ(report.guest.kinds[0].least, 6u);
  EXPECT_EQ(report.guest.kinds[0].greatest, 86u);
  ASSERT_EQ(report.guest.kinds[0].data1.size(), 1u);
  EXPECT_EQ(report.guest.kinds[0].data1[0].value, 3u);
  // As in a control block: 26 bits with sign, and what is negative is zero.
  EXPECT_EQ(guest.i32("set_interval", {Value::i32(-5)}), 9);
  EXPECT_EQ(guest.i32("set_interval", {Value::i32(1 << 26 | 3)}), 0);
  EXPECT_EQ(guest.i32("set_interval", {Value::i32(0)}), 3);
  guest.i32("values", {Value::i32(4)});
  guest.engine->feedback_report();
  EXPECT_EQ(guest.listener->of(1, true).size(), 13u) << "interval 0 records every value";
}

TEST_P(GuestLwp, AFullRingIsSaidToTheGuestAndCounted) {
  // Nobody drains while the guest runs: the first record that is handed out waits for it.
  std::atomic<bool> ran = false;
  EngineConfig config = this->config();
  config.guest_lwp = true;
  config.on_record = [&](const LwpRecord&) { ran.wait(false); };
  auto engine = Engine::create(std::move(config)).value();
  Linker linker(*engine);
  auto instance = instantiate(linker, *engine, kLwpGuest);
  const int32_t full = instance->call("mark_many", std::array{Value::i32(100'000)}).value()[0].as_i32();
  ran = true;
  ran.notify_all();
  EXPECT_GT(full, 0);
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(report.guest.inserted, 100'000u);
  EXPECT_EQ(report.guest.inserted_full, static_cast<uint64_t>(full));
  ASSERT_EQ(report.guest.kinds.size(), 1u);
  EXPECT_EQ(report.guest.kinds[0].count + static_cast<uint64_t>(full), 100'000u)
      << "stored or counted as missed";
  EXPECT_GE(report.counts.missed, static_cast<uint64_t>(full));
}

TEST_P(GuestLwp, WithTheNullUnitTheGuestHearsWhatASwitchedOffProcessorSays) {
  EngineConfig config = this->config();
  config.unit = "null";
  Running guest = start(config);
  EXPECT_EQ(guest.i32("is_enabled"), 0);
  EXPECT_EQ(guest.i32("mark_many", {Value::i32(10'000)}), 0);
  guest.i32("values", {Value::i32(10)});
  const FeedbackReport report = guest.engine->feedback_report();
  EXPECT_EQ(report.guest.calls_off, 10'010u);
  EXPECT_EQ(report.guest.inserted, 0u);
  EXPECT_EQ(report.counts.guest_records, 0u);
  EXPECT_TRUE(report.guest.kinds.empty());
}

TEST(GuestLwpWithoutProfiling, DoesNothingAndIsCounted) {
  for (const TierMode tier : {TierMode::kBaseline, TierMode::kOptimized}) {
    EngineConfig config = with_tier(tier);
    config.profiling = false;
    Running guest = start(config);
    EXPECT_EQ(guest.i32("is_enabled"), 0);
    EXPECT_EQ(guest.mark(1, 2, 3), 0);
    EXPECT_EQ(guest.engine->feedback_report().guest.calls_off, 1u);
  }
}

TEST(GuestLwpModule, IsGivenOnlyWhereTheEmbedderSaysSo) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto refused = linker.instantiate(load(*engine, kLwpGuest));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kLink);
  EXPECT_THAT(refused.error().message, HasSubstr("hindsight_lwp"));
}

TEST(GuestLwpModule, LeavesTheEmbeddersOwnDefinitionsAlone) {
  EngineConfig config = with_tier(TierMode::kBaseline);
  config.guest_lwp = true;
  auto engine = Engine::create(config).value();
  Linker linker(*engine);
  linker.define_function("hindsight_lwp", "enabled", []() -> int32_t { return 42; });
  auto instance = instantiate(linker, *engine, kLwpGuest);
  EXPECT_EQ(instance->call("is_enabled", {}).value()[0].as_i32(), 42);
  EXPECT_EQ(instance->call("set_interval", std::array{Value::i32(5)}).value()[0].as_i32(), 0);
}

TEST(GuestLwpModule, HasNoOtherFunctionsAndOnlyTheseTypes) {
  EngineConfig config = with_tier(TierMode::kBaseline);
  config.guest_lwp = true;
  auto engine = Engine::create(config).value();
  for (const char* wat : {R"((module (import "hindsight_lwp" "llwpcb" (func))))",
                          R"((module (import "hindsight_lwp" "enabled" (func))))"}) {
    Linker linker(*engine);
    auto refused = linker.instantiate(load(*engine, wat));
    ASSERT_FALSE(refused) << wat;
    EXPECT_EQ(refused.error().kind, ErrorKind::kLink);
  }
}

TEST(GuestLwpModule, NamesAreShownAndABadPointerTraps) {
  Running guest = start(with_tier(TierMode::kBaseline));
  ASSERT_TRUE(guest.instance->call("name", std::array{Value::i32(5), Value::i32(16), Value::i32(7)}));
  guest.mark(1, 2, 5);
  const FeedbackReport report = guest.engine->feedback_report();
  ASSERT_EQ(report.guest.kinds.size(), 1u);
  EXPECT_EQ(report.guest.kinds[0].name, "a phase");
  EXPECT_EQ(guest.listener->of(255, true).at(0).label, "a phase");
  for (const auto& [text, length] : {std::pair{65530, 7}, std::pair{-1, 1}, std::pair{0, -1}}) {
    EXPECT_THAT(trap_of(*guest.instance, "name", {Value::i32(5), Value::i32(text), Value::i32(length)}),
                HasSubstr("outside of memory"));
  }
}

TEST(GuestLwpModule, ACallOfTheHostItselfIsCountedAsUnattributed) {
  Running guest = start(with_tier(TierMode::kBaseline));
  EXPECT_EQ(guest.mark(1, 2, 3, "insert_itself"), 0);
  const FeedbackReport report = guest.engine->feedback_report();
  EXPECT_EQ(report.counts.guest_records, 1u);
  EXPECT_EQ(report.counts.records_unattributed, 1u);
  EXPECT_EQ(guest.listener->of(255, true).at(0).function, "");
}

TEST(GuestLwpModule, InstancesOfOneLinkerShareTheIntervalAndOthersHaveTheirOwn) {
  Running guest = start(with_tier(TierMode::kBaseline));
  EXPECT_EQ(guest.i32("set_interval", {Value::i32(7)}), 0);
  Linker other(*guest.engine);
  auto instance = instantiate(other, *guest.engine, kLwpGuest);
  auto sibling = instantiate(other, *guest.engine, kLwpGuest);
  EXPECT_EQ(instance->call("set_interval", std::array{Value::i32(3)}).value()[0].as_i32(), 0);
  EXPECT_EQ(sibling->call("set_interval", std::array{Value::i32(0)}).value()[0].as_i32(), 3);
}

TEST(GuestLwpModule, KeepsTheCountsOfGuestsThatAreGone) {
  Running guest = start(with_tier(TierMode::kBaseline));
  guest.mark(1, 2, 3);
  guest.instance.reset();
  EXPECT_EQ(guest.engine->feedback_report().guest.inserted, 1u);
}

TEST(GuestLwpModule, ShowsABoundedNumberOfKindsAndCountsTheRest) {
  Running guest = start(with_tier(TierMode::kBaseline));
  for (uint32_t flags = 0; flags < 100; ++flags) {
    guest.mark(flags, flags, flags);
    if (flags % 50 == 0) guest.engine->feedback_report();
  }
  for (uint32_t data1 = 0; data1 < 100; ++data1) guest.mark(0, data1, 0);
  const FeedbackReport report = guest.engine->feedback_report();
  EXPECT_EQ(report.guest.kinds.size(), 64u);
  EXPECT_EQ(report.guest.left_out, 36u);
  uint64_t data1 = report.guest.kinds[0].data1_others;
  for (const auto& d : report.guest.kinds[0].data1) data1 += d.count;
  EXPECT_EQ(data1, report.guest.kinds[0].count);
  EXPECT_EQ(report.guest.kinds[0].count, 101u);
  uint64_t along_time = 0;
  for (const uint64_t count : report.guest.kinds[0].timeline) along_time += count;
  EXPECT_EQ(along_time, 101u);
}

TEST(ValueRecords, OfGeneratedCodeAreAttributedAndNotTakenForTheGuests) {
  Running guest = start(with_tier(TierMode::kBaseline), R"((module
    (func (export "divide") (param $n i32) (param $by i32) (result i32) (local $sum i32)
      (loop $again
        (local.set $sum (i32.add (local.get $sum) (i32.div_u (local.get $n) (local.get $by))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
      (local.get $sum))))");
  guest.i32("divide", {Value::i32(300'000), Value::i32(3)});
  const FeedbackReport report = guest.engine->feedback_report();
  EXPECT_GE(report.counts.value_records, 4u);
  EXPECT_EQ(report.counts.guest_records, 0u);
  EXPECT_EQ(report.counts.records_unattributed, 0u);
  const auto values = guest.listener->of(1, false);
  ASSERT_EQ(values.size(), report.counts.value_records);
  for (const Seen& s : values) {
    EXPECT_EQ(s.record.data2, 3u);
    EXPECT_EQ(s.record.data1, s.record.wasm_offset);
    EXPECT_EQ(s.function, "divide");
  }
}

}  // namespace
}  // namespace hindsight
