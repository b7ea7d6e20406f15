#include "feedback/lwp/model/cache_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hindsight::lwp {
namespace {

constexpr uint64_t kNoLine = ~uint64_t{0};
constexpr size_t kPendingEntries = 8192;
constexpr size_t kCalendarSlots = 8192;
constexpr size_t kStreams = 512;
constexpr uint32_t kConfident = 2;  // strides alike after the first

Status bad(std::string message) {
  return make_error(ErrorKind::kUsage, std::move(message));
}

}  // namespace

Status check(const CacheConfig& c) {
  if (!std::has_single_bit(c.line_bytes) || c.line_bytes < 8 || c.line_bytes > 4096)
    return bad(fmt::format("a cache line of {} bytes: not a power of two from 8 to 4096", c.line_bytes));
  if (!std::has_single_bit(c.page_bytes) || c.page_bytes < c.line_bytes)
    return bad(fmt::format("a page of {} bytes: not a power of two above the cache line", c.page_bytes));
  if (c.levels.empty() || c.levels.size() > 4) return bad("a cache has one to four levels");
  for (const CacheLevelConfig& level : c.levels) {
    const uint64_t set_bytes = uint64_t{level.ways} * c.line_bytes;
    if (level.ways == 0 || level.ways > 64 || level.bytes < set_bytes || level.bytes > (uint64_t{1} << 31) ||
        level.bytes % set_bytes != 0 || !std::has_single_bit(level.bytes / set_bytes)) {
      return bad(fmt::format(
          "a cache of {} bytes in {} ways: the number of sets is no power of two, or out of range",
          level.bytes, level.ways));
    }
  }
  if (c.tlbs.size() > 3) return bad("there are at most three TLB levels");
  for (const TlbLevelConfig& tlb : c.tlbs) {
    if (tlb.ways == 0 || tlb.ways > 128 || tlb.entries == 0 || tlb.entries > 1u << 20 ||
        tlb.entries % tlb.ways != 0 || !std::has_single_bit(tlb.entries / tlb.ways)) {
      return bad(fmt::format(
          "a TLB of {} entries in {} ways: the number of sets is no power of two, or out of range",
          tlb.entries, tlb.ways));
    }
  }
  if (c.memory_interval == 0) return bad("a memory interval of 0 cycles");
  if (c.prefetch_distance > 64) return bad("a prefetch distance beyond 64 lines");
  return {};
}

bool CacheModel::Level::lookup(uint64_t line) {
  uint64_t* set = tags.data() + (line & set_mask) * ways;
  if (set[0] == line) return true;
  for (uint32_t way = 1; way < ways; ++way) {
    if (set[way] != line) continue;
    if (replacement == Replacement::kLru) {
      std::memmove(set + 1, set, way * sizeof(uint64_t));
      set[0] = line;
    }
    return true;
  }
  return false;
}

bool CacheModel::Level::holds(uint64_t line) const {
  const uint64_t* set = tags.data() + (line & set_mask) * ways;
  return std::find(set, set + ways, line) != set + ways;
}

void CacheModel::Level::fill(uint64_t line, uint64_t& random) {
  uint64_t* set = tags.data() + (line & set_mask) * ways;
  if (replacement == Replacement::kRandom && set[ways - 1] != kNoLine) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    set[random % ways] = line;
    return;
  }
  std::memmove(set + 1, set, (ways - 1) * sizeof(uint64_t));
  set[0] = line;
}

CacheModel::CacheModel(const CacheConfig& config)
    : config_(config),
      line_shift_(static_cast<uint32_t>(std::countr_zero(config.line_bytes))),
      page_shift_(static_cast<uint32_t>(std::countr_zero(config.page_bytes))),
      pending_(kPendingEntries),
      calendar_(kCalendarSlots, ~uint64_t{0}),
      streams_(kStreams) {
  const auto make = [](uint64_t sets, uint32_t ways, uint32_t latency, Replacement replacement) {
    Level level;
    level.latency = latency;
    level.ways = ways;
    level.set_mask = sets - 1;
    level.replacement = replacement;
    level.tags.assign(sets * ways, kNoLine);
    return level;
  };
  for (const CacheLevelConfig& l : config.levels)
    levels_.push_back(make(l.bytes / config.line_bytes / l.ways, l.ways, l.latency, l.replacement));
  for (const TlbLevelConfig& t : config.tlbs)
    tlbs_.push_back(make(t.entries / t.ways, t.ways, t.latency, Replacement::kLru));
}

// The first slot of the memory's calendar at or after `earliest` that nobody has. Requests come in any
// order, so one "next free" time would let a late request delay an early one.
uint64_t CacheModel::memory_slot(uint64_t earliest) {
  uint64_t slot = earliest / config_.memory_interval;
  for (size_t tries = 0; tries < kCalendarSlots; ++tries, ++slot) {
    uint64_t& taken = calendar_[slot % kCalendarSlots];
    if (taken == slot) continue;
    taken = slot;
    break;
  }
  return std::max(earliest, slot * config_.memory_interval);
}

uint64_t CacheModel::translate(uint64_t address, uint64_t now, uint32_t& misses) {
  if (tlbs_.empty()) return now;
  const uint64_t page = address >> page_shift_;
  if (page == last_page_) return now;
  last_page_ = page;
  for (size_t i = 0; i < tlbs_.size(); ++i) {
    if (!tlbs_[i].lookup(page)) continue;
    for (size_t j = 0; j < i; ++j) tlbs_[j].fill(page, random_);
    misses = static_cast<uint32_t>(i);
    return now + tlbs_[i].latency;
  }
  for (Level& tlb : tlbs_) tlb.fill(page, random_);
  misses = static_cast<uint32_t>(tlbs_.size());
  return now + tlbs_.back().latency + config_.walk_latency;
}

CacheAccess CacheModel::access_line(uint64_t line, uint64_t now) {
  CacheAccess result;
  const auto levels = static_cast<uint32_t>(levels_.size());
  while (result.level < levels && !levels_[result.level].lookup(line)) ++result.level;
  for (uint32_t i = 0; i < result.level; ++i) levels_[i].fill(line, random_);
  Pending& pending = pending_[line % kPendingEntries];
  if (result.level == 0) {
    result.done = now + levels_[0].latency;
    if (pending.line == line && pending.ready > result.done) {
      result.done = pending.ready;
      result.level = pending.level;
    }
    return result;
  }
  if (result.level < levels) {
    result.done = now + levels_[result.level].latency;
  } else {
    result.done = memory_slot(now) + config_.memory_latency;
  }
  if (pending.line == line && pending.ready > result.done) {  // prefetched into an outer level, not there yet
    result.done = pending.ready;
    result.level = pending.level;
  }
  pending = {line, result.done, result.level};
  return result;
}

void CacheModel::prefetch(uint64_t address, uint64_t now, uint32_t site) {
  Stream& s = streams_[(site * 0x9e3779b1u >> 8) % kStreams];
  if (s.site != site) {
    s = {site, 0, address, 0, kNoLine};
    return;
  }
  const auto stride = static_cast<int64_t>(address - s.last);
  if (stride == 0) return;
  s.last = address;
  if (stride != s.stride) {
    // One step aside (a row's end) does not forget the stride.
    if (s.confidence > 0 && s.confidence-- > 1) return;
    s.stride = stride;
    s.ahead = kNoLine;
    return;
  }
  if (s.confidence < kConfident + 2) ++s.confidence;
  if (s.confidence < kConfident) return;
  // Strides below a line come to the same line again and again: then the next lines are meant.
  const auto line_bytes = static_cast<int64_t>(config_.line_bytes);
  const int64_t step = std::abs(stride) >= line_bytes ? stride : stride > 0 ? line_bytes : -line_bytes;
  const uint64_t here = address >> line_shift_;
  // What lies between here and the last prefetched line was asked for; a stream that jumped begins anew.
  const uint64_t reach =
      static_cast<uint64_t>(std::abs(step)) * config_.prefetch_distance / config_.line_bytes + 1;
  if (s.ahead != kNoLine && (stride > 0 ? s.ahead - here : here - s.ahead) > reach) s.ahead = kNoLine;
  for (uint32_t k = 1; k <= config_.prefetch_distance; ++k) {
    const uint64_t line = (address + static_cast<uint64_t>(step * k)) >> line_shift_;
    if (s.ahead != kNoLine && (stride > 0 ? line <= s.ahead : line >= s.ahead)) continue;
    s.ahead = line;
    if (levels_[0].holds(line)) continue;
    access_line(line, now);
    ++prefetched_;
  }
}

CacheAccess CacheModel::access(uint64_t address, uint32_t bytes, uint64_t now, uint32_t site) {
  uint32_t tlb_misses = 0;
  const uint64_t from = translate(address, now, tlb_misses);
  const uint64_t line = address >> line_shift_;
  CacheAccess result = access_line(line, from);
  const uint64_t last = (address + bytes - 1) >> line_shift_;
  if (last != line) {
    const CacheAccess second = access_line(last, from);
    if (second.done > result.done) result = second;
  }
  result.tlb_misses = tlb_misses;
  if (config_.prefetch_distance != 0) prefetch(address, now, site);
  return result;
}

}  // namespace hindsight::lwp
