// Replays decisions with each parameter a quarter larger and a quarter smaller, and says which flip:
//
//   replay_parameters [--flips] [NAME=NUMBER...] [PROFILE...]
//   replay_parameters --gather OUT PROFILE...
//
// The decisions are those of the profiles, and those by hand (situations.h). NAME=NUMBER: replays with that parameter alone
// so instead, and names each flip. --flips names each flip of all. --gather puts profiles into one small file: what
// decisions are made from, without words, places and all but the hottest functions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tests/feedback/policy/situations.h"

namespace {

using namespace hindsight::feedback;

// Decisions that flipped, by their kinds.
using Flips = std::map<std::string, size_t>;

struct Asked {
  Situation situation;
  std::string answer;  // with the parameters as they are
};

Flips replay(const std::vector<Asked>& all, const PolicyConfig& config, bool name_each) {
  Flips flips;
  for (const Asked& asked : all) {
    const std::string now = answer(asked.situation, config);
    if (now == asked.answer) continue;
    ++flips[kind_of(asked.situation)];
    if (name_each)
      std::printf("    %s (%s): %s -> %s\n", asked.situation.name.c_str(), kind_of(asked.situation).c_str(),
                  asked.answer.c_str(), now.c_str());
  }
  return flips;
}

std::string flip_counts(const Flips& flips) {
  if (flips.empty()) return "none";
  std::string words;
  for (const auto& [kind, count] : flips)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, kind);
  return words;
}

int gather(const std::string& out, const std::vector<std::string>& paths) {
  constexpr size_t kMostEpisodes = 6, kMostFunctions = 3;
  ProfileFile all;
  for (const std::string& path : paths) {
    auto file = load_profile(path);
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().message.c_str());
      return 1;
    }
    all.policy = file->policy;
    for (ModuleProfile& module : file->modules) {
      module.name = module.name.substr(module.name.rfind('/') + 1);
      if (module.episodes.size() > kMostEpisodes) module.episodes.resize(kMostEpisodes);
      if (module.functions.size() > kMostFunctions) module.functions.resize(kMostFunctions);
      for (Episode& episode : module.episodes) {
        episode.reason.clear();
        episode.alternatives.clear();
        for (auto& [site, outcome] : episode.outcomes.entries()) outcome.why.clear();
      }
      for (PageEpisode& episode : module.page_episodes) episode.alternatives.clear();
      for (LayoutEpisode& episode : module.layout_episodes) episode.alternatives.clear();
      std::erase_if(module.samples, [&](const FunctionSamples& s) {
        return std::none_of(module.episodes.begin(), module.episodes.end(),
                            [&](const Episode& e) { return e.evidence.function == s.function; });
      });
      for (FunctionSamples& samples : module.samples) samples.places.clear();
      all.modules.push_back(std::move(module));
    }
  }
  std::ofstream file(out);
  file << format_profile(all, true) << '\n';
  file.close();
  if (!file) std::fprintf(stderr, "%s cannot be written\n", out.c_str());
  return file ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 2 && arguments[0] == "--gather")
    return gather(arguments[1], {arguments.begin() + 2, arguments.end()});
  const bool name_each = std::erase(arguments, "--flips") > 0;
  const PolicyConfig config;
  std::vector<Asked> by_hand, of_profiles;
  std::map<std::string, size_t> kinds;
  const auto ask = [&](std::vector<Asked>& to, std::vector<Situation> situations) {
    for (Situation& situation : situations) {
      std::string words = answer(situation, config);
      ++kinds[kind_of(situation)];
      to.push_back({std::move(situation), std::move(words)});
    }
  };
  ask(by_hand, situations_by_hand());
  std::map<std::string, double> wanted;
  for (const std::string& argument : arguments) {
    if (const size_t at = argument.find('='); at != std::string::npos) {
      wanted[argument.substr(0, at)] = std::atof(argument.c_str() + at + 1);
      continue;
    }
    const auto file = load_profile(argument);
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().message.c_str());
      return 1;
    }
    for (const ModuleProfile& module : file->modules) ask(of_profiles, situations_of(module));
  }
  std::printf("%zu decisions of profiles, %zu by hand: %s\n", of_profiles.size(), by_hand.size(),
              flip_counts(kinds).c_str());
  if (!wanted.empty()) {
    PolicyConfig changed;
    for (const Parameter& parameter : parameters()) {
      const auto found = wanted.find(std::string(parameter.name));
      if (found == wanted.end()) continue;
      std::printf("%s = %g in place of %g\n", found->first.c_str(), found->second, parameter.of(config));
      parameter.set(changed, found->second);
      wanted.erase(found);
    }
    for (const auto& [name, number] : wanted) {
      std::fprintf(stderr, "no parameter is called %s\n", name.c_str());
      return 2;
    }
    const Flips flips = replay(of_profiles, changed, true);
    std::printf("of profiles: %s\nby hand: %s\n", flip_counts(flips).c_str(),
                flip_counts(replay(by_hand, changed, name_each)).c_str());
    return 0;
  }
  std::printf(
      "| parameter | is | becomes | flips of %zu in profiles | flips of %zu by hand "
      "|\n|---|---|---|---|---|\n",
      of_profiles.size(), by_hand.size());
  for (const Parameter& parameter : parameters()) {
    for (const double factor : {0.75, 1.25}) {
      PolicyConfig changed = config;
      parameter.set(changed, varied(parameter, config, factor));
      std::printf("| %s | %g | %g | %s | %s |\n", std::string(parameter.name).c_str(), parameter.of(config),
                  parameter.of(changed), flip_counts(replay(of_profiles, changed, name_each)).c_str(),
                  flip_counts(replay(by_hand, changed, false)).c_str());
    }
  }
}
