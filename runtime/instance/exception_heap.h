// ExceptionHeap: the exceptions of one store, and what becomes of those that nobody can reach any more.
//
// References are words in frames, tables, globals and other exceptions, which nobody counts. Generated code
// copies them as it copies integers. A function that catches and drops an exception a million times pays
// nothing for dropping it. So the heap is collected, conservatively. It is collected before an exception is
// made. The ones made since the last time must have come to kLeastBytes or to as much as were kept then.
// Whoever throws marks each exception to which some word of the roots may point, and the others are freed.
//
// Invariant: no more than kLeastBytes + 2 * (bytes reachable at the last collection) + the newest exception
// are held.
//
// Threads: like its store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jit/abi/exception.h"
#include "runtime/instance/guest_frame.h"
#include "runtime/instance/tag.h"

namespace hindsight::rt {

// The runtime's side of an exception: ExceptionRecord::runtime.
struct ExceptionInfo {
  // Through which functions it has come, innermost first, at most kMaxBacktraceFrames.
  std::vector<GuestFrame> trace;
  uint64_t frames_left_out = 0;
  uintptr_t landed = 0;  // rbp of the frame where it was last caught; 0: nowhere yet
  uint32_t bytes = 0;
  uint32_t words = 0;  // of its values
  bool marked = false;
  // What the exception holds, altogether.
  size_t total_bytes() const { return bytes + sizeof(ExceptionInfo) + trace.capacity() * sizeof(GuestFrame); }
};

inline const Tag& tag_of(const jit::ExceptionRecord& exception) {
  return *static_cast<const Tag*>(exception.tag);
}
inline ExceptionInfo& info_of(jit::ExceptionRecord& exception) {
  return *static_cast<ExceptionInfo*>(exception.runtime);
}

class ExceptionHeap {
 public:
  static constexpr size_t kLeastBytes = size_t{64} << 10;

  ExceptionHeap() = default;
  ~ExceptionHeap();
  ExceptionHeap(const ExceptionHeap&) = delete;
  ExceptionHeap& operator=(const ExceptionHeap&) = delete;

  // No more are held, but for kLeastBytes and the newest.
  void set_limit(size_t bytes) { limit_ = bytes; }
  size_t limit() const { return limit_; }
  // Is it time to collect before the next make()?
  bool is_full() const {
    return made_bytes_ >= kLeastBytes && (made_bytes_ >= kept_bytes_ || bytes() >= limit_);
  }
  // `values`: as in ThreadState::arguments. Null: no memory, or is_beyond_limit().
  jit::ExceptionRecord* make(const Tag& tag, const uint64_t* values);
  // An exception's trace has grown by so many bytes.
  void grew(size_t bytes) { made_bytes_ += bytes; }

  // A collection: begin, mark all roots, finish. A word marks the exception into which it points, if any.
  void begin_marking();
  void mark(uint64_t word);
  void mark(std::span<const uint64_t> words) {
    for (const uint64_t word : words) mark(word);
  }
  void finish_marking();  // and frees

  size_t count() const { return exceptions_.size(); }
  size_t bytes() const { return kept_bytes_ + made_bytes_; }
  // What is held may be in use: since the last collection less than kLeastBytes have come to it.
  bool is_beyond_limit() const { return bytes() >= limit_ && bytes() - limit_ >= kLeastBytes; }
  uint64_t collections() const { return collections_; }

 private:
  static void destroy(jit::ExceptionRecord* exception);
  std::vector<jit::ExceptionRecord*> exceptions_;  // while marking: by address
  std::vector<jit::ExceptionRecord*> marked_;      // whose values are to be looked at
  size_t kept_bytes_ = 0;                          // by the last collection
  size_t made_bytes_ = 0;                          // since
  uint64_t collections_ = 0;
  size_t limit_ = SIZE_MAX;
};

}  // namespace hindsight::rt
