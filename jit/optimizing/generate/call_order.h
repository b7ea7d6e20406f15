// Optimizer::order_by_calls, by LLVM's code layout.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/optimizing/optimizer.h"

namespace hindsight::jit::optimizing {

// A permutation of the functions' numbers, whatever the graph says. Calls of a function by itself, and of
// functions that are not in the graph, count for nothing.
std::vector<uint32_t> order_by_calls(const CallGraph& graph);

}  // namespace hindsight::jit::optimizing
