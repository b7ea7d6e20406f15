// What a reader of a measurement must know about the machine it was taken on.
#pragma once

#include "runtime/report/bench_results.h"

namespace hindsight::cli {

// `unit` is left empty: only a run knows which one it used.
report::Machine describe_machine();

}  // namespace hindsight::cli
