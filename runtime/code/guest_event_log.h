// GuestEventLog: what guests told through module hindsight_lwp, aggregated for a report in bounded memory.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

class GuestEventLog {
 public:
  static constexpr size_t kMaxKinds = 64;
  static constexpr size_t kMaxData1 = 32;  // distinct values a kind
  static constexpr size_t kMaxNames = 256;
  static constexpr size_t kMaxNameBytes = 64;
  static constexpr size_t kBuckets = 240;

  // `start_ns`: the engine's start, CLOCK_MONOTONIC.
  explicit GuestEventLog(uint64_t start_ns) : start_ns_(start_ns) {}

  // A record with from_guest.
  void add(const feedback::LocatedRecord& record);
  // A later name replaces an earlier one. False: there are too many names. `text` is cut to kMaxNameBytes.
  bool name_flags(uint16_t flags, std::string_view text);
  std::string name_of(uint16_t flags) const;

  // Fills everything but the counts of calls.
  void fill(GuestEventReport& report) const;

 private:
  struct Row {
    GuestEventReport::Kind kind;
    double sum = 0;
    std::map<uint32_t, uint64_t> data1;
  };
  // (is a value, flags); this is the order of the report.
  using Key = std::pair<bool, uint16_t>;
  size_t bucket_of(uint64_t time_ns);

  const uint64_t start_ns_;
  mutable std::mutex mutex_;  // protects what follows
  std::map<Key, Row> rows_;
  std::map<uint16_t, std::string> names_;
  uint64_t left_out_ = 0;
  uint64_t bucket_ns_ = 1'000'000;  // doubles whenever the last bucket is passed
};

}  // namespace hindsight::rt
