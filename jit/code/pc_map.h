// PcMap: code offset -> wasm position, for every instruction of a code version. A row holds from its code
// offset up to the next row's. Optimized code has inline chains: the innermost wasm offset plus, for each
// level, the call site in the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace hindsight::jit {

inline constexpr uint32_t kNoInlineSite = ~0u;
// In place of an inline site, of a function's own code: the call of the code that its running loop goes on in
// (OsrEntry). Caller and callee are one activation of the function, which is where the callee stands.
inline constexpr uint32_t kLoopGoesOn = ~0u - 1;

// "function `callee` was inlined at `call_site` of `caller_site` (kNoInlineSite: the compiled function
// itself)".
struct InlineSite {
  FuncIndex callee;
  WasmOffset call_site;
  uint32_t caller_site = kNoInlineSite;
  bool tail = false;  // by a tail call: the callee took its caller's place, which is in no backtrace
};

struct PcRow {
  CodeOffset code;
  WasmOffset wasm;  // value ~0: no wasm instruction (prologue, padding, constants)
  uint32_t inline_site = kNoInlineSite;
};
inline constexpr WasmOffset kNoWasmOffset{~0u};

// There is a row for nearly every instruction that was compiled. So rows are kept as differences between
// neighbours, of two bytes in nearly all rows of baseline code. Every kRowsPerBlock rows one is kept in full,
// for lookups.
class PcMap {
 public:
  static constexpr uint32_t kRowsPerBlock = 32;

  // The row in force at `code`, if any. O(log n); async-signal-safe.
  std::optional<PcRow> find(CodeOffset code) const noexcept;
  // All of them, in order. O(n).
  std::vector<PcRow> rows() const;
  const std::vector<InlineSite>& inline_sites() const { return sites_; }
  // What it takes on the heap.
  size_t heap_bytes() const {
    return blocks_.capacity() * sizeof(Block) + bytes_.capacity() + sites_.capacity() * sizeof(InlineSite);
  }

 private:
  friend class PcMapBuilder;
  struct Block {
    PcRow first;
    uint32_t begin;  // in bytes_, of the rows after the first
  };
  class Cursor;

  std::vector<Block> blocks_;
  std::vector<uint8_t> bytes_;
  std::vector<InlineSite> sites_;
};

// Makes one map after the other, in the same buffers.
class PcMapBuilder {
 public:
  // In ascending code offset; a repeated offset replaces (the earlier instruction emitted no code). A row that says
  // the same as the one before is left out.
  void add_row(PcRow row) {
    if (pending_ && row.code != last_.code) append();
    pending_ = true;
    last_ = row;
  }
  // The map of all rows since the last one. What an inline site is, `sites` says.
  PcMap finish(std::vector<InlineSite> sites = {});
  // Gives up what was added.
  void clear();
  size_t heap_bytes() const { return blocks_.capacity() * sizeof(PcMap::Block) + bytes_.capacity(); }

 private:
  void append();  // last_

  std::vector<PcMap::Block> blocks_;
  std::vector<uint8_t> bytes_;  // larger than what is in use
  size_t used_ = 0;
  PcRow last_;    // if pending_: not stored yet
  PcRow stored_;  // the last one that is
  uint32_t rows_in_block_ = PcMap::kRowsPerBlock;
  bool pending_ = false;
};

}  // namespace hindsight::jit
