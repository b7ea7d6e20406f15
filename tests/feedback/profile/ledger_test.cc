#include "feedback/profile/ledger.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

using enum jit::ChangeKind;

const jit::Site kLoad{kPrefetch, WasmOffset(77)};

TEST(ChangeLedger, KnowsOfEachChangeWhatBecameOfIt) {
  ChangeLedger ledger;
  EXPECT_EQ(ledger.state(kLoad), ChangeState::kNone);
  ledger.begin(kLoad);
  EXPECT_EQ(ledger.state(kLoad), ChangeState::kInTrial);
  EXPECT_EQ(ledger.state({kInterleave, WasmOffset(77)}), ChangeState::kNone) << "another change of that load";
  ledger.settle(kLoad, {.state = ChangeState::kKept, .setting = 32, .gain = 0.5});
  EXPECT_EQ(ledger.of(kLoad).setting, 32u);
  ledger.begin(kLoad);
  EXPECT_EQ(ledger.state(kLoad), ChangeState::kKept) << "it stays, and is not tried again";
}

TEST(ChangeLedger, CountsHowOftenAChangeWasTakenBack) {
  ChangeLedger ledger;
  for (uint32_t i = 1; i <= 3; ++i) {
    ledger.begin(kLoad);
    ledger.settle(kLoad, ChangeState::kRolledBack);
    ledger.settle(kLoad, ChangeState::kRolledBack);  // said twice, as of several loops that share it
    EXPECT_EQ(ledger.of(kLoad).rejections, i);
  }
}

TEST(ChangeLedger, LaterVerdictsReplaceEarlierOnesAndOpenTrialsDoNot) {
  const ChangeLedger before = {{kLoad, {.state = ChangeState::kKept, .setting = 16, .why = "won"}}};
  ChangeLedger all = before;
  merge(all, {{kLoad, {.state = ChangeState::kInTrial}}});
  EXPECT_EQ(all, before);
  merge(all, {{kLoad, {.state = ChangeState::kRolledBack, .why = "lost", .rejections = 1}}});
  EXPECT_EQ(all.of(kLoad).why, "lost");
  merge(all, {{kLoad, {.state = ChangeState::kKept, .setting = 8}}});
  EXPECT_EQ(all.of(kLoad).rejections, 1u) << "what was taken back once is not forgotten";
}

TEST(ChangeLedger, HoldsTheLatestOnesWhereThereAreTooMany) {
  ChangeLedger ledger;
  for (uint32_t at = 0; at <= ChangeLedger::kMostEntries; ++at) ledger.begin({kPrefetch, WasmOffset(at)});
  EXPECT_EQ(ledger.size(), ChangeLedger::kMostEntries);
  EXPECT_FALSE(ledger.contains({kPrefetch, WasmOffset(0)}));
}

TEST(ChangeLedger, RunsBeginWithWhatIsKnownForSure) {
  const ChangeLedger earlier = {
      {kLoad, {.state = ChangeState::kKept, .setting = 16, .why = "won"}},
      {{kValue, WasmOffset(80)}, {.state = ChangeState::kInTrial}},
      {{kPrefetch, WasmOffset(90)}, {.state = ChangeState::kInTrial, .rejections = 2}}};
  EXPECT_EQ(seed_of(earlier), (ChangeLedger{{kLoad, {.state = ChangeState::kKept}},
                                            {{kPrefetch, WasmOffset(90)}, {.rejections = 2}}}));
}

}  // namespace
}  // namespace hindsight::feedback
