// PageMoves: the decision huge-pages, from its evidence to its outcome: asks the policy, moves ranges in the
// background, and looks at what that gave. What an earlier run moved and kept is asked for as soon as there is a
// memory. Of memory that is being filled (memory_filling.h) the outcomes are kept here too: it is the same decision,
// made before the first touch.
//
// A move cannot alternate as a prefetch does. What it gives is seen in two ways.
// - By ranges: while some pages have moved and others have not, stalls of both are compared (feedback/profile/page_trial.h). A
//   large move holds after a part, until those are seen to be shorter. One that is seen to bring less than its rest costs
//   ends there. Where a part has moved alone, as the first one to find out what moving takes, the rest of what was meant is
//   compared with it for a while after. If the rest follows both are judged together.
// - Before against after, by the time per iteration of the loops whose prefetch is settled and keeps being timed. Where there
//   is such a loop this is the figure, as it is about the guest's time and not about its stalls.
// What neither tells is unjudged, also where the program ends first. A later run does not take it over, and tries it again a few
// times.
//
// Concurrency: round() on the monitor thread; the move itself on a compile thread, one task at a time; the rest on any.
// What has ended is told up to a number of decisions a module, and the oldest are dropped beyond it: memories come and go
// as long as a module lives. The monitor thread drops them, and so may keep references to the others without the lock.
// mutex_ protects the members below it. With it held only LoopTrial and Measurement are called. What is under way of
// a move is stepped by its task alone, without the lock; others ask it under the lock for what any thread may (huge_pages.h).
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "feedback/policy/pages.h"
#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/experiments/beside_huge.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/experiments/huge_pages.h"
#include "runtime/adaptive/measurement.h"

namespace hindsight::rt {

class PageMoves final : public Experiment {
 public:
  // Ticks an iteration of a loop whose trial is settled.
  using TimedLoop = std::pair<std::shared_ptr<const LoopTrial>, double>;
  using TimedLoops = std::function<std::vector<TimedLoop>(const wasm::Module*)>;

  // All outlive this. `timed_loops`: those of the module now; called with no lock held.
  PageMoves(const EngineParts& engine, Measurement& measurement, TimedLoops timed_loops);

  // What earlier runs decided about the module.
  void remember(const wasm::Module* module, std::vector<feedback::PageEpisode> known);
  // Asks for what was kept of it; once a module, when its first memories come to be, and for each later one.
  void on_instance(const ModuleCode& code, const Instance& instance);

  // Experiment
  void round(const Round& round) override;
  void forget(const ModuleCode& code) override;
  size_t forget_decisions(const wasm::Module* module) override;
  void report(DecisionSink& decisions) const override;
  void save(const wasm::Module* module, feedback::ModuleProfile& profile) const override;

  // What moving takes is known since the last call, and the rest of the pages waits for that.
  bool take_measured() { return measured_.exchange(false, std::memory_order_relaxed); }
  // Modules with a move that waits for its thread, or is being made.
  std::set<const wasm::Module*> moving() const;
  // Stalls are compared, of which there are the more the more samples are taken.
  bool compares() const;
  // An earlier run's decision was taken over, and stands.
  bool kept_from_earlier(const wasm::Module* module) const;
  // Up to which byte of the memory that goes; 0: nothing was taken over of it.
  uint64_t kept_from_earlier(const wasm::Module* module, uint32_t memory) const;

  // The most that was moved in vain of the module's memory at a time, in earlier runs or in this one, which has seen its stalls
  // for so long.
  uint64_t vain_bytes(const wasm::Module* module, double seconds = 0) const;
  // The same of memory that was asked for while it was filled, in earlier runs.
  uint64_t vain_bytes_filled(const wasm::Module* module) const;
  // Decisions that are not told any more, as later ones of their modules came; without those of forgotten modules.
  uint64_t dropped() const;

  // Whether small pages get slower beside huge ones on this machine. Moves wait while that is tried. Monitor thread.
  BesideHuge& beside_huge() { return beside_huge_; }

  // What memory_filling.h asked for, and what came of it.
  struct Asked {
    const wasm::Module* module = nullptr;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;  // with `fill`
    feedback::PageEpisode::Place place;
  };
  void note_asked(Asked asked, bool granted);
  // `figures`: as far as is known by now. They stand for the outcome where the program ends first.
  void note_filling(const wasm::Module* module, const feedback::FillEvidence& asked,
                    const std::string& figures);
  void note_filled(const wasm::Module* module, const feedback::FillEvidence& asked, DecisionState state,
                   const std::string& outcome);

 private:
  struct Move {
    const wasm::Module* module = nullptr;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;
    std::vector<feedback::PageEpisode::Place> places;
    // Asked for before anything was touched, as an earlier run had decided.
    std::optional<feedback::PageEpisode> earlier;
    DecisionState state = DecisionState::kQueued;
    std::string outcome;
    double seconds = 0, measured_gain = 0;
    std::unique_ptr<HugePageMove> under_way;  // goes, under mutex_, when it has ended
    size_t marked = 0;                        // pages of it that the profile's trial knows as moved, with
    std::vector<uint64_t> unmarked;           // these, which it is to be told of
    bool compared = false;                    // the profile's trial is about this move
    bool partly = false;                      // it has ended, and not all of what it is compared in has moved
    feedback::PageGain gain;
    double first_stall_seconds = 0;               // CPU time of the module's functions by then
    const Move* rest = nullptr;                   // what followed a part, with which it is judged
    uint32_t unjudged_before = 0;                 // runs, one after the other
    std::string figures;                          // of a filling that is on trial, by now
    std::optional<EngineClock::Time> held_since;  // no task steps it, until follow() says so
    bool stepping = false;                        // a task does
    bool stopped = false;                         // as it was seen to bring too little
    bool found_huge = false;  // it was to find out, and nearly all was on huge pages already
    EngineClock::Time moved_at;
    std::vector<TimedLoop> before;

    bool is_waiting() const { return is_moving() && !held_since && !stepping; }  // for a task
    bool is_moving() const { return state == DecisionState::kQueued || state == DecisionState::kMoving; }
    bool is_open() const { return is_moving() || state == DecisionState::kMoved; }
    // Nothing else may disturb what it is judged by. That stalls in two parts of a memory are compared nothing disturbs.
    bool needs_lease() const { return is_moving() || (is_open() && !before.empty()); }
    bool has_ended() const { return !is_open() && state != DecisionState::kTrial; }
  };
  // What it has come to, as far as can be said now.
  struct Outcome {
    DecisionState state = DecisionState::kUnjudged;
    double measured_gain = 0;
    std::string words;
  };
  // What moves of a module, one after the other, say of the next one.
  struct Vain {
    uint64_t bytes = 0;
    uint32_t found_huge = 0;  // one after the other
    void add(const Move& move, const feedback::PolicyConfig& config);
  };
  struct Dropped {
    uint64_t count = 0;
    Vain vain;
    bool kept_from_earlier = false;
  };

  void drop_old();
  void follow(const Round& round);
  // Has a task step it; it has failed where there can be none.
  void step_again(Move& move);
  void fail(Move& move, const char* why);  // under mutex_
  void judge(EngineClock::Time now);
  // These four under mutex_.
  Outcome outcome_of(const Move& move) const;
  bool may_tell_later(const Move& move, EngineClock::Time now) const;
  static void conclude(Move& move, const Outcome& outcome);
  uint32_t unjudged_before(const wasm::Module* module, bool fill) const;
  void ask();
  // Whether the module's memories have grown since the last look: most of what they will be is not known then.
  bool has_grown(const wasm::Module* module);
  struct Wanted {
    const wasm::Module* module;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;
    double first_stall_seconds;
  };
  // What is compared: where it is to move, and the parts that have moved and are judged with it.
  void compare(const std::vector<Wanted>& parts, const Wanted& move);
  bool already_huge(const wasm::Module* module, const feedback::PagePlan& plan) const;
  void settle(const wasm::Module* module, const std::vector<feedback::PageRange>& ranges);
  void begin(const Wanted& wanted);
  void move_pages();
  void end_lease();  // under mutex_; once no move needs it
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  Measurement& measurement_;
  const TimedLoops timed_loops_;
  std::map<const wasm::Module*, uint64_t> sizes_;  // bytes at the last look; monitor thread
  size_t moves_seen_ = 0;                          // by the last drop_old(); monitor thread
  BesideHuge beside_huge_;                         // monitor thread
  std::atomic<bool> measured_{false};              // relaxed: what has been measured is under mutex_

  mutable std::mutex mutex_;
  std::map<const wasm::Module*, std::vector<feedback::PageEpisode>> known_;
  std::list<Move> moves_;  // nothing is removed that moves: references stay
  std::map<const wasm::Module*, Dropped> dropped_;
  std::optional<Measurement::Lease> lease_;
  uint64_t bytes_copied_ = 0;  // by all of them, and
  double moving_seconds_ = 0;  // for which they were under way
  double copy_seconds_ = 0;    // what that cost the guest: its waiting, and our making pages beside it
};

}  // namespace hindsight::rt
