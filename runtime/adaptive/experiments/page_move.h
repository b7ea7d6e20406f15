// PageMoves: the decision huge-pages, from its evidence to its outcome: asks the policy, moves ranges in the
// background, and looks at what that gave. What an earlier run moved and kept is asked for as soon as there is a
// memory. Of memory that is being filled (memory_filling.h) the outcomes are kept here too: it is the same decision,
// made before the first touch.
//
// A move cannot alternate as a prefetch does. What it gives is seen in two ways.
// - By ranges: while some pages have moved and others have not, stalls of both are compared (feedback/profile/page_trial.h). A
//   large move holds after a part, until those are seen to be shorter. One that is seen to bring less than its rest costs
//   ends there.
// - Before against after, by the time per iteration of the loops whose prefetch is settled and keeps being timed. Where there
//   is such a loop this is the figure, as it is about the guest's time and not about its stalls.
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
  bool compares() const { return !moving().empty(); }
  // An earlier run's decision was taken over, and stands.
  bool kept_from_earlier(const wasm::Module* module) const;

  // The most that was moved in vain of the module's memory at a time, in earlier runs or in this one.
  uint64_t vain_bytes(const wasm::Module* module) const;
  // Decisions that are not told any more, as later ones of their modules came; without those of forgotten modules.
  uint64_t dropped() const;

  // What memory_filling.h asked for, and what came of it.
  struct Asked {
    const wasm::Module* module = nullptr;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;  // with `fill`
    feedback::PageEpisode::Place place;
  };
  void note_asked(Asked asked, bool granted);
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
    size_t marked = 0;                        // pages of it that the profile's trial knows as moved
    feedback::PageGain gain;
    std::optional<EngineClock::Time> held_since;  // no task steps it, until follow() says so
    bool stepping = false;                        // a task does
    bool stopped = false;                         // as it was seen to bring too little
    bool found_huge = false;  // it was to find out, and nearly all was on huge pages already
    EngineClock::Time moved_at;
    std::vector<TimedLoop> before;

    bool is_waiting() const { return is_moving() && !held_since && !stepping; }  // for a task
    bool is_moving() const { return state == DecisionState::kQueued || state == DecisionState::kMoving; }
    // Nothing else may disturb what it is judged by.
    bool is_open() const { return is_moving() || state == DecisionState::kMoved; }
    bool has_ended() const { return !is_open() && state != DecisionState::kTrial; }
  };
  // What moves of a module, one after the other, say of the next one.
  struct Vain {
    uint64_t bytes = 0;
    uint32_t found_huge = 0;  // one after the other
    void add(const Move& move);
  };
  struct Dropped {
    uint64_t count = 0;
    Vain vain;
    bool kept_from_earlier = false;
  };

  void drop_old();
  void follow(EngineClock::Time now);
  // Has a task step it; it has failed where there can be none.
  void step_again(Move& move);
  void judge(EngineClock::Time now);
  void ask();
  static void take_back(Move& move);
  // Whether the module's memories have grown since the last look: most of what they will be is not known then.
  bool has_grown(const wasm::Module* module);
  void compare(const wasm::Module* module, const feedback::PagePlan& plan,
               const feedback::PageEvidence& evidence);
  bool already_huge(const wasm::Module* module, const feedback::PagePlan& plan) const;
  void settle(const wasm::Module* module, const std::vector<feedback::PageRange>& ranges);
  void begin(const wasm::Module* module, feedback::PagePlan plan, feedback::PageEvidence evidence);
  void move_pages();
  void end_lease();  // under mutex_; once no move is open
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  Measurement& measurement_;
  const TimedLoops timed_loops_;
  std::map<const wasm::Module*, uint64_t> sizes_;  // bytes at the last look; monitor thread
  size_t moves_seen_ = 0;                          // by the last drop_old(); monitor thread
  std::atomic<bool> measured_{false};              // relaxed: what has been measured is under mutex_

  mutable std::mutex mutex_;
  std::map<const wasm::Module*, std::vector<feedback::PageEpisode>> known_;
  std::list<Move> moves_;  // nothing is removed that moves: references stay
  std::map<const wasm::Module*, Dropped> dropped_;
  std::optional<Measurement::Lease> lease_;
  uint64_t bytes_copied_ = 0;  // by all of them, and
  double copy_seconds_ = 0;    // what that cost the guest: its waiting, and our making pages beside it
};

}  // namespace hindsight::rt
