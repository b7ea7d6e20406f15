// Branch-outcome bursts: a few thousand consecutive branches of one guest thread, every one of them, as
// instrumented code retires them. Between bursts code is in a body that records none of them. A
// burst begins where an ordinary branch record was due anyway, by leaving the counter negative, so that every
// following branch comes here too.
//
// The branches are consecutive because that is what a predictor's history is made of. Outcomes seen one in
// 65,000 say how often a branch is taken and nothing about whether it can be predicted.
//
// Two threads: the guest's (producer) and the monitor's (consumer).
//   - The monitor asks (`request`), the guest begins when it next records a branch. `asked_` is stored with
//     release after the queue's memory exists and loaded with acquire by the guest.
//   - Outcomes go through a bounded queue. `head_` counts those published, stored with release after the slot
//     is written and loaded with acquire by the monitor; `tail_` the same in the other direction.
//   - A burst begins only if the queue has room for all of it, so no outcome of a burst is ever dropped. One
//     that found no room is counted (`refused`).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hindsight::lwp {

// One retired branch. User addresses have 47 bits (57 with five-level tables), so two flags fit above them.
struct BranchOutcome {
  static constexpr uint64_t kTaken = uint64_t{1} << 63;
  static constexpr uint64_t kFirst = uint64_t{1} << 62;  // of its burst: what came before it was not seen

  uint64_t pc = 0;    // as in the branch's record
  uint64_t next = 0;  // address executed next, and the flags

  bool taken() const { return next & kTaken; }
  bool first() const { return next & kFirst; }
  uint64_t target() const { return next & ~(kTaken | kFirst); }
  friend bool operator==(const BranchOutcome&, const BranchOutcome&) = default;
};

class BranchBursts {
 public:
  static constexpr uint32_t kCapacity = 8192;  // outcomes; a power of two
  static constexpr uint32_t kMostOutcomes = 4096;

  // ---- the monitor's thread

  // The guest is to record its next `outcomes` branches (at most kMostOutcomes; 0 takes the request back).
  void request(uint32_t outcomes) {
    if (!slots_) slots_ = std::make_unique_for_overwrite<BranchOutcome[]>(kCapacity);
    asked_.store(outcomes < kMostOutcomes ? outcomes : kMostOutcomes, std::memory_order_release);
  }
  // Asked for and not begun.
  bool requested() const { return asked_.load(std::memory_order_relaxed) != 0; }

  // Appends what was recorded since the last call, also the beginning of a burst that is under way.
  size_t take(std::vector<BranchOutcome>& out) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);  // own variable
    const uint64_t head = head_.load(std::memory_order_acquire);
    for (uint64_t i = tail; i != head; ++i) out.push_back(slots_[i % kCapacity]);
    tail_.store(head, std::memory_order_release);
    return static_cast<size_t>(head - tail);
  }

  // Statistics, any thread; they order nothing.
  uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t outcomes() const { return head_.load(std::memory_order_relaxed); }

  // ---- the guest's thread

  bool active() const { return left_ != 0; }

  // At an ordinary branch record: begins a burst if one was asked for. True: every branch is wanted now.
  bool begin() {
    const uint32_t asked = asked_.load(std::memory_order_acquire);
    if (asked == 0 || left_ != 0) return left_ != 0;
    asked_.store(0, std::memory_order_relaxed);
    const uint64_t used = head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);
    if (used + asked > kCapacity) {
      refused_.store(refused_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
    left_ = asked;
    first_ = BranchOutcome::kFirst;
    begun_.store(begun_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }

  // The next branch of the burst under way. False: it was the last.
  bool add(uint64_t pc, bool taken, uint64_t target) {
    const uint64_t head = head_.load(std::memory_order_relaxed);  // own variable
    slots_[head % kCapacity] = {pc, target | (taken ? BranchOutcome::kTaken : 0) | first_};
    first_ = 0;
    head_.store(head + 1, std::memory_order_release);
    return --left_ != 0;
  }

 private:
  std::unique_ptr<BranchOutcome[]> slots_;  // made by the first request, published by asked_
  // The guest's own.
  alignas(64) uint32_t left_ = 0;
  uint64_t first_ = 0;
  std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> refused_{0};
  // The monitor's.
  alignas(64) std::atomic<uint64_t> tail_{0};
  std::atomic<uint32_t> asked_{0};
};

}  // namespace hindsight::lwp
