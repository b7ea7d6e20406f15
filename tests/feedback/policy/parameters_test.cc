// The table of parameters: it loads, saves and bounds them, and each decides something.
#include "feedback/policy/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/feedback/policy/situations.h"

namespace hindsight::feedback {
namespace {

TEST(Parameters, EachHasANameOfItsOwnAReasonAndANumberWithinItsUnit) {
  std::set<std::string_view> names;
  for (const Decision& decision : kDecisions)
    EXPECT_TRUE(names.insert(decision.name).second) << decision.name;
  for (const Parameter& parameter : parameters()) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    EXPECT_FALSE(parameter.from.why.empty()) << parameter.name;
    const double number = parameter.of({});
    EXPECT_EQ(bounded(parameter.from.unit, number), number) << parameter.name;
  }
}

TEST(Parameters, AreBoundedWhateverAFileSays) {
  for (const double hostile : {-1.0, -1e300, 1e300, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    std::map<std::string, double> all = to_parameters({});
    for (auto& [name, number] : all) number = hostile;
    const PolicyConfig config = from_parameters(all);
    for (const Parameter& parameter : parameters()) {
      const UnitTraits& unit = traits_of(parameter.from.unit);
      EXPECT_GE(parameter.of(config), unit.least) << parameter.name << " of " << hostile;
      EXPECT_LE(parameter.of(config), unit.most) << parameter.name << " of " << hostile;
    }
    for (const Situation& situation : situations_by_hand()) answer(situation, config);
  }
}

TEST(Parameters, SurviveTheTripThroughTheirNamesOneByOne) {
  for (const Parameter& parameter : parameters()) {
    PolicyConfig config;
    parameter.set(config, parameter.of(config) == 1 ? 0.5 : traits_of(parameter.from.unit).least + 1);
    EXPECT_EQ(from_parameters(to_parameters(config)), config) << parameter.name;
  }
  for (const Decision& decision : kDecisions) {
    PolicyConfig config;
    decision.set(config, false);
    EXPECT_EQ(from_parameters(to_parameters(config)), config) << decision.name;
  }
}

TEST(Parameters, ADecisionThatAFileDoesNotNameIsOff) {
  for (const Decision& decision : kDecisions) {
    std::map<std::string, double> old = to_parameters({});
    old.erase(std::string(decision.name));
    EXPECT_FALSE(decision.is_on(from_parameters(old))) << decision.name;
  }
  EXPECT_EQ(from_parameters({}), PolicyConfig());
}

// What flips nothing while every quantity goes up in small steps, decides nothing: it goes, or a situation is missing.
TEST(Parameters, EachDecidesSomething) {
  const std::vector<Situation> situations = situations_by_hand();
  std::vector<std::string> answers;
  for (const Situation& situation : situations) answers.push_back(answer(situation, {}));
  for (const Parameter& parameter : parameters()) {
    const auto flips = [&](double factor) {
      PolicyConfig config;
      parameter.set(config, varied(parameter, config, factor));
      for (size_t i = 0; i < situations.size(); ++i)
        if (answer(situations[i], config) != answers[i]) return true;
      return false;
    };
    EXPECT_TRUE(flips(1.25) || flips(0.75)) << parameter.name;
  }
}

}  // namespace
}  // namespace hindsight::feedback
