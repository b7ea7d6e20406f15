// docs/PARAMETERS.md is what the tables of numbers say. HINDSIGHT_BLESS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "feedback/policy/parameters.h"
#include "feedback/policy/sampling.h"
#include "feedback/profile/merge.h"
#include "jit/change.h"
#include "jit/optimizing/changes/branch_form/form_parameters.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/jump_pointers/jump_parameters.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/changes/split_cold/split_parameters.h"
#include "jit/optimizing/changes/values/value_parameters.h"
#include "runtime/adaptive/trial_parameters.h"
#include "tests/text_cases.h"

namespace hindsight {
namespace {

std::string number_text(Unit unit, double number) {
  if (unit == Unit::kBytes && number >= 1 << 20) return fmt::format("{:g} Mi", number / (1 << 20));
  if (unit == Unit::kBytes && number >= 1 << 10) return fmt::format("{:g} Ki", number / (1 << 10));
  return fmt::format("{:.8g}", number);
}

std::string row(std::string_view name, double number, const Provenance& from) {
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", name, number_text(from.unit, number),
                     traits_of(from.unit).name, to_string(from.origin), from.why);
}

void open_table(std::string& page, std::string_view title) {
  page += fmt::format("\n## {}{}\n| | is | unit | origin | why |\n|---|---|---|---|---|\n",
                      static_cast<char>(std::toupper(title.front())), title.substr(1));
}

struct Table {
  std::string_view title;
  std::span<const Constant> constants;
};

void add_table(std::string& page, const Table& table) {
  open_table(page, table.title);
  for (const Constant& constant : table.constants) page += row(constant.name, constant.value, constant.from);
}

constexpr Table kEstimated{"estimates that are the same everywhere", feedback::kEstimates};
constexpr Table kShared{"facts of compiled code: jit/change.h", jit::kChangeConstants};
constexpr Table kOfPasses[] = {
    {"prefetch: changes/prefetch/prefetch_parameters.h", jit::optimizing::kPrefetchParameters},
    {"interleave: changes/interleave/interleave_parameters.h", jit::optimizing::kInterleaveParameters},
    {"jump-pointers: changes/jump_pointers/jump_parameters.h", jit::optimizing::kJumpParameters},
    {"select, branch, speculate: changes/branch_form/form_parameters.h", jit::optimizing::kFormParameters},
    {"values: changes/values/value_parameters.h", jit::optimizing::kValueParameters},
    {"code-layout: changes/split_cold/split_parameters.h", jit::optimizing::kSplitParameters},
};
constexpr Table kOfRuns[] = {
    {"how often to sample: feedback/policy/sampling.h", feedback::kSamplingParameters},
    {"trials: runtime/adaptive/trial_parameters.h", rt::kTrialParameters},
    {"runs put together: feedback/profile/merge.h", feedback::kMergeParameters},
};

std::string parameters_page() {
  std::string page = R"(# Parameters: the numbers that steer, and where they come from

Printed from the tables beside the code; `HINDSIGHT_BLESS=1 build/release/bin/docs_test` writes this page anew. Origins:

- **measured**: on a machine, by an experiment that is named here or in [MEASURING.md](MEASURING.md).
- **derived**: follows from another number or from a document.
- **swept**: chosen. No experiment says this one; decisions hang on it, and `scripts/replay_parameters.mjs` says which.
- **bound**: a guard. Other numbers of the same size would do.

Numbers that a file brings are bounded by their unit:

| unit | least | most |
|---|---|---|
)";
  for (const UnitTraits& unit : kUnits)
    page += fmt::format("| {} | {:g} | {:g} |\n", unit.name, unit.least, unit.most);
  page +=
      "\n# The policy\n[parameters.h](../feedback/policy/parameters.h). Saved with each profile, so that its "
      "decisions replay.\n";
  std::string_view about;
  for (const feedback::Parameter& parameter : feedback::parameters()) {
    if (parameter.about != about) open_table(page, about = parameter.about);
    page += row(parameter.name, parameter.of({}), parameter.from);
  }
  add_table(page, kEstimated);
  page +=
      "\n# What compilers and the policy share\n[change.h](../jit/change.h): each change of code that has a "
      "number, with where its trial begins and between what it stays.\n";
  page += "\n| change | number | begins at | least | most |\n|---|---|---|---|---|\n";
  for (const jit::ChangeTraits& traits : jit::kChanges)
    if (jit::is_tuned(traits.kind))
      page += fmt::format("| {} | {} | {} | {} | {} |\n", traits.name, traits.knob.name, traits.knob.first,
                          traits.knob.least, traits.knob.most);
  add_table(page, kShared);
  page +=
      "\n# What the passes go by\n[jit/optimizing/changes](../jit/optimizing/changes/README.md): when a "
      "change of code "
      "is made, and how much is looked at for that. They stand in code alone: no profile keeps them, and no "
      "script "
      "varies them.\n";
  for (const Table& table : kOfPasses) add_table(page, table);
  page += "\n# Sampling, trials, and what stays between runs\n";
  for (const Table& table : kOfRuns) add_table(page, table);
  return page;
}

TEST(ParametersPage, SaysWhatTheTablesSay) {
  hindsight::testing::expect_text(HINDSIGHT_SOURCE_ROOT "/docs/PARAMETERS.md", parameters_page());
}

// Rows are read beside each other: a table has every unit's bounds kept and one line a reason.
TEST(ParametersPage, HasNumbersWithinTheirUnitsAndAReasonForEach) {
  std::vector<Table> tables{kEstimated, kShared};
  tables.insert(tables.end(), std::begin(kOfPasses), std::end(kOfPasses));
  tables.insert(tables.end(), std::begin(kOfRuns), std::end(kOfRuns));
  for (const Table& table : tables) {
    for (const Constant& constant : table.constants) {
      EXPECT_FALSE(constant.from.why.empty()) << constant.name;
      EXPECT_EQ(constant.from.why.find_first_of("|\n"), std::string_view::npos) << constant.name;
    }
  }
  for (const feedback::Parameter& parameter : feedback::parameters())
    EXPECT_EQ(parameter.from.why.find_first_of("|\n"), std::string_view::npos) << parameter.name;
}

// A number of a pass that stands elsewhere is in no table. Members are layouts, and what is no number steers nothing.
TEST(ParametersPage, LeavesNoNumberOfAPassOut) {
  const std::regex constant(R"(constexpr (?:unsigned|int|double|size_t|u?int\d+_t) (k\w+) =)");
  // The width of a lane, and numbers that stand for none.
  const std::set<std::string> no_parameters{"kLaneBits",           "kDone",     "kNever",
                                            "kNeverSoManyLanes",   "kBytes",    "kBufferBytes",
                                            "kMaxInterleaveWidth", "kLineBytes"};
  size_t seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(HINDSIGHT_SOURCE_ROOT "/jit/optimizing/changes")) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".h") && !file.ends_with(".cc")) continue;
    std::ifstream text(entry.path());
    for (std::string line; std::getline(text, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, constant)) continue;
      ++seen;
      EXPECT_TRUE(file.ends_with("_parameters.h") || no_parameters.contains(found[1].str()))
          << file << ": " << line;
    }
  }
  EXPECT_GT(seen, 50u);
}

}  // namespace
}  // namespace hindsight
