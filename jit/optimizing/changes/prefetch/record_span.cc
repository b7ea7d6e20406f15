#include "jit/optimizing/changes/prefetch/record_span.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <tuple>

#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// A place as something that varies and a constant.
struct FieldPlace {
  const Value* base = nullptr;
  const Value* record = nullptr;  // the index, null: there is none
  int64_t offset = 0;
};

// What a value is in an iteration of the loop, as long as inner loops are in their first; null: itself.
const Value* at_first(const llvm::PHINode& phi, const llvm::Loop& loop, const llvm::LoopInfo& loops) {
  const llvm::Loop* const inner = loops.getLoopFor(phi.getParent());
  if (inner == nullptr || inner == &loop || !loop.contains(inner) || inner->getHeader() != phi.getParent())
    return nullptr;
  const llvm::BasicBlock* const before = inner->getLoopPredecessor();
  return before != nullptr ? phi.getIncomingValueForBlock(before) : nullptr;
}

FieldPlace field_place(const Instruction& access, const llvm::Loop& loop, const llvm::LoopInfo& loops) {
  FieldPlace place{.base = llvm::getLoadStorePointerOperand(&access)};
  while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(place.base)) {
    if (!is_of_bytes(*step)) break;
    const Value* const index = step->getOperand(1);
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(index)) {
      place.offset += number->getSExtValue();
    } else {
      if (place.record != nullptr) break;
      place.record = index;
    }
    place.base = step->getPointerOperand();
  }
  for (unsigned steps = 0; place.record != nullptr && steps < kMostStepsToARecord; ++steps) {
    const Value* next = nullptr;
    const Value* operand = nullptr;
    const llvm::APInt* number = nullptr;
    using namespace llvm::PatternMatch;
    if (match(place.record, m_ZExtOrSExt(m_Value(operand)))) {
      next = operand;
    } else if (match(place.record, m_AddLike(m_Value(operand), m_APInt(number)))) {
      place.offset += number->getSExtValue();
      next = operand;
    } else if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(place.record)) {
      next = at_first(*phi, loop, loops);
    }
    if (next == nullptr) break;
    place.record = next;
  }
  return place;
}

// Whether all bytes of [low, high] beside what varies are surely in one line. A memory's base is that of a page.
bool is_in_one_line(const Value* record, int64_t low, int64_t high, const llvm::DataLayout& layout) {
  if (record == nullptr) return false;
  const unsigned zeros =
      std::min(llvm::computeKnownBits(record, layout).countMinTrailingZeros(), llvm::Log2_64(kLineBytes));
  return low >> zeros == high >> zeros;
}

}  // namespace

RecordPlaces find_record_places(const llvm::Loop& loop, const std::vector<PrefetchSlice>& slices,
                                const llvm::LoopInfo& loops) {
  struct Record {
    std::vector<std::pair<const Instruction*, int64_t>> targets;  // and their offsets
    int64_t low = 0, high = 0;                                    // of the targets' bytes; `high` is in them
  };
  // By base, what varies, and how far ahead its targets are.
  std::map<std::tuple<const Value*, const Value*, uint32_t>, Record> records;
  for (const PrefetchSlice& slice : slices) {
    if (slice.forks || slice.node) continue;
    const FieldPlace place = field_place(*slice.target, loop, loops);
    const int64_t end = place.offset + bytes_of(*slice.target) - 1;
    Record& record = records[{place.base, place.record, slice.target_level}];
    if (record.targets.empty()) record = {.targets = {}, .low = place.offset, .high = end};
    record.targets.emplace_back(slice.target, place.offset);
    record.low = std::min(record.low, place.offset);
    record.high = std::max(record.high, end);
  }
  // Beside what stalls, what else is touched, as long as a line could hold all of it.
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const Instruction& instruction : *block) {
      if (!llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction)) continue;
      const FieldPlace place = field_place(instruction, loop, loops);
      for (auto at = records.lower_bound({place.base, place.record, 0});
           at != records.end() && std::get<0>(at->first) == place.base &&
           std::get<1>(at->first) == place.record;
           ++at) {
        Record& record = at->second;
        const int64_t low = std::min(record.low, place.offset);
        const int64_t high = std::max(record.high, place.offset + bytes_of(instruction) - 1);
        if (high - low < kLineBytes) std::tie(record.low, record.high) = std::pair(low, high);
      }
    }
  }
  RecordPlaces places;
  for (const auto& [key, record] : records) {
    if (record.high - record.low >= kLineBytes) continue;
    const auto& [first, first_offset] = record.targets.front();
    const bool is_one_place =
        record.high - record.low < kLeastSpan ||
        is_in_one_line(std::get<1>(key), record.low, record.high, first->getModule()->getDataLayout());
    if (record.targets.size() == 1 && is_one_place) continue;
    for (const auto& [target, offset] : record.targets) places[target];
    std::vector<int64_t>& ends = places[first];
    ends.push_back(record.low - first_offset);
    if (!is_one_place) ends.push_back(record.high - first_offset);
  }
  return places;
}

}  // namespace hindsight::jit::optimizing
