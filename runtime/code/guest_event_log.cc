#include "runtime/code/guest_event_log.h"

#include <algorithm>
#include <bit>

namespace hindsight::rt {

size_t GuestEventLog::bucket_of(uint64_t time_ns) {
  const uint64_t since = time_ns > start_ns_ ? time_ns - start_ns_ : 0;
  while (since / bucket_ns_ >= kBuckets) {
    bucket_ns_ *= 2;
    for (auto& [key, row] : rows_) {
      std::vector<uint64_t>& timeline = row.kind.timeline;
      for (size_t i = 0; i < kBuckets; ++i)
        timeline[i] = 2 * i < kBuckets ? timeline[2 * i] + timeline[2 * i + 1] : 0;
    }
  }
  return since / bucket_ns_;
}

void GuestEventLog::add(const feedback::LocatedRecord& located) {
  const lwp::EventRecord& record = located.record;
  const std::lock_guard lock(mutex_);
  const Key key{record.id() == lwp::EventId::kValue, record.flags};
  auto found = rows_.find(key);
  if (found == rows_.end()) {
    if (rows_.size() >= kMaxKinds) {
      left_out_ += 1;
      return;
    }
    found = rows_.try_emplace(key).first;
    found->second.kind.value = key.first;
    found->second.kind.flags = key.second;
    found->second.kind.timeline.assign(kBuckets, 0);
  }
  const size_t bucket = bucket_of(located.time_ns);
  Row& row = found->second;
  GuestEventReport::Kind& kind = row.kind;
  const double seconds =
      located.time_ns > start_ns_ ? static_cast<double>(located.time_ns - start_ns_) * 1e-9 : 0;
  const std::string function =
      located.module ? located.module->function_name(located.function) : std::string();
  const std::optional<uint32_t> offset = located.offset ? std::optional(located.offset->value) : std::nullopt;
  if (kind.count == 0) {
    kind.first_seconds = kind.last_seconds = seconds;
    kind.function = function;
    kind.wasm_offset = offset;
    kind.least = kind.greatest = record.data2;
  } else if (kind.wasm_offset != offset || kind.function != function) {
    kind.more_sites = true;
  }
  kind.count += 1;
  // Several threads' rings are drained one after the other, so times go back and forth.
  kind.first_seconds = std::min(kind.first_seconds, seconds);
  kind.last_seconds = std::max(kind.last_seconds, seconds);
  kind.least = std::min(kind.least, record.data2);
  kind.greatest = std::max(kind.greatest, record.data2);
  row.sum += static_cast<double>(record.data2);
  kind.widths[static_cast<size_t>(std::bit_width(record.data2))] += 1;
  kind.timeline[bucket] += 1;
  if (auto seen = row.data1.find(record.data1); seen != row.data1.end())
    seen->second += 1;
  else if (row.data1.size() < kMaxData1)
    row.data1.emplace(record.data1, 1);
  else
    kind.data1_others += 1;
}

bool GuestEventLog::name_flags(uint16_t flags, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (names_.size() >= kMaxNames && !names_.contains(flags)) return false;
  names_[flags] = std::string(text.substr(0, kMaxNameBytes));
  return true;
}

std::string GuestEventLog::name_of(uint16_t flags) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(flags);
  return found == names_.end() ? std::string() : found->second;
}

void GuestEventLog::fill(GuestEventReport& report) const {
  const std::lock_guard lock(mutex_);
  report.left_out = left_out_;
  report.bucket_seconds = static_cast<double>(bucket_ns_) * 1e-9;
  for (const auto& [key, row] : rows_) {
    GuestEventReport::Kind kind = row.kind;
    if (const auto name = names_.find(kind.flags); name != names_.end()) kind.name = name->second;
    kind.mean = row.sum / static_cast<double>(kind.count);
    for (const auto& [value, count] : row.data1) kind.data1.push_back({value, count});
    std::stable_sort(kind.data1.begin(), kind.data1.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    report.kinds.push_back(std::move(kind));
  }
}

}  // namespace hindsight::rt
