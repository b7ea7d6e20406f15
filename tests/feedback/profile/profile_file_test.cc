#include "feedback/profile/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace hindsight::feedback {
namespace {

ProfileFile example() {
  Episode e;
  e.id = 3;
  e.seconds = 1.25;
  e.evidence.function = FuncIndex(4);
  e.evidence.name = "main \"quoted\" \n";
  e.evidence.code_bytes = 321;
  e.evidence.samples_baseline = 40.5;
  e.evidence.loads.push_back({.load = WasmOffset(77),
                              .stall_samples = 20,
                              .stall_samples_optimized = 3,
                              .addresses = 18,
                              .address_span_bytes = 1 << 20,
                              .distinct_pages = 200,
                              .in_loop = false,
                              .in_recursion = true});
  e.evidence.loads.push_back({.load = WasmOffset(80),
                              .stall_samples = 10,
                              .stall_samples_optimized = 3,
                              .addresses = 18,
                              .address_span_bytes = 1 << 20,
                              .distinct_pages = 200,
                              .latency = {MemoryLevel::kL3, 64, 104.5, 0.25, 13, 47}});
  e.evidence.entered = Entered::kAgain;
  e.evidence.seconds_watched = 0.02;
  e.evidence.all_seconds_watched = 0.03;
  e.evidence.loop_entries_only = true;
  e.evidence.samples_left_behind = 12;
  e.evidence.seconds_left_behind = 0.003;
  e.evidence.branches.push_back({WasmOffset(90), 12, 5, 4096, 2048, 2000, 1000});
  e.evidence.branches.push_back({WasmOffset(92), 120, 5, 0, 0, 0, 0, true});
  e.evidence.calls.push_back({WasmOffset(95), 40, {{3, 30}, {5, 9}}, false, 12, {{7, 12}}});
  e.evidence.seconds_since_published = 0.5;
  e.evidence.loops.push_back({LoopIndex(0), WasmOffset(50), 0, 40, -1});
  e.evidence.loops.push_back({LoopIndex(1), WasmOffset(60), 1, 30, 0});
  e.evidence.loops.push_back({.loop = LoopIndex(2),
                              .offset = WasmOffset(65),
                              .depth = 2,
                              .samples = 20,
                              .parent = 1,
                              .code_bytes = 30,
                              .inner_loops = 2,
                              .samples_baseline = 8.5,
                              .seconds_baseline = 0.0085,
                              .trip_records = 9,
                              .has_nest = true,
                              .early = true,
                              .compiles = 3,
                              .fruitless = 1,
                              .compile_seconds = 0.02,
                              .no_nest = "a branch goes too far"});
  e.nest = LoopIndex(2);
  e.action = "optimize";
  e.osr_loops = {0, 1};
  using enum jit::ChangeKind;
  e.evidence.changes = {
      {{kPrefetch, WasmOffset(77)}, {.state = ChangeState::kKept}},
      {{kJumpPointers, WasmOffset(80)}, {.state = ChangeState::kRolledBack, .rejections = 2}},
      {{kBranch, WasmOffset(92)}, {.state = ChangeState::kRolledBack}},
      {{kValue, WasmOffset(94)}, {.state = ChangeState::kKept}},
      {version_site(kInlineCalls), {.state = ChangeState::kNotPossible}}};
  e.evidence.values.push_back({WasmOffset(94), ValueSite::kWideDivisor, 30, {{~uint64_t{0}, 29}, {7, 1}}});
  e.evidence.values.push_back({WasmOffset(96), ValueSite::kByteCount, 12, {{24, 12}}});
  e.evidence.values.push_back({WasmOffset(70), ValueSite::kTripCount, 9, {{7, 9}}});
  for (const auto& [kind, at] : std::vector<std::pair<jit::ChangeKind, uint32_t>>{{kPrefetch, 77},
                                                                                  {kInterleave, 78},
                                                                                  {kJumpPointers, 77},
                                                                                  {kJumpPointers, 79},
                                                                                  {kInlineCalls, 95},
                                                                                  {kWeighBranches, 90},
                                                                                  {kWeighBranches, 92},
                                                                                  {kSelect, 90},
                                                                                  {kBranch, 92},
                                                                                  {kValue, 94},
                                                                                  {kValue, 96},
                                                                                  {kSplitCold, 0}})
    e.changes.push_back({kind, WasmOffset(at)});
  e.reason = "because";
  e.alternatives = {"nothing", "optimize"};
  e.state = DecisionState::kFailed;
  e.state_why = "too large";
  e.outcomes = {
      {{jit::ChangeKind::kPrefetch, WasmOffset(77)},
       {.state = ChangeState::kKept, .setting = 32, .gain = 0.5, .why = "words"}},
      {{jit::ChangeKind::kInterleave, WasmOffset(78)},
       {.state = ChangeState::kInTrial, .setting = 16, .gain = 0.25, .why = "at once"}},
      {{jit::ChangeKind::kJumpPointers, WasmOffset(79)},
       {.state = ChangeState::kKept, .setting = 8, .gain = 2.5, .why = "the same way"}},
      {{jit::ChangeKind::kSelect, WasmOffset(90)},
       {.state = ChangeState::kKept, .gain = 0.75, .why = "both ways"}},
      {{jit::ChangeKind::kBranch, WasmOffset(92)},
       {.state = ChangeState::kRolledBack, .gain = -0.1, .why = "ahead"}},
      {{jit::ChangeKind::kValue, WasmOffset(94)}, {.state = ChangeState::kKept, .gain = 0.4, .why = "by 7"}}};
  ProfileFile file;
  file.policy = {{"min_samples", 6}, {"prefetch", 1}};
  Episode taken_over = e;
  taken_over.origin = Origin::kProfile;
  taken_over.runs_ago = 2;
  taken_over.earlier = {
      3.5,
      0.25,
      1.5,
      0.04,
      {1},
      {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
        {.state = ChangeState::kRolledBack, .setting = 8, .gain = -0.1, .why = "lost", .runs_ago = 4}},
       {{jit::ChangeKind::kInterleave, WasmOffset(80)},
        {.state = ChangeState::kKept, .setting = 8, .gain = 0.6, .why = "won", .runs_ago = 1}}}};
  ModuleProfile module;
  module.hash_hex = "abcd";
  module.name = "app.wasm";
  module.episodes = {e, taken_over};
  module.functions = {e.evidence};
  module.options = "feedback on";
  module.runs_seen = 12;
  module.runs = 7.25;
  PageEpisode pages;
  pages.id = 1;
  pages.seconds = 0.5;
  pages.evidence = {100, 0.25, 60, 0.1, 0.7, 50, 49, {{1000, 30}, {1001, 20}}};
  pages.ranges = {{1000 * kHugePageBytes, 1002 * kHugePageBytes}};
  pages.reason = "spread";
  pages.alternatives = {"nothing", "huge pages"};
  pages.estimated_gain = 0.1;
  pages.state = DecisionState::kKept;
  pages.outcome = "4 MiB moved";
  pages.measured_gain = 0.08;
  module.page_episodes = {pages};
  FunctionSamples samples;
  samples.function = FuncIndex(4);
  samples.name = "main";
  samples.begin = WasmOffset(40);
  samples.samples = 44.5;
  samples.seconds_baseline = 0.01;
  samples.seconds_optimized = 1.5;
  samples.places = {{WasmOffset(50), 40.5, 0}, {WasmOffset(77), 4, 20}};
  module.samples = {samples};
  file.modules = {module};
  return file;
}

class ProfileFileOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hindsight-profile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST(ProfileFile, SurvivesTheTripThroughText) {
  auto back = parse_profile(format_profile(example()), "test");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, example());
}

TEST(ProfileFile, RefusesCountsThatAreMoreThanWhatTheyAreCountedOf) {
  std::string text = format_profile(example());
  const std::string sound = "\"mispredicted\": 1000";
  ASSERT_NE(text.find(sound), std::string::npos);
  text.replace(text.find(sound), sound.size(), "\"mispredicted\": 2001");
  EXPECT_FALSE(parse_profile(text, "test"));
}

TEST(ProfileFile, EveryPrefixIsAnErrorAndNeverACrash) {
  std::string text = format_profile(example());
  while (!text.empty() && text.back() != '}') text.pop_back();
  for (size_t n = 0; n < text.size(); ++n) {
    auto result = parse_profile(text.substr(0, n), "test");
    EXPECT_FALSE(result) << n;
  }
}

TEST(ProfileFile, DamagedBytesAreErrorsOrOtherValuesAndNeverACrash) {
  std::string text = format_profile(example());
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)parse_profile(damaged, "test");
  }
}

TEST(ProfileFile, NamesTheDefectivePlace) {
  std::string text = format_profile(example());
  text.replace(text.find("\"code_bytes\": 321"), 17, "\"code_bytes\": -21");
  auto result = parse_profile(text, "bad.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().place, "bad.json");
  EXPECT_NE(result.error().message.find("modules[0].episodes[0].evidence.code_bytes"), std::string::npos)
      << result.error().message;
}

TEST(ProfileFile, RefusesALoopThatIsItsOwnAncestor) {
  std::string text = format_profile(example());
  auto at = text.rfind("\"parent\": 0");
  text.replace(at, 11, "\"parent\": 1");
  EXPECT_FALSE(parse_profile(text, "test"));
}

TEST(ProfileFile, RefusesDeepNestingWithoutRecursion) {
  EXPECT_FALSE(parse_profile(std::string(1'000'000, '['), "test"));
}

TEST(ProfileFile, RefusesAnotherVersion) {
  std::string text = format_profile(example());
  const size_t at = text.find("\"version\": 3");
  for (const std::string version : {"4", "2.5"}) {
    std::string other = text;
    EXPECT_FALSE(parse_profile(other.replace(at, 12, "\"version\": " + version), "test")) << version;
  }
  text.replace(at, 12, "\"version\": 1");
  auto result = parse_profile(text, "test");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("it is of version 1, and this program's is 3"), std::string::npos);
  EXPECT_NE(result.error().message.find("--profile-out"), std::string::npos) << "what to do";
  EXPECT_EQ(read_profile(text).error().kind, ErrorKind::kUnsupported) << "who keeps it himself only says so";
}

TEST(ProfileFile, ReadsTheVersionThatKnowsOfNoNests) {
  ProfileFile file = example();
  file.modules[0].functions.clear();
  for (Episode& e : file.modules[0].episodes) {
    e.nest.reset();
    for (LoopEvidence& loop : e.evidence.loops)
      loop = {loop.loop, loop.offset, loop.depth, loop.samples, loop.parent};
  }
  std::string text = format_profile(file, /*compact=*/true);
  for (const std::string name :
       {"nest", "code_bytes\":30", "inner_loops", "fruitless", "trip_records", "early"})
    EXPECT_EQ(text.find("\"" + name), std::string::npos) << name << ": costs nothing where there is none";
  text.replace(text.find("\"version\":3"), 11, "\"version\":2");
  const auto back = parse_profile(text, "test");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, file);
}

TEST(ProfileFile, RefusesTwoOutcomesOfOneChange) {
  ProfileFile file = example();
  file.modules[0].episodes[0].outcomes.entries().push_back(*file.modules[0].episodes[0].outcomes.begin());
  const auto result = parse_profile(format_profile(file), "test");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("has a site twice"), std::string::npos) << result.error().message;
}

TEST(ProfileFile, KnowsEveryStateOfADecisionByItsWord) {
  for (size_t i = 0; i <= static_cast<size_t>(kLastDecisionState); ++i) {
    ProfileFile file = example();
    file.modules[0].page_episodes[0].state = static_cast<DecisionState>(i);
    const auto back = parse_profile(format_profile(file), "test");
    ASSERT_TRUE(back) << back.error().describe();
    EXPECT_EQ(back->modules[0].page_episodes[0].state, static_cast<DecisionState>(i));
  }
  std::string text = format_profile(example(), /*compact=*/true);
  const std::string kept = R"("state":"kept")";
  text.replace(text.rfind(kept), kept.size(), R"("state":"kept, I think")");
  const auto result = parse_profile(text, "test");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().describe(),
              testing::HasSubstr("'kept, I think' is no word that is known there"));
}

TEST(ProfileFile, NamesThatAreNotUtf8DoNotPreventSaving) {
  ProfileFile file = example();
  file.modules[0].episodes[0].evidence.name = "\xff\xfe";
  EXPECT_TRUE(parse_profile(format_profile(file), "test"));
}

TEST_F(ProfileFileOnDisk, SavesByReplacingAndLeavesNoTemporaryFile) {
  std::string path = (folder / "p.json").string();
  ASSERT_TRUE(save_profile(example(), path));
  ASSERT_TRUE(save_profile(example(), path));
  auto back = load_profile(path);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, example());
  size_t files =
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  EXPECT_EQ(files, 1u);
}

TEST_F(ProfileFileOnDisk, AnUnwritablePlaceIsAnErrorWithThePath) {
  auto saved = save_profile(example(), (folder / "no" / "such" / "p.json").string());
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().describe().find("no/such"), std::string::npos);
}

TEST_F(ProfileFileOnDisk, AMissingFileIsAnErrorWithThePath) {
  auto loaded = load_profile((folder / "none").string());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace hindsight::feedback
