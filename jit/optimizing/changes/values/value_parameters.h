// The numbers that code for usual values goes by, each with where it comes from. docs/PARAMETERS.md is printed from
// kValueParameters; up to which numbers there is such code, jit/change.h says.
#pragma once

#include <array>
#include <cstdint>

#include "base/provenance.h"

namespace hindsight::jit::optimizing {

inline constexpr int32_t kShortestTripStrip = 512;
inline constexpr unsigned kDeepestTripCount = 8;
inline constexpr double kLeastTripsShareLeft = 0.01;
inline constexpr double kLeastValueShareLeft = 0.01;

inline constexpr std::array kValueParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{"kShortestTripStrip",
               kShortestTripStrip,
               {kCount, kBound,
                "makes no shorter strip of the loop around: it may become vectors, but each iteration has an "
                "inner "
                "loop"}},
      Constant{"kDeepestTripCount",
               kDeepestTripCount,
               {kCount, kBound, "follows so many operations from a trip count to what it is computed from"}},
      Constant{
          "kLeastTripsShareLeft",
          kLeastTripsShareLeft,
          {kShare, kBound,
           "leaves so much to other trip counts: a sample of the executions does not show that none comes"}},
      Constant{"kLeastValueShareLeft",
               kLeastValueShareLeft,
               {kShare, kBound, "leaves so much to other divisors and lengths, for the same reason"}},
  };
}();

}  // namespace hindsight::jit::optimizing
