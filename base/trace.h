// The trace contract: how instrumented code tells everything it does, and how a reader that knows no compiler
// can understand it. Written by the baseline compiler, read by the model unit.
//
// Code is cut into runs: straight lines of instructions with one way in and one way out. While it executes, a
// run appends words to a buffer (8 bytes each):
//
//   - one word an access, in order: the host address (kFill: address, byte count; kCopy: destination, source,
//     count).
//   - the run's own word: ~id, negative, which no access word ever is.
//   - then, by how the run ends (TraceEnd):
//       kBranch: 1 if taken, else 0
//       kTable: the selector, the target's address
//       kIndirectCall, kIndirectTailCall: the callee's function index
//       kEnter: frame address, address of the instance's memory 0
//       kLand: frame address
//
// An instruction that traps leaves the words of its run without the run's own. A reader then finds, in front
// of a run's word, more access words than the run has, and drops the excess. A run whose last words are
// missing because the thread left in between is followed by a negative word at once.
//
// What a run computes is told once, when it is compiled, as max-plus terms. An example: "ready when slot 3
// was ready plus 4 cycles, and when access 0 had completed plus 1". Slots are those of the frame (locals,
// then operands). The frame of a callee begins at the slot of its first argument in the caller's frame, and
// results are left there. A tail call writes its arguments to the slots from 0 on, where the callee's frame
// then is.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"

namespace hindsight {

// A term's source below this is a frame slot as the run found it; from here on an access of the same run.
inline constexpr uint16_t kTraceAccess = 0x8000;

struct TraceTerm {
  uint16_t source = 0;
  uint16_t delay = 0;  // cycles of the operations in between
  friend bool operator==(const TraceTerm&, const TraceTerm&) = default;
};

struct TraceSpan {  // in TraceRun::terms; none: a constant, always ready
  uint32_t begin = 0;
  uint32_t count = 0;
};

enum class TraceAccessKind : uint8_t { kLoad, kStore, kFill, kCopy };
constexpr uint32_t trace_words(TraceAccessKind kind) {
  return kind == TraceAccessKind::kFill ? 2 : kind == TraceAccessKind::kCopy ? 3 : 1;
}

struct TraceAccess {
  TraceAccessKind kind = TraceAccessKind::kLoad;
  uint8_t bytes = 0;        // of a load or store
  uint32_t operations = 0;  // micro-operations since the access before it, this one included
  WasmOffset offset;
  CodeOffset code;    // of the load or store in machine code
  TraceSpan address;  // when the address is known
  TraceSpan value;    // when a store's value is known
};

struct TraceWrite {
  uint16_t slot = 0;
  TraceSpan value;
};

enum class TraceEnd : uint8_t {
  kEnter,         // a function begins; not a run of its own: no instructions
  kFallThrough,   // into the next run
  kBranch,        // conditional
  kJump,          // back to a loop's header, always
  kTable,         // br_table
  kCall,          // direct
  kIndirectCall,  // call_indirect
  kReturn,
  kTailCall,          // return_call
  kIndirectTailCall,  // return_call_indirect
  kLand,  // an exception is caught in the frame, those inside of it are gone; like kEnter no run of its own
};

constexpr bool is_indirect_call(TraceEnd end) {
  return end == TraceEnd::kIndirectCall || end == TraceEnd::kIndirectTailCall;
}
constexpr bool is_tail_call(TraceEnd end) {
  return end == TraceEnd::kTailCall || end == TraceEnd::kIndirectTailCall;
}

struct TraceFunction;

struct TraceRun {
  TraceEnd end = TraceEnd::kFallThrough;
  uint32_t instructions = 0;  // WebAssembly instructions that retire with the run
  uint32_t operations = 0;    // micro-operations after the last access
  uint32_t words = 0;         // of all accesses
  WasmOffset offset;          // of the instruction that ends the run
  CodeOffset code;            // an address inside that instruction's machine code
  CodeOffset taken, fall;     // kBranch, kJump: where execution goes on
  uint32_t call_slot = 0;     // kCall, kIndirectCall: the slot of the first argument
  TraceSpan condition;        // kBranch, kTable, indirect calls: when its operand is known
  std::vector<TraceAccess> accesses;
  std::vector<TraceWrite> writes;  // all at once, from values as of the run's beginning
  std::vector<TraceTerm> terms;
  const TraceFunction* function = nullptr;
  std::span<const TraceTerm> of(TraceSpan span) const { return {terms.data() + span.begin, span.count}; }
};

// One compilation of one function.
struct TraceFunction {
  FuncIndex function;
  uint64_t module = 0;  // names the module for readers; the same in every run of the same module
  uint64_t code = 0;    // address of the machine code: CodeOffsets count from here
  uint32_t slots = 0;   // of the frame
  std::deque<std::pair<uint32_t, TraceRun>> runs;  // with their ids
};

// All runs of one engine. Any thread.
class TraceDirectory {
 public:
  // An id that nobody else gets. Ids are dense, in the order of asking.
  uint32_t next_id() {
    return next_.fetch_add(1, std::memory_order_relaxed);  // only uniqueness matters
  }
  // From now on find() knows the function's runs. Call before the code can run. They live as long as this.
  void publish(std::unique_ptr<TraceFunction> function);
  // Null for an id that was never published.
  const TraceRun* find(uint32_t id) const;

 private:
  std::atomic<uint32_t> next_{0};
  mutable std::mutex mutex_;  // protects what follows
  std::vector<const TraceRun*> runs_;
  std::vector<std::unique_ptr<TraceFunction>> functions_;
};

// Words that a buffer must have left when a run begins: code asks for room once a run, at its end.
inline constexpr uint32_t kTraceSlack = 1024;
// Accesses after which the compiler ends a run, so that the slack suffices (three words each, and a call
// chain).
inline constexpr uint32_t kTraceMaxAccesses = 256;

constexpr uint32_t trace_id_of(uint64_t word) {
  return static_cast<uint32_t>(~word);
}
constexpr bool is_run_word(uint64_t word) {
  return static_cast<int64_t>(word) < 0;
}

}  // namespace hindsight
