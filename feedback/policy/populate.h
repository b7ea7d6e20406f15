// Populate: when to have the kernel make pages of a memory before the guest touches them. Pure, like every decision.
//
// A first touch is a page fault: 12 us in a virtual machine whose page tables the host keeps. Made in one go
// (MADV_POPULATE_WRITE, Linux 5.14) a page and its first touch take a fifth of that there. It was measured nowhere else; an
// exception less is less work on any machine. So it is expected to pay wherever the guest touches most of what is made.
//
// Memory that grows by small steps, as it does below malloc: one step in a few is left to the guest, and looked at when
// the next one comes. As long as those are touched nearly whole, the others are made as they grow. What a step that was left to
// the guest takes it, up to the next one, is compared with what the step after it takes, whose pages are made: that is the trial.
//
// Memory that is being filled block by block (page_fill.h): the blocks behind one that the guest has just touched are made
// beside the guest. Up to where it has come is seen by the block behind those, which is left untouched. Each time it has,
// more of them are made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "feedback/policy/parameters.h"

namespace hindsight::feedback {

struct GrowthEvidence {
  uint64_t step_bytes = 0;     // by which the memory has just grown
  uint64_t watched_bytes = 0;  // of earlier steps that were left to the guest; of these
  uint64_t touched_bytes = 0;  // those in pages that it touched until the next step
  friend bool operator==(const GrowthEvidence&, const GrowthEvidence&) = default;
};
bool populates_growth(const GrowthEvidence& evidence, const PolicyConfig& config);
// Whether the next step is left to the guest, after so many that were not.
bool watches_growth(uint64_t populated_steps, const PolicyConfig& config);

// What steps of growth took the guest's thread: those that were left to it, and those next to them whose pages were made.
struct GrowthTimes {
  uint32_t pairs = 0;
  double left_seconds = 0,
         made_seconds = 0;                  // medians, of as much memory each; with what the guest did there
  double ratio = 0;                         // of left to made, the median; 0: there is no pair
  double left_faults = 0, made_faults = 0;  // page faults of as much memory, on the average
  friend bool operator==(const GrowthTimes&, const GrowthTimes&) = default;
};
// Whether there are enough to say what it gave, and whether it lost: no more pages are made of that memory then.
bool is_told(const GrowthTimes& times, const PolicyConfig& config);
bool growth_lost(const GrowthTimes& times, const PolicyConfig& config);

// Of 2 MiB each.
enum class FillBlock : uint8_t {
  kUntouched,
  kTouched,      // by the guest
  kJustTouched,  // since the last look
  kMade,         // and not known to be touched
};
// The blocks to make now, ascending.
std::vector<uint32_t> blocks_ahead(std::span<const FillBlock> blocks, uint32_t window_blocks);
// How many blocks at a time, where the guest has come by `advances` times and has touched so many in all.
uint32_t window_ahead(uint32_t advances, uint32_t touched_blocks, const PolicyConfig& config);

}  // namespace hindsight::feedback
