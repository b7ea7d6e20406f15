// A control block and a ring for software LWP in this test's own memory, and short ways to look at both.
#pragma once

#include <map>
#include <vector>

#include "feedback/lwp/emulation/software_lwp.h"

namespace hindsight::lwp {

struct Area {
  explicit Area(uint32_t records) : buffer(records) {
    block.set_size_and_random(records * kRecordSize, 0);
    block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  }
  uint64_t address() { return reinterpret_cast<uint64_t>(&block); }
  // Asks for `id`, so that every (interval + 1)-th event is recorded, counting from the first.
  void ask(EventId id, int32_t interval) {
    block.flags |= flag_of(id);
    block.slot(id) = {encode_counter(interval), encode_counter(interval)};
  }
  // What is in the ring, oldest first.
  std::vector<EventRecord> records() const {
    std::vector<EventRecord> all;
    for (uint32_t at = block.tail; at != block.head; at = (at + kRecordSize) % block.buffer_size()) {
      all.push_back(buffer[at / kRecordSize]);
    }
    return all;
  }
  std::map<uint8_t, int> count_by_event() const {
    std::map<uint8_t, int> counts;
    for (const EventRecord& r : records()) ++counts[r.event_id];
    return counts;
  }

  std::vector<EventRecord> buffer;
  ControlBlock block;
};

inline RetiredInstruction plain(uint64_t pc) {
  return {.pc = pc};
}
inline RetiredInstruction branch(uint64_t pc, RetiredBranch b = {}) {
  return {.pc = pc, .branch = b};
}
inline RetiredInstruction miss(uint64_t pc, RetiredMiss m = {}) {
  return {.pc = pc, .miss = m};
}

}  // namespace hindsight::lwp
