#include "jit/optimizing/vectors/affine_access.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace hindsight::jit::optimizing {
namespace {

using llvm::SCEV;

// Beyond these a group is no neighbourhood; within them no sum below overflows 64 bits.
constexpr int64_t kMostStep = 1 << 16;
constexpr int64_t kMostDistance = 1 << 20;
constexpr int64_t kMostOffset = int64_t{1} << 32;

std::optional<int64_t> small_constant(const SCEV* expression, int64_t most) {
  const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(expression);
  if (!constant || constant->getAPInt().getSignificantBits() > 63) return {};
  const int64_t value = constant->getAPInt().getSExtValue();
  if (value > most || value < -most) return {};
  return value;
}

// {start, +, step} of `loop`; `place` keeps it unless it has another already.
bool take_recurrence(AffinePlace& place, const SCEV* expression, const llvm::Loop& loop,
                     llvm::ScalarEvolution& evolution) {
  const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(expression);
  if (!recurrence || recurrence->getLoop() != &loop || !recurrence->isAffine() || place.start) return false;
  const std::optional<int64_t> step = small_constant(recurrence->getStepRecurrence(evolution), kMostStep);
  if (!step) return false;
  place.start = recurrence->getStart();
  place.step = *step;
  return true;
}

// A group being made: members' distances from its first one.
struct AffineGroup {
  AffinePlace first;
  struct Member {
    size_t access;
    const SCEV* start;
    int64_t distance;
    int64_t constant;
  };
  std::vector<Member> members;
};

bool add_to(AffineGroup& group, size_t access, const AffinePlace& place, llvm::ScalarEvolution& evolution) {
  const AffinePlace& first = group.first;
  if (first.base != place.base || first.outer != place.outer || first.step != place.step ||
      first.start->getType() != place.start->getType())
    return false;
  const std::optional<int64_t> distance =
      small_constant(evolution.getMinusSCEV(place.start, first.start), kMostDistance);
  if (!distance) return false;
  group.members.push_back({access, place.start, *distance, place.constant});
  return true;
}

}  // namespace

std::optional<AffinePlace> affine_place(llvm::Value* pointer, const llvm::Loop& loop,
                                        llvm::ScalarEvolution& evolution) {
  const SCEV* const address = evolution.getSCEV(pointer);
  AffinePlace place;
  place.base = evolution.getPointerBase(address);
  if (!evolution.isLoopInvariant(place.base, &loop)) return {};
  const SCEV* const index = evolution.getMinusSCEV(address, place.base);
  if (llvm::isa<llvm::SCEVCouldNotCompute>(index) || !index->getType()->isIntegerTy(64)) return {};

  llvm::SmallVector<const SCEV*, 4> terms;
  const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(index);
  if (sum)
    terms.append(sum->operands().begin(), sum->operands().end());
  else
    terms.push_back(index);
  llvm::SmallVector<const SCEV*, 4> outer{evolution.getZero(index->getType())};
  for (const SCEV* term : terms) {
    if (const std::optional<int64_t> constant = small_constant(term, kMostOffset)) {
      place.constant += *constant;
    } else if (evolution.isLoopInvariant(term, &loop)) {
      outer.push_back(term);
    } else if (const auto* widened = llvm::dyn_cast<llvm::SCEVZeroExtendExpr>(term)) {
      if (!widened->getOperand()->getType()->isIntegerTy(32)) return {};
      if (!take_recurrence(place, widened->getOperand(), loop, evolution)) return {};
    } else if (!take_recurrence(place, term, loop, evolution)) {
      return {};
    }
  }
  // `{8 + x, +, s}` in 64 bits and `8 + {x, +, s}` are one thing.
  if (!place.start) place.start = evolution.getZero(index->getType());
  place.outer = evolution.getAddExpr(outer);
  return place;
}

const AffineAccess* AffineAccesses::of(const llvm::Instruction* instruction) const {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const AffineAccess& a) { return a.instruction == instruction; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<AffineAccesses> find_affine_accesses(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  AffineAccesses found;
  std::vector<AffineGroup> groups;
  const llvm::DataLayout& layout = loop.getHeader()->getModule()->getDataLayout();
  for (llvm::Instruction& instruction : *loop.getHeader()) {
    if (!instruction.mayReadOrWriteMemory()) continue;
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    if (load ? !load->isSimple() : !store || !store->isSimple()) return {};
    const std::optional<AffinePlace> place =
        affine_place(llvm::getLoadStorePointerOperand(&instruction), loop, evolution);
    if (!place) return {};
    const size_t index = found.all.size();
    found.all.push_back({.instruction = &instruction,
                         .bytes = static_cast<int64_t>(
                             layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)).getFixedValue()),
                         .is_store = store != nullptr});
    bool added = false;
    for (AffineGroup& group : groups)
      if ((added = add_to(group, index, *place, evolution))) break;
    if (!added) groups.push_back({*place, {{index, place->start, 0, place->constant}}});
  }
  for (const AffineGroup& group : groups) {
    const auto by_distance = [](const AffineGroup::Member& a, const AffineGroup::Member& b) {
      return a.distance < b.distance;
    };
    const auto [least, most] = std::minmax_element(group.members.begin(), group.members.end(), by_distance);
    AccessGroup made{.base = group.first.base,
                     .outer = group.first.outer,
                     .start = least->start,
                     .step = group.first.step,
                     .span = most->distance - least->distance,
                     .low = INT64_MAX,
                     .high = INT64_MIN};
    for (const AffineGroup::Member& member : group.members) {
      AffineAccess& access = found.all[member.access];
      access.group = found.groups.size();
      access.offset = member.distance - least->distance + member.constant;
      made.low = std::min(made.low, access.offset);
      made.high = std::max(made.high, access.offset + access.bytes);
    }
    found.groups.push_back(made);
  }
  return found;
}

}  // namespace hindsight::jit::optimizing
