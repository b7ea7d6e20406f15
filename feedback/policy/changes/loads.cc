#include "feedback/policy/changes/loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hindsight::feedback {
namespace {

// All its known addresses lie within what a near cache holds.
bool is_cached(const LoadEvidence& load, const PolicyConfig& config) {
  return static_cast<double>(load.addresses) >= config.min_addresses_for_span &&
         static_cast<double>(load.address_span_bytes) < config.min_span_bytes;
}

// What lost may win by now: the load stalls far more than when it did, or goes through far more memory, as while a table is
// filled. The more often that was an error, the longer it takes until the next.
bool is_reopened(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  constexpr uint32_t kMostDoublings = 8;
  constexpr double kSoonerIfGrown = 4;
  const uint32_t rejections = rejections_of(e.changes, load.load);
  if (!config.follow_shifts || rejections == 0) return false;
  const double seconds = config.seconds_to_reopen * std::exp2(2.0 * std::min(rejections - 1, kMostDoublings));
  const bool has_grown = load.span_when_rejected > 0 && !is_cached(load, config) &&
                         static_cast<double>(load.address_span_bytes) >=
                             config.min_reopen_growth * static_cast<double>(load.span_when_rejected);
  if (has_grown) return kSoonerIfGrown * load.seconds_since_rejected >= seconds;
  return load.seconds_since_rejected >= seconds &&
         recent_share(load, e, config) >= load.share_when_rejected + config.min_reopen_share;
}

// Of a store. Samples stand after some store of any loop that fills memory, so chance has to be ruled out.
bool stands_out(const LoadEvidence& store, const FunctionEvidence& e, const PolicyConfig& config) {
  const auto addresses = static_cast<double>(store.addresses);
  const auto rising = static_cast<double>(store.rising_addresses);
  return store.stall_samples >= config.min_store_share * function_samples(e, config) &&
         addresses >= config.min_addresses_for_span && rising <= config.max_store_order * addresses &&
         rising >= (1 - config.max_store_order) * addresses;
}

bool is_worth_inlining(const CalleeEvidence& callee, const FunctionEvidence& e, const PolicyConfig& config) {
  // Where its own code is to show first what helps most of them, all are asked for together when that is known.
  constexpr double kMostUndecided = 0.5;  // of those that are known to be the callers' matter
  if (callee.stall_samples_undecided > kMostUndecided * callee.stall_samples) return false;
  return callee.stall_samples >= config.min_stall_samples &&
         callee.stall_samples >= config.min_callee_stall_share * e.total_samples;
}

double of_callees(double CalleeEvidence::*what, const FunctionEvidence& e, const PolicyConfig& config) {
  double sum = 0;
  for (const CalleeEvidence& callee : e.callees)
    if (is_worth_inlining(callee, e, config)) sum += callee.*what;
  return sum;
}

}  // namespace

const CalleeEvidence* callee_of(const LoadEvidence& load, const FunctionEvidence& e) {
  const auto found = std::find_if(e.callees.begin(), e.callees.end(), [&](const CalleeEvidence& callee) {
    return load.callee == callee.function;
  });
  return found == e.callees.end() ? nullptr : &*found;
}

double callee_samples(const FunctionEvidence& e, const PolicyConfig& config) {
  return of_callees(&CalleeEvidence::samples, e, config);
}

double callee_seconds(const FunctionEvidence& e, const PolicyConfig& config) {
  return of_callees(&CalleeEvidence::seconds, e, config);
}

double function_samples(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.samples_baseline + e.samples_optimized + callee_samples(e, config);
}

bool is_hopeless(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  if (load.callee) {
    const CalleeEvidence* const callee = callee_of(load, e);
    if (!callee || !is_worth_inlining(*callee, e, config)) return true;
  }
  return (!load.in_loop && !load.in_recursion) || is_cached(load, config) ||
         (load.is_store && !stands_out(load, e, config));
}

double recent_share(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  return !config.follow_shifts || e.samples_recent < config.min_samples_recent
             ? 0
             : load.stall_samples_recent / e.samples_recent;
}

bool is_open(jit::ChangeKind kind, const LoadEvidence& load, const FunctionEvidence& e,
             const PolicyConfig& config) {
  const ChangeState state = e.changes.state({kind, load.load});
  return state == ChangeState::kNone || (state == ChangeState::kRolledBack && is_reopened(load, e, config));
}

bool is_untried(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  return is_open(jit::ChangeKind::kPrefetch, load, e, config) &&
         !has_load_change(e.changes, load.load, [](jit::ChangeKind kind, ChangeState state) {
           return kind != jit::ChangeKind::kPrefetch && in_use(state);
         });
}

bool is_worth_another_look(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  return is_untried(load, e, config) ||
         (e.changes.state({jit::ChangeKind::kInterleave, load.load}) == ChangeState::kRolledBack &&
          is_open(jit::ChangeKind::kInterleave, load, e, config));
}

Stalls::Stalls(const FunctionEvidence& e, const PolicyConfig& config)
    : e_(e), config_(config), samples_(function_samples(e, config)) {
  double all = 0, top = 0;
  for (const LoadEvidence& load : e.loads) {
    if (is_hopeless(load, e, config)) continue;
    all += load.stall_samples;
    top = std::max(top, load.stall_samples);
  }
  stand_out_ = samples_ > 0 && all >= config.min_total_stall_share * samples_ &&
               top >= config.min_top_stall_share * samples_;
}

bool Stalls::are_worth_a_change(const LoadEvidence& load) const {
  const double share = share_of(load);
  const bool blind = load.addresses == 0 && share < config_.min_blind_share;
  return stand_out_ && !blind && !is_hopeless(load, e_, config_) &&
         load.stall_samples >= config_.min_stall_samples && share >= config_.min_stall_share;
}

bool Stalls::are_worth_a_search(const LoadEvidence& load) const {
  return load.in_loop && !load.is_store && !load.callee && is_cached(load, config_) &&
         load.stall_samples >= config_.min_stall_samples && share_of(load) >= config_.min_search_share;
}

bool Stalls::may_be_far(const LoadEvidence& load) const {
  constexpr double kLeastShare = 0.01;
  return stand_out_ && load.addresses > 0 && !load.is_store && !is_hopeless(load, e_, config_) &&
         share_of(load) >= kLeastShare;
}

bool Stalls::are_worth_remembering(const LoadEvidence& load) const {
  return are_worth_a_change(load) && share_of(load) >= config_.min_remember_share;
}

std::string Stalls::words_of(const LoadEvidence& load) const {
  std::string words =
      fmt::format("{:.0f} of {:.0f} samples ({:.0f} %) stall on the {} at 0x{:x}", load.stall_samples,
                  samples_, 100 * share_of(load), load.is_store ? "store" : "load", load.load.value);
  if (load.addresses > 0) {
    words += fmt::format(", {} addresses known, over {:.1f} MiB on {}{} pages", load.addresses,
                         static_cast<double>(load.address_span_bytes) / (1 << 20), load.distinct_pages,
                         load.distinct_pages >= kMaxPagesSeen ? "+" : "");
  }
  if (const CalleeEvidence* const callee = callee_of(load, e_))
    words += fmt::format(", in {}, which is inlined for that", callee->name);
  return words;
}

Candidate Stalls::candidate(jit::ChangeKind kind, const LoadEvidence& load) const {
  const double share = share_of(load);
  return {.request = {.site = {kind, load.load}, .weight = share, .setting = jit::traits_of(kind).knob.first},
          .estimate = {.share = share},
          .reason = words_of(load)};
}

std::optional<Wait> wait_for_stalls(const FunctionEvidence& e, const PolicyConfig& config) {
  const double samples = function_samples(e, config);
  double top_share = 0;
  for (const LoadEvidence& load : e.loads)
    if (samples > 0 && !is_hopeless(load, e, config))
      top_share = std::max(top_share, load.stall_samples / samples);
  if (top_share < config.stall_share_to_wait || samples >= config.min_samples_with_stalls ||
      e.seconds_baseline >= config.max_seconds_to_wait)
    return std::nullopt;
  return Wait{.reason = fmt::format(
                  "hot, and {:.0f} % of {:.0f} samples stall on one load: waits for {:.0f} samples to tell "
                  "which loads stall",
                  100 * top_share, samples, config.min_samples_with_stalls),
              .for_stalls = true};
}

void LoadPolicy::propose(const FunctionEvidence& e, const PolicyConfig& config,
                         std::vector<Candidate>& out) const {
  const Stalls stalls(e, config);
  if (!config.changes[kind_] || !stalls.known()) return;
  size_t proposed = 0;
  const auto propose_each = [&](const auto& is_asked_for) {
    for (const LoadEvidence& load : e.loads) {
      if (proposed >= config.max_prefetches) break;
      // A store is waited for by nobody who could search or follow pointers.
      if (load.is_store && kind_ != jit::ChangeKind::kPrefetch) continue;
      if (!is_asked_for(load)) continue;
      Candidate candidate = stalls.candidate(kind_, load);
      candidate.estimate.share *= share_saved();
      out.push_back(std::move(candidate));
      ++proposed;
    }
  };
  propose_each([&](const LoadEvidence& load) {
    if (in_use(e.changes.state({kind_, load.load}))) return true;
    // In a recursion alone nothing is searched, and no way is remembered.
    return (load.in_loop || kind_ == jit::ChangeKind::kPrefetch) && is_worth_trying(load, stalls, e, config);
  });
  if (proposed > 0) propose_each([&](const LoadEvidence& load) { return joins(load, stalls, e); });
}

std::optional<Wait> LoadPolicy::wants_more(const FunctionEvidence& e, const PolicyConfig& config) const {
  return config.changes[kind_] ? wait_for_stalls(e, config) : std::nullopt;
}

}  // namespace hindsight::feedback
