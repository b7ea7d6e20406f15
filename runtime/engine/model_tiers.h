// ModelTiers: the tier manager of `unit = "model"`. All code is instrumented baseline code, and every thread
// has a model unit. Nothing is decided and nothing is compiled twice, so the same program gives the same
// records again.
#pragma once

#include <memory>
#include <vector>

#include "feedback/lwp/model/core_model.h"
#include "feedback/monitor/monitor.h"
#include "runtime/code/record_feed.h"
#include "runtime/code/tiers.h"

namespace hindsight::rt {

// Checks the configuration's words for the model. Errors: kUsage.
Status check_model(const EngineConfig& config);

// `feed` and `services` outlive the manager; code must be compiled with a trace (CompileOptions::trace).
// Errors: kResource.
Result<std::unique_ptr<TierManager>> make_model_tiers(const EngineConfig& config, CodeServices& services,
                                                      RecordFeed& feed);

}  // namespace hindsight::rt
