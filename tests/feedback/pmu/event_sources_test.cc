#include "feedback/pmu/event_sources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace hindsight::pmu {
namespace {

namespace fs = std::filesystem;

// A folder like /sys/bus/event_source/devices.
class Devices : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("hindsight_sources_" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  fs::path root_;
};

TEST_F(Devices, AreReadWithTypeFormatsEventsAndProcessors) {
  file("cpu_core/type", "4");
  file("cpu_core/cpus", "0-15");
  file("cpu_core/format/event", "config:0-7");
  file("cpu_core/format/umask", "config:8-15");
  file("cpu_core/format/ldlat", "config1:0-15");
  file("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3");
  file("cpu_core/events/mem-loads.unit", "loads");
  file("cpu_atom/type", "10");
  file("cpu_atom/cpus", "16-31");
  file("uncore_imc_0/type", "21");
  file("uncore_imc_0/cpumask", "0,64");
  file("uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03");
  file("ibs_op/type", "11");
  file("software/type", "1");
  file("broken/type", "four");
  file("typeless/format/event", "config:0-7");
  const auto sources = read_event_sources(SourceDetail::kAll, root_);
  ASSERT_EQ(sources.size(), 5u);
  EXPECT_EQ(sources[0].name, "cpu_atom");
  const EventSource* core = find_source(sources, "cpu_core");
  ASSERT_TRUE(core);
  EXPECT_EQ(core->kind, SourceKind::kHybridCore);
  EXPECT_EQ(core->type, 4u);
  EXPECT_EQ(core->cpus, "0-15");
  EXPECT_EQ(core->formats.size(), 3u);
  EXPECT_EQ(core->events.size(), 1u);  // ".unit" is no event
  EXPECT_EQ(find_source(sources, "ibs_op")->kind, SourceKind::kIbs);
  EXPECT_EQ(find_source(sources, "software")->kind, SourceKind::kKernel);
  const EventSource* memory = find_source(sources, "uncore_imc_0");
  EXPECT_EQ(memory->kind, SourceKind::kUncore);
  EXPECT_EQ(memory->cpus, "0,64");
  EXPECT_EQ(memory->events.size(), 1u);
  EXPECT_EQ(find_source(sources, "cpu"), nullptr);
}

TEST_F(Devices, OfUncoreAreReadBrieflyWhereOnlySamplersMatter) {
  file("uncore_imc_0/type", "21");
  file("uncore_imc_0/cpumask", "0");
  file("uncore_imc_0/events/cas_count_read", "event=0x04");
  file("cpu/type", "4");
  file("cpu/events/mem-loads", "event=0xcd");
  const auto sources = read_event_sources(SourceDetail::kSamplers, root_);
  EXPECT_TRUE(find_source(sources, "uncore_imc_0")->events.empty());
  EXPECT_TRUE(find_source(sources, "cpu")->has_event("mem-loads"));
}

TEST_F(Devices, MayBeAbsentAltogether) {
  EXPECT_TRUE(read_event_sources(SourceDetail::kAll, root_ / "nowhere").empty());
}

EventSource source_with(std::map<std::string, std::string> formats) {
  EventSource s;
  s.formats = std::move(formats);
  return s;
}

TEST(EncodeTerms, PutsEachFieldWhereItsFormatSays) {
  const EventSource intel = source_with({{"event", "config:0-7"},
                                         {"umask", "config:8-15"},
                                         {"edge", "config:18"},
                                         {"cmask", "config:24-31"},
                                         {"ldlat", "config1:0-15"}});
  EXPECT_EQ(encode_terms(intel, "event=0xcd,umask=0x1,ldlat=3"), (EventConfig{0x01CD, 3, 0}));
  EXPECT_EQ(encode_terms(intel, "event=0x3c,edge,cmask=1"), (EventConfig{0x104003C, 0, 0}));
  EXPECT_EQ(encode_terms(intel, ""), (EventConfig{}));
  EXPECT_EQ(encode_terms(intel, "config=0x5003c,config1=7,config2=1"), (EventConfig{0x5003C, 7, 1}));
}

TEST(EncodeTerms, SplitsAFieldOverItsRanges) {
  const EventSource amd = source_with({{"event", "config:0-7,32-35"},
                                       {"umask", "config:8-15"},
                                       {"cnt_ctl", "config:19"},
                                       {"swfilt", "config2:0"}});
  EXPECT_EQ(encode_terms(amd, "event=0x1a2,umask=0x3"), (EventConfig{0x1000003A2, 0, 0}));
  EXPECT_EQ(encode_terms(amd, "cnt_ctl=1,swfilt=1"), (EventConfig{1u << 19, 0, 1}));
  EXPECT_EQ(encode_terms(source_with({{"all", "config:0-63"}}), "all=0xffffffffffffffff"),
            (EventConfig{UINT64_MAX, 0, 0}));
}

TEST(EncodeTerms, RefusesWhatItCannotPlace) {
  const EventSource s = source_with({{"event", "config:0-7"},
                                     {"odd", "config9:0-7"},
                                     {"wide", "config:0-64"},
                                     {"back", "config:7-0"},
                                     {"empty", "config:"}});
  for (const char* terms :
       {"umask=1", "event=0x100", "event=x", "odd=1", "wide=1", "back=1", "empty=1", "event=-1"}) {
    EXPECT_FALSE(encode_terms(s, terms)) << terms;
  }
}

TEST(FirstCpu, IsTheFirstOfAList) {
  EXPECT_EQ(first_cpu("0-7,16"), 0);
  EXPECT_EQ(first_cpu("12"), 12);
  EXPECT_EQ(first_cpu("3,9"), 3);
  EXPECT_EQ(first_cpu(""), std::nullopt);
  EXPECT_EQ(first_cpu("x"), std::nullopt);
}

TEST(EventSources, OfThisMachineHaveTheKernelsOwn) {
  const auto sources = read_event_sources(SourceDetail::kAll);
  if (sources.empty()) GTEST_SKIP() << "sysfs lists no event sources here";
  const EventSource* software = find_source(sources, "software");
  ASSERT_TRUE(software);
  EXPECT_EQ(software->type, uint32_t{1});
}

TEST(Uncore, IsRefusedWithAReasonWhereNothingReadsIt) {
  EXPECT_FALSE(uncore_refusal({.name = "uncore_nothing",
                               .kind = SourceKind::kUncore,
                               .type = 4242,
                               .cpus = "",
                               .formats = {},
                               .events = {}})
                   .empty());
  const std::string why = uncore_refusal({.name = "uncore_nothing",
                                          .kind = SourceKind::kUncore,
                                          .type = 4242,
                                          .cpus = "0",
                                          .formats = {},
                                          .events = {}});
  EXPECT_EQ(why.front(), 'E') << why;
}

}  // namespace
}  // namespace hindsight::pmu
