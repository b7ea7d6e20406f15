#include "runtime/exec/quiescence.h"

#include <time.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "runtime/exec/guest_thread.h"
#include "runtime/exec/scan_handler.h"
#include "runtime/exec/signal_handlers.h"

namespace hindsight::rt {
namespace {

constinit std::mutex g_scan_mutex;  // one question at a time

// The one who asked at a fork is not in the child, which has the mutex to itself.
void let_child_scan() {
  new (&g_scan_mutex) std::mutex;
}

// True once the thread has answered `generation` or is outside the guest.
bool wait_for_answer(const GuestThread& thread, uint64_t generation,
                     std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    // Acquire: the thread's `live` flags come with its answer.
    if (thread.scan_answer.load(std::memory_order_acquire) == generation) return true;
    // Sequentially consistent, see quiescence.h: a thread seen outside now enters with the new slots.
    if (thread.inside.load(std::memory_order_seq_cst) == 0) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    const timespec nap{0, 20'000};
    nanosleep(&nap, nullptr);
  }
}

// Whether it had its time before and has not said a word since. An answer to any later question ends that.
bool keeps_silent(GuestThread& thread) {
  if (thread.scan_answer.load(std::memory_order_acquire) >= thread.scan_missed) thread.scan_missed = 0;
  return thread.scan_missed != 0 && thread.inside.load(std::memory_order_seq_cst) != 0;
}

bool ask(std::span<const jit::CodeRange> ranges, std::chrono::steady_clock::time_point deadline) {
  ScanQuestion& question = scan_question();
  for (size_t i = 0; i < ranges.size(); i++) {
    question.begin[i].store(reinterpret_cast<uintptr_t>(ranges[i].begin), std::memory_order_relaxed);
    question.end[i].store(reinterpret_cast<uintptr_t>(ranges[i].end), std::memory_order_relaxed);
    question.live[i].store(false, std::memory_order_relaxed);
  }
  question.count.store(ranges.size(), std::memory_order_relaxed);
  const uint64_t generation = question.generation.load(std::memory_order_relaxed) + 1;
  question.generation.store(generation, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);

  // All are asked before the first is waited for. Where threads outnumber processors, each may have to wait for its
  // turn, and so they wait at once. A thread that is not inside now and enters meanwhile is not asked.
  bool all_answered = true;
  for_each_guest_thread([&](GuestThread& thread) {
    if (thread.inside.load(std::memory_order_seq_cst) == 0) return;
    // A signal to the calling thread itself is handled before the call returns.
    if (kick_thread(thread))
      thread.scan_asked = generation;
    else
      all_answered = false;
  });
  for_each_guest_thread([&](GuestThread& thread) {
    if (thread.scan_asked == generation && keeps_silent(thread)) all_answered = false;
  });
  // One is enough for the answer: who was asked answers for nothing.
  if (!all_answered) return false;
  for_each_guest_thread([&](GuestThread& thread) {
    if (thread.scan_asked != generation || wait_for_answer(thread, generation, deadline)) return;
    thread.scan_missed = generation;
    all_answered = false;
  });
  return all_answered;
}

}  // namespace

void scan_guest_threads(std::span<const jit::CodeRange> ranges, std::vector<bool>& live,
                        std::chrono::milliseconds patience) {
  static std::once_flag once;
  std::call_once(once, [] { at_fork_in_child(let_child_scan); });
  const std::lock_guard lock(g_scan_mutex);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool answered = true;
  for (size_t first = 0; first < ranges.size(); first += kMaxScanRanges) {
    const auto batch = ranges.subspan(first, std::min(kMaxScanRanges, ranges.size() - first));
    answered = answered && ask(batch, deadline);
    for (size_t i = 0; i < batch.size(); i++)
      if (!answered || scan_question().live[i].load(std::memory_order_relaxed)) live[first + i] = true;
  }
}

}  // namespace hindsight::rt
