#include "feedback/lwp/info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace hindsight::lwp {
namespace {

TEST(SelectUnit, ListsEveryUnitWithTheReasonWhyItWasNotTaken) {
  const auto selection = select_unit("auto");
  ASSERT_TRUE(selection) << selection.error().describe();
  std::vector<std::string> names;
  for (const UnitProbe& p : selection->probes) {
    names.push_back(p.name);
    EXPECT_EQ(p.reason.empty(), p.selected) << p.name << ": " << p.reason;
    EXPECT_TRUE(p.available || !p.selected);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"native", "hardware", "clock/perf", "clock/timer", "model", "null"}));
  EXPECT_EQ(std::ranges::count_if(selection->probes, &UnitProbe::selected), 1);
}

TEST(SelectUnit, TakesTheFirstAvailableOne) {
  const auto selection = select_unit("auto");
  ASSERT_TRUE(selection);
  const auto first = std::ranges::find_if(selection->probes, &UnitProbe::available);
  EXPECT_TRUE(first->selected);
}

TEST(SelectUnit, TakesWhatWasAskedForEvenIfSomethingBetterIsThere) {
  const auto selection = select_unit("null");
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->factory->name(), "null");
  EXPECT_TRUE(selection->probes.back().selected);
}

TEST(SelectUnit, RefusesAnUnavailableUnitWithItsReason) {
  for (const char* name : {"native", "model"}) {
    const auto selection = select_unit(name);
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().kind, ErrorKind::kUnsupported);
    EXPECT_GT(selection.error().message.size(), std::string_view(name).size() + 10)
        << selection.error().message;
  }
}

TEST(SelectUnit, RefusesNamesThatNobodyHas) {
  const auto selection = select_unit("clockwork");
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().kind, ErrorKind::kUsage);
  EXPECT_NE(selection.error().message.find("clockwork"), std::string::npos);
}

TEST(Info, SaysEverythingInText) {
  const auto i = info();
  ASSERT_TRUE(i);
  const std::string text = to_text(*i);
  for (const UnitProbe& p : i->units) {
    EXPECT_NE(text.find(p.name), std::string::npos) << text;
    EXPECT_NE(text.find(p.reason), std::string::npos) << text;
  }
  for (const EventInfo& e : i->events) EXPECT_NE(text.find(to_string(e.id)), std::string::npos);
  for (const auto& c : i->counters) EXPECT_NE(text.find(to_string(c.counter)), std::string::npos);
  EXPECT_NE(text.find(" * " + i->selected), std::string::npos) << text;
}

TEST(Info, SaysTheSameInJson) {
  const auto i = info("null");
  ASSERT_TRUE(i);
  const nlohmann::json j = nlohmann::json::parse(to_json(*i).dump());
  EXPECT_EQ(j["selected"], "null");
  EXPECT_EQ(j["units"].size(), i->units.size());
  EXPECT_EQ(j["pmu"]["counters"].size(), pmu::kCounterCount);
  EXPECT_EQ(j["events"].size(), 0u);
  EXPECT_EQ(j["processor"]["family"], i->processor.signature.family);
}

TEST(Info, StatesTheAccuracyOfEachEventOfTheClockUnit) {
  const auto i = info("clock");
  if (!i) GTEST_SKIP() << i.error().message;
  std::set<unsigned> exact, estimated;
  for (const EventInfo& e : i->events) {
    (e.accuracy == Accuracy::kExact ? exact : estimated).insert(static_cast<unsigned>(e.id));
    EXPECT_FALSE(e.how.empty());
  }
  EXPECT_EQ(exact, (std::set<unsigned>{1, 2, 3}));
  EXPECT_EQ(estimated, (std::set<unsigned>{4, 5}));
}

}  // namespace
}  // namespace hindsight::lwp
