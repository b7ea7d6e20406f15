#include "runtime/cli/bench/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cli/bench/child.h"

namespace hindsight::cli {
namespace {

using testing::ElementsAre;

constexpr const char* kManifest = R"({"format": 1, "workloads": [
  {"name": "a", "suite": "memory", "description": "d", "wasm": "memory/a/a.wasm", "args": ["1", 2], "expected": "a 1\n",
   "quick_args": ["3"], "quick_expected": "a 3\n"},
  {"name": "b", "suite": "memory", "wasm": "b.wasm", "expected": "b\n"},
  {"name": "c", "suite": "compute", "wasm": "c.wasm", "expected": "c\n"}]})";

std::vector<std::string> names(const std::vector<Workload>& workloads) {
  std::vector<std::string> out;
  for (const auto& workload : workloads) out.push_back(workload.name);
  return out;
}

TEST(Manifest, ListsWorkloadsWithPathsBesideItself) {
  const auto workloads = parse_manifest(kManifest, "/x/samples/manifest.json");
  ASSERT_TRUE(workloads) << workloads.error().message;
  ASSERT_EQ(workloads->size(), 3u);
  EXPECT_EQ((*workloads)[0].wasm, "/x/samples/memory/a/a.wasm");
  EXPECT_THAT((*workloads)[0].args, ElementsAre("1", "2"));
  EXPECT_EQ((*workloads)[0].quick_expected, "a 3\n");
  EXPECT_EQ((*workloads)[1].quick_expected, "b\n") << "without quick arguments the full ones are used";
}

TEST(Manifest, SaysWhichWorkloadIsBroken) {
  for (const char* bad :
       {"", "[", "{}", "{\"workloads\": 1}", "{\"workloads\": [1]}", "{\"workloads\": [{}]}",
        R"([{"name": 1}])", R"([{"name": "a", "suite": "s", "wasm": "w"}])",
        R"([{"name": "a", "suite": "s", "wasm": "w", "expected": "", "args": [null]}])"}) {
    const auto workloads = parse_manifest(bad, "m.json");
    ASSERT_FALSE(workloads) << bad;
    EXPECT_EQ(workloads.error().kind, ErrorKind::kUsage);
    EXPECT_TRUE(workloads.error().place.starts_with("m.json")) << workloads.error().place;
  }
}

TEST(Selection, TakesSuitesNamesAndFilesEachOnce) {
  const auto all = *parse_manifest(kManifest, "m.json");
  const auto select = [&](std::vector<std::string> words) { return select_workloads(all, words); };
  EXPECT_THAT(names(*select({})), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(*select({"c", "memory", "a"})), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(*select({"memory/b"})), ElementsAre("b"));
  const auto file = *select({"dir/mine.wasm"});
  EXPECT_THAT(names(file), ElementsAre("mine"));
  EXPECT_FALSE(file[0].expected);
  const auto unknown = select({"memroy"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(
      unknown.error().message,
      "'memroy' is no suite, workload or .wasm file; suites: compute, memory (`hindsight bench --list` shows "
      "all workloads)");
}

TEST(ChildResult, SurvivesThePipeWhateverTheGuestPrinted) {
  ChildResult result;
  result.seconds = 1.25;
  result.exit_status = 3;
  result.output = "a \"b\"\n\xe2\x82\xac";
  result.kept = 2;
  result.late_seconds = 0.5;
  result.late.push_back({.function = "a \"b\"",
                         .wasm_offset = 0x46e,
                         .in_loop = true,
                         .seconds = 0.25,
                         .entering = 0.25,
                         .why = "words"});
  const auto back = parse_child_result(to_json(result));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->seconds, 1.25);
  EXPECT_EQ(back->exit_status, 3);
  EXPECT_EQ(back->output, result.output);
  EXPECT_EQ(back->kept, 2u);
  EXPECT_EQ(back->late_seconds, 0.5);
  ASSERT_EQ(back->late.size(), 1u);
  EXPECT_EQ(back->late[0].function, "a \"b\"");
  EXPECT_EQ(back->late[0].wasm_offset, 0x46eu);
  EXPECT_TRUE(back->late[0].in_loop);
  EXPECT_EQ(back->late[0].entering, 0.25);
  EXPECT_EQ(back->late[0].why, "words");
  std::string damaged = to_json(result);
  damaged.replace(damaged.find("\"entering\""), 10, "\"x\"");
  EXPECT_FALSE(parse_child_result(damaged));
  EXPECT_FALSE(parse_child_result(""));
  EXPECT_FALSE(parse_child_result("{\"seconds\": 1}"));
}

}  // namespace
}  // namespace hindsight::cli
