// FillAhead: makes the pages of a memory that a guest fills a little ahead of it (feedback/policy/populate.h), block by
// block of 2 MiB. Where huge pages were asked for it makes those.
//
// It looks at blocks and makes pages in passes. Between them it knows what the guest has touched, as what it made itself
// counts as untouched until the guest has come by. It writes nothing: whatever the guest does meanwhile, the contents are
// the guest's. Memory that goes away meanwhile is not mapped any more, and the kernel refuses.
//
// Concurrency: pass() on any one thread at a time (begin_pass() says whether one may begin), the rest on any. mutex_
// protects all members.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "feedback/policy/populate.h"
#include "runtime/adaptive/experiments/memory_fill.h"

namespace hindsight::rt {

class FillAhead {
 public:
  // Both are multiples of 2 MiB.
  FillAhead(uint64_t begin, uint64_t end);

  // False: one is under way, or the kernel makes no pages ahead.
  bool begin_pass();
  // After begin_pass(). Looks how far the guest has come, and makes pages behind that; ends early where `stop` is true.
  void pass(const feedback::PolicyConfig& config, const std::atomic<bool>& stop);

  // What the guest has touched, of up to `most_blocks` blocks, as look_at_fill says it; as of the last pass.
  MemoryFill fill(uint32_t most_blocks) const;
  struct Made {
    uint64_t bytes = 0;    // of pages in blocks that had none; of these
    uint64_t reached = 0;  // those in blocks that the guest has come by
    double seconds = 0;    // that it took, on this thread
  };
  Made made() const;

 private:
  struct Block {
    feedback::FillBlock state = feedback::FillBlock::kUntouched;
    bool full = false;  // of small pages, nearly all are there
  };
  std::vector<uint32_t> look();                            // what to look at
  std::optional<uint64_t> pages_of(uint32_t block) const;  // that are there, as the kernel says
  void note(uint32_t block, uint64_t pages);
  void note_reached();

  const uint64_t begin_;
  mutable std::mutex mutex_;
  std::vector<Block> blocks_;
  bool in_pass_ = false, first_ = true, refused_ = false;
  uint32_t advances_ = 0;
  Made made_;
};

}  // namespace hindsight::rt
