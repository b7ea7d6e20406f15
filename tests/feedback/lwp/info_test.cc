#include "feedback/lwp/info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
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

TEST(SelectUnit, SaysOfEveryUnitWhatItDeliversAndHowExactly) {
  const auto selection = select_unit("auto");
  ASSERT_TRUE(selection);
  const auto accuracy = [&](std::string_view unit, EventId id) -> std::optional<Accuracy> {
    const auto probe = std::ranges::find(selection->probes, unit, &UnitProbe::name);
    const auto row = std::ranges::find(probe->delivers, id, &std::pair<EventId, Accuracy>::first);
    return row == probe->delivers.end() ? std::nullopt : std::optional(row->second);
  };
  for (const char* unit : {"clock/perf", "clock/timer", "model"}) {
    EXPECT_EQ(accuracy(unit, EventId::kInstructions), Accuracy::kExact) << unit;
    EXPECT_EQ(accuracy(unit, EventId::kDcacheMiss), Accuracy::kEstimated) << unit;
  }
  EXPECT_EQ(accuracy("native", EventId::kValue), Accuracy::kExact);
  EXPECT_EQ(accuracy("hardware", EventId::kCoreClocks), Accuracy::kEstimated) << "always the clock behind it";
  EXPECT_EQ(accuracy("null", EventId::kValue), std::nullopt);
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
  const auto all = select_unit("auto");
  ASSERT_TRUE(all);
  for (const UnitProbe& p : all->probes) {
    if (p.available) continue;
    const auto selection = select_unit(p.name);
    ASSERT_FALSE(selection) << p.name;
    EXPECT_EQ(selection.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(selection.error().message.find(p.reason), std::string::npos) << selection.error().message;
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
  for (const auto& c : i->pmu.counters) EXPECT_NE(text.find(to_string(c.counter)), std::string::npos);
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
  // What a machine-readable answer promises to have, whatever the machine.
  for (const char* key : {"processor", "lwp", "pmu", "units", "selected", "events"})
    EXPECT_TRUE(j.contains(key)) << key;
  for (const char* key : {"architectural", "amd", "encodings", "perf_event_paranoid", "counters", "rdpmc",
                          "sources", "hardware_events"}) {
    EXPECT_TRUE(j["pmu"].contains(key)) << key;
  }
  EXPECT_EQ(j["pmu"]["architectural"]["events"].size(), pmu::kArchitecturalEventCount);
  for (const auto& source : j["pmu"]["sources"]) {
    EXPECT_EQ(source["usable"].get<bool>(), source["reason"].get<std::string>().empty()) << source["name"];
  }
  // Each event that hardware samples could be is granted or refused with a reason.
  std::set<unsigned> spoken_of;
  for (const auto& row : j["pmu"]["hardware_events"]["delivered"])
    spoken_of.insert(row["id"].get<unsigned>());
  for (const auto& row : j["pmu"]["hardware_events"]["refused"]) {
    spoken_of.insert(row["id"].get<unsigned>());
    EXPECT_FALSE(row["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(spoken_of, (std::set<unsigned>{2, 3, 4}));
}

TEST(Info, TellsEveryProcessorsPromisesApart) {
  PmuInfo intel;
  intel.architectural = pmu::decode_architectural_pmu({0x08300805, 0x80, 0x0F, 4 | 48 << 5 | 1 << 15});
  intel.rdpmc = "permitted";
  const std::string text = to_text(intel);
  EXPECT_NE(text.find("version 5, 8 general counters of 48 bits, 4 fixed of 48 bits"), std::string::npos)
      << text;
  EXPECT_NE(text.find("AnyThread deprecated"), std::string::npos);
  EXPECT_NE(text.find("fixed counter 3: top-down slots"), std::string::npos);
  EXPECT_NE(text.find("raw config 0x412e"), std::string::npos) << text;  // last-level cache misses
  EXPECT_EQ(to_json(intel)["encodings"].size(), pmu::kArchitecturalEventCount);

  PmuInfo amd;
  amd.amd = pmu::decode_amd_pmu(1u << 23 | 1u << 10, 0, 0xBFF, {3, 6 | 16 << 4, 0, 0});
  EXPECT_NE(to_text(amd).find("version 2, 6 core counters; branch stack: LBRv2 of 16; IBS: features 0xbff"),
            std::string::npos)
      << to_text(amd);
  EXPECT_NE(to_text(amd).find("raw config 0x100000120"), std::string::npos);

  PmuInfo none;
  EXPECT_NE(to_text(none).find("architectural performance monitoring: none"), std::string::npos);
  EXPECT_EQ(to_json(none)["encodings"].size(), 0u);
}

TEST(Info, NamesUncoreSourcesAndWhyTheyCannotBeUsed) {
  PmuInfo info;
  info.sources.push_back({{.name = "uncore_imc_0",
                           .kind = pmu::SourceKind::kUncore,
                           .type = 21,
                           .cpus = "0,64",
                           .formats = {},
                           .events = {}},
                          "EACCES: kernel.perf_event_paranoid is 2"});
  const std::string text = to_text(info);
  EXPECT_NE(text.find("uncore_imc_0"), std::string::npos);
  EXPECT_NE(text.find("on cpu 0,64: EACCES"), std::string::npos) << text;
  EXPECT_FALSE(to_json(info)["sources"][0]["usable"].get<bool>());
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
