// CodeVersion: the finished result of one compilation of one function by one tier. Immutable once made, but
// for its LoopCells and OSR slots, which exist to be changed while the code runs. Owns its code memory:
// whoever destroys a version promises that no thread is in it and none can enter (see jit/code/retire.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "jit/abi/loop_cell.h"
#include "jit/abi/nest_exits.h"
#include "jit/abi/type_registry.h"
#include "jit/change.h"
#include "jit/code/code_arena.h"
#include "jit/code/pc_map.h"
#include "jit/code/relocation.h"

namespace hindsight::jit {

enum class Tier : uint8_t { kBaseline, kOptimized };
const char* to_string(Tier tier);

// On-stack replacement, two calls, no stack maps. Baseline code polls osr_slots[loop] at each loop header; if
// it is not null it calls
//   result = slot(vmctx, frame)
// and returns that result as its own. frame[i] is local i (parameters first). Then come the operand-stack values, from
// the bottom up to and including the loop's parameters. Slots have 8 bytes, or 16 (and so aligned) where
// FunctionBody::uses_v128. Small values are in the low bytes, with the upper bytes undefined.
// A slot's word with bit 0 set leads to a nest, which comes back into the caller's frame (jit/abi/nest_exits.h).
struct OsrEntry {
  enum class Kind : uint8_t {
    kRemainder,  // runs the function to its end from that loop on
    kNest,       // runs that loop alone
  };
  LoopIndex loop;
  const void* code = nullptr;  // optimized version's entry for that loop
  Kind kind = Kind::kRemainder;
};
// What baseline code's slot for the loop holds, where it leads to this entry.
inline const void* slot_word(const OsrEntry& entry) {
  return static_cast<const std::byte*>(entry.code) + (entry.kind == OsrEntry::Kind::kNest ? 1 : 0);
}

// The same out of optimized code, which at some loops looks at a slot of its own. If that is not null, the code goes on
// at the entry that the slot names, of another version and for that loop. The frame is in ThreadState::arguments, so it
// has to be read before anything else runs. Values that nobody reads again are not in the frame.
struct OsrExit {
  LoopIndex loop;
  std::atomic<const void*>* slot = nullptr;  // in the writable view of the version's memory
};

struct PassTime {
  std::string name;
  double seconds = 0;
};

// One of the passes inside these, over all its runs.
struct PassCost {
  std::string name;
  uint64_t runs = 0;
  double seconds = 0;  // CPU time, its own
};

// Where an exception goes on that is thrown out of a call (jit/abi/exception.h): a call whose return address
// minus one lies in [begin, end).
struct ExceptionHandler {
  CodeOffset begin, end;
  CodeOffset landing;
};

struct CodeVersion {
  VersionId id;
  FuncIndex function;
  Tier tier = Tier::kBaseline;
  std::optional<LoopIndex> nest;  // optimized tier: the code is of this loop alone
  CodeAllocation memory;
  CodeOffset code_size;  // instruction bytes at the start of memory.executable(), followed by constants
  // Where what hardly ever runs lies after all else that can be run: the bytes before it, which can be copied without
  // it (move_code.h). Else 0.
  CodeOffset hot_bytes;
  // For such a copy: what it is the beginning of, and goes on in. Nobody else frees it as long as this is there.
  std::shared_ptr<const CodeVersion> whole;
  mutable std::atomic<uint32_t> parts{0};  // copies that go on in this one
  const void* entry = nullptr;             // in the executable view; null: only running loops may enter
  PcMap pc_map;                            // offsets relative to memory.executable()
  std::vector<OsrEntry> osr_entries;       // optimized tier
  std::vector<OsrExit> osr_exits;          // optimized tier
  std::atomic<const void*>* osr_slots =
      nullptr;  // baseline tier: one a loop, in the writable view; null without loops
  uint32_t osr_slot_count = 0;
  // Optimized tier; their addresses are in the code. Shared by a version and its copies elsewhere
  // (move_code.h).
  std::vector<std::shared_ptr<LoopCell>> loop_cells;
  std::shared_ptr<NestWork> work;  // of a nest, written by its code; null: it is not counted
  // A nest looks in each of its loop's short iterations whether it is to be left, which costs some percent.
  bool polls_short_iterations = false;
  std::vector<Answer> answers;             // to what was asked for, and what goes with it
  std::vector<ExceptionHandler> handlers;  // ascending, disjoint
  std::vector<TypeId> types;               // those whose ids are in the instructions
  std::vector<FuncIndex> inlined;          // functions whose bodies are in this code
  double compile_seconds = 0;  // optimized: CPU time of the compiling thread; baseline: time that passed
  std::vector<PassTime> pass_times;
  // What to write anew if the bytes are copied to another place; empty: nobody knows (baseline code).
  std::optional<std::vector<CodeRelocation>> relocations;

  // The landing for an exception out of the call that returns to `return_address`; null: none in this
  // version. O(log n).
  const void* landing_of(const void* return_address) const;

  const std::byte* begin() const { return memory.executable(); }
  const std::byte* end() const { return memory.executable() + code_size.value; }
  // Makes the slot at an offset of the allocation, whose bytes are zero, an exit. The code is not published yet.
  void add_exit(LoopIndex loop, CodeOffset offset);
};

}  // namespace hindsight::jit
