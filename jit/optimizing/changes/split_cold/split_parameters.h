// The number that the split of cold code goes by, with where it comes from. docs/PARAMETERS.md is printed from
// kSplitParameters.
#pragma once

#include <array>
#include <cstdint>

#include "base/provenance.h"

namespace hindsight::jit::optimizing {

inline constexpr uint64_t kCallsOfCold = 10'000;

inline constexpr std::array kSplitParameters = {
    Constant{
        "kCallsOfCold",
        kCallsOfCold,
        {Unit::kExecutions, Provenance::Origin::kBound,
         "lays apart what runs less than once in so many calls of its function, by the weights of branches"}},
};

}  // namespace hindsight::jit::optimizing
