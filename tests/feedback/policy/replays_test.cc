// Evidence of recorded runs, and what the policy makes of it: replays/NAME.json, and the plans beside it in NAME.plans. Whoever
// changes a decision on purpose writes the plans anew (HINDSIGHT_BLESS=1) and reads the difference.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "feedback/policy/layout.h"
#include "feedback/policy/page_fill.h"
#include "feedback/policy/pages.h"
#include "feedback/policy/policy.h"
#include "feedback/policy/start.h"
#include "feedback/profile/profile_file.h"
#include "tests/feedback/policy/plan_text.h"
#include "tests/text_cases.h"

namespace hindsight::feedback {
namespace {

namespace fs = std::filesystem;

std::string plans_of(const ProfileFile& file) {
  const PolicyConfig policy = from_parameters(file.policy);
  std::string text;
  for (const ModuleProfile& module : file.modules) {
    for (const Episode& e : module.episodes) {
      text += fmt::format("function {}\n", e.evidence.function.value);
      text += e.earlier ? text_of(decide_start(e.evidence, *e.earlier, policy))
                        : text_of(decide(e.evidence, policy));
    }
    for (const StartQuestion& question : start_questions(module)) {
      text += fmt::format("start of function {}\n", question.decision->evidence.function.value);
      text += text_of(decide_start(question.decision->evidence, question.earlier, policy));
    }
    for (const PageEpisode& e : module.page_episodes) {
      const PagePlan plan =
          e.evidence.fill ? decide_fill(*e.evidence.fill, policy) : decide_pages(e.evidence, policy);
      text +=
          fmt::format("pages\n  {} ranges, {} MiB: {}\n", plan.ranges.size(), plan.bytes >> 20, plan.reason);
    }
    for (const LayoutEpisode& e : module.layout_episodes)
      text += fmt::format("layout\n  {}\n", decide_layout(e.evidence, policy).reason);
  }
  return text;
}

TEST(Replays, TheSameEvidenceLeadsToTheSamePlans) {
  const std::vector<fs::path> profiles = testing::files_of(HINDSIGHT_REPLAYS, ".json");
  ASSERT_GE(profiles.size(), 10u);
  for (const fs::path& path : profiles) {
    const auto file = load_profile(path.string());
    ASSERT_TRUE(file) << file.error().describe();
    testing::expect_text(fs::path(path).replace_extension(".plans"), plans_of(*file));
  }
}

// What a program may have decided at any time: all of it is somewhere in these files.
TEST(Replays, ShowEveryActionAndEveryKindOfChange) {
  std::string all;
  for (const fs::path& path : testing::files_of(HINDSIGHT_REPLAYS, ".plans"))
    all += testing::contents_of(path);
  for (const Action action :
       {Action::kNothing, Action::kWait, Action::kOptimize, Action::kReoptimize, Action::kObserve})
    EXPECT_THAT(all, ::testing::HasSubstr(fmt::format("  {}", to_string(action))));
  for (const jit::ChangeTraits& traits : jit::kChanges)
    EXPECT_THAT(all, ::testing::HasSubstr(fmt::format("    {}@", traits.name)));
}

}  // namespace
}  // namespace hindsight::feedback
