// The LWP state of one thread, in software: what LLWPCB, SLWPCB, LWPINS, LWPVAL and a retiring instruction
// do, to the letter of the final specification. The executable model of it: units that count for themselves
// build on it, and so does whoever emulates the instructions for native programs.
//
//     static thread_local SoftwareLwp lwp(own_memory());  // or ProcessMemory(pid): wrong addresses become #PF
//     if (auto done = lwp.llwpcb(rdi); !done) raise(done.error());  // #UD, #GP, #PF; nothing happened then
//     carry_flag = *lwp.lwpins(rip, rdi, esi, imm32 & 0xFFFF);
//
// One thread at a time, like the hardware state it stands for. Every operation is async-signal-safe (as its
// Memory and clock are) and allocates nothing.
//
// What the specification leaves to an implementation is decided so.
//   - Nothing is buffered: records and the head are in memory when a call returns; SLWPCB has only the
//     counters to flush. The tail is read at each record.
//   - A fault leaves everything as it was, LWP's being on or off included, so the instruction may be
//     repeated.
//   - Only what is used of a control block is touched: the fixed part before the events, and the slots of the
//     events that are on. A program whose block ends after its last event works.
//   - An instruction makes one record at most. Events whose counters are negative then wait, frozen, for the
//     next instruction that causes them; who goes first rotates. LWPINS always makes its own record.
//   - Filters and flags that the capabilities do not name are ignored, as on processors without them.
//   - In continuous mode no threshold is ever crossed, LWPINS clears CF, and MissedEvents rests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "feedback/lwp/emulation/fault.h"
#include "feedback/lwp/emulation/machine_state.h"
#include "feedback/lwp/emulation/memory.h"
#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/format/control_block.h"
#include "feedback/lwp/format/record.h"
#include "feedback/lwp/format/ring.h"

namespace hindsight::lwp {

// A processor that has and enables all of it: events 1 to 6, continuous mode, time stamps, threshold
// interrupts, every filter, no minimum buffer. encode_capabilities() turns it into what CPUID would say.
Capabilities software_capabilities();

enum class BranchKind : uint8_t {
  kConditional,
  kRelative,  // unconditional, to an address in the instruction: direct jumps and calls
  kAbsolute,  // to an address from a register or from memory: indirect jumps and calls, returns
};

struct RetiredBranch {
  uint64_t next = 0;  // the address executed next: target or fall-through
  bool taken = true;
  std::optional<bool> predicted_right{};  // empty where nobody knows
  BranchKind kind = BranchKind::kConditional;
};

struct RetiredMiss {
  std::optional<uint64_t> address{};  // of the data, where known
  uint32_t latency = 0;               // core cycles
  MissSource source = MissSource::kNone;
};

// One user-mode instruction and the events it caused. Itself is event 2.
struct RetiredInstruction {
  uint64_t pc = 0;
  std::optional<RetiredBranch> branch{};
  std::optional<RetiredMiss> miss{};
  uint32_t core_clocks = 0;  // since the instruction before
  uint32_t reference_clocks = 0;
};

class SoftwareLwp {
 public:
  struct Options {
    // What the processor offers; `usable` is what llwpcb() grants. All operations are #UD where it is not
    // `available`.
    Capabilities capabilities = software_capabilities();
    // Shorter intervals are raised to this, except those of value samples, which may be 0.
    int32_t minimum_interval = 0;
    uint8_t core_id = 0;                        // for the records, as LWP_CFG[39:32]
    uint64_t random_seed = 0x9E3779B97F4A7C15;  // not 0
    // Where time stamps come from; null: the processor's time-stamp counter.
    uint64_t (*time)(void* context) = nullptr;
    void* time_context = nullptr;
  };

  // Sums since creation.
  struct Counters {
    uint64_t records = 0;     // stored, missed ones included
    uint64_t missed = 0;      // that found the ring full, as counted in MissedEvents
    uint64_t interrupts = 0;  // threshold crossings; delivering them is the caller's affair
    uint64_t waited = 0;      // instructions for which an event in need of a record gave way to another
    uint64_t filtered = 0;    // events that a filter kept from being counted
  };

  // `memory` must outlive this.
  explicit SoftwareLwp(Memory& memory) : SoftwareLwp(memory, Options{}) {}
  SoftwareLwp(Memory& memory, const Options& options);

  // LLWPCB. Flushes the old block first. Then takes the counters from the one at `address` (negative ones as
  // 0) and writes back the Flags that are on. 0 switches off. Fails with #GP for a buffer that is absent, or
  // smaller than two records or than the capabilities' minimum. It also fails so for offsets that are no
  // record of the buffer. On with no event in Flags is on: LWPINS needs none.
  Outcome<void> llwpcb(uint64_t address);

  // SLWPCB: flushes the counters and gives the block's address; 0 while off.
  Outcome<uint64_t> slwpcb();

  // LWPINS: a record with event 255. Gives the carry flag: true if the ring was full. Off: false, and nothing
  // happens. Counts as an instruction retired.
  Outcome<bool> lwpins(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags);

  // LWPVAL: counts one value event; its record, if this is the one, holds the operands. True if there was a
  // record (of any event). Counts as an instruction retired.
  Outcome<bool> lwpval(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags);

  // Any other instruction. True if there was a record. A #PF means that it did not retire: repeat it.
  Outcome<bool> retire(const RetiredInstruction& instruction);

  // What XSAVE keeps of a thread, and XRSTOR gives back; see machine_state.h. restore() reads what the area
  // lacks from the control block it names, #PF and #GP as for llwpcb(), and flushes nothing.
  XsaveArea save() const;
  Outcome<void> restore(const XsaveArea& area);

  bool on() const { return block_ != 0; }
  uint64_t block_address() const { return block_; }
  uint32_t flags() const { return flags_; }  // as written back
  const Counters& counters() const { return counters_; }

 private:
  using EventCounts = std::array<uint32_t, kMaxEvents>;  // how often each event happened, by slot

  uint32_t grantable_flags() const;
  // The fixed part of the block at `address`, checked; then the slots of the events in `flags`.
  Outcome<ControlBlock> read_fixed(uint64_t address) const;
  Outcome<void> read_slots(uint64_t address, uint32_t flags, ControlBlock& block) const;
  void take_constants(uint64_t address, const ControlBlock& block);
  Outcome<void> flush();
  // Counts, and stores make_record(slot) for one event whose counter went negative.
  template <typename MakeRecord>
  Outcome<bool> count(uint64_t pc, const EventCounts& events, const MakeRecord& make_record);
  EventRecord stamped(EventRecord record) const;  // with core and time
  Outcome<bool> put(const EventRecord& record);   // true if it was missed
  bool is_on(EventId id) const { return flags_ & flag_of(id); }
  bool address_passes(uint64_t pc) const;
  bool branch_passes(const RetiredBranch& branch) const;
  bool miss_passes(const RetiredMiss& miss) const;
  uint32_t captured_latency(uint32_t latency) const;
  int32_t reload_value(unsigned slot);
  uint64_t slot_offset(unsigned slot) const;

  Memory* memory_;
  Options options_;
  Counters counters_;
  uint64_t random_;
  unsigned last_reported_ = 0;  // slot of the last event that made a record; the next one has precedence

  uint64_t block_ = 0;  // 0: off, and the rest has no meaning
  uint32_t flags_ = 0;
  uint32_t filters_ = 0;
  unsigned random_bits_ = 0;
  uint64_t base_ip_ = 0;
  uint64_t limit_ip_ = 0;
  uint64_t buffer_ = 0;
  RingGeometry ring_;
  uint32_t head_ = 0;  // own copy: software has no business writing the block's
  std::array<int32_t, kMaxEvents> intervals_{};
  std::array<int32_t, kMaxEvents> event_counters_{};
};

}  // namespace hindsight::lwp
