// PcMap: code offset -> wasm position, for every instruction of a code version. A row holds from its code
// offset up to the next row's. Optimized code has inline chains: the innermost wasm offset plus, for each
// level, the call site in the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace hindsight::jit {

inline constexpr uint32_t kNoInlineSite = ~0u;

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

class PcMap {
 public:
  PcMap() = default;
  // Of rows that are sorted and finished already, each at an offset of its own.
  PcMap(std::vector<PcRow> rows, std::vector<InlineSite> sites)
      : rows_(std::move(rows)), sites_(std::move(sites)) {}
  // In ascending code offset; a repeated offset replaces.
  void add_row(PcRow row) {
    if (!rows_.empty() && rows_.back().code == row.code)
      rows_.back() = row;
    else
      rows_.push_back(row);
  }
  uint32_t add_inline_site(InlineSite site) {
    sites_.push_back(site);
    return static_cast<uint32_t>(sites_.size() - 1);
  }
  // Sorts, merges rows that say the same. Call once, before lookups.
  void finish();
  // The same without giving memory back: for a map that is copied and then cleared for the next function.
  void merge_rows();
  void clear() {
    rows_.clear();
    sites_.clear();
  }

  // The row in force at `code`, if any. O(log n); async-signal-safe after finish().
  const PcRow* find(CodeOffset code) const noexcept;
  const std::vector<PcRow>& rows() const { return rows_; }
  const std::vector<InlineSite>& inline_sites() const { return sites_; }

 private:
  std::vector<PcRow> rows_;
  std::vector<InlineSite> sites_;
};

}  // namespace hindsight::jit
