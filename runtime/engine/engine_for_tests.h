// An engine with test knobs. Not installed; libhindsight.so exports it for the tests and the fuzzer, which may change
// with any build.
#pragma once

#include <memory>

#include "runtime/code/test_knobs.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {

// As Engine::create. Errors: also kUsage, for knobs that do not go together or not with the configuration.
HINDSIGHT_API Result<std::shared_ptr<Engine>> create_engine_for_tests(EngineConfig config,
                                                                      const TestKnobs& knobs);

}  // namespace hindsight
