// Kept and saved profiles through the command: a second start, and what `hindsight profile` makes for other tools. What it
// says of saved ones is in transcripts/profiles.txt.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/runtime/cli/command.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// A loop that is long enough to be seen, with a branch that is hardly ever taken and a call through a table.
constexpr const char* kHot = R"((module $hot
  (type $binary (func (param i32 i32) (result i32)))
  (table funcref (elem $add $xor))
  (func $add (type $binary) (i32.add (local.get 0) (local.get 1)))
  (func $xor (type $binary) (i32.xor (local.get 0) (local.get 1)))
  (func $run (export "run") (param $n i32) (result i32) (local $s i32)
    (loop $l
      (if (i32.eqz (i32.and (local.get $n) (i32.const 0xfff)))
        (then (local.set $s (i32.add (local.get $s) (i32.const 7)))))
      (local.set $s (call_indirect (type $binary) (local.get $s) (local.get $n)
        (i32.const 0)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))))";
// A hundred times what is decided and compiled meanwhile, also where the one waits for the other's core.
constexpr const char* kIterations = "300000000";

class ProfileCommand : public Command {
 protected:
  std::string folder() const { return path("profiles"); }
  // A run that keeps its profile.
  Outcome run(const std::string& module, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"run", "-v", "--profile-dir", folder()};
    words.insert(words.end(), more.begin(), more.end());
    for (const char* word : {"--invoke", "run"}) words.emplace_back(word);
    words.push_back(module);
    words.emplace_back(kIterations);
    return hindsight(words);
  }
  Outcome profile(std::vector<std::string> words) const {
    words.insert(words.begin(), "profile");
    words.insert(words.end(), {"--profile-dir", folder()});
    return hindsight(words);
  }
  size_t files() const {
    size_t count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder(), ignored))
      count += entry.path().extension() == ".profile";
    return count;
  }
};

TEST_F(ProfileCommand, ASecondStartBeginsWithWhatTheFirstDecided) {
  const std::string module = file("hot.wat", kHot);
  const Outcome first = run(module);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("kept, of 1 runs"));
  EXPECT_THAT(first.err, Not(HasSubstr("decided in an earlier run")));
  // No compile is so short that nothing runs meanwhile.
  EXPECT_THAT(first.err, HasSubstr(" hot; most: ")) << "how long baseline code ran on";
  EXPECT_EQ(files(), 1u);
  const Outcome second = run(module);
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(second.err, HasSubstr("decided in an earlier run"));
  EXPECT_THAT(second.err, HasSubstr("kept, of 2 runs"));

  // And people see all of it, by the module's name.
  const Outcome list = profile({"list"});
  EXPECT_THAT(list.out, HasSubstr("of 2 runs")) << list.err;
  const Outcome show = profile({"show", module});
  EXPECT_EQ(show.status, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("2 runs, faded to"));
  EXPECT_THAT(show.out, HasSubstr("run: "));
  const Outcome explain = hindsight({"explain", "--profile-dir", folder(), module});
  EXPECT_EQ(explain.status, 0) << explain.err;
  for (const char* word : {"seen ", "because ", "weighed ", "done ", "nothing: costs 0.0 ms"})
    EXPECT_THAT(explain.out, HasSubstr(word));
  const std::regex all_reproduced("the policy reproduces (\\d+) of (\\1) decisions");
  EXPECT_TRUE(std::regex_search(explain.out, all_reproduced)) << explain.out;
  EXPECT_EQ(profile({"clear"}).status, 0);
  EXPECT_EQ(files(), 0u);
}

TEST_F(ProfileCommand, KeepsNothingIfToldSo) {
  const std::string module = file("f.wat", kHot);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--no-profile"}, {"--tier", "optimized"}, {"--unit", "none", "--tier", "baseline"}}) {
    const Outcome outcome = run(module, more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(files(), 0u);
  }
}

TEST_F(ProfileCommand, SaysOnceThatAKeptProfileIsDamaged) {
  const std::string module = file("hot.wat", kHot);
  ASSERT_EQ(run(module).status, 0);
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".profile")
      fs::resize_file(entry.path(), fs::file_size(entry.path()) - 5);
  const Outcome outcome = hindsight({"run", "--profile-dir", folder(), "--invoke", "run", module, "1000"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err,
              MatchesRegex("hindsight: warning: profile: [^\n]*is truncated: [^\n]*; ignored, and written "
                           "anew when there are decisions to keep\n"));
}

class SavedProfiles : public ProfileCommand {
 protected:
  void SetUp() override {
    ProfileCommand::SetUp();
    module_ = file("hot.wat", kHot);
    saved_ = path("a.profile");
    const Outcome outcome =
        hindsight({"run", "--profile-out", saved_, "--invoke", "run", module_, kIterations});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    answer_ = outcome.out;
  }
  std::string module_, saved_, answer_;
};

TEST_F(SavedProfiles, AreShownComparedAndPutTogether) {
  EXPECT_THAT(profile({"show", saved_}).out, HasSubstr("1 run, faded to 1.00"));
  const Outcome merged = profile({"merge", saved_, saved_, "-o", path("ab.profile")});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_THAT(profile({"show", path("ab.profile")}).out, HasSubstr("2 runs, faded to 1.92"));
  // Without a decision it is another profile.
  ASSERT_EQ(hindsight({"run", "--without", "inline-calls", "--profile-out", path("c.profile"), "--invoke",
                       "run", module_, kIterations})
                .status,
            0);
  const Outcome diff = profile({"diff", saved_, path("c.profile")});
  EXPECT_EQ(diff.status, 0) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("policy inline-calls: 1 -> 0"));
  EXPECT_THAT(diff.out, HasSubstr("differences"));
}

TEST_F(SavedProfiles, BecomeBranchHintsInACopyOfTheModule) {
  const std::string hinted = path("hinted.wasm");
  const Outcome exported =
      profile({"export", saved_, "--format", "branch-hints", "--module", module_, "-o", hinted});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("1 branches likely, 1 unlikely"));
  EXPECT_THAT(hindsight({"inspect", hinted}).out, HasSubstr("2 branches"));
  EXPECT_EQ(hindsight({"run", "--invoke", "run", hinted, kIterations}).out, answer_);
  // Other hints are replaced, not repeated: the copy is a module as any other.
  const std::string profile_of_copy = path("copy.profile");
  ASSERT_EQ(
      hindsight({"run", "--profile-out", profile_of_copy, "--invoke", "run", hinted, kIterations}).status, 0);
  ASSERT_EQ(profile({"export", profile_of_copy, "--format", "branch-hints", "--module", hinted, "-o",
                     path("2.wasm")})
                .status,
            0);
  EXPECT_THAT(hindsight({"inspect", path("2.wasm")}).out, HasSubstr("2 branches"));
  EXPECT_EQ(contents(path("2.wasm")), contents(hinted));
}

TEST_F(SavedProfiles, ArePprofProfilesForAnIndependentReader) {
  if (std::string(HINDSIGHT_NODE).find("NOTFOUND") != std::string::npos)
    GTEST_SKIP() << "there is no node here";
  const std::string out = path("p.pb.gz");
  ASSERT_EQ(profile({"export", saved_, "-o", out}).status, 0);
  const Outcome read = program({HINDSIGHT_NODE, HINDSIGHT_PPROF_READER, out});
  ASSERT_EQ(read.status, 0) << read.err;
  const auto json = nlohmann::json::parse(read.out);
  EXPECT_EQ(json["types"], nlohmann::json({"samples/count", "cpu/nanoseconds", "stalls/count"}));
  EXPECT_EQ(json["default_type"], "cpu");
  ASSERT_EQ(json["mappings"].size(), 1u);
  EXPECT_EQ(json["mappings"][0]["file"], module_);
  EXPECT_GT(json["period"], 10'000);
  uint64_t samples = 0, in_run = 0;
  for (const auto& sample : json["samples"]) {
    ASSERT_EQ(sample["values"].size(), 3u);
    samples += sample["values"][0].get<uint64_t>();
    if (sample["function"] == "run") in_run += sample["values"][0].get<uint64_t>();
  }
  // How many there are is the machine's business. Others stand in what it calls, until that is in place.
  EXPECT_GE(samples, in_run);
  EXPECT_GT(in_run, 0u);
}

TEST_F(SavedProfiles, AreSampleProfilesForLlvm) {
  if (std::string(HINDSIGHT_LLVM_PROFDATA).find("NOTFOUND") != std::string::npos)
    GTEST_SKIP() << "there is no llvm-profdata here";
  const std::string out = path("p.prof");
  ASSERT_EQ(profile({"export", saved_, "--format", "llvm", "--module", module_, "-o", out}).status, 0);
  const Outcome read = program({HINDSIGHT_LLVM_PROFDATA, "show", "--sample", out});
  ASSERT_EQ(read.status, 0) << read.err << contents(out);
  EXPECT_THAT(read.out, HasSubstr("Function: run: "));
  EXPECT_THAT(read.out, HasSubstr("calls: add:"));
}

}  // namespace
