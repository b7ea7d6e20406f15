// Parameters: what steers the policy. Which decisions there are, and the numbers that they go by.
//
// kDecisions has what can be switched off: changes of code, as jit/change.h lists them, and the rest. parameters() is the one
// table of numbers: it loads, saves and bounds them, and docs/PARAMETERS.md is printed from it. A number that is changed here
// is changed everywhere.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/provenance.h"
#include "feedback/profile/evidence.h"
#include "jit/change.h"

namespace hindsight::feedback {

// Which changes of code may be asked for: all, until one is switched off.
class ChangeSwitches {
 public:
  constexpr bool operator[](jit::ChangeKind kind) const { return !off_[static_cast<size_t>(kind)]; }
  constexpr void set(jit::ChangeKind kind, bool on) { off_[static_cast<size_t>(kind)] = !on; }
  friend bool operator==(const ChangeSwitches&, const ChangeSwitches&) = default;

 private:
  std::array<bool, jit::kChangeKinds> off_ = {};
};

// What each number means and where it comes from, parameters() says.
struct PolicyConfig {
  bool optimize = true;
  ChangeSwitches changes = {};
  bool huge_pages = true;
  bool populate = true;
  bool follow_shifts = true;

  // For the first compile.
  double min_samples = 6;
  double min_flat_samples = 2;
  double min_flat_return = 2;
  double optimized_speedup = 2.0;
  double compile_fixed_seconds = 0.012;
  double compile_seconds_per_byte = 41e-6;
  double background_cost = 1.0 / 32;
  // For loop nests.
  double compile_seconds_per_loop = 0.003;
  double most_nest_seconds = 0.030;
  double min_parent_share = 0.05;
  double whole_over_nest = 2;
  double small_function_seconds = 0.040;
  uint32_t max_fruitless = 2;
  uint32_t max_nest_compiles = 8;
  double max_nest_seconds = 0.5;
  double max_nest_share = 0.10;
  // For later ones.
  double min_reoptimize_samples = 60;
  double min_reoptimize_share = 0.20;
  double max_seconds_for_trials = 0.5;
  uint32_t max_compiles = 4;
  double seconds_per_compile = 8;
  uint32_t max_later_compiles = 60;
  // For compiles that are made for trials.
  double min_taken_by_compiles = 0.1;
  double trials_assumed = 2;
  // For entries into loops that run.
  uint32_t max_osr_loops = 1;
  double max_seconds_to_wait_for_entry = 0.004;
  double max_all_seconds_to_wait_for_entry = 0.010;
  double min_seconds_watched = 0.0007;
  double min_samples_left_behind = 12;
  // For loads.
  double min_samples_with_stalls = 24;
  double stall_share_to_wait = 0.10;
  double max_seconds_to_wait = 0.06;
  double min_stall_share = 0.03;
  double min_stall_samples = 3;
  double min_total_stall_share = 0.20;
  double min_top_stall_share = 0.12;
  double min_blind_share = 0.15;
  double min_search_share = 0.15;
  double min_remember_share = 0.15;
  double min_callee_stall_share = 0.03;
  double min_store_share = 0.30;
  double max_store_order = 0.75;
  double min_span_bytes = 512 * 1024;
  double min_addresses_for_span = 8;
  uint32_t max_prefetches = 8;
  // For calls.
  double min_call_records = 8;
  double min_call_share = 0.03;
  double min_call_coverage = 0.50;
  uint32_t max_call_targets = 4;
  double calls_per_record = kValueInterval;
  double seconds_per_unforeseen_call = 4e-9;
  double min_unforeseen_share = 0.04;
  double min_seconds_published = 0.05;
  // For branches and selects.
  double min_branch_seen = 64;
  double min_branch_seen_one_sided = 12;
  double min_branch_judged = 128;
  double min_select_rate = 0.04;
  double max_branch_rate = 0.05;
  double min_branch_minority = 0.01;
  double min_minority_to_wait = 0.10;
  double min_branch_records = 6;
  double max_seconds_to_wait_for_outcomes = 0.03;
  double min_select_seen_to_wait = 8;
  double max_seconds_to_wait_for_selects = 0.012;
  uint32_t max_conversions = 16;
  double cycles_mispredicted = jit::kMispredictCycles;
  double seconds_a_cycle = 1 / 3.6e9;
  // For usual values.
  double min_value_records = 8;
  double min_value_records_to_wait = 2;
  double max_seconds_to_wait_for_values = 0.012;
  double min_value_share = 0.8;
  double min_value_gain = 0.02;
  double seconds_divided = 1.5e-9;
  double seconds_divided_wide = 2e-9;
  double seconds_asked_to_copy = 4e-9;
  double seconds_looped = 2e-9;
  uint32_t max_usual_values = 16;
  // For programs that change.
  double min_samples_recent = 40;
  double min_reopen_share = 0.15;
  double seconds_to_reopen = 0.5;
  double min_reopen_growth = 4;
  double min_moved_share = 0.25;
  double min_seconds_steady = 0.8;
  double seconds_observed = 0.03;
  // For pages.h.
  double min_page_addresses = 24;
  double min_page_spread = 0.6;
  double tlb_reach_bytes = 12.0 * (1 << 20);
  double max_page_gap_bytes = 32.0 * (1 << 20);
  double walk_share_of_stalls = 0.3;
  double min_page_return = 2;
  double least_move_seconds_per_byte = 3e-10;
  double most_move_seconds_per_byte = 4e-9;
  double page_probe_bytes = 8.0 * (1 << 20);
  double max_page_idle_seconds = 0.5;
  double min_page_trial_samples = 60;
  double page_trial_errors = 1.64;
  double page_trial_share = 0.125;
  double min_page_hold_seconds = 0.7;
  double most_page_hold_seconds = 3;
  double max_page_trial_error = 0.5;
  double min_page_gain = 0.01;
  uint32_t most_unjudged_runs = 3;
  // For populate.h.
  double min_growth_watched_bytes = 128.0 * (1 << 10);
  double min_growth_touched_share = 0.75;
  double max_growth_step_bytes = 2.0 * (1 << 20);
  double growth_watch_every = 16;
  uint32_t min_growth_pairs = 12;
  double max_growth_slowdown = 1.15;
  double first_window_bytes = 4.0 * (1 << 20);
  double max_window_bytes = 64.0 * (1 << 20);
  double max_window_share = 0.25;
  // For page_fill.h.
  double min_full_blocks = 4;
  double min_full_share = 0.5;
  double min_untouched_share = 0.05;
  double max_available_share = 0.25;
  double max_fill_slowdown = 1.4;
  // For layout.h.
  double min_layout_samples = 100;
  double hot_code_share = 0.95;
  double itlb_reach_bytes = 64 * 4096.0;
  double layout_share = 0.08;
  double layout_seconds_per_byte = 8e-9;
  double layout_seconds_per_function = 10e-6;
  double min_layout_settled = 0.5;
  double min_layout_share = 0.75;
  double min_layout_news = 0.25;
  uint32_t max_layouts = 4;
  // For versions.h.
  double min_version_seconds = 0.25;
  double min_version_share = 0.10;
  double version_gain = 0.05;
  double seconds_of_version_trial = 0.1;
  double max_version_trial_share = 0.02;
  friend bool operator==(const PolicyConfig&, const PolicyConfig&) = default;
};

// A decision that can be switched off, by the name that it has everywhere.
struct Decision {
  std::string_view name;
  std::variant<bool PolicyConfig::*, jit::ChangeKind> what;

  constexpr bool is_on(const PolicyConfig& config) const {
    const auto* const change = std::get_if<jit::ChangeKind>(&what);
    return change != nullptr ? config.changes[*change] : config.**std::get_if<bool PolicyConfig::*>(&what);
  }
  constexpr void set(PolicyConfig& config, bool on) const {
    if (const auto* const change = std::get_if<jit::ChangeKind>(&what))
      config.changes.set(*change, on);
    else
      config.**std::get_if<bool PolicyConfig::*>(&what) = on;
  }
};
inline constexpr Decision kOptimize{"optimize", &PolicyConfig::optimize};
// All of them: the changes of jit/change.h by their names there, and what is no change of code.
inline constexpr auto kDecisions = [] {
  std::array<Decision, jit::kChangeKinds + 4> all{};
  auto next = all.begin();
  *next++ = kOptimize;
  for (const jit::ChangeTraits& change : jit::kChanges) *next++ = {change.name, change.kind};
  *next++ = {"huge-pages", &PolicyConfig::huge_pages};
  *next++ = {"populate", &PolicyConfig::populate};
  *next++ = {"follow-shifts", &PolicyConfig::follow_shifts};
  return all;
}();

struct Parameter {
  std::string_view about;  // what it decides about: rows of one kind stand together
  std::string_view name;
  std::variant<double PolicyConfig::*, uint32_t PolicyConfig::*> member;
  Provenance from;

  double of(const PolicyConfig& config) const;
  // To the nearest number that the unit allows.
  void set(PolicyConfig& config, double number) const;
};
std::span<const Parameter> parameters();

// What estimates are made with that are the same everywhere.
inline constexpr double kSecondsChosen = 1e-9;
inline constexpr double kSecondsAFault = 0.5e-6;
inline constexpr std::array kEstimates = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{
          "kSecondsChosen", kSecondsChosen, {kSeconds, kBound, "charges waiting for a select: some cycles"}},
      Constant{"kSecondsAFault",
               kSecondsAFault,
               {kSeconds, kMeasured,
                "charges a fault of 4 KiB beside making it zeros: 512 took 0.75 ms, of which zeros are 0.4"}},
  };
}();

// Decisions (1: on) and parameters by name, as saved with a profile.
std::map<std::string, double> to_parameters(const PolicyConfig& config);
// The reverse, of any text: unknown names are ignored, numbers bounded, missing ones keep their default. A decision that
// other names stand there without did not exist when they were written: it is off.
PolicyConfig from_parameters(const std::map<std::string, double>& parameters);

}  // namespace hindsight::feedback
