#include "runtime/tools/printable_profile.h"

#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace hindsight::rt {
namespace {

void name(std::string& text) {
  text = printable_name(text);
}
void line(std::string& text) {
  text = printable_line(text);
}
void lines(std::vector<std::string>& texts) {
  for (std::string& text : texts) line(text);
}
void lines(feedback::ChangeLedger& outcomes) {
  for (auto& [site, outcome] : outcomes.entries()) line(outcome.why);
}

void make_printable(feedback::Episode& e) {
  name(e.evidence.name);
  name(e.action);
  line(e.reason);
  lines(e.alternatives);
  line(e.state_why);
  lines(e.outcomes);
  if (e.earlier) lines(e.earlier->outcomes);
}

void make_printable(feedback::ModuleEpisode& e) {
  line(e.reason);
  lines(e.alternatives);
  line(e.outcome);
}

}  // namespace

void make_printable(feedback::ProfileFile& file) {
  std::map<std::string, double> policy;
  for (const auto& [parameter, value] : file.policy) policy.emplace(printable_name(parameter), value);
  file.policy = std::move(policy);
  for (feedback::ModuleProfile& module : file.modules) {
    name(module.hash_hex);
    name(module.name);
    line(module.options);
    for (auto& e : module.episodes) make_printable(e);
    for (auto& evidence : module.functions) name(evidence.name);
    for (auto& e : module.page_episodes) make_printable(e);
    for (auto& e : module.layout_episodes) make_printable(e);
    for (auto& samples : module.samples) name(samples.name);
  }
}

}  // namespace hindsight::rt
