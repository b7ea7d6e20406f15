// The numbers that interleave goes by, each with where it comes from. docs/PARAMETERS.md is printed from
// kInterleaveParameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/provenance.h"

namespace hindsight::jit::optimizing {

// ---------------------------------------------------------------- which form: interleave_pass.h
inline constexpr double kStepsOfADryRun = 1.25;
inline constexpr double kMuchOfTheMost = 0.15;
inline constexpr double kSomeOfTheMost = 0.03;
inline constexpr double kTurnsOfAPrefetch = 2;
inline constexpr double kLeastWaitsOfIterations = 0.3;

// ---------------------------------------------------------------- searches at once: interleave_shape.h
inline constexpr size_t kMaxInterleavedInstructions = 400;
inline constexpr size_t kMaxInterleavedValues = 24;
inline constexpr uint32_t kShortestPlain = 32;
inline constexpr uint32_t kMostTurnsOfGroup = 1 << 24;
inline constexpr uint64_t kMostRoundsOfGroup = 1 << 22;
inline constexpr size_t kMostStartLoads = 4;
inline constexpr size_t kMostStartOperations = 24;
inline constexpr unsigned kMostSearchLanes = 16;
inline constexpr int kMostBlocksToATrap = 4;

// ---------------------------------------------------------------- dry runs: dry_run.h
inline constexpr size_t kMostCopiedInstructions = 2000;
inline constexpr uint32_t kShortestDryRun = 32;
inline constexpr uint32_t kMostTurnsOfADryRun = 4096;
inline constexpr uint32_t kMostRoundsOfADryRun = 128;
inline constexpr uint32_t kBytesBesideMemory = 64;
inline constexpr size_t kMostBuffers = 2;
inline constexpr uint64_t kFirstData = 1024;
inline constexpr uint64_t kMostPlacesOnward = 8;
inline constexpr int64_t kLongestStrideInOrder = 2048;
inline constexpr uint64_t kLongestStrideNear = 64;
inline constexpr unsigned kDeepestPart = 8;

// ---------------------------------------------------------------- iterations: iteration_run.h
inline constexpr size_t kMostKeptInstructions = 800;
inline constexpr size_t kMostWaits = 32;
inline constexpr size_t kMostCarriedValues = 32;
inline constexpr unsigned kDeepestPointer = 4;

inline constexpr std::array kInterleaveParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{
          "kStepsOfADryRun",
          kStepsOfADryRun,
          {kCount, kMeasured,
           "prefers a prefetch of the first step where a search has fewer. With one step (hj2) that gave "
           "+180 to +230 %, a dry run +46 to +55 %; with less than two (npo_join) +40 to +62 % and +99 to "
           "+160 %"}},
      Constant{"kMuchOfTheMost",
               kMuchOfTheMost,
               {kShare, kSwept,
                "lets iterations give way at a load with this share of what the loop's first load stalls, "
                "wherever "
                "it lies"}},
      Constant{"kSomeOfTheMost",
               kSomeOfTheMost,
               {kShare, kMeasured,
                "lets iterations give way also at a load with this share that comes before such a one. Of "
                "three buckets that lead to each "
                "other the first had 8 to 16 %: +51 to +70 % where iterations did not give way there, +138 "
                "to +177 % where they did"}},
      Constant{"kTurnsOfAPrefetch",
               kTurnsOfAPrefetch,
               {kCount, kDerived,
                "takes a prefetch to be of no use in a loop of fewer iterations: there is no later one to "
                "prefetch "
                "for"}},
      Constant{"kLeastWaitsOfIterations",
               kLeastWaitsOfIterations,
               {kShare, kSwept,
                "runs no iterations ahead whose loads hold less of the function's time, as they are executed "
                "up to "
                "three times for it"}},

      Constant{
          "kMaxInterleavedInstructions",
          kMaxInterleavedInstructions,
          {kCount, kBound, "copies no longer loop: so much work between two loads hides what they wait for"}},
      Constant{
          "kMaxInterleavedValues",
          kMaxInterleavedValues,
          {kCount, kBound,
           "lets a search carry so many values, each an array in the frame, which should stay in the nearest "
           "cache"}},
      Constant{"kShortestPlain",
               kShortestPlain,
               {kCount, kBound,
                "makes no shorter strip of the plain loop, so that ending it costs nothing next to as many "
                "searches"}},
      Constant{"kMostTurnsOfGroup",
               kMostTurnsOfGroup,
               {kCount, kBound,
                "bounds loops within heads and steps of a group together: a few seconds, if each waits for "
                "memory"}},
      Constant{
          "kMostRoundsOfGroup",
          kMostRoundsOfGroup,
          {kCount, kBound,
           "leaves a longer search to the plain loop, at the cost of the rounds of a group that is dropped"}},
      Constant{"kMostStartLoads",
               kMostStartLoads,
               {kCount, kBound, "fetches so many loads of a head ahead, and of a step"}},
      Constant{"kMostStartOperations", kMostStartOperations, {kCount, kBound, "by so many operations each"}},
      Constant{"kMostSearchLanes",
               kMostSearchLanes,
               {kCount, kDerived,
                "makes so many searches lanes of vectors, of 32 bits each: two vectors at once hide what one "
                "waits "
                "for"}},
      Constant{"kMostBlocksToATrap",
               kMostBlocksToATrap,
               {kCount, kBound, "looks through so many blocks that LLVM put before a trap"}},

      Constant{"kMostCopiedInstructions",
               kMostCopiedInstructions,
               {kCount, kBound, "looks into no longer loop for what can be left out of a dry run"}},
      Constant{"kShortestDryRun",
               kShortestDryRun,
               {kCount, kBound,
                "runs so many iterations without a dry run, so that looking at the cell costs nothing next "
                "to them"}},
      Constant{"kMostTurnsOfADryRun",
               kMostTurnsOfADryRun,
               {kCount, kBound, "bounds loops within heads and searches of a group together"}},
      Constant{
          "kMostRoundsOfADryRun",
          kMostRoundsOfADryRun,
          {kCount, kBound,
           "leaves longer searches and iterations to the loop: what they need first would be gone from the "
           "cache"}},
      Constant{"kBytesBesideMemory",
               kBytesBesideMemory,
               {kBytes, kBound, "runs so many bytes ahead beside memory: a word that is spelled, or a key"}},
      Constant{"kMostBuffers",
               kMostBuffers,
               {kCount, kBound, "of so many places, each of which costs a frame 4 KiB"}},
      Constant{
          "kFirstData",
          kFirstData,
          {kBytes, kDerived,
           "takes a smaller number for that of a member in a record: linkers place the first data there"}},
      Constant{"kMostPlacesOnward",
               kMostPlacesOnward,
               {kCount, kBound, "takes an index to go on in order that goes on by so many places"}},
      Constant{
          "kLongestStrideInOrder",
          kLongestStrideInOrder,
          {kBytes, kBound,
           "takes an address to go through memory in order by such steps, which the hardware prefetches"}},
      Constant{"kLongestStrideNear",
               kLongestStrideNear,
               {kBytes, kDerived, "takes what a search goes through by such steps to be near: a line"}},
      Constant{"kDeepestPart",
               kDeepestPart,
               {kCount, kBound, "looks so deep into an address for the part of it that stays"}},

      Constant{"kMostKeptInstructions",
               kMostKeptInstructions,
               {kCount, kBound, "runs no iterations ahead of which the loop's two copies keep more"}},
      Constant{"kMostWaits", kMostWaits, {kCount, kBound, "nor such as wait in more places"}},
      Constant{"kMostCarriedValues",
               kMostCarriedValues,
               {kCount, kBound, "nor such as carry more values across a wait, each an array in the frame"}},
      Constant{"kDeepestPointer",
               kDeepestPointer,
               {kCount, kBound,
                "looks through so many places where ways meet for the pointer that is waited for"}},
  };
}();

}  // namespace hindsight::jit::optimizing
