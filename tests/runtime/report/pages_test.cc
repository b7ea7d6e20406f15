#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/report/bench_results.h"
#include "runtime/report/feedback_json.h"
#include "runtime/report/page.h"
#include "runtime/report/run_page.h"
#include "tests/text_cases.h"

namespace hindsight::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "</td><script>alert(1)</script>\" onload='x' \x1b[31m\xff";

FeedbackReport hostile_report() {
  FeedbackReport report;
  report.unit = kHostile;
  DecisionReport decision;
  decision.kind = decision.function = decision.reason = decision.state_why = decision.outcome = kHostile;
  decision.alternatives = {kHostile};
  decision.wasm_offset = 0x1234;
  report.decisions.push_back(decision);
  report.pmu.push_back({kHostile, false, kHostile, 0, 1});
  report.late.push_back({.function = kHostile, .seconds = 1, .waiting = 1, .why = kHostile});
  return report;
}

void expect_harmless(const std::string& page) {
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\" onload='")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

TEST(RunPage, EscapesEverythingThatComesFromOutside) {
  RunSummary run;
  run.program = run.trap = run.mode = kHostile;
  run.args = {kHostile};
  expect_harmless(run_page(run, hostile_report()));
}

TEST(RunPage, LoadsNothingFromAnywhere) {
  const std::string page = run_page({}, hostile_report());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

// Without its styles.
std::string words_of(const std::string& page) {
  const size_t begin = page.find("<style>"), end = page.find("</style>");
  return page.substr(0, begin) + page.substr(end);
}

// Something of everything that a report can have.
FeedbackReport full_report() {
  FeedbackReport report;
  report.unit = "clock/timer";
  report.counts.samples = 200;
  report.counts.attributed = 150;
  report.counts.outside_guest = 40;
  report.counts.unattributed = 10;
  report.counts.missed = 3;
  report.counts.lost = 2;
  report.counts.stall_records = 75;
  report.counts.stall_addresses = 70;
  report.counts.branch_records = 30;
  report.counts.guest_records = 6;
  report.guest.inserted = 6;
  report.guest.inserted_full = 1;
  report.guest.calls_off = 4;
  report.bursts = {.rate_bursts = 2,
                   .rate_seconds = 0.5,
                   .rate_cost_seconds = 0.004,
                   .branch_bursts = 8,
                   .branch_bursts_refused = 1,
                   .branch_outcomes = 4096,
                   .branch_judged = 3000,
                   .branch_mispredicted = 300,
                   .mispredicted_share = 0.08};
  report.loads.push_back({.function = "gather",
                          .wasm_offset = 0x57e,
                          .stall_samples = 60,
                          .function_samples = 80,
                          .level = "memory",
                          .timed = 64,
                          .mean_ticks = 300,
                          .memory_share = 0.75,
                          .latency_ns = 90});
  report.branches.push_back({.function = "gather",
                             .wasm_offset = 0x590,
                             .sampled = 10,
                             .sampled_taken = 4,
                             .outcomes = 1000,
                             .taken = 400,
                             .judged = 900,
                             .mispredicted = 90});
  DecisionReport decision;
  decision.id = 1;
  decision.kind = "prefetch";
  decision.function = "gather";
  decision.wasm_offset = 0x57e;
  decision.reason = "60 of 80 samples (75 %) stall on this load";
  decision.alternatives = {"nothing: costs nothing, gains nothing"};
  decision.state = DecisionState::kKept;
  decision.estimated_gain = 0.5;
  decision.measured_gain = 1.5;
  decision.seconds = 0.25;
  report.decisions.push_back(decision);
  report.late_seconds = 0.312;
  report.late_places = 5;
  report.late.push_back({.function = "main",
                         .wasm_offset = 0x46e,
                         .in_loop = true,
                         .seconds = 0.12,
                         .waiting = 0.03,
                         .compiling = 0.09,
                         .why = "60 ms for stalls"});
  report.late.push_back(
      {.function = "gather", .wasm_offset = 0x560, .seconds = 0.1, .refused = 0.1, .why = {}});
  report.modules_forgotten = 18;
  report.decisions_forgotten = 54;
  report.page_decisions_forgotten = 7;
  report.functions_baseline = 12;
  report.functions_optimized = 3;
  report.functions_cached = 2;
  report.versions_over_limit = 1;
  report.compiles_without_code = {.too_large = 1, .too_slow = 2, .abandoned = 1};
  report.functions_left_in_baseline = 3;
  report.left_in_baseline.push_back({"interpret", "too large for the optimizing tier"});
  report.compile_threads_refused = 1;
  report.compile_tasks_refused = 2;
  report.baseline_compile_seconds = 0.001;
  report.optimized_compile_seconds = 0.06;
  report.versions_retired = 4;
  report.versions_waiting = 1;
  report.system_refusals.push_back({"a timer", 5, "Resource temporarily unavailable"});
  report.pmu = {{"cycles", true, "", 1e6, 0.5}, {"instructions", false, "no such event", 0, 1}};
  return report;
}

TEST(RunPage, PrintsDenominators) {
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/run_page.html",
                                  words_of(run_page({}, full_report())));
}

TEST(ReportText, PrintsDenominators) {
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/report.txt", full_report().to_string());
}

TEST(RunPage, SaysSoWhenNothingWasDecided) {
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/nothing_decided.html",
                                  words_of(run_page({}, FeedbackReport{})));
}

TEST(BenchPage, EscapesEverythingThatComesFromOutside) {
  BenchResults results;
  results.machine.cpu = results.machine.kernel = results.machine.unit = kHostile;
  results.modes = {"optimized", "feedback"};
  results.rounds = 1;
  WorkloadResult workload;
  workload.name = workload.suite = workload.description = kHostile;
  workload.problems = {kHostile};
  workload.modes.push_back({"optimized", {2.0}, {0}, {0}, kHostile});
  workload.modes.push_back({"feedback", {1.0}, {0}, {0}, kHostile});
  compute_speedups(workload, comparisons(results.modes, {}));
  results.workloads.push_back(workload);
  expect_harmless(to_html(results));
}

TEST(Bars, SurviveValuesThatAreNoNumbers) {
  Bar bar{"x",
          "g",
          "?",
          "gain",
          std::numeric_limits<double>::quiet_NaN(),
          0,
          std::numeric_limits<double>::infinity()};
  const std::string svg = html_bars({bar}, 1.0);
  EXPECT_THAT(svg, Not(HasSubstr("nan\"")));
  EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
  EXPECT_EQ(html_bars({}, 1.0), "");
}

TEST(Lines, NameEachLineAndSurviveValuesThatAreNoNumbers) {
  const double no_number = std::numeric_limits<double>::quiet_NaN(),
               endless = std::numeric_limits<double>::infinity();
  const std::string svg = html_lines(
      {{"first", {{1, 1, 0.9, 1.1}, {10, 2, 2, 2}}}, {kHostile, {{0, 1, 1, 1}, {5, no_number, 1, endless}}}},
      1.0, "across", "up");
  EXPECT_THAT(svg, HasSubstr(">first</text>"));
  EXPECT_THAT(svg, HasSubstr(">across</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan\"")));
  EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
  expect_harmless(svg);
  EXPECT_EQ(html_lines({}, 1.0, "", ""), "");
  EXPECT_EQ(html_lines({{"nothing", {}}}, 1.0, "", ""), "");
}

TEST(BenchPage, DrawsRunsOfChosenLengthsAsLines) {
  BenchResults results;
  results.modes = {"plain", "feedback"};
  results.rounds = 1;
  for (const double length : {1.0, 10.0}) {
    WorkloadResult workload;
    workload.name = "gather";
    workload.suite = length == 1 ? "1 s" : "10 s";
    workload.length_seconds = length;
    workload.modes.push_back({"plain", {length}, {0}, {0}, "clock"});
    workload.modes.push_back({"feedback", {length / 2}, {0}, {0}, "clock"});
    compute_speedups(workload, comparisons(results.modes, {}));
    results.workloads.push_back(workload);
  }
  const std::string page = to_html(results);
  EXPECT_THAT(page, HasSubstr("Feedback against plain, by the length of the run"));
  EXPECT_THAT(page, HasSubstr("seconds that the run takes in mode plain"));
}

TEST(FeedbackJson, ParsesWhateverTheNamesHold) {
  const auto json = nlohmann::json::parse(to_json(hostile_report()));
  EXPECT_EQ(json["decisions"].size(), 1u);
  EXPECT_EQ(json["decisions"][0]["wasm_offset"], 0x1234);
  EXPECT_EQ(json["pmu"][0]["available"], false);
}

TEST(FeedbackJson, SaysWhatRanLateAndWhatItWaitedFor) {
  const auto json = nlohmann::json::parse(to_json(full_report()));
  EXPECT_EQ(json["late_seconds"], 0.312);
  EXPECT_EQ(json["late_places"], 5);
  ASSERT_EQ(json["late"].size(), 2u);
  EXPECT_EQ(json["late"][0]["wasm_offset"], 0x46e);
  EXPECT_EQ(json["late"][0]["compiling"], 0.09);
  EXPECT_EQ(json["late"][0]["queued"], 0);
  EXPECT_EQ(json["late"][0]["why"], "60 ms for stalls");
  EXPECT_EQ(json["late"][1]["in_loop"], false);
}

TEST(LateText, NamesTheWorstPlaceInOneLineAndNothingWhereNothingWasLate) {
  EXPECT_EQ(FeedbackReport{}.late_text(), "");
  EXPECT_EQ(full_report().late_text(),
            "0.312 s in 5 places after they were hot; most: main at 0x46e 0.120 s (waiting 0.030, compiling "
            "0.090)");
  FeedbackReport one = full_report();
  one.late_places = 1;
  one.late_seconds = 0.1;
  one.late.erase(one.late.begin());
  EXPECT_EQ(one.late_text(),
            "0.100 s in 1 place after it was hot; most: gather outside of its loops 0.100 s (refused 0.100)");
}

}  // namespace
}  // namespace hindsight::report
