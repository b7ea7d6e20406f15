// docs/PARAMETERS.md is what the tables of numbers say. HINDSIGHT_BLESS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>

#include "feedback/policy/parameters.h"
#include "feedback/policy/sampling.h"
#include "feedback/profile/merge.h"
#include "jit/change.h"
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

void add_table(std::string& page, std::string_view title, std::span<const Constant> constants) {
  open_table(page, title);
  for (const Constant& constant : constants) page += row(constant.name, constant.value, constant.from);
}

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
  add_table(page, "estimates that are the same everywhere", feedback::kEstimates);
  page +=
      "\n# What compilers and the policy share\n[change.h](../jit/change.h): each change of code that has a "
      "number, with where its trial begins and between what it stays.\n";
  page += "\n| change | number | begins at | least | most |\n|---|---|---|---|---|\n";
  for (const jit::ChangeTraits& traits : jit::kChanges)
    if (jit::is_tuned(traits.kind))
      page += fmt::format("| {} | {} | {} | {} | {} |\n", traits.name, traits.knob.name, traits.knob.first,
                          traits.knob.least, traits.knob.most);
  add_table(page, "facts of compiled code: jit/change.h", jit::kChangeConstants);
  page += "\n# Sampling, trials, and what stays between runs\n";
  add_table(page, "how often to sample: feedback/policy/sampling.h", feedback::kSamplingParameters);
  add_table(page, "trials: runtime/adaptive/trial_parameters.h", rt::kTrialParameters);
  add_table(page, "runs put together: feedback/profile/merge.h", feedback::kMergeParameters);
  return page;
}

TEST(ParametersPage, SaysWhatTheTablesSay) {
  hindsight::testing::expect_text(HINDSIGHT_SOURCE_ROOT "/docs/PARAMETERS.md", parameters_page());
}

// Rows are read beside each other: a table has every unit's bounds kept and one line a reason.
TEST(ParametersPage, HasNumbersWithinTheirUnitsAndAReasonForEach) {
  for (const std::span<const Constant> table :
       {std::span<const Constant>(feedback::kSamplingParameters),
        std::span<const Constant>(feedback::kEstimates), std::span<const Constant>(jit::kChangeConstants),
        std::span<const Constant>(rt::kTrialParameters),
        std::span<const Constant>(feedback::kMergeParameters)}) {
    for (const Constant& constant : table) {
      EXPECT_FALSE(constant.from.why.empty()) << constant.name;
      EXPECT_EQ(constant.from.why.find_first_of("|\n"), std::string_view::npos) << constant.name;
    }
  }
  for (const feedback::Parameter& parameter : feedback::parameters())
    EXPECT_EQ(parameter.from.why.find_first_of("|\n"), std::string_view::npos) << parameter.name;
}

}  // namespace
}  // namespace hindsight
