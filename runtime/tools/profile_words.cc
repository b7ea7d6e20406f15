#include "runtime/tools/profile_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.h"

namespace hindsight::rt {

using namespace feedback;

std::string share_text(double part, double whole) {
  if (whole <= 0) return fmt::format("{:.0f} of 0", part);
  return fmt::format("{:.0f} of {:.0f} ({:.0f} %)", part, whole, 100 * part / whole);
}

namespace {

// That stalls are a share of. Those of a loop's baseline code do not count any more once it has code; what stalled in them is known yet.
double samples_known(const FunctionEvidence& e) {
  double samples = e.samples_baseline + e.samples_optimized;
  for (const LoopEvidence& loop : e.loops) samples = std::max(samples, loop.samples);
  return samples;
}

}  // namespace

std::string load_text(const LoadEvidence& l, const FunctionEvidence& e) {
  std::string text = fmt::format("{} at 0x{:x}: {} samples stall on it", l.is_store ? "store" : "load",
                                 l.load.value, share_text(l.stall_samples, samples_known(e)));
  if (l.stall_samples_optimized > 0)
    text += fmt::format(", {:.0f} in optimized code", l.stall_samples_optimized);
  if (l.addresses > 0) {
    text += fmt::format("; {} addresses known, over {:.1f} MiB on {}{} pages", l.addresses,
                        static_cast<double>(l.address_span_bytes) / (1 << 20), l.distinct_pages,
                        l.distinct_pages >= kMaxPagesSeen ? "+" : "");
  } else {
    text += "; no address known";
  }
  if (!l.in_loop) text += "; in no loop";
  for (const auto& [site, outcome] : e.changes)
    if (site.at == l.load && jit::is_of_load(site.kind) && outcome.state != ChangeState::kNone)
      text += fmt::format("; {} {}", to_string(site.kind), to_string(outcome.state));
  if (l.latency.timed != 0) {
    text += fmt::format(
        "; from {}: mean of {} timed loads {:.0f} ticks, {:.0f} % of them from memory (estimate)",
        to_string(l.latency.level), l.latency.timed, l.latency.mean_ticks, 100 * l.latency.memory_share);
  }
  return text;
}

std::string branch_text(const BranchEvidence& b, const ChangeLedger& changes) {
  std::string text = fmt::format("{} at 0x{:x}: {} {}", b.chooses ? "select" : "branch", b.branch.value,
                                 b.chooses ? "its first operand" : "taken",
                                 share_text(static_cast<double>(b.taken + b.sampled_taken),
                                            static_cast<double>(b.outcomes + b.sampled)));
  if (b.judged != 0) {
    text += fmt::format(", mispredicted {} judged (estimate)",
                        share_text(static_cast<double>(b.mispredicted), static_cast<double>(b.judged)));
  }
  for (const auto& [site, outcome] : changes)
    if (site.at == b.branch && jit::is_of_branch(site.kind) && outcome.state != ChangeState::kNone)
      text += fmt::format("; as a {} {}", to_string(site.kind), to_string(outcome.state));
  return text;
}

std::string call_text(const CallEvidence& c, const wasm::Module* module) {
  const auto name = [&](uint32_t element) {
    std::string words = fmt::format("{} {}", c.by_reference ? "function" : "element", element);
    if (module == nullptr) return words;
    std::optional<FuncIndex> function;
    if (!c.by_reference)
      function = module->initial_element(0, element);
    else if (element < module->function_count())
      function = FuncIndex(element);
    return function ? printable_name(module->function_name(*function)) : words;
  };
  std::string text = fmt::format("call at 0x{:x}: {} records", c.call.value, c.records);
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(kShown, c.targets.size()); ++i) {
    text +=
        fmt::format("{}{} {}", i == 0 ? ", to " : ", ", name(c.targets[i].element),
                    share_text(static_cast<double>(c.targets[i].records), static_cast<double>(c.records)));
  }
  if (c.targets.size() > kShown) text += fmt::format(", and {} more", c.targets.size() - kShown);
  if (c.unforeseen_records != 0) {
    text +=
        fmt::format("; since the compile, {} records to targets that are not inlined", c.unforeseen_records);
    for (size_t i = 0; i < std::min(kShown, c.unforeseen.size()); ++i)
      text += fmt::format("{}{} {}", i == 0 ? ", to " : ", ", name(c.unforeseen[i].element),
                          c.unforeseen[i].records);
  }
  return text;
}

std::string loops_text(const FunctionEvidence& e, const std::vector<LoopIndex>& loops) {
  std::string text;
  for (const LoopIndex loop : loops) {
    text += text.empty() ? "" : ", ";
    text += loop.value < e.loops.size() ? fmt::format("0x{:x}", e.loops[loop.value].offset.value)
                                        : fmt::format("#{}", loop.value);
  }
  return text;
}

std::string value_text(const ValueEvidence& v, const ChangeLedger& changes) {
  std::string text = fmt::format("{} at 0x{:x}: {} records", to_string(v.site), v.at.value, v.records);
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(kShown, v.values.size()); ++i)
    text += fmt::format(", {} in {}", v.values[i].value,
                        share_text(static_cast<double>(v.values[i].records), static_cast<double>(v.records)));
  if (v.values.size() > kShown) text += fmt::format(", and {} more", v.values.size() - kShown);
  const ChangeState state = changes.state({jit::ChangeKind::kValue, v.at});
  if (state != ChangeState::kNone) text += fmt::format("; specialized for the first: {}", to_string(state));
  return text;
}

std::string evidence_text(const FunctionEvidence& e, const wasm::Module* module, const std::string& indent,
                          size_t most) {
  std::string text;
  if (!e.entry_loops.empty())
    text += fmt::format("{}OSR entries of its optimized code: {}\n", indent, loops_text(e, e.entry_loops));
  if (!e.exit_loops.empty())
    text += fmt::format("{}OSR exits of its optimized code: {}\n", indent, loops_text(e, e.exit_loops));
  if (e.samples_stayed > 0)
    text += fmt::format("{}{:.0f} samples ({:.1f} ms) in stale optimized code, where a loop stayed\n", indent,
                        e.samples_stayed, 1e3 * e.seconds_stayed);
  for (const auto& [site, outcome] : e.changes)
    if (jit::is_of_version(site.kind) && outcome.state != ChangeState::kNone)
      text += fmt::format("{}{} as a whole: {}\n", indent, to_string(site.kind), to_string(outcome.state));
  size_t shown = 0, left_out = 0;
  const auto line = [&](const std::string& words) {
    if (shown++ < most)
      text += indent + words + "\n";
    else
      ++left_out;
  };
  for (const LoadEvidence& l : e.loads)
    if (l.stall_samples > 0 || l.latency.timed > 0) line(load_text(l, e));
  shown = 0;
  for (const BranchEvidence& b : e.branches) line(branch_text(b, e.changes));
  shown = 0;
  for (const CallEvidence& c : e.calls) line(call_text(c, module));
  shown = 0;
  for (const ValueEvidence& v : e.values) line(value_text(v, e.changes));
  if (left_out > 0)
    text += fmt::format("{}and {} more loads, branches, calls and operands, not shown\n", indent, left_out);
  return text;
}

namespace {

std::string tuned_text(jit::Site site, const Outcome& outcome) {
  if (!jit::is_tuned(site.kind)) return {};
  return fmt::format(" at {} {}", jit::traits_of(site.kind).knob.name, outcome.setting);
}

}  // namespace

std::string outcome_text(jit::Site site, const Outcome& outcome) {
  std::string text = to_string(outcome.state);
  if (outcome.state == ChangeState::kKept || outcome.state == ChangeState::kRolledBack)
    text += fmt::format(", {:+.1f} %{}", 100 * outcome.gain, tuned_text(site, outcome));
  if (outcome.runs_ago > 0) text += fmt::format(", {} runs ago", outcome.runs_ago);
  if (!outcome.why.empty()) text += fmt::format(" ({})", outcome.why);
  return text;
}

std::string change_text(jit::Site site) {
  const jit::ChangeTraits& traits = jit::traits_of(site.kind);
  const std::string at = fmt::format("0x{:x}", site.at.value);
  if (!traits.one.empty()) return fmt::format(fmt::runtime(traits.one), fmt::arg("at", at));
  return jit::is_of_version(site.kind) ? std::string(traits.name) : fmt::format("{} at {}", traits.name, at);
}

std::string changes_text(jit::ChangeKind kind, const std::vector<WasmOffset>& sites) {
  const jit::ChangeTraits& traits = jit::traits_of(kind);
  const std::string_view words = traits.all;
  const bool of_places = words.empty() || words.find('{') != words.npos;
  const bool as_a_whole = std::find(sites.begin(), sites.end(), WasmOffset()) != sites.end();
  if (sites.empty() || (!of_places && !as_a_whole)) return {};
  std::string places;
  for (const WasmOffset at : sites) places += fmt::format("{}0x{:x}", places.empty() ? "" : ", ", at.value);
  if (words.empty())
    return jit::is_of_version(kind) ? std::string(traits.name) : fmt::format("{} at {}", traits.name, places);
  return fmt::format(fmt::runtime(words), fmt::arg("places", places), fmt::arg("count", sites.size()));
}

std::string age_text(uint32_t runs_ago) {
  return runs_ago == 0 ? "in the last run" : fmt::format("{} run{} ago", runs_ago, runs_ago == 1 ? "" : "s");
}

std::string function_text(FuncIndex function, const std::string& name) {
  return fmt::format("func[{}] {}", function.value, name);
}

}  // namespace hindsight::rt
