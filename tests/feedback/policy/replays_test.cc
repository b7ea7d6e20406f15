// Evidence of recorded runs, and what the policy makes of it: replays/NAME.json, and the plans beside it in NAME.plans. Whoever
// changes a decision on purpose writes the plans anew (HINDSIGHT_BLESS=1) and reads the difference.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "feedback/policy/layout.h"
#include "feedback/policy/page_fill.h"
#include "feedback/policy/pages.h"
#include "feedback/policy/policy.h"
#include "feedback/policy/start.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {
namespace {

namespace fs = std::filesystem;

std::string text_of(const jit::Request& request) {
  std::string text;
  if (jit::is_tuned(request.site.kind)) text += fmt::format(" at {}", request.setting);
  for (const auto& target : jit::what_of<jit::CallTargets>(request).targets)
    text += fmt::format(" {}:{:.3f}", target.element, target.share);
  if (const auto* counts = std::get_if<jit::BranchCounts>(&request.what))
    text += fmt::format(" {}:{}", counts->taken, counts->not_taken);
  if (const auto* usual = std::get_if<jit::UsualValue>(&request.what))
    text += fmt::format(" {}:{:.3f}", usual->value, usual->share);
  return text;
}

std::string text_of(const FunctionPlan& plan) {
  std::string text = fmt::format("  {}", to_string(plan.action));
  for (const LoopIndex loop : plan.osr_loops) text += fmt::format(", enters loop {}", loop.value);
  text += plan.loop_entries_only ? " alone\n" : "\n";
  for (const Candidate& candidate : plan.candidates) {
    text += fmt::format("    {}@{:x}{}, gains {:.3f} / {:.6f} s\n", to_string(candidate.kind()),
                        candidate.at().value, text_of(candidate.request), candidate.estimate.share,
                        candidate.estimate.seconds);
  }
  for (const std::string& line : describe_alternatives(plan)) text += "    weighed " + line + "\n";
  return text + "    because " + plan.reason + "\n";
}

std::string text_of(const StartPlan& start) {
  std::string text = text_of(start.plan);
  for (const auto& [site, setting] : start.settled)
    text += fmt::format("    settled {}@{:x} {}\n", to_string(site.kind), site.at.value, setting);
  return text;
}

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

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<fs::path> profiles() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(HINDSIGHT_REPLAYS))
    if (entry.path().extension() == ".json") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Replays, TheSameEvidenceLeadsToTheSamePlans) {
  ASSERT_GE(profiles().size(), 10u);
  for (const fs::path& path : profiles()) {
    const auto file = load_profile(path.string());
    ASSERT_TRUE(file) << file.error().describe();
    const std::string plans = plans_of(*file);
    const fs::path expected = fs::path(path).replace_extension(".plans");
    if (std::getenv("HINDSIGHT_BLESS") != nullptr) std::ofstream(expected) << plans;
    EXPECT_EQ(plans, contents(expected)) << expected << ": HINDSIGHT_BLESS=1 writes it anew";
  }
}

// What a program may have decided at any time: all of it is somewhere in these files.
TEST(Replays, ShowEveryActionAndEveryKindOfChange) {
  std::string all;
  for (const fs::path& path : profiles()) all += contents(fs::path(path).replace_extension(".plans"));
  for (const Action action :
       {Action::kNothing, Action::kWait, Action::kOptimize, Action::kReoptimize, Action::kObserve})
    EXPECT_THAT(all, testing::HasSubstr(fmt::format("  {}", to_string(action))));
  for (const jit::ChangeTraits& traits : jit::kChanges)
    EXPECT_THAT(all, testing::HasSubstr(fmt::format("    {}@", traits.name)));
}

}  // namespace
}  // namespace hindsight::feedback
