#include "feedback/lwp/software_lwp.h"

#include <algorithm>

namespace hindsight::lwp {

Status SoftwareLwp::load(ControlBlock* block) {
  if (block_) flush();
  block_ = nullptr;
  on_ = 0;
  if (!block) return {};
  HINDSIGHT_ASSIGN(writer_, RingWriter::create(*block));
  on_ = block->flags & options_.events;
  block->flags = on_;
  random_bits_ = block->random_bits();
  for (unsigned i = 0; i < kMaxEvents; ++i) {
    const bool may_be_zero = i + 1 == static_cast<unsigned>(EventId::kValue);
    intervals_[i] =
        std::max(decode_counter(block->events[i].interval), may_be_zero ? 0 : options_.minimum_interval);
    counters_[i] = std::max(decode_counter(block->events[i].counter), 0);
  }
  block_ = block;
  return {};
}

ControlBlock* SoftwareLwp::store() {
  if (block_) flush();
  return block_;
}

void SoftwareLwp::flush() {
  for (unsigned i = 0; i < kMaxEvents; ++i) block_->events[i].counter = encode_counter(counters_[i]);
}

int32_t SoftwareLwp::reload_value(unsigned slot) {
  if (random_bits_ == 0) return intervals_[slot];
  // xorshift64: the low bits of an interval only need to avoid a loop's rhythm.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const int32_t mask = (1 << random_bits_) - 1;
  return (intervals_[slot] & ~mask) | (static_cast<int32_t>(random_) & mask);
}

StoreResult SoftwareLwp::put(const EventRecord& record) {
  const StoreResult result = writer_.store(record);
  if (result.threshold_reached) ++interrupts_;
  return result;
}

bool SoftwareLwp::insert(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  if (!block_) return false;
  return put(make_programmed_record(pc, data2, data1, flags)).missed;
}

void SoftwareLwp::value(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  retire(make_value_record(pc, data2, data1, flags));
}

bool SoftwareLwp::retire(const EventRecord& record) {
  const unsigned slot = record.event_id - 1u;
  if (!block_ || slot >= kMaxEvents || !(on_ & flag_of(record.id()))) return false;
  if (--counters_[slot] >= 0) return false;
  counters_[slot] = reload_value(slot);
  put(record);
  return true;
}

}  // namespace hindsight::lwp
