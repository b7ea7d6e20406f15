// MemoryFilling: the decision huge-pages, before the first touch. Looks how far a guest has filled its memory and asks
// the kernel for huge pages ahead of it. Takes that back if the guest stops or gets slower. What was asked for and what
// came of it is kept with moves of pages (page_move.h).
//
// It takes no lease: what nobody has touched is in nobody's measurement.
//
// While it asks, the pages behind where the guest is are made beside it, on a compile thread (fill_ahead.h).
//
// Monitor thread only, and so without a lock; what a task has it shares.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/adaptive/experiments/fill_ahead.h"
#include "runtime/adaptive/experiments/memory_fill.h"
#include "runtime/adaptive/experiments/page_costs.h"
#include "runtime/adaptive/experiments/page_move.h"

namespace hindsight::rt {

class MemoryFilling final : public Experiment {
 public:
  // All outlive this.
  MemoryFilling(const EngineParts& engine, PageMoves& pages) : engine_(engine), pages_(pages) {}

  // Experiment
  void round(const Round& round) override;

 private:
  using Clock = EngineClock::Clock;
  struct Watched {
    const wasm::Module* module = nullptr;
    uint64_t base = 0, bytes = 0;
    uint32_t memory = 0;
    MemoryFill last;
    EngineClock::Time next_look, changed;
    Clock::duration patience{};
    uint64_t asked_end = 0;                       // what lies below has been asked for
    uint32_t full_before = 0;                     // blocks of an earlier filling that has ended
    std::optional<feedback::FillEvidence> asked;  // under trial
    std::shared_ptr<FillAhead> ahead;             // while it is
    bool slower = false;  // was asked for, and the filling or what lies beside it got slower: not again
    // Where this filling began, or where it was asked, and what the guest had run by then.
    uint64_t touched_from = 0;  // bytes
    double seconds_from = 0;
    double rate_before = 0;     // bytes a second, until it was asked; 0: not known
    std::string figures;        // what is known since; empty: nothing
    uint64_t touched_told = 0;  // bytes that these go by
    std::string said;
  };

  void look_at(Watched& watch, EngineClock::Time now);
  // Where small pages are slower beside huge ones: splits the latter where there are many of the former.
  bool splits(Watched& watch, EngineClock::Time now, uint64_t begin);
  void ask_ahead(Watched& watch, EngineClock::Time now, uint64_t begin, uint64_t end);
  void judge(Watched& watch, EngineClock::Time now);
  void note_figures(Watched& watch);
  // Has a task make pages ahead of the guest, unless one does.
  void go_ahead(const Watched& watch);
  void note_gone(const Watched& watch);
  void end_filled(Watched& watch, EngineClock::Time now, const std::string& seen);
  void end_asking(Watched& watch, EngineClock::Time now, DecisionState state, std::string outcome);
  const PageCosts& page_costs(EngineClock::Time now);
  void count_from_here(Watched& watch) const;
  // Bytes the guest filled a second of its time since touched_from; 0: fewer than `least` blocks, too few to tell.
  double fill_rate(const Watched& watch, uint32_t least) const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  PageMoves& pages_;
  std::map<uint64_t, Watched> watched_;  // by base
  EngineClock::Time last_look_;
  std::optional<PageCosts> costs_;  // measured at
  EngineClock::Time costs_at_;
};

}  // namespace hindsight::rt
