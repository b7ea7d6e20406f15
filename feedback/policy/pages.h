// Huge pages: which ranges of linear memory to back with pages of 2 MiB. Pure, like every decision.
//
// A load that misses the cache also misses the TLB where what it may touch is larger than the TLB reaches. The walk of
// the page table adds to its latency, more so in a virtual machine, where each level is walked in two tables. With pages
// of 2 MiB the same entries reach 512 times as far. Moving a range costs its copy, during which its accesses wait.
//
//     gain = t * stall share * walk_share_of_stalls * (1 - tlb_reach / footprint)
//     stall share = the larger of what is seen to stall, and what did before prefetches, interleaving or jump pointers hid it
//     cost = seconds per byte * footprint
//
// with t the time since these ranges were first seen to stall, taken as what is still to come of it: a program may have run
// for long before that. Where they were not seen to stall of late nothing of it is to come. The gain has to be
// `min_page_return` times the cost. `footprint` is the ranges' size, not what was sampled of it.
//
// What a byte takes to move is measured. A small part is moved first, as soon as that pays for itself however slow it is, and
// the whole would pay within as much time again if it were as quick as it can be. So what moving takes is known by the time at
// which the rest may pay.
//
// What a move gives is seen while it is made (feedback/profile/page_trial.h). Other pages are other memory: in a virtual
// machine they may as well be slower, where the host has only just given them. So a large move holds after a part of it,
// until the stalls there are seen to be shorter. One that is seen to give less than its rest costs ends early. One that
// makes stalls longer is taken back. One of which nothing is seen is unjudged: a later run takes it for one that was not made,
// a few times.
#pragma once

#include <string>
#include <vector>

#include "feedback/policy/policy.h"
#include "feedback/profile/evidence.h"
#include "feedback/profile/page_trial.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

// Addresses, multiples of kHugePageBytes.
struct PageRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

struct PagePlan {
  std::vector<PageRange> ranges;  // empty: do nothing
  uint64_t bytes = 0;             // theirs
  bool probe = false;             // a part of them, to see what moving takes
  std::vector<PageRange> whole;   // what the parts belong to; `ranges` where it is no probe
  double most_seconds = 0;        // that the move may take: with more it would not have been begun
  double stall_share = 0;         // of the module's time, that the ranges' stalls take
  double estimated_gain = 0;      // share of the module's time
  std::vector<Alternative> alternatives;
  std::string reason;
};

PagePlan decide_pages(const PageEvidence& evidence, const PolicyConfig& config);

// A move holds after so many bytes until it is seen what they gave. 0: it goes through, as it is small.
uint64_t bytes_before_hold(const PagePlan& plan, const PolicyConfig& config);

// A move that is under way, or has ended.
struct PageProgress {
  PageGain gain;
  double seconds = 0;       // CPU time of all functions since the first stall in what moves
  double left_seconds = 0;  // what the rest of it is expected to cost; 0: nothing is left
  double held_seconds = 0;  // for which it has held by now; 0: it does not
  bool timed = false;       // there are loops whose time will tell what it gave
};
// Whether it is worth it.
enum class PageVerdict : uint8_t {
  kGoOn,  // or it stays, where it has ended
  kHold,  // nothing more moves for now, as too few stalls were seen
  kStop,  // what is left to move stays where it is
  kUndo,  // and what has moved goes back
};
struct PageJudgement {
  PageVerdict verdict = PageVerdict::kGoOn;
  std::string words;
};
// Whether it says what a move gave. From too few samples the interval would be any.
bool is_told(const PageGain& gain, const PolicyConfig& config);
// `plan` is the move's.
PageJudgement judge_pages(const PageProgress& progress, const PagePlan& plan, const PolicyConfig& config);

// At a module's start, of a move that an earlier run made: whether to ask the kernel for huge pages before
// the memory is touched. Nothing is there to be copied then, so nothing speaks against it where the move was
// kept and gave something.
struct PageStart {
  bool ask = false;
  std::string reason;
};
PageStart decide_pages_at_start(const PageEpisode& earlier, const PolicyConfig& config);

// How much memory an earlier run moved, or asked for while it was filled, in vain: that is not done again for less than twice as
// much. 0: none. Of what runs could not tell, one after the other, what it gave, that holds until the present run has gone on
// for twice as long: `seconds`, as in its evidence.
uint64_t bytes_in_vain(const PageEpisode& earlier, double seconds, const PolicyConfig& config);
// Whether a move that was kept with such a gain is not to be made again.
bool brought_nothing(double measured_gain, const PolicyConfig& config);

// In the form in which it is saved, and a saved one decided again.
PageEpisode make_page_episode(const PageEvidence& evidence, const PagePlan& plan);
bool replays(const PageEpisode& episode, const PolicyConfig& config);

}  // namespace hindsight::feedback
