// Branch predictor models: which of a stream of branch outcomes would a processor have predicted? Used where
// outcomes are known but the hardware's own view is not. The model unit uses it on every branch, readers of
// branch-outcome bursts on a few thousand.
//
// A predictor is a pure function of the calls made so far: same stream, same answers, whatever the machine.
// That holds only if `pc` does: give it something that does not depend on where code was loaded.
//
// Not thread-safe; one object a stream. All branches of one thread belong into one object, in the order in
// which they retired, because history is shared between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace hindsight::lwp {

class BranchPredictor {
 public:
  virtual ~BranchPredictor() = default;
  BranchPredictor(const BranchPredictor&) = delete;
  BranchPredictor& operator=(const BranchPredictor&) = delete;

  // "bimodal", "gshare", "tage".
  virtual std::string_view name() const = 0;

  // A conditional branch at `pc` went this way: would it have been predicted? Predicts, then learns.
  virtual bool predicted_right(uint64_t pc, bool taken) = 0;

  // An indirect branch at `pc` went to `target`: would that have been predicted? Predicts from the branch and
  // the path that led to it, then learns. The path is part of the history of conditional branches too.
  virtual bool target_predicted_right(uint64_t pc, uint64_t target) = 0;

  // Forgets everything: as if new.
  virtual void reset() = 0;

 protected:
  BranchPredictor() = default;
};

// Two-bit counters by pc. Knows biases and nothing else: half wrong on a strict alternation.
std::unique_ptr<BranchPredictor> make_bimodal(unsigned table_bits = 14);

// Two-bit counters by pc and the last `history_bits` outcomes (McFarling, "Combining Branch Predictors",
// 1993). It has that paper's chooser against a bimodal table. Without it a biased random branch is charged
// for every history it meets for the first time. Cheap: nanoseconds an outcome. 1 <= history_bits <= 32.
std::unique_ptr<BranchPredictor> make_gshare(unsigned table_bits = 16, unsigned history_bits = 16);

// Tagged tables with geometrically growing histories: what processors since about 2015 resemble. Source:
// Seznec and Michaud, "A case for (partially) TAgged GEometric history length branch prediction", 2006.
// Histories up to 1,000 outcomes, so periodic patterns of several hundred are learned.
std::unique_ptr<BranchPredictor> make_tage();

// "bimodal", "gshare", "tage" with their defaults; null for any other name.
std::unique_ptr<BranchPredictor> make_branch_predictor(std::string_view name);

}  // namespace hindsight::lwp
