// Runs a thread's branch-outcome bursts through a predictor model and says of each outcome whether it would have been
// predicted. That is the bit that event-3 records have room for and software cannot see. An estimate, and marked so
// wherever it goes.
//
// What makes it an estimate that can be trusted (rates within 0.05 of the truth).
//   - The predictor keeps what it learned from burst to burst, as a processor's has been trained by all that
//     ran between them.
//   - At the start of a burst its history is not the one that really led there. The first outcomes train and
//     are not judged; more of them in a thread's first burst, where the tables are empty.
//   - A branch that has hardly been seen is not judged either: the processor's own predictor has met it a
//     million times by the time of a sample.
//   - A branch that goes to more than two places is an indirect jump: what is to be predicted is its target.
//     One that always goes to the same place is no question to any predictor.
//
// Pure: same outcomes under the same keys, same answers. One object a thread; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "feedback/lwp/format/branch_burst.h"
#include "feedback/lwp/model/branch_predictor.h"

namespace hindsight::lwp {

class BranchReplay {
 public:
  struct Options {
    uint32_t first_warm_up = 2048;  // outcomes of a thread's first burst that only train
    uint32_t warm_up = 256;         // of every later one
    uint32_t site_warm_up = 16;     // of each branch
  };

  explicit BranchReplay(std::unique_ptr<BranchPredictor> predictor)
      : BranchReplay(std::move(predictor), Options{}) {}
  BranchReplay(std::unique_ptr<BranchPredictor> predictor, const Options& options)
      : predictor_(std::move(predictor)), options_(options) {}

  // The next outcome of the thread. `key` names its branch by whatever stays the same where code is loaded elsewhere. The
  // outcome's own addresses may be others where its code was compiled again. Empty: trained on, not judged.
  std::optional<bool> predicted_right(uint64_t key, const BranchOutcome& outcome);

  // Nothing was seen for a while although a burst is under way: other code ran. Warms up again.
  void gap() { to_skip_ = to_skip_ > options_.warm_up ? to_skip_ : options_.warm_up; }

  uint64_t bursts() const { return bursts_; }

 private:
  struct Site {
    uint32_t seen = 0;
    uint64_t taken_from = 0;  // its address in the code that ran last, and
    uint64_t taken_to = 0;    // its first target there
    bool indirect = false;    // taken to several
  };

  std::unique_ptr<BranchPredictor> predictor_;
  const Options options_;
  std::unordered_map<uint64_t, Site> sites_;  // as many as the guest has branches, at most
  uint64_t bursts_ = 0;
  uint64_t to_skip_ = 0;  // of the burst under way
};

}  // namespace hindsight::lwp
