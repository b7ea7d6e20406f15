#include "runtime/report/bench_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text_cases.h"

namespace hindsight::report {
namespace {

using nlohmann::json;

const std::vector<std::string> kModes{"baseline", "optimized", "feedback"};

WorkloadResult workload(std::string name, std::string suite, std::vector<double> optimized,
                        std::vector<double> feedback) {
  WorkloadResult result;
  result.name = std::move(name);
  result.suite = std::move(suite);
  result.modes.push_back({"baseline", {4.0}, {0}, {0}, "", {4.0}});
  result.modes.push_back({"optimized", std::move(optimized), {0, 0, 0}, {0, 0, 0}, "clock", {5.0, 5.0, 5.0}});
  result.modes.push_back({"feedback", std::move(feedback), {1, 2, 3}, {0, 0, 1}, "clock", {2.0, 2.5, 4.0}});
  compute_speedups(result, comparisons(kModes, {}));
  return result;
}

BenchResults two_workloads() {
  BenchResults results;
  results.machine = {"Test CPU", "Linux 6", "clock", "0.1.0", 2, 1 << 30, 4096};
  results.rounds = 3;
  results.modes = kModes;
  results.workloads.push_back(workload("gather", "memory", {2.0, 4.0, 6.0}, {1.0, 1.0, 2.0}));
  results.workloads.push_back(workload("sieve", "compute", {1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}));
  return results;
}

TEST(Statistics, DescribeRunsByMedianAndSpread) {
  const std::vector<double> odd{3, 1, 2}, even{4, 1, 2, 3};
  EXPECT_EQ(spread_of(odd).median, 2);
  EXPECT_EQ(spread_of(odd).min, 1);
  EXPECT_EQ(spread_of(odd).max, 3);
  EXPECT_EQ(spread_of(even).median, 2.5);
  EXPECT_EQ(spread_of({}).median, 0);
  const std::vector<double> ratios{0.5, 2.0, 8.0};
  EXPECT_DOUBLE_EQ(geometric_mean(ratios), 2.0);
}

TEST(Speedup, IsTakenWithinEachRoundAndOnlyThenSummarized) {
  const WorkloadResult result = workload("gather", "memory", {2.0, 4.0, 6.0}, {1.0, 1.0, 2.0});
  const Speedup* speedup = result.speedup("feedback_vs_optimized");
  ASSERT_NE(speedup, nullptr);
  EXPECT_THAT(speedup->rounds, ::testing::ElementsAre(2.0, 4.0, 3.0));
  // The ratio of the medians would be 4.
  EXPECT_EQ(spread_of(speedup->rounds).median, 3.0);
}

TEST(Speedup, ExistsForModesThatBothRan) {
  const WorkloadResult result = workload("gather", "memory", {2.0, 4.0}, {1.0, 1.0});
  EXPECT_NE(result.speedup("optimized_vs_baseline"), nullptr);
  EXPECT_EQ(result.speedup("optimized_vs_baseline")->rounds.size(), 1u);
  WorkloadResult alone;
  alone.modes.push_back({"feedback", {1.0}, {0}, {0}, "clock"});
  compute_speedups(alone, comparisons(kModes, {}));
  EXPECT_TRUE(alone.speedups.empty());
}

std::vector<std::string> names(const std::vector<Comparison>& pairs) {
  std::vector<std::string> out;
  for (const Comparison& pair : pairs) out.push_back(pair.name());
  return out;
}

TEST(Comparisons, AreAgainstTheSameCompilersWithoutCountingFirst) {
  EXPECT_THAT(names(comparisons({"baseline", "plain", "feedback"}, {})),
              ::testing::ElementsAre("feedback_vs_plain", "feedback_vs_baseline", "plain_vs_baseline"));
  EXPECT_THAT(names(comparisons({"feedback", "optimized", "plain"}, {})),
              ::testing::ElementsAre("feedback_vs_plain", "optimized_vs_plain", "feedback_vs_optimized"));
  EXPECT_THAT(
      names(comparisons({"optimized", "pages", "feedback", "feedback-loads"}, {})),
      ::testing::ElementsAre("feedback_vs_optimized", "pages_vs_optimized", "feedback-loads_vs_optimized",
                             "feedback_vs_pages", "feedback_vs_feedback-loads"));
  EXPECT_THAT(comparisons({"feedback"}, {}), ::testing::IsEmpty());
}

// Within a round, what the steps give multiplies to what they give together.
TEST(Split, GivesEachStepWhatItAddsToThoseBeforeIt) {
  BenchResults results;
  results.rounds = 1;
  results.modes = {"plain", "optimized", "feedback"};
  results.split = {{"counting", "optimized", "plain"}, {"all", "feedback", "optimized"}};
  WorkloadResult workload;
  workload.name = "gather";
  workload.suite = "memory";
  workload.modes.push_back({"plain", {4.0}, {0}, {0}, "clock"});
  workload.modes.push_back({"optimized", {5.0}, {0}, {0}, "clock"});
  workload.modes.push_back({"feedback", {2.0}, {0}, {0}, "clock"});
  compute_speedups(workload, comparisons(results.modes, results.split));
  results.workloads.push_back(workload);
  const std::vector<SplitRow> rows = split_rows(results);
  ASSERT_EQ(rows.size(), 3u) << "the workload, its suite, all";
  EXPECT_THAT(rows[0].factors, ::testing::ElementsAre(0.8, 2.5, 2.0));
  EXPECT_EQ(rows[1].name, "memory");
  EXPECT_EQ(headline(results), "feedback_vs_plain");
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/split.txt", to_table(results));
}

TEST(Json, HasTheFieldsThatReadersRelyOn) {
  const json root = json::parse(to_json(two_workloads()));
  EXPECT_EQ(root["machine"]["cpu"], "Test CPU");
  EXPECT_EQ(root["machine"]["cores"], 2);
  EXPECT_EQ(root["machine"]["kernel"], "Linux 6");
  EXPECT_EQ(root["machine"]["page_bytes"], 4096);
  EXPECT_EQ(root["machine"]["unit"], "clock");
  ASSERT_EQ(root["workloads"].size(), 2u);
  const json& gather = root["workloads"][0];
  EXPECT_EQ(gather["name"], "gather");
  EXPECT_EQ(gather["suite"], "memory");
  EXPECT_EQ(gather["answers_ok"], true);
  for (const char* mode : {"baseline", "optimized", "feedback"}) {
    for (const char* key : {"median_s", "min_s", "max_s", "runs"}) {
      EXPECT_TRUE(gather["modes"][mode][key].is_number()) << mode << " " << key;
    }
  }
  EXPECT_EQ(gather["modes"]["optimized"]["median_s"], 4.0);
  EXPECT_EQ(gather["modes"]["optimized"]["runs"], 3);
  EXPECT_EQ(gather["modes"]["feedback"]["process_cpu_s"], json({2.0, 2.5, 4.0}));
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["process_cpu_median"], 2.0);
  EXPECT_EQ(root["summary"]["feedback_vs_optimized"]["memory"]["process_cpu_geomean"], 2.0);
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["median"], 3.0);
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["min"], 2.0);
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["max"], 4.0);
}

TEST(Json, HasWhatRanLateInEachRun) {
  BenchResults results = two_workloads();
  ModeRuns& runs = results.workloads[0].modes[2];
  runs.late_seconds = {0.25, 0};
  runs.late = {
      {{.function = "f", .wasm_offset = 7, .in_loop = true, .seconds = 0.25, .queued = 0.25, .why = {}}}, {}};
  const json mode = json::parse(to_json(results))["workloads"][0]["modes"]["feedback"];
  EXPECT_EQ(mode["late_seconds"], json({0.25, 0.0}));
  ASSERT_EQ(mode["late"].size(), 2u);
  EXPECT_EQ(mode["late"][0][0]["function"], "f");
  EXPECT_EQ(mode["late"][0][0]["queued"], 0.25);
  EXPECT_TRUE(mode["late"][1].empty());
}

TEST(Summary, LeavesWorkloadsWithWrongAnswersOut) {
  BenchResults results = two_workloads();
  results.workloads[0].answers_ok = false;
  EXPECT_FALSE(results.answers_ok());
  const auto summary = summarize(results, "feedback_vs_optimized");
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0].suite, "compute");
  EXPECT_EQ(summary[1].suite, "all");
  EXPECT_EQ(summary[1].geomean, 1.0);
}

TEST(Table, SaysWhichAnswersWereWrongAndWhy) {
  BenchResults results = two_workloads();
  results.workloads[0].answers_ok = false;
  results.workloads[0].problems.push_back("mode feedback, round 2: ended with status 3");
  hindsight::testing::expect_text(HINDSIGHT_REPORT_PAGES "/wrong_answers.txt", to_table(results));
}

}  // namespace
}  // namespace hindsight::report
