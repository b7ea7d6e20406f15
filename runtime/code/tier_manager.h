// The loop of TierMode::kAuto (runtime/adaptive). Baseline code first; LWP units on the guest threads; the monitor's
// profile; the policy's plans; background compiles, the most urgent first; trials; rollback; retirement.
//
//     guest thread     attaches its unit at its first entry; runs; ends strips (trials measure there)
//     monitor thread   drains, attributes, then has its round: reads trials, asks the policy, queues jobs, sets the sampling rate
//     compile threads  take the most urgent job, compile, publish (compile_threads.h)
//
// Nothing that the guest thread does waits for a compile.
#pragma once

#include <memory>

#include "runtime/code/record_feed.h"
#include "runtime/code/tiers.h"

namespace hindsight::rt {

// `feed` gets the records that the monitor drains; it outlives the manager. Errors: kUsage (unknown unit,
// unusable profile), kUnsupported (the unit is not available here), kResource.
Result<std::unique_ptr<TierManager>> make_tier_manager(const EngineConfig& config, CodeServices& services,
                                                       RecordFeed& feed);

}  // namespace hindsight::rt
