// The numbers that prefetch goes by, each with where it comes from. docs/PARAMETERS.md is printed from kPrefetchParameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/provenance.h"
#include "jit/optimizing/changes/cache_line.h"

namespace hindsight::jit::optimizing {

// ---------------------------------------------------------------- slices: prefetch_slice.h
inline constexpr uint32_t kMaxSliceOperations = 96;
inline constexpr uint32_t kMaxSliceLoads = 6;
inline constexpr uint32_t kMaxForkConditions = 2;
inline constexpr uint64_t kLongStrideBytes = 1024;
inline constexpr uint32_t kMostGuesses = 64;
inline constexpr uint32_t kMostVisits = 1000;
inline constexpr size_t kMostRecurrencePhis = 8;
inline constexpr size_t kMostRecurrenceOperations = 40;
inline constexpr size_t kMostLookedAtToStay = 64;
inline constexpr size_t kMostWalkedInACycle = 200;
inline constexpr uint32_t kMaxTripsOfShortStream = 64;
inline constexpr double kLeastTurnsAhead = 2.5;
inline constexpr double kLeastShareOfAGuess = 0.1;
inline constexpr size_t kMostLookedAtForCalls = 16;
inline constexpr uint32_t kFarRowLevel = 2;
inline constexpr double kMostElementsAtOnce = 8;    // row.h
inline constexpr double kLongRowTurns = 128;        // row.h
inline constexpr size_t kMostWalkedToALength = 64;  // prefetch_pass.cc, row_sequence.h
inline constexpr unsigned kDeepestLane = 16;        // spread_prefetches.h

// ---------------------------------------------------------------- code: prefetch_code.h
inline constexpr uint32_t kShortestStrip = 4096;
inline constexpr uint32_t kTimedAhead = 512;
inline constexpr uint32_t kLeastTimedAhead = 128;
inline constexpr uint32_t kTimedAheadBlindly = 256;
inline constexpr uint32_t kShortestRow = 16;
inline constexpr double kMostTurnsAtOnce = 16;
inline constexpr uint32_t kMostForksAhead = 2;
inline constexpr int64_t kLongestStreamStep = 1 << 20;  // stream_step.h

// ---------------------------------------------------------------- words in memory: carried_words.h
inline constexpr size_t kMostLookedAtForWords = 1500;
inline constexpr size_t kMostCopiedOfAWord = 40;
inline constexpr size_t kMostCarriedWords = 4;

// ---------------------------------------------------------------- records: record_span.h
inline constexpr int64_t kLeastSpan = 8;
inline constexpr unsigned kMostStepsToARecord = 32;

// ---------------------------------------------------------------- nodes: node_fetch.h
inline constexpr int64_t kNearInANodeBytes = 32;
inline constexpr int64_t kUnknownArrayBytes = 2 * kLineBytes;
inline constexpr int64_t kMostArrayBytes = 8 * kLineBytes;
inline constexpr int64_t kMostNodeBytes = 4096;
inline constexpr int64_t kLeastNodeBytes = 4;
inline constexpr size_t kMostPlacesOfANode = 10;
inline constexpr size_t kMostLinksOfANode = 4;
inline constexpr size_t kMostStepsToANode = 64;
inline constexpr size_t kMostFurtherNodes = 8;  // recursion_fetch.h
inline constexpr size_t kUnknownSideBySide = 4;
inline constexpr int64_t kMostRowStepBytes = 64;
inline constexpr int64_t kNodesAheadInARow = 3;
inline constexpr double kMostNodesThatLeadOn = 0.6;  // recursion_code.h

inline constexpr std::array kPrefetchParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{
          "kMaxSliceOperations",
          kMaxSliceOperations,
          {kCount, kBound, "refuses a slice of more operations, which each iteration executes once more"}},
      Constant{
          "kMaxSliceLoads",
          kMaxSliceLoads,
          {kCount, kBound,
           "goes through so many loads to the address; with three, programs from elsewhere were refused"}},
      Constant{
          "kMaxForkConditions",
          kMaxForkConditions,
          {kCount, kBound, "follows so many conditions that choose what comes next: four places of a load"}},
      Constant{
          "kLongStrideBytes",
          kLongStrideBytes,
          {kBytes, kDerived,
           "leaves streams of shorter steps to the hardware's prefetchers. They stop at the end of a page, "
           "which has no more than four of longer ones"}},
      Constant{
          "kMostGuesses",
          kMostGuesses,
          {kCount, kBound, "bounds the time that goes into guesses, which take each way at each branch"}},
      Constant{"kMostVisits", kMostVisits, {kCount, kBound, "bounds the operations looked at for one slice"}},
      Constant{
          "kMostRecurrencePhis",
          kMostRecurrencePhis,
          {kCount, kBound,
           "runs a recurrence of so many values ahead: it has a copy in each iteration, and one for each "
           "stage"}},
      Constant{"kMostRecurrenceOperations",
               kMostRecurrenceOperations,
               {kCount, kBound, "and of so many operations"}},
      Constant{"kMostLookedAtToStay",
               kMostLookedAtToStay,
               {kCount, kBound, "looks at so many operations for whether a value is loaded anew as it was"}},
      Constant{"kMostWalkedInACycle",
               kMostWalkedInACycle,
               {kCount, kBound, "looks at so many operations for what an iteration hands to the next"}},
      Constant{
          "kMaxTripsOfShortStream",
          kMaxTripsOfShortStream,
          {kCount, kDerived,
           "fetches a stream of so many iterations where it begins: elements of up to 8 bytes, a few lines, "
           "over before a hardware prefetcher has seen it"}},
      Constant{
          "kLeastTurnsAhead",
          kLeastTurnsAhead,
          {kCount, kDerived,
           "prefetches from a loop around where this one ends sooner, in the mean: of two iterations only "
           "the second could be, from the first"}},
      Constant{"kLeastShareOfAGuess",
               kLeastShareOfAGuess,
               {kShare, kBound,
                "guesses that a way is gone by this share of the iterations that come where ways meet"}},
      Constant{"kMostLookedAtForCalls",
               kMostLookedAtForCalls,
               {kCount, kBound, "looks at so many ways that meet for whether a value comes from a call"}},
      Constant{"kMostElementsAtOnce",
               kMostElementsAtOnce,
               {kCount, kDerived,
                "fetches so many elements of a row that a worklist names at once, each for some ten "
                "instructions: as many misses as a core has under way"}},
      Constant{"kLongRowTurns",
               kLongRowTurns,
               {kCount, kDerived,
                "fetches ahead within rows that are longer in the mean: a distance of 32, which is far, "
                "fetches a quarter of this for nothing"}},
      Constant{"kFarRowLevel",
               kFarRowLevel,
               {kCount, kDerived,
                "fetches where a long row begins if so many loads lie before: where it is comes from a load "
                "that itself misses"}},
      Constant{"kMostWalkedToALength",
               kMostWalkedToALength,
               {kCount, kBound,
                "looks at so many operations for whether a loop's length is looked up, and for where its "
                "rows begin and end"}},
      Constant{"kDeepestLane",
               kDeepestLane,
               {kCount, kBound, "follows a lane of a vector through so many operations"}},

      Constant{
          "kShortestStrip",
          kShortestStrip,
          {kCount, kBound,
           "makes no shorter strip: entering a vectorized loop (its checks, a remainder) should not be seen "
           "in its time"}},
      Constant{
          "kTimedAhead",
          kTimedAhead,
          {kCount, kBound,
           "times a load so many iterations ahead, beyond what the core has in flight at the end of a strip "
           "and beyond most distances"}},
      Constant{"kLeastTimedAhead",
               kLeastTimedAhead,
               {kCount, kBound, "times none in a loop that has fewer iterations left"}},
      Constant{"kTimedAheadBlindly",
               kTimedAheadBlindly,
               {kCount, kBound,
                "times it so far ahead where nobody knows how many are left, at the risk of a place past the "
                "end"}},
      Constant{"kShortestRow",
               kShortestRow,
               {kCount, kMeasured,
                "goes round strips in runs of fewer iterations, as entering them costs more than a prefetch "
                "returns: 0.82x to 0.98x on rows of 8"}},
      Constant{
          "kMostTurnsAtOnce",
          kMostTurnsAtOnce,
          {kCount, kMeasured,
           "goes at most so many of the inner loop's iterations ahead for each of the loop around: natively, "
           "distances of 16 to 32 are best nearly everywhere"}},
      Constant{
          "kMostForksAhead",
          kMostForksAhead,
          {kCount, kMeasured,
           "fetches what may come so many iterations later where loads choose. event_queue took 5.2 to 5.6 s "
           "with one, 5.3 to 5.5 s with three, 4.1 to 5.6 s with two"}},
      Constant{"kLongestStreamStep",
               kLongestStreamStep,
               {kBytes, kBound, "takes no longer step of an address for an even one"}},

      Constant{
          "kMostLookedAtForWords",
          kMostLookedAtForWords,
          {kCount, kBound,
           "looks at so many operations before a load, or in a loop, for a word that is carried in memory"}},
      Constant{"kMostCopiedOfAWord",
               kMostCopiedOfAWord,
               {kCount, kBound, "copies so many operations of what such a word becomes"}},
      Constant{"kMostCarriedWords",
               kMostCarriedWords,
               {kCount, kBound, "runs so many such words of a loop ahead"}},

      Constant{"kLeastSpan",
               kLeastSpan,
               {kBytes, kDerived,
                "fetches one end alone of a shorter record: it lies in two lines too rarely for a second "
                "prefetch"}},
      Constant{"kMostStepsToARecord",
               kMostStepsToARecord,
               {kCount, kBound, "follows so many additions from an address to its record"}},

      Constant{
          "kNearInANodeBytes",
          kNearInANodeBytes,
          {kBytes, kDerived,
           "fetches one of two places so near to each other, as they are in one line more often than not"}},
      Constant{"kUnknownArrayBytes",
               kUnknownArrayBytes,
               {kBytes, kBound, "fetches so much of an array behind which no other field is known"}},
      Constant{"kMostArrayBytes",
               kMostArrayBytes,
               {kBytes, kBound, "and so much of one whose next field is further away"}},
      Constant{"kLeastNodeBytes",
               kLeastNodeBytes,
               {kBytes, kBound,
                "takes what moves an address by less to be no index of a node: one field has so much"}},
      Constant{"kMostNodeBytes",
               kMostNodeBytes,
               {kBytes, kDerived,
                "takes what is further away to be of another array, by the same index: a page of memory"}},
      Constant{"kMostPlacesOfANode",
               kMostPlacesOfANode,
               {kCount, kDerived,
                "fetches so many places of a node: a core waits for about as many loads at once"}},
      Constant{"kMostLinksOfANode",
               kMostLinksOfANode,
               {kCount, kBound, "follows so many loads to a node, as a prefetch stands behind each"}},
      Constant{"kMostStepsToANode",
               kMostStepsToANode,
               {kCount, kBound, "bounds the ways from an address to its nodes"}},
      Constant{"kMostFurtherNodes",
               kMostFurtherNodes,
               {kCount, kBound,
                "fetches so many of the nodes that a recursion may go to from one: those of an octree"}},
      Constant{"kUnknownSideBySide",
               kUnknownSideBySide,
               {kCount, kBound,
                "fetches so many nodes that lie side by side, where nobody knows how many there are"}},
      Constant{"kMostRowStepBytes",
               kMostRowStepBytes,
               {kBytes, kBound,
                "takes what is further apart to be no row of a node's children, but fields of elements"}},
      Constant{
          "kNodesAheadInARow",
          kNodesAheadInARow,
          {kCount, kMeasured, "fetches so many nodes of a row ahead of the one that the recursion goes to"}},
      Constant{"kMostNodesThatLeadOn",
               kMostNodesThatLeadOn,
               {kShare, kMeasured,
                "fetches those nodes where it is known that the recursion goes on, if it does so from fewer "
                "nodes than these: from all nodes of an octree that is cut off by distance, of which one in "
                "four led on, it lost 36 %"}},
  };
}();

}  // namespace hindsight::jit::optimizing
