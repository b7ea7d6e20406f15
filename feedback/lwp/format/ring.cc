#include "feedback/lwp/format/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hindsight::lwp {
namespace {

Status check_block(const ControlBlock& block) {
  const uint32_t size = block.buffer_size();
  if (block.buffer_base == 0 || block.buffer_base % alignof(uint64_t) != 0) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("control block: buffer at {:#x} is absent or not aligned to 8 bytes", block.buffer_base));
  }
  if (size < 2 * kRecordSize) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("control block: a buffer of {} bytes holds less than two records", size));
  }
  for (const uint32_t offset : {block.head, block.tail}) {
    if (offset >= size || offset % kRecordSize != 0) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("control block: offset {} is no record of a {} byte buffer", offset, size));
    }
  }
  return {};
}

}  // namespace

RingGeometry RingGeometry::of(uint32_t flags, uint32_t size_and_random, uint32_t threshold) {
  return {.size = (size_and_random & kBufferSizeMask) / kRecordSize * kRecordSize,
          .threshold = threshold,
          .interrupt = (flags & kFlagInterrupt) && !(kZeroThresholdMeansNever && threshold == 0),
          .continuous = (flags & kFlagContinuous) != 0};
}

Result<RingWriter> RingWriter::create(ControlBlock& block, ContinuousPositions* positions) {
  HINDSIGHT_TRY(check_block(block));
  RingWriter writer;
  writer.block_ = &block;
  writer.ring_ = RingGeometry::of(block.flags, block.size_and_random, block.threshold);
  writer.positions_ = writer.ring_.continuous ? positions : nullptr;
  writer.base_ = reinterpret_cast<std::byte*>(block.buffer_base);
  writer.head_ = block.head;
  return writer;
}

Result<RingReader> RingReader::create(ControlBlock& block, const ContinuousPositions* positions) {
  HINDSIGHT_TRY(check_block(block));
  RingReader reader;
  reader.block_ = &block;
  reader.positions_ = (block.flags & kFlagContinuous) ? positions : nullptr;
  reader.base_ = reinterpret_cast<const std::byte*>(block.buffer_base);
  reader.size_ = block.buffer_size();
  reader.tail_ = block.tail;
  reader.start_ = block.head;
  return reader;
}

size_t RingReader::read(std::span<EventRecord> out) {
  return positions_ ? read_continuous(out) : read_synchronised(out);
}

size_t RingReader::read_synchronised(std::span<EventRecord> out) {
  const uint32_t head = std::atomic_ref(block_->head).load(std::memory_order_acquire);
  if (head >= size_ || head % kRecordSize != 0) {
    ++corrupt_heads_;
    return 0;
  }
  size_t copied = 0;
  while (tail_ != head && copied < out.size()) {
    const uint32_t end = head > tail_ ? head : size_;
    const size_t count = std::min<size_t>((end - tail_) / kRecordSize, out.size() - copied);
    // Plain copies: no slot in [tail, head) is written before the store of the tail below.
    std::memcpy(out.data() + copied, base_ + tail_, count * kRecordSize);
    copied += count;
    tail_ += static_cast<uint32_t>(count) * kRecordSize;
    if (tail_ == size_) tail_ = 0;
  }
  if (copied != 0) std::atomic_ref(block_->tail).store(tail_, std::memory_order_release);
  return copied;
}

size_t RingReader::read_continuous(std::span<EventRecord> out) {
  const uint64_t slots = size_ / kRecordSize;
  const uint64_t stored = positions_->stored.load(std::memory_order_acquire);
  if (stored - position_ > slots) {
    overwritten_ += stored - slots - position_;
    position_ = stored - slots;
  }
  size_t copied = 0;
  for (; position_ != stored && copied < out.size(); ++position_) {
    const auto offset = static_cast<uint32_t>((start_ / kRecordSize + position_) % slots) * kRecordSize;
    auto* slot = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(base_ + offset));
    RecordWords words;
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = std::atomic_ref(slot[i]).load(std::memory_order_acquire);
    }
    // `claimed` counts up to the record now being written; that one shares a slot with the one `slots` before
    // it.
    if (positions_->claimed.load(std::memory_order_relaxed) > position_ + slots) {
      ++overwritten_;
    } else {
      out[copied++] = from_words(words);
    }
  }
  return copied;
}

void Ring::FreeDeleter::operator()(std::byte* p) const {
  std::free(p);
}

Result<std::unique_ptr<Ring>> Ring::create(const Options& options) {
  if (options.records < 2 || options.records > kBufferSizeMask / kRecordSize) {
    return make_error(ErrorKind::kUsage, fmt::format("a ring cannot have {} records", options.records));
  }
  const size_t bytes = size_t{options.records} * kRecordSize;
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
  // Not cleared: a slot is written before it is published.
  std::byte* buffer = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  if (ring) ring->buffer_.reset(buffer);
  if (!ring || !buffer) {
    if (!ring) std::free(buffer);
    return make_error(ErrorKind::kResource,
                      fmt::format("no memory for a ring of {} records", options.records));
  }
  ControlBlock& block = ring->block_;
  block.set_size_and_random(static_cast<uint32_t>(bytes), 0);
  block.buffer_base = reinterpret_cast<uint64_t>(buffer);
  block.threshold = options.threshold_records * kRecordSize;
  block.flags =
      (options.continuous ? kFlagContinuous : 0) | (options.threshold_records != 0 ? kFlagInterrupt : 0);
  HINDSIGHT_ASSIGN(ring->writer_, RingWriter::create(block, &ring->positions_));
  HINDSIGHT_ASSIGN(ring->reader_, RingReader::create(block, &ring->positions_));
  return ring;
}

}  // namespace hindsight::lwp

extern "C" void hindsight_lwp_record_event(hindsight::lwp::Ring* ring, uint32_t id_and_flags, uint32_t data1,
                                           uint64_t pc, uint64_t data2) noexcept {
  ring->store({static_cast<uint8_t>(id_and_flags), 0, static_cast<uint16_t>(id_and_flags >> 16), data1, pc,
               data2, 0});
}
