#include "runtime/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hindsight::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

TEST(Duration, TakesSecondsMillisecondsAndMinutes) {
  EXPECT_EQ(parse_duration("2"), milliseconds(2000));
  EXPECT_EQ(parse_duration("0.5s"), milliseconds(500));
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("3m"), milliseconds(180'000));
}

TEST(Duration, RefusesWhatIsNone) {
  for (const char* text : {"", "s", "-1", "1h", "1 s", "nan", "inf", "1e3", "0", "0.1ms", "99999999999999"}) {
    const auto result = parse_duration(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
}

TEST(Size, TakesBytesAndPowersOf1024) {
  EXPECT_EQ(parse_size("65536"), 65536u);
  EXPECT_EQ(parse_size("512K"), 512u << 10);
  EXPECT_EQ(parse_size("64m"), 64u << 20);
  EXPECT_EQ(parse_size("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(parse_size("3MB"), 3u << 20);
}

TEST(Size, RefusesWhatIsNone) {
  for (const char* text : {"", "K", "-1", "1T", "1.5G", "64MM", "99999999999999999999", "99999999999G"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Directory, MayHaveAnotherNameInside) {
  EXPECT_EQ(*parse_directory("/tmp"), (std::pair<std::string, std::string>("/tmp", "/tmp")));
  EXPECT_EQ(*parse_directory("data::/in"), (std::pair<std::string, std::string>("data", "/in")));
  EXPECT_FALSE(parse_directory("::x"));
  EXPECT_FALSE(parse_directory("x::"));
  EXPECT_FALSE(parse_directory(""));
}

TEST(Environment, SplitsAtTheFirstEqualsSign) {
  EXPECT_EQ(*parse_environment("A=b=c"), (std::pair<std::string, std::string>("A", "b=c")));
  EXPECT_EQ(*parse_environment("A="), (std::pair<std::string, std::string>("A", "")));
  EXPECT_FALSE(parse_environment("A"));
  EXPECT_FALSE(parse_environment("=b"));
}

RunOptions with_program(std::vector<std::string> program) {
  RunOptions options;
  options.program = std::move(program);
  return options;
}

TEST(Plan, GivesTheGuestItsPathAndItsArguments) {
  const auto plan = plan_run(with_program({"dir/app.wasm", "--timeout", "1", "-v"}));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->wasi.args, ElementsAre("dir/app.wasm", "--timeout", "1", "-v"));
  EXPECT_EQ(plan->timeout, milliseconds(0));
}

TEST(Plan, DropsOneSeparatorOnly) {
  const auto plan = plan_run(with_program({"app.wasm", "--", "--", "x"}));
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->wasi.args, ElementsAre("app.wasm", "--", "x"));
}

TEST(Plan, NamesTheOptionWhoseValueIsWrong) {
  const auto place_of = [](auto change) {
    RunOptions options = with_program({"app.wasm"});
    change(options);
    const auto plan = plan_run(options);
    return plan ? std::string("accepted") : plan.error().place;
  };
  EXPECT_EQ(place_of([](RunOptions& o) { o.tier = "fast"; }), "--tier");
  EXPECT_EQ(place_of([](RunOptions& o) { o.feedback = "yes"; }), "--feedback");
  EXPECT_EQ(place_of([](RunOptions& o) { o.without = {"prefetch", "luck"}; }), "--without");
  EXPECT_EQ(place_of([](RunOptions& o) { o.without = {"prefetch", "inline-calls"}; }), "accepted");
  EXPECT_EQ(place_of([](RunOptions& o) { o.unit = "psychic"; }), "--unit");
  EXPECT_EQ(place_of([](RunOptions& o) { o.timeout = "soon"; }), "--timeout");
  EXPECT_EQ(place_of([](RunOptions& o) { o.max_memory = "lots"; }), "--max-memory");
  EXPECT_EQ(place_of([](RunOptions& o) { o.directories = {"ok", "::"}; }), "--dir");
  EXPECT_EQ(place_of([](RunOptions& o) { o.environment = {"ok=1", "bad"}; }), "--env");
}

TEST(Plan, TakesAnUnknownOptionForOneAndNotForAModule) {
  const auto plan = plan_run(with_program({"--frobnicate", "app.wasm"}));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message,
            "unknown option '--frobnicate'; options of the guest come after the module's path");
  EXPECT_FALSE(plan_run(RunOptions{}));
}

}  // namespace
TEST(Options, ProfilesAreKeptUnlessTheyAreNotWanted) {
  RunOptions options;
  options.program = {"app.wasm"};
  options.profile_directory = "/somewhere";
  EXPECT_EQ(plan_run(options)->engine.profile_directory, "/somewhere");
  options.no_profile = true;
  EXPECT_EQ(plan_run(options)->engine.profile_directory, "");
  options.no_profile = false;
  // Who looks for a function that the optimizer gets wrong wants the same decisions every time.
  options.optimize_only = "3-4";
  EXPECT_EQ(plan_run(options)->engine.profile_directory, "");
}

}  // namespace hindsight::cli
