// The native unit with its instructions emulated: it cannot tell, and neither can this test.
#include "feedback/lwp/units/native_unit.h"

#include <gtest/gtest.h>

#include <thread>

#include "feedback/lwp/emulation/emulator.h"
#include "feedback/lwp/emulation/instructions.h"
#include "feedback/lwp/emulation/sigill_emulation.h"

namespace hindsight::lwp {
namespace {

class NativeUnit : public testing::Test {
 protected:
  void SetUp() override {
    const Status installed = install_lwp_emulation(IfSigillIsHandled::kChain);
    ASSERT_TRUE(installed) << installed.error().describe();
  }
  void TearDown() override { EXPECT_TRUE(uninstall_lwp_emulation()); }

  std::unique_ptr<Unit> unit(uint32_t records = 64) {
    UnitConfig config;
    config.ring.records = records;
    auto made = make_native_factory(emulated_capabilities())->create(config);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
};

TEST_F(NativeUnit, HandsOutWhatTheThreadsInstructionsRecorded) {
  const auto unit = this->unit();
  std::thread([&] {
    ASSERT_TRUE(unit->attach());
    for (uint32_t i = 0; i < 3; ++i) {
      instruction::lwpval<0x11>(100 + i, i);
      EXPECT_FALSE(instruction::lwpins<0x22>(200 + i, i));
    }
    unit->detach();
    EXPECT_EQ(instruction::slwpcb(), nullptr);
  }).join();
  Batch batch;
  unit->drain(batch);
  ASSERT_EQ(batch.records.size(), 6u);
  for (uint32_t i = 0; i < 3; ++i) {
    const EventRecord& value = batch.records[2 * i];
    const EventRecord& event = batch.records[2 * i + 1];
    EXPECT_EQ(value, make_value_record(value.address, 100 + i, i, 0x11));
    EXPECT_EQ(event, make_programmed_record(event.address, 200 + i, i, 0x22));
    EXPECT_NE(value.address, 0u);
  }
  EXPECT_EQ(unit->counters().records, 6u);
}

TEST_F(NativeUnit, IsReadWhileTheThreadRuns) {
  const auto unit = this->unit();
  ASSERT_TRUE(unit->attach());
  Batch batch;
  for (uint32_t i = 0; i < 500; ++i) {
    instruction::lwpins<1>(i, 0);
    if (i % 50 == 0) unit->drain(batch);
  }
  unit->detach();
  unit->drain(batch);
  ASSERT_EQ(batch.records.size(), 500u);
  for (uint32_t i = 0; i < 500; ++i) EXPECT_EQ(batch.records[i].data2, i);
  EXPECT_EQ(unit->counters().missed, 0u);
}

TEST_F(NativeUnit, CountsWhatTheRingCouldNotTake) {
  const auto unit = this->unit(8);
  ASSERT_TRUE(unit->attach());
  for (uint32_t i = 0; i < 20; ++i) instruction::lwpins<1>(i, 0);
  unit->detach();
  Batch batch;
  unit->drain(batch);
  EXPECT_EQ(batch.records.size() + unit->counters().missed, 20u);
  EXPECT_EQ(batch.records.size(), 7u);
}

TEST_F(NativeUnit, KeepsRecordsOfInstrumentedCodeInARingOfItsOwn) {
  const auto unit = this->unit();
  ASSERT_TRUE(unit->attach());
  record_event(unit->ring(), make_instructions_record(0x1000));
  instruction::lwpins<1>(7, 0);
  record_event(unit->ring(), make_instructions_record(0x2000));
  unit->detach();
  Batch batch;
  unit->drain(batch);
  ASSERT_EQ(batch.records.size(), 3u);
  EXPECT_EQ(batch.records[0], make_instructions_record(0x1000));
  EXPECT_EQ(batch.records[1], make_instructions_record(0x2000));
  EXPECT_EQ(batch.records[2].data2, 7u);
}

TEST_F(NativeUnit, AttachesAgainWhereItStopped) {
  const auto unit = this->unit(8);
  Batch batch;
  for (uint32_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(unit->attach());
    for (uint32_t i = 0; i < 4; ++i) instruction::lwpval<0>(round * 4 + i, 0);
    unit->detach();
    unit->drain(batch);
  }
  ASSERT_EQ(batch.records.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(batch.records[i].data2, i);
}

TEST_F(NativeUnit, LeavesAThreadAloneThatUsesLwpItself) {
  const auto other = this->unit(), unit = this->unit();
  ASSERT_TRUE(other->attach());
  const Status attached = unit->attach();
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().kind, ErrorKind::kUsage);
  EXPECT_NE(instruction::slwpcb(), nullptr);
  other->detach();
}

TEST_F(NativeUnit, StatesTheEventsOfTheProcessor) {
  const auto ids = [](const Capabilities& capabilities) {
    const auto factory = make_native_factory(capabilities);  // the span is the factory's
    std::vector<EventId> out;
    for (const EventInfo& event : factory->events()) out.push_back(event.id);
    return out;
  };
  EXPECT_EQ(ids(emulated_capabilities()), (std::vector{EventId::kValue, EventId::kProgrammed}));
  // The registers of an FX-8150, with all that it has switched on.
  const Capabilities fx = decode_capabilities(1u << 15, {0x8000000F, 0x80032013, 0x00010200, 0x8000000F});
  EXPECT_EQ(why_not_native(fx), "");
  EXPECT_EQ(ids(fx),
            (std::vector{EventId::kValue, EventId::kInstructions, EventId::kBranches, EventId::kProgrammed}));
}

TEST_F(NativeUnit, ChangesItsRateWhileAttachedAndRefusesImpossibleOnes) {
  const auto unit = this->unit();
  ASSERT_TRUE(unit->set_frequency(1000));
  ASSERT_TRUE(unit->attach());
  EXPECT_TRUE(unit->set_frequency(0));
  EXPECT_FALSE(unit->set_frequency(kMaxFrequency + 1));
  // Value samples are recorded one and all at any rate.
  for (uint32_t i = 0; i < 10; ++i) instruction::lwpval<0>(i, 0);
  unit->detach();
  Batch batch;
  unit->drain(batch);
  EXPECT_EQ(batch.records.size(), 10u);
}

}  // namespace
}  // namespace hindsight::lwp
