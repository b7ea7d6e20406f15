#include "feedback/profile/llvm_sample_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace hindsight::feedback {
namespace {

uint64_t whole_samples(double value) {
  return value > 0 ? static_cast<uint64_t>(std::min(std::round(value), 9e18)) : 0;
}

// The format ends a target's name at a space, a colon or a line's end, and begins a comment with '#'.
std::string plain(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == ':' || c == '#' || c == 0x7f) c = '_';
  return name.empty() ? "_" : name;
}

struct Line {
  uint64_t samples = 0;
  std::map<std::string, uint64_t> targets;
};

std::optional<FuncIndex> target_of(const CallEvidence& call, uint32_t element, const wasm::Module& module) {
  if (!call.by_reference) return module.initial_element(0, element);
  if (element < module.function_count()) return FuncIndex(element);
  return std::nullopt;
}

}  // namespace

std::string to_llvm_sample_profile(const ModuleProfile& profile, const wasm::Module* module) {
  std::string text;
  std::map<std::string, uint32_t> seen;  // functions of one name would be taken for one
  for (const FunctionSamples& function : profile.samples) {
    std::map<uint32_t, Line> lines;  // by offset from the function's begin
    uint64_t total = 0;
    for (const FunctionSamples::Place& place : function.places) {
      const uint64_t samples = whole_samples(place.samples);
      total += samples;
      if (samples == 0 || place.offset.value == ~uint32_t{0} || place.offset < function.begin) continue;
      lines[place.offset.value - function.begin.value].samples += samples;
    }
    for (const FunctionEvidence& evidence : profile.functions) {
      if (module == nullptr || evidence.function != function.function) continue;
      for (const CallEvidence& call : evidence.calls) {
        if (call.call < function.begin) continue;
        for (const CallEvidence::Target& target : call.targets) {
          if (const auto callee = target_of(call, target.element, *module); callee && target.records > 0)
            lines[call.call.value - function.begin.value].targets[plain(module->function_name(*callee))] +=
                target.records;
        }
      }
    }
    if (total == 0 && lines.empty()) continue;
    std::string name = plain(function.name);
    if (seen[name]++ > 0) name += fmt::format(".func{}", function.function.value);
    text += fmt::format("{}:{}:0\n", name, total);
    for (const auto& [offset, line] : lines) {
      // A call is counted by its targets' records; it stands for no fewer executions than these.
      uint64_t records = 0;
      for (const auto& [target, count] : line.targets) records += count;
      text += fmt::format(" {}", offset & 0xffff);
      if (offset >> 16) text += fmt::format(".{}", offset >> 16);
      text += fmt::format(": {}", std::max(line.samples, records));
      for (const auto& [target, count] : line.targets) text += fmt::format(" {}:{}", target, count);
      text += "\n";
    }
  }
  return text;
}

}  // namespace hindsight::feedback
