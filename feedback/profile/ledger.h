// Ledger: what became of the changes of one function (jit/change.h), each under its site. The evidence of a decision has
// one, so have a decision afterwards, what earlier runs knew, and the file that code is kept in.
//
// There is one way to put two of them together (merge), and one description of them (describe.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "jit/change.h"

namespace hindsight::feedback {

// kNotPossible: the compiler could not make the change there.
enum class ChangeState : uint8_t { kNone, kInTrial, kKept, kRolledBack, kNotPossible };
inline constexpr ChangeState kLastChangeState = ChangeState::kNotPossible;
const char* to_string(ChangeState state);

// It is in the code.
constexpr bool in_use(ChangeState state) {
  return state == ChangeState::kKept || state == ChangeState::kInTrial;
}
// It is known what it gives.
constexpr bool judged(ChangeState state) {
  return state != ChangeState::kNone && state != ChangeState::kInTrial;
}

// It was tried, or asked for, and is not in the code.
constexpr bool is_lost(ChangeState state) {
  return judged(state) && !in_use(state);
}

// Where a change of a whole version stands. `at`: of a nest, its loop; of a function, nowhere.
constexpr jit::Site version_site(jit::ChangeKind kind, WasmOffset at = {}) {
  return {kind, at};
}

struct Outcome {
  ChangeState state = ChangeState::kNone;
  uint32_t setting = 0;     // of the change's knob
  double gain = 0;          // measured; share of the loop's or the function's time
  std::string why = {};     // in words
  uint32_t rejections = 0;  // how often it was taken back
  uint32_t runs_ago = 0;    // in which it was judged last
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class ChangeLedger {
 public:
  // More than the compiles of a function ever ask for; beyond, the oldest entry goes.
  static constexpr size_t kMostEntries = 1024;
  struct Entry {
    jit::Site site;
    Outcome outcome;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  ChangeLedger() = default;
  ChangeLedger(std::initializer_list<Entry> entries) : entries_(entries) {}

  // For a site about which nothing is known: an empty one.
  const Outcome& of(jit::Site site) const;
  ChangeState state(jit::Site site) const { return of(site).state; }
  bool contains(jit::Site site) const { return find(site) != nullptr; }
  // Null: nothing is known of it.
  const Outcome* find(jit::Site site) const;
  Outcome* find(jit::Site site);

  // It goes on trial. What is kept stays so; what was rolled back may be tried again.
  void begin(jit::Site site);
  // What was found out. Counts a rollback, on top of those before.
  void settle(jit::Site site, Outcome outcome);
  void settle(jit::Site site, ChangeState state);
  // As it is said elsewhere, rejections and all.
  void put(jit::Site site, Outcome outcome);
  void forget(jit::Site site);
  // Drops what `drop(entry)` says.
  template <typename Drop>
  void forget_if(Drop drop) {
    std::erase_if(entries_, drop);
  }
  // So many runs were added since.
  void age(uint64_t runs);

  // In the order in which they became known.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }

  friend bool operator==(const ChangeLedger&, const ChangeLedger&) = default;

 private:
  std::vector<Entry> entries_;  // no two of one site; of most functions some dozens
};

// Whether a change that is made for a load at that place is in a state, by `is(kind, state)`.
template <typename Is>
bool has_load_change(const ChangeLedger& changes, WasmOffset load, Is is) {
  return std::ranges::any_of(jit::kChanges, [&](const jit::ChangeTraits& change) {
    return change.of_load && is(change.kind, changes.state({change.kind, load}));
  });
}

// All that was asked for a load lost, or was not possible.
inline bool nothing_helped(const ChangeLedger& changes, WasmOffset load) {
  const auto lost = [](jit::ChangeKind, ChangeState state) { return is_lost(state); };
  const auto open = [](jit::ChangeKind, ChangeState state) { return in_use(state); };
  return has_load_change(changes, load, lost) && !has_load_change(changes, load, open);
}

// Takes over what `run` found out later. A trial that did not end says nothing against what is known.
void merge(ChangeLedger& to, const ChangeLedger& run);

// What is known for sure, to begin a run with: outcomes that were judged, and how often changes were taken back.
ChangeLedger seed_of(const ChangeLedger& earlier);

// `runs_ago` of something, once so many runs were added.
uint32_t older(uint32_t runs_ago, uint64_t runs);

}  // namespace hindsight::feedback
