#include "runtime/exec/scan_handler.h"

#include "runtime/exec/x86_64.h"

namespace hindsight::rt {
namespace {

constinit ScanQuestion g_question;

void look_at(ScanQuestion& question, size_t count, uintptr_t word) noexcept {
  for (size_t i = 0; i < count; i++) {
    // The end is included: a return address after a range's last instruction is one that leads back to it.
    if (word >= question.begin[i].load(std::memory_order_relaxed) &&
        word <= question.end[i].load(std::memory_order_relaxed))
      question.live[i].store(true, std::memory_order_relaxed);
  }
}

// Reads every word of a live stack, also what a sanitizer thinks nobody should.
[[gnu::no_sanitize("address", "thread")]] void look_at_stack(ScanQuestion& question, size_t count,
                                                             uintptr_t low, uintptr_t from,
                                                             uintptr_t to) noexcept {
  for (uintptr_t at = from & ~uintptr_t{7}; at + 8 <= to; at += 8) {
    const uintptr_t word = *reinterpret_cast<const volatile uintptr_t*>(at);
    if (word >= low) look_at(question, count, word);
  }
}

}  // namespace

ScanQuestion& scan_question() noexcept {
  return g_question;
}

void answer_scan(GuestThread& thread, const ucontext_t& context) noexcept {
  ScanQuestion& question = g_question;
  // Acquire: what the question asks was written before its generation.
  const uint64_t generation = question.generation.load(std::memory_order_acquire);
  if (thread.scan_answer.load(std::memory_order_relaxed) == generation) return;
  if (thread.inside.load(std::memory_order_relaxed) != 0) {
    const size_t count = question.count.load(std::memory_order_relaxed);
    uintptr_t low = ~uintptr_t{0};
    for (size_t i = 0; i < count; i++) {
      const uintptr_t begin = question.begin[i].load(std::memory_order_relaxed);
      if (begin < low) low = begin;
    }
    x86_64::for_each_register(context, [&](uintptr_t word) { look_at(question, count, word); });
    // What the host has between them holds no addresses of code: functions of the host's get none.
    const uintptr_t here = x86_64::sp_of(context) - x86_64::kRedZoneBytes;
    const Activation* entry = thread.entries.load(std::memory_order_relaxed);
    for (; entry != nullptr; entry = entry->previous.load(std::memory_order_relaxed)) {
      const uintptr_t left_at = entry->low.load(std::memory_order_relaxed);
      look_at_stack(question, count, low, left_at != 0 ? left_at : here, entry->frame);
    }
  }
  // Release: our `live` flags before our answer.
  thread.scan_answer.store(generation, std::memory_order_release);
}

}  // namespace hindsight::rt
