// The event ring between a unit (one producer: the profiled thread) and its reader (one consumer: usually the
// monitor thread). It works over the head, tail and buffer that a control block names.
//
// Protocol (synchronised mode). Offsets are bytes, multiples of 32, below the size; head == tail is empty.
// The unit stores its record at the head, then looks. If the next offset is not the tail, it publishes it as
// the new head. Else the ring is full: MissedEvents goes up and the head stays, so the next record overwrites
// this one. Capacity is therefore size/32 - 1.
//
// Why nothing is torn: the reader touches only slots in [tail, head). The only slot that the unit ever writes
// is the one at the head, which is never among them. It is not before it is published, and not while the ring
// is full, because then it stays unpublished. What orders the accesses:
//   - head, stored with release by the unit, loaded with acquire by the reader. The record's words were
//     written before the head that publishes them, so a reader that sees the head sees the record.
//   - tail, stored with release by the reader, loaded with acquire by the unit. The reader had copied a
//     record before the tail that frees its slot. The unit advances onto a slot only after it saw a tail
//     that left that slot, so its later write is ordered after the reader's last look.
// Each record stored is either published or counted as missed, and each published record is read once:
// emitted = drained + missed + still in the ring.
//
// Continuous mode (kFlagContinuous). The head always advances and overwrites what nobody read. Head and tail
// alone cannot say then how far the unit has run ahead. So the two ends share a pair of 64-bit positions
// outside the block: `claimed` goes up before a record is written, `stored` after. A reader that copied the
// record at position p keeps the copy only if `claimed` had not passed p + slots. Otherwise the record may be
// a mixture, and is counted as overwritten. The record's words are atomics stored with release and loaded
// with acquire. A reader that sees one word of a newer record also sees the `claimed` that came before it,
// and rejects. emitted = drained + overwritten + still in the ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "feedback/lwp/format/control_block.h"
#include "feedback/lwp/format/record.h"

namespace hindsight::lwp {

// Positions of continuous mode, in records since the ring was made; written by the unit only.
struct ContinuousPositions {
  alignas(64) std::atomic<uint64_t> claimed{0};
  std::atomic<uint64_t> stored{0};
};

struct StoreResult {
  bool missed = false;             // the ring was full: the record will be overwritten
  bool threshold_reached = false;  // this record made the used space reach the threshold
};

// The arithmetic of the protocol, for whoever stores into a ring.
struct RingGeometry {
  uint32_t size = 0;       // bytes, whole records
  uint32_t threshold = 0;  // bytes
  bool interrupt = false;  // the threshold means something
  bool continuous = false;

  // As the block's words ask; nothing is checked.
  static RingGeometry of(uint32_t flags, uint32_t size_and_random, uint32_t threshold);

  bool is_offset(uint32_t offset) const { return offset < size && offset % kRecordSize == 0; }
  uint32_t following(uint32_t offset) const {
    const uint32_t next = offset + kRecordSize;
    return next == size ? 0 : next;
  }
  // Whether the record that moved the head to `head` made the used space pass from below the threshold to it
  // or beyond: exactly one does.
  bool crosses_threshold(uint32_t head, uint32_t tail) const {
    const uint32_t used = head >= tail ? head - tail : head + size - tail;
    return interrupt && used >= threshold && used - kRecordSize < threshold;
  }
};

// The unit's end. One thread at a time.
class RingWriter {
 public:
  RingWriter() = default;  // attached to nothing; to be assigned before use

  // Reads base, size, head, mode and threshold from `block`, which must outlive the writer. kUsage if the
  // buffer is absent, misaligned, smaller than two records, or an offset lies outside it (the hardware would
  // raise #GP). In continuous mode `positions` lets a reader follow a running writer; without it the ring may
  // be read only when the writer rests.
  static Result<RingWriter> create(ControlBlock& block, ContinuousPositions* positions = nullptr);

  // Stores one record as the protocol above says. Wait-free; no system call.
  StoreResult store(const EventRecord& record) {
    write_slot(head_, record);
    if (ring_.continuous) return advance_continuous();
    const uint32_t next = ring_.following(head_);
    const uint32_t tail = std::atomic_ref(block_->tail).load(std::memory_order_acquire);
    if (next == tail) {
      // Only this thread writes the counter; atomic because the reader may look at any time. It orders
      // nothing.
      std::atomic_ref missed(block_->missed_events);
      missed.store(missed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return {true, false};
    }
    head_ = next;
    std::atomic_ref(block_->head).store(next, std::memory_order_release);
    return {false, ring_.crosses_threshold(next, tail)};
  }

 private:
  void write_slot(uint32_t offset, const EventRecord& record) {
    // Relaxed: in continuous mode the release of the words below is what carries this to a reader that sees
    // them.
    if (positions_) positions_->claimed.store(++position_, std::memory_order_relaxed);
    auto* slot = reinterpret_cast<uint64_t*>(base_ + offset);
    const RecordWords words = to_words(record);
    for (size_t i = 0; i < words.size(); ++i) {
      std::atomic_ref(slot[i]).store(words[i], std::memory_order_release);  // a plain move on x86
    }
  }
  StoreResult advance_continuous() {
    head_ = ring_.following(head_);
    if (positions_) positions_->stored.store(position_, std::memory_order_release);
    std::atomic_ref(block_->head).store(head_, std::memory_order_release);
    return {};
  }

  ControlBlock* block_ = nullptr;
  ContinuousPositions* positions_ = nullptr;
  std::byte* base_ = nullptr;
  RingGeometry ring_;
  uint32_t head_ = 0;  // the unit trusts its own copy: software has no business writing the block's
  uint64_t position_ = 0;
};

// The software end. One thread at a time, which need not be the writer's.
class RingReader {
 public:
  RingReader() = default;  // attached to nothing; to be assigned before use

  // Same requirements as RingWriter::create. Start reader and writer from the same offsets, before the writer
  // stores.
  static Result<RingReader> create(ControlBlock& block, const ContinuousPositions* positions = nullptr);

  // Copies up to out.size() of the oldest unread records and frees their slots; returns how many. 0: nothing
  // new.
  size_t read(std::span<EventRecord> out);

  // Records that continuous mode overwrote before this reader came.
  uint64_t overwritten() const { return overwritten_; }
  // Heads that were no multiple of 32 below the size: somebody else wrote into the block. Such a ring reads
  // as empty.
  uint64_t corrupt_heads() const { return corrupt_heads_; }
  // MissedEvents as of now.
  uint64_t missed() const {
    return std::atomic_ref(block_->missed_events)
        .load(std::memory_order_relaxed);  // a statistic; orders nothing
  }

 private:
  size_t read_synchronised(std::span<EventRecord> out);
  size_t read_continuous(std::span<EventRecord> out);

  ControlBlock* block_ = nullptr;
  const ContinuousPositions* positions_ = nullptr;
  const std::byte* base_ = nullptr;
  uint32_t size_ = 0;
  uint32_t tail_ = 0;
  uint32_t start_ = 0;  // offset of position 0
  uint64_t position_ = 0;
  uint64_t overwritten_ = 0;
  uint64_t corrupt_heads_ = 0;
};

// A control block, its buffer and both ends: what a unit owns for its thread. Neither copied nor moved:
// generated code holds its address.
class Ring {
 public:
  // `records`: slots, at least 2, at most 2^23 - 1; one of them stays free. Events and intervals are the
  // caller's to set in block().
  struct Options {
    uint32_t records = 2048;
    uint32_t threshold_records = 0;  // 0: none
    bool continuous = false;
  };
  static Result<std::unique_ptr<Ring>> create(const Options& options);

  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  ControlBlock& block() { return block_; }

  // The profiled thread only.
  StoreResult store(const EventRecord& record) {
    const StoreResult result = writer_.store(record);
    // Single writer; relaxed, read as statistics only.
    emitted_.store(emitted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (result.threshold_reached) {
      thresholds_.store(thresholds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    return result;
  }

  // The reading thread only.
  size_t read(std::span<EventRecord> out) { return reader_.read(out); }
  uint64_t overwritten() const { return reader_.overwritten(); }

  // Any thread.
  uint64_t emitted() const { return emitted_.load(std::memory_order_relaxed); }
  uint64_t missed() const { return reader_.missed(); }
  uint64_t thresholds() const { return thresholds_.load(std::memory_order_relaxed); }

 private:
  struct FreeDeleter {
    void operator()(std::byte* p) const;
  };

  Ring() = default;

  ControlBlock block_;
  ContinuousPositions positions_;
  std::unique_ptr<std::byte[], FreeDeleter> buffer_;
  RingWriter writer_;
  std::atomic<uint64_t> emitted_{0};
  std::atomic<uint64_t> thresholds_{0};
  alignas(64) RingReader reader_;  // the reader's state on lines of its own
};

}  // namespace hindsight::lwp

// What baseline code calls to record an event of the thread that owns `ring`. `id_and_flags` holds the
// EventId in its low byte and the record's flags in its high half, as the first word of a record does. The
// profiled thread only; wait-free.
extern "C" void hindsight_lwp_record_event(hindsight::lwp::Ring* ring, uint32_t id_and_flags, uint32_t data1,
                                           uint64_t pc, uint64_t data2) noexcept;
