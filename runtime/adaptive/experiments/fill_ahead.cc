#include "runtime/adaptive/experiments/fill_ahead.h"

#include <algorithm>
#include <utility>

#include "feedback/profile/evidence.h"
#include "runtime/adaptive/experiments/populate_pages.h"

namespace hindsight::rt {
namespace {

using feedback::FillBlock;
using feedback::kHugePageBytes;

// Blocks far behind all that is touched are looked at less often: a new place to fill shows up there.
constexpr uint32_t kNear = 64;
constexpr uint32_t kFarEvery = 16;

}  // namespace

FillAhead::FillAhead(uint64_t begin, uint64_t end)
    : begin_(begin), blocks_(static_cast<size_t>((end - begin) / kHugePageBytes)) {}

bool FillAhead::begin_pass() {
  const std::lock_guard lock(mutex_);
  return !refused_ && !std::exchange(in_pass_, true);
}

std::optional<uint64_t> FillAhead::pages_of(uint32_t block) const {
  const uint64_t begin = begin_ + block * kHugePageBytes;
  return touched_pages(begin, begin + kHugePageBytes);
}

// Which blocks may have changed.
std::vector<uint32_t> FillAhead::look() {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> unknown;
  uint32_t near = 0;
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (block.state == FillBlock::kJustTouched) block.state = FillBlock::kTouched;
    if (block.state != FillBlock::kUntouched) near = i + kNear;
    const bool changes =
        block.state == FillBlock::kUntouched || (block.state == FillBlock::kTouched && !block.full);
    if (changes && (first_ || i <= near || i % kFarEvery == 0)) unknown.push_back(i);
  }
  return unknown;
}

void FillAhead::note(uint32_t at, uint64_t pages) {
  Block& block = blocks_[at];
  if (pages == 0) return;
  block.full = is_full_block(pages);
  // What was there at the first look says nothing about where the guest is now.
  if (block.state == FillBlock::kUntouched)
    block.state = first_ ? FillBlock::kTouched : FillBlock::kJustTouched;
}

// The guest goes upwards: who touches the block behind those that were made has come by them.
void FillAhead::note_reached() {
  bool advanced = false;
  for (size_t i = blocks_.size(); i-- > 1;) {
    const FillBlock behind = blocks_[i].state;
    if (blocks_[i - 1].state != FillBlock::kMade ||
        (behind != FillBlock::kJustTouched && behind != FillBlock::kTouched))
      continue;
    blocks_[i - 1].state = FillBlock::kTouched;
    blocks_[i - 1].full = true;
    made_.reached += kHugePageBytes;
    advanced = true;
  }
  advances_ += advanced ? 1 : 0;
}

void FillAhead::pass(const feedback::PolicyConfig& config, const std::atomic<bool>& stop) {
  const std::vector<uint32_t> unknown = look();
  std::vector<std::pair<uint32_t, uint64_t>> seen;
  for (const uint32_t block : unknown)
    if (const auto pages = pages_of(block)) seen.emplace_back(block, *pages);
  std::vector<uint32_t> ahead;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [block, pages] : seen) note(block, pages);
    note_reached();
    std::vector<FillBlock> states;
    uint32_t touched = 0;
    for (const Block& block : blocks_) {
      states.push_back(block.state);
      touched += block.state == FillBlock::kTouched || block.state == FillBlock::kJustTouched ? 1 : 0;
    }
    if (!first_) ahead = feedback::blocks_ahead(states, feedback::window_ahead(advances_, touched, config));
    first_ = false;
  }
  for (const uint32_t block : ahead) {
    if (stop.load(std::memory_order_relaxed)) break;
    const uint64_t begin = begin_ + block * kHugePageBytes;
    // The guest may have been quicker.
    if (const auto pages = pages_of(block); !pages || *pages != 0) continue;
    const Populated populated = populate_pages(begin, begin + kHugePageBytes);
    const std::lock_guard lock(mutex_);
    made_.seconds += populated.seconds;
    if (populated.error != 0) {
      refused_ = true;
      break;
    }
    made_.bytes += kHugePageBytes;
    blocks_[block].state = FillBlock::kMade;
  }
  const std::lock_guard lock(mutex_);
  in_pass_ = false;
}

MemoryFill FillAhead::fill(uint32_t most_blocks) const {
  const std::lock_guard lock(mutex_);
  MemoryFill fill;
  const uint64_t blocks = blocks_.size();
  const uint64_t looked_at = std::min<uint64_t>(blocks, most_blocks);
  for (uint64_t i = 0; i < looked_at; ++i) {
    const Block& block = blocks_[i * blocks / looked_at];
    const bool touched = block.state == FillBlock::kTouched || block.state == FillBlock::kJustTouched;
    ++(!touched ? fill.untouched : block.full ? fill.full : fill.part);
  }
  return fill;
}

FillAhead::Made FillAhead::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace hindsight::rt
