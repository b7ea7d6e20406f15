// Huge pages for memory that is about to be touched: a guest that fills its memory block by block goes on with it.
//
// Before the first touch there is nothing to copy and nobody waits, where moving later stops whoever lives in that
// memory. But nothing is known of loads that stall yet. What is known is how the memory is filled. That is which of its
// blocks of 2 MiB have all of their small pages, which a part of them, which none. Where those that are touched are full,
// the rest is asked for in huge pages.
//
//     gain = untouched bytes / 4 KiB * seconds a fault      (and what the TLB gives later, which is not counted)
//
// What it costs to make zeros of pages that are never touched is not counted either. Where as many blocks are full as is
// asked for, that is below half of the gain. That the guest does go on is looked at afterwards; if it does not, the
// advice is taken back. It is also taken back where the filling itself gets slower. A virtual machine may have to be
// given each huge page by its host, while it has small pages at hand. Then one takes 2 ms and more, which a program of a
// second does not see again. One that runs on may be moved there later (pages.h), when it is known what its loads wait
// for and what a move takes.
#pragma once

#include "feedback/policy/pages.h"

namespace hindsight::feedback {

PagePlan decide_fill(const FillEvidence& evidence, const PolicyConfig& config);

// What became of it: of the blocks that were untouched when it was asked, by those of a later look.
bool goes_on_filling(const FillEvidence& when_asked, uint32_t untouched_now);

// Bytes filled a second of the guest's time, before and since it was asked; 0: not known.
bool fills_slower(double before, double since, const PolicyConfig& config);

}  // namespace hindsight::feedback
