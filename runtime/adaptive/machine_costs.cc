#include "runtime/adaptive/machine_costs.h"

#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

// Between these are all processors since the first that had pipelines of such length. A measurement on a busy core may
// say anything from 0 on.
constexpr double kLeastCyclesMispredicted = 8, kMostCyclesMispredicted = 40;

}  // namespace

void set_costs(feedback::PolicyConfig& policy, const MachineFacts& machine) {
  if (machine.tlb_reach) policy.tlb_reach_bytes = static_cast<double>(*machine.tlb_reach);
  if (machine.calibration == nullptr) return;
  const lwp::Calibration& known = *machine.calibration;
  policy.seconds_a_cycle = 1e-9 / known.core_ghz;
  const double cycles = known.mispredict_cycles();
  if (cycles >= kLeastCyclesMispredicted && cycles <= kMostCyclesMispredicted)
    policy.cycles_mispredicted = cycles;
}

double miss_seconds(const lwp::Calibration* calibration) {
  return calibration != nullptr && calibration->memory.measured() ? 1e-9 * calibration->memory.latency_ns
                                                                  : kMissSeconds;
}

}  // namespace hindsight::rt
