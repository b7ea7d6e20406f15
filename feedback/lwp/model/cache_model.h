// A model of caches, TLBs and a hardware prefetcher: when would the data of an access have been there, and
// where did it come from? Deterministic: a function of the configuration and of the calls made so far.
//
// What is modelled: set-associative levels, each filled by every miss that passes it. Lines on their way, so
// that a second access to one waits for the first. A memory that delivers a line every so many cycles however
// the requests overlap. Two TLB levels and a walk, and a stride prefetcher by instruction. What is not:
// coherence, write-backs, banks.
//
// Times are cycles. They need not ascend from call to call: an out-of-order core asks for a later load first.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hindsight::lwp {

enum class Replacement : uint8_t { kLru, kFifo, kRandom };

struct CacheLevelConfig {
  uint64_t bytes = 0;
  uint32_t ways = 1;
  uint32_t latency = 1;  // cycles from request to data, misses of the levels in front included
  Replacement replacement = Replacement::kLru;
};

struct TlbLevelConfig {
  uint32_t entries = 0;
  uint32_t ways = 1;
  uint32_t latency = 0;  // cycles added when this level is the one that knows
};

struct CacheConfig {
  uint32_t line_bytes = 64;
  std::vector<CacheLevelConfig> levels;  // L1 first; at least one
  uint32_t memory_latency = 0;
  uint32_t memory_interval =
      1;  // cycles from one line to the next: bandwidth, or latency over misses in flight
  uint32_t page_bytes = 4096;
  std::vector<TlbLevelConfig> tlbs;  // may be empty: translation is free
  uint32_t walk_latency = 0;         // after the last TLB
  // Lines ahead that the stride prefetcher fetches once an instruction strode three times alike; 0: none.
  uint32_t prefetch_distance = 0;
};

// kUsage if sizes are no powers of two, do not divide, or are beyond reason.
Status check(const CacheConfig& config);

struct CacheAccess {
  uint64_t done = 0;        // when the data is there
  uint32_t level = 0;       // 0 L1, ..., levels.size(): memory. Of a line on its way: where it comes from
  uint32_t tlb_misses = 0;  // TLB levels that did not know the page
};

class CacheModel {
 public:
  // `config` must have passed check().
  explicit CacheModel(const CacheConfig& config);

  // One access of `bytes` > 0 by the instruction `site` at `now`. One that spans two lines takes the later of
  // both.
  CacheAccess access(uint64_t address, uint32_t bytes, uint64_t now, uint32_t site);

  uint32_t levels() const { return static_cast<uint32_t>(levels_.size()); }
  uint64_t prefetched() const { return prefetched_; }  // lines

 private:
  struct Level {
    uint32_t latency = 0;
    uint32_t ways = 1;
    uint64_t set_mask = 0;
    Replacement replacement = Replacement::kLru;
    std::vector<uint64_t> tags;  // ways of a set beside each other, most recently used (or filled) first
    bool lookup(uint64_t line);  // and touches it
    bool holds(uint64_t line) const;
    void fill(uint64_t line, uint64_t& random);
  };
  struct Pending {
    uint64_t line = ~uint64_t{0};
    uint64_t ready = 0;
    uint32_t level = 0;
  };
  struct Stream {
    uint32_t site = ~0u;
    uint32_t confidence = 0;
    uint64_t last = 0;
    int64_t stride = 0;
    uint64_t ahead = 0;  // the last line that was prefetched
  };

  CacheAccess access_line(uint64_t line, uint64_t now);
  uint64_t translate(uint64_t address, uint64_t now, uint32_t& misses);
  uint64_t memory_slot(uint64_t earliest);
  void prefetch(uint64_t address, uint64_t now, uint32_t site);

  CacheConfig config_;
  uint32_t line_shift_ = 0;
  uint32_t page_shift_ = 0;
  std::vector<Level> levels_;
  std::vector<Level> tlbs_;
  std::vector<Pending> pending_;    // direct-mapped by line: a line that was pushed out counts as arrived
  std::vector<uint64_t> calendar_;  // direct-mapped by time / memory_interval: the slots that are taken
  std::vector<Stream> streams_;
  uint64_t last_page_ = ~uint64_t{0};
  uint64_t random_ = 0x9e3779b97f4a7c15;
  uint64_t prefetched_ = 0;
};

}  // namespace hindsight::lwp
