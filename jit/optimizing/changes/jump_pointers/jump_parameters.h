// The numbers that jump pointers go by, each with where it comes from. docs/PARAMETERS.md is printed from kJumpParameters;
// how long loops learn their way, the trials' numbers say (runtime/adaptive/trial_parameters.h).
#pragma once

#include <array>
#include <cstddef>

#include "base/provenance.h"

namespace hindsight::jit::optimizing {

inline constexpr size_t kMostLinesOfATurn = 4;
inline constexpr size_t kMostToTheAddress = 24;
inline constexpr size_t kMostFollowed = 128;

inline constexpr std::array kJumpParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{
          "kMostLinesOfATurn", kMostLinesOfATurn, {kCount, kBound, "prefetches so many lines of a node"}},
      Constant{"kMostToTheAddress",
               kMostToTheAddress,
               {kCount, kBound, "goes through so many operations from what is carried to the address"}},
      Constant{"kMostFollowed",
               kMostFollowed,
               {kCount, kBound, "looks at so many instructions on the way to the next turn"}},
  };
}();

}  // namespace hindsight::jit::optimizing
