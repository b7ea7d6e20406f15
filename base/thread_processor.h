// Which processor a thread runs on, and how the calling one goes to another.
#pragma once

#include <cstdint>
#include <span>

namespace hindsight {

inline constexpr int kUnknownProcessor = -1;

// That of one thread, for others to read at no cost: where the kernel writes it down for restartable sequences (rseq(2),
// which the C library registers).
class ThreadProcessor {
 public:
  static ThreadProcessor of_this_thread();
  // Where it runs, or ran last. Only as long as that thread lives.
  int get() const;
  friend bool operator==(const ThreadProcessor&, const ThreadProcessor&) = default;

 private:
  explicit ThreadProcessor(const uint32_t* cpu_id) : cpu_id_(cpu_id) {}
  const uint32_t* cpu_id_;  // null: not known
};

// Takes the calling thread to a processor that is none of `others`, of those that it may use. What it may use stays as
// it was: the kernel may bring it back, and seldom does, as a thread that wakes begins where it ran last. False: there is no such processor, or
// the system refused.
bool leave_processors(std::span<const int> others);

// That the calling thread may use; at least 1.
unsigned usable_processors();

}  // namespace hindsight
