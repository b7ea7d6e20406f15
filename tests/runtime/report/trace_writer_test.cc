#include "runtime/report/trace_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/report/guest_section.h"
#include "tests/text_cases.h"

namespace hindsight::report {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

LwpRecord event(uint64_t time_ns, std::string_view label = {}) {
  LwpRecord r;
  r.event_id = 255;
  r.flags = 7;
  r.data1 = 8;
  r.data2 = 0xffff'ffff'ffff'fff9;
  r.address = 0x7f0012345678;
  r.time_ns = r.timestamp = time_ns;
  r.exact_time = r.from_guest = true;
  r.thread = 42;
  r.function = "main";
  r.wasm_offset = 0x1a2;
  r.label = label;
  return r;
}

LwpRecord sample(uint64_t time_ns, std::string_view function, int32_t thread = 42) {
  LwpRecord r;
  r.event_id = 5;
  r.time_ns = time_ns;
  r.exact_time = true;
  r.cpu_ns = 4'000'000;
  r.thread = thread;
  r.function = function;
  return r;
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

TEST(TraceWriter, KnowsFormatsByTheFilesName) {
  EXPECT_EQ(*trace_format_of("a.jsonl"), TraceFormat::kLines);
  EXPECT_EQ(*trace_format_of("a.json"), TraceFormat::kChrome);
  EXPECT_EQ(*trace_format_of("a.lwp"), TraceFormat::kRaw);
  EXPECT_EQ(trace_format_of("a.txt").error().kind, ErrorKind::kUsage);
}

TEST(TraceWriter, WritesALineARecordBetweenHeadAndCounts) {
  std::ostringstream out;
  TraceWriter writer(out, TraceFormat::kLines, {"a \"b\".wasm", 1000}, 100);
  writer.add(event(1500, "build"));
  LwpRecord plain = sample(900, "");
  plain.exact_time = false;
  writer.add(plain);
  ASSERT_TRUE(writer.finish({"clock", 10, 2, 1}));
  const auto lines = lines_of(out.str());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], Json::parse(R"({"hindsight_trace":1,"program":"a \"b\".wasm","start_ns":1000})"));
  EXPECT_EQ(lines[1],
            Json::parse(R"({"ns":500,"thread":42,"id":255,"flags":7,"data1":8,"data2":18446744073709551609,
    "address":"0x7f0012345678","function":"main","tier":"baseline","wasm":"0x1a2","guest":true,"name":"build"})"));
  EXPECT_EQ(lines[2]["ns"], 0) << "never before the start";
  EXPECT_EQ(lines[2]["drained"], true);
  EXPECT_FALSE(lines[2].contains("function"));
  EXPECT_EQ(lines[3],
            Json::parse(
                R"({"end":true,"unit":"clock","records":2,"left_out":0,"emitted":10,"missed":2,"lost":1})"));
}

TEST(TraceWriter, CountsWhatIsBeyondTheLimit) {
  for (const TraceFormat format : {TraceFormat::kLines, TraceFormat::kChrome, TraceFormat::kRaw}) {
    std::ostringstream out;
    TraceWriter writer(out, format, {"a", 0}, 3);
    for (int i = 0; i < 10; ++i) writer.add(event(1));
    EXPECT_EQ(writer.written(), 3u);
    EXPECT_EQ(writer.left_out(), 7u);
    ASSERT_TRUE(writer.finish({}));
    if (format == TraceFormat::kLines) {
      EXPECT_EQ(lines_of(out.str()).back()["left_out"], 7);
    }
    if (format == TraceFormat::kRaw) {
      EXPECT_EQ(out.str().size(), 3u * 32);
    }
  }
}

TEST(TraceWriter, JoinsSamplesOfOneFunctionIntoASlice) {
  std::ostringstream out;
  TraceWriter writer(out, TraceFormat::kChrome, {"p", 0}, 100);
  writer.add(sample(4'000'000, "a"));
  writer.add(sample(8'000'000, "a"));
  writer.add(sample(12'000'000, "b"));
  writer.add(sample(100'000'000, "b"));  // a gap: the thread slept
  writer.add(sample(5'000'000, "c", 43));
  ASSERT_TRUE(writer.finish({}));
  const Json trace = Json::parse(out.str());
  std::vector<Json> slices;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X") slices.push_back(e);
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0]["name"], "a");
  EXPECT_EQ(slices[0]["ts"], 0.0);
  EXPECT_EQ(slices[0]["dur"], 8000.0);
  EXPECT_EQ(slices[0]["args"]["samples"], 2);
  EXPECT_EQ(slices[1]["name"], "b");
  EXPECT_EQ(slices[1]["ts"], 8000.0);
  EXPECT_EQ(slices[1]["dur"], 4000.0);
  EXPECT_EQ(trace["otherData"]["records"], 5);
}

TEST(TraceWriter, ShowsTheGuestsEventsAndValuesByName) {
  std::ostringstream out;
  TraceWriter writer(out, TraceFormat::kChrome, {"p", 0}, 100);
  writer.add(event(2'000, "build"));
  LwpRecord value = event(3'000);
  value.event_id = 1;
  value.data2 = 17;
  writer.add(value);
  ASSERT_TRUE(writer.finish({}));
  const Json events = Json::parse(out.str())["traceEvents"];
  EXPECT_EQ(events[1]["ph"], "i");
  EXPECT_EQ(events[1]["name"], "build");
  EXPECT_EQ(events[1]["ts"], 2.0);
  EXPECT_EQ(events[1]["args"]["at"], "main +0x1a2");
  EXPECT_EQ(events[2]["ph"], "C");
  EXPECT_EQ(events[2]["args"]["value"], 17);
}

TEST(TraceWriter, WritesHostileNamesAsText) {
  const std::string hostile = "\"}]\n\x1b[31m\xff</script>";
  for (const TraceFormat format : {TraceFormat::kLines, TraceFormat::kChrome}) {
    std::ostringstream out;
    TraceWriter writer(out, format, {hostile, 0}, 100);
    LwpRecord r = event(1, hostile);
    r.function = hostile;
    writer.add(r);
    writer.add(sample(1, hostile));
    ASSERT_TRUE(writer.finish({hostile, 0, 0, 0}));
    EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
    if (format == TraceFormat::kChrome) {
      EXPECT_FALSE(Json::parse(out.str(), nullptr, false).is_discarded());
    } else {
      EXPECT_EQ(lines_of(out.str()).size(), 4u);
    }
  }
}

TEST(TraceWriter, SaysWhenTheDiskIsFull) {
  std::ostringstream out;
  TraceWriter writer(out, TraceFormat::kLines, {"p", 0}, 100);
  out.setstate(std::ios::badbit);
  writer.add(event(1));
  EXPECT_EQ(writer.left_out(), 1u);
  EXPECT_EQ(writer.finish({}).error().kind, ErrorKind::kResource);
}

// ---------------------------------------------------------------- the page's section

GuestEventReport guest_report(const std::string& name) {
  GuestEventReport guest;
  GuestEventReport::Kind kind;
  kind.flags = 3;
  kind.name = name;
  kind.count = 5;
  kind.last_seconds = 0.5;
  kind.function = name;
  kind.data1 = {{9, 4}, {10, 1}};
  kind.timeline.assign(240, 0);
  kind.timeline[7] = 5;
  guest.kinds.push_back(kind);
  kind.value = true;
  kind.widths[3] = 2;
  kind.widths[10] = 3;
  guest.kinds.push_back(kind);
  guest.bucket_seconds = 0.004;
  guest.inserted = 6;
  guest.inserted_full = 1;
  guest.values_seen = 80;
  guest.values_stored = 5;
  guest.calls_off = 0;
  return guest;
}

TEST(GuestSection, IsNotThereForGuestsThatNeverAsked) {
  EXPECT_EQ(guest_section({}, 1), "");
}

TEST(GuestSection, ShowsKindsAlongTimeAndSizes) {
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/guest_section.html",
                                  guest_section(guest_report("build"), 1));
}

TEST(GuestSection, EscapesNames) {
  const std::string page = guest_section(guest_report("</td><script>alert(1)</script>\x1b[31m"), 1);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace hindsight::report
