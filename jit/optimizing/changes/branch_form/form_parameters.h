// The numbers that select, branch and speculate go by, each with where it comes from. docs/PARAMETERS.md is printed from
// kFormParameters. What a misprediction takes is the machine's (OptimizeRequest::mispredict_cycles).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/provenance.h"

namespace hindsight::jit::optimizing {

// ---------------------------------------------------------------- what pays: form_pass.h
inline constexpr double kDoubt = 3;
inline constexpr double kOperationsACycle = 4;

// ---------------------------------------------------------------- what is executed whole: hammock.h, if_conversion.h
inline constexpr unsigned kMostSelectOperations = 32;
inline constexpr size_t kMostBlocksOfAHammock = 16;
inline constexpr double kSeldomGone = 0.15;
inline constexpr size_t kMostBlocksAside = 32;
inline constexpr unsigned kMostCopiedAside = 8;
inline constexpr uint64_t kMostAccessBytes = 16;
inline constexpr unsigned kMostSunk = 8;
inline constexpr double kRarelyLeft = 0.001;

// ---------------------------------------------------------------- where a load goes next: chosen_ways.h
inline constexpr size_t kMostWalkedToAChoice = 400;

inline constexpr std::array kFormParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{
          "kDoubt",
          kDoubt,
          {kFactor, kSwept,
           "tries what is expected to lose by less than this: a core does much of it beside other work"}},
      Constant{"kOperationsACycle",
               kOperationsACycle,
               {kCount, kSwept, "takes a processor to do so many operations in a cycle"}},

      Constant{"kMostSelectOperations",
               kMostSelectOperations,
               {kCount, kBound, "executes so many operations for a choice, of all its ways"}},
      Constant{"kMostBlocksOfAHammock", kMostBlocksOfAHammock, {kCount, kBound, "and so many blocks"}},
      Constant{"kSeldomGone",
               kSeldomGone,
               {kShare, kSwept,
                "leaves a way out that is gone in at most so many of the branch's executions, by weights"}},
      Constant{"kMostBlocksAside",
               kMostBlocksAside,
               {kCount, kBound, "looks at so many blocks of a way that is left out"}},
      Constant{"kMostCopiedAside",
               kMostCopiedAside,
               {kCount, kBound, "copies so many operations that such a way shares with another"}},
      Constant{"kMostAccessBytes",
               kMostAccessBytes,
               {kBytes, kDerived, "converts no longer access: a program itself accesses a vector at most"}},
      Constant{
          "kMostSunk", kMostSunk, {kCount, kBound, "moves so many operations into one side of a branch"}},
      Constant{"kRarelyLeft",
               kRarelyLeft,
               {kShare, kBound, "tells the compiler that a loop is left by a choice so seldom"}},

      Constant{
          "kMostWalkedToAChoice",
          kMostWalkedToAChoice,
          {kCount, kBound, "looks at so many operations for the choice that says where a load goes next"}},
  };
}();

}  // namespace hindsight::jit::optimizing
