#include "runtime/report/bench_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text_cases.h"

namespace hindsight::report {
namespace {

using nlohmann::json;

WorkloadResult workload(std::string name, std::string suite, std::vector<double> optimized,
                        std::vector<double> feedback) {
  WorkloadResult result;
  result.name = std::move(name);
  result.suite = std::move(suite);
  result.modes.push_back({"baseline", {4.0}, {0}, {0}, ""});
  result.modes.push_back({"optimized", std::move(optimized), {0, 0, 0}, {0, 0, 0}, "clock"});
  result.modes.push_back({"feedback", std::move(feedback), {1, 2, 3}, {0, 0, 1}, "clock"});
  compute_speedups(result);
  return result;
}

BenchResults two_workloads() {
  BenchResults results;
  results.machine = {"Test CPU", "Linux 6", "clock", "0.1.0", 2, 1 << 30, 4096};
  results.rounds = 3;
  results.modes = {"baseline", "optimized", "feedback"};
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
  compute_speedups(alone);
  EXPECT_TRUE(alone.speedups.empty());
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
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["median"], 3.0);
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["min"], 2.0);
  EXPECT_EQ(gather["speedup"]["feedback_vs_optimized"]["max"], 4.0);
}

TEST(Json, HasWhatRanLateInEachRun) {
  BenchResults results = two_workloads();
  ModeRuns& runs = results.workloads[0].modes[2];
  runs.late_seconds = {0.25, 0};
  runs.late = {{{.function = "f", .wasm_offset = 7, .in_loop = true, .seconds = 0.25, .queued = 0.25}}, {}};
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
