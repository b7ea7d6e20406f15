#include "jit/code/pc_map.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace hindsight::jit {

namespace {
// A row after the first of its block is the difference of code offsets, 1 to 255, and that of wasm offsets, a signed
// byte. Its inline site is the same. Else it is kInFull and the row.
constexpr uint8_t kInFull = 0;
constexpr size_t kFullBytes = 1 + sizeof(PcRow);
static_assert(sizeof(PcRow) == 12);
}  // namespace

void PcMapBuilder::append() {
  const bool same_site = last_.inline_site == stored_.inline_site;
  if (last_.wasm == stored_.wasm && same_site && !blocks_.empty()) return;
  if (rows_in_block_ == PcMap::kRowsPerBlock) {
    blocks_.push_back({last_, static_cast<uint32_t>(used_)});
    rows_in_block_ = 1;
    stored_ = last_;
    return;
  }
  ++rows_in_block_;
  if (bytes_.size() - used_ < kFullBytes) bytes_.resize(2 * bytes_.size() + 512);
  uint8_t* const at = bytes_.data() + used_;
  const uint32_t code = last_.code.value - stored_.code.value;
  // Modulo 2^32, so that kNoWasmOffset is a value like any other.
  const uint32_t wasm = last_.wasm.value - stored_.wasm.value;
  if (code <= 255 && wasm + 128 <= 255 && same_site) {
    at[0] = static_cast<uint8_t>(code);
    at[1] = static_cast<uint8_t>(wasm);
    used_ += 2;
  } else {
    at[0] = kInFull;
    std::memcpy(at + 1, &last_, sizeof last_);
    used_ += kFullBytes;
  }
  stored_ = last_;
}

PcMap PcMapBuilder::finish(std::vector<InlineSite> sites) {
  if (pending_) append();
  PcMap map;
  map.blocks_.assign(blocks_.begin(), blocks_.end());
  map.bytes_.assign(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(used_));
  map.sites_ = std::move(sites);
  clear();
  return map;
}

void PcMapBuilder::clear() {
  blocks_.clear();
  used_ = 0;
  rows_in_block_ = PcMap::kRowsPerBlock;
  pending_ = false;
}

// Walks the rows of one block.
class PcMap::Cursor {
 public:
  Cursor(const PcMap& map, size_t block)
      : row_(map.blocks_[block].first),
        at_(map.bytes_.data() + map.blocks_[block].begin),
        end_(map.bytes_.data() +
             (block + 1 < map.blocks_.size() ? map.blocks_[block + 1].begin : map.bytes_.size())) {}

  const PcRow& row() const { return row_; }
  bool next() {
    if (at_ == end_) return false;
    if (*at_ == kInFull) {
      std::memcpy(&row_, at_ + 1, sizeof row_);
      at_ += kFullBytes;
    } else {
      row_.code = CodeOffset(row_.code.value + at_[0]);
      row_.wasm = WasmOffset(row_.wasm.value + static_cast<uint32_t>(static_cast<int8_t>(at_[1])));
      at_ += 2;
    }
    return true;
  }

 private:
  PcRow row_;
  const uint8_t* at_;
  const uint8_t* end_;
};

std::optional<PcRow> PcMap::find(CodeOffset code) const noexcept {
  const auto behind =
      std::upper_bound(blocks_.begin(), blocks_.end(), code,
                       [](CodeOffset at, const Block& block) { return at < block.first.code; });
  if (behind == blocks_.begin()) return std::nullopt;
  Cursor cursor(*this, static_cast<size_t>(behind - blocks_.begin()) - 1);
  PcRow found = cursor.row();
  while (cursor.next() && cursor.row().code <= code) found = cursor.row();
  return found;
}

std::vector<PcRow> PcMap::rows() const {
  std::vector<PcRow> all;
  for (size_t block = 0; block < blocks_.size(); ++block) {
    Cursor cursor(*this, block);
    do all.push_back(cursor.row());
    while (cursor.next());
  }
  return all;
}

}  // namespace hindsight::jit
