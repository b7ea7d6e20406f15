#include "runtime/adaptive/late_report.h"

namespace hindsight::rt {
namespace {

// A loop with those in it is one place while its compile takes about so long: what a program should wait for at most.
constexpr double kMostPlaceSeconds = 0.030;

}  // namespace

feedback::HotRule hot_rule(const feedback::PolicyConfig& policy) {
  if (!policy.optimize) return {};
  const feedback::PolicyConfig usual;
  return {.factor = usual.background_cost / (1 - 1 / usual.optimized_speedup),
          .fixed_seconds = usual.compile_fixed_seconds,
          .seconds_per_byte = usual.compile_seconds_per_byte,
          .seconds_per_loop = 0,
          .most_seconds = kMostPlaceSeconds};
}

void report_late(const feedback::LateSummary& late, FeedbackReport& report) {
  using enum feedback::PlaceState;
  report.late_seconds = late.seconds;
  report.late_places = late.places;
  for (const feedback::LatePlace& place : late.worst) {
    const auto in = [&](feedback::PlaceState state) { return place.seconds[static_cast<size_t>(state)]; };
    report.late.push_back({.function = place.function,
                           .wasm_offset = place.offset.value,
                           .in_loop = place.in_loop,
                           .seconds = place.sum(),
                           .waiting = in(kWaiting),
                           .queued = in(kQueued),
                           .compiling = in(kCompiling),
                           .entering = in(kPublished),
                           .refused = in(kRefused),
                           .observed = in(kObserved),
                           .why = place.why});
  }
}

}  // namespace hindsight::rt
