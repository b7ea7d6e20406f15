#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/report/bench_results.h"
#include "runtime/report/feedback_json.h"
#include "runtime/report/page.h"
#include "runtime/report/run_page.h"

namespace hindsight::report {
namespace {

using testing::HasSubstr;
using testing::Not;

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

TEST(RunPage, PrintsDenominators) {
  FeedbackReport report;
  report.counts.samples = 200;
  report.counts.attributed = 150;
  report.counts.stall_records = 75;
  report.counts.stall_addresses = 70;
  const std::string page = run_page({}, report);
  EXPECT_THAT(page, HasSubstr("150 of 200 (75.0 %)"));
  EXPECT_THAT(page, HasSubstr("75 of 150 (50.0 %)"));
  EXPECT_THAT(page, HasSubstr("70 of 75 (93.3 %)"));
}

TEST(RunPage, SaysSoWhenNothingWasDecided) {
  EXPECT_THAT(run_page({}, FeedbackReport{}), HasSubstr("nothing got hot enough"));
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
  compute_speedups(workload);
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

TEST(FeedbackJson, ParsesWhateverTheNamesHold) {
  const auto json = nlohmann::json::parse(to_json(hostile_report()));
  EXPECT_EQ(json["decisions"].size(), 1u);
  EXPECT_EQ(json["decisions"][0]["wasm_offset"], 0x1234);
  EXPECT_EQ(json["pmu"][0]["available"], false);
}

}  // namespace
}  // namespace hindsight::report
