#include "jit/optimizing/vectors/guarded_loop.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>

#include "jit/optimizing/vectors/memory_reach.h"
#include "jit/optimizing/versions/loop_parts.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

constexpr uint64_t kMostGuardedBackedges = uint64_t{1} << 31;
constexpr size_t kMostInstructionsGuarded = 400;
// Comparing two groups costs about six instructions whenever the loop is entered.
constexpr size_t kMostComparisons = 24;

bool is_marked(const llvm::Loop& loop, llvm::StringRef name) {
  return llvm::findOptionMDForLoop(&loop, name) != nullptr;
}

// Emits what must be known before the loop into its preheader. The function's blocks stay as they are.
class Preparation {
 public:
  Preparation(GuardedLoop& work, llvm::ScalarEvolution& evolution)
      : work_(work),
        evolution_(evolution),
        place_(work.before->getTerminator()),
        expander_(evolution, place_->getModule()->getDataLayout(), "wide"),
        b_(place_) {
    b_.SetCurrentDebugLocation(work.location);
  }

  bool emit(uint64_t least_iterations, Value* inside) {
    for (const AccessGroup& group : work_.accesses.groups)
      for (const llvm::SCEV* part : {group.base, group.outer, group.start})
        if (!expander_.isSafeToExpandAt(part, place_)) return false;
    for (const Rerolling::Advancing& advancing : work_.rerolling.advancing)
      if (!expander_.isSafeToExpandAt(advancing.start, place_)) return false;
    const unsigned copies = work_.rerolling.copies;
    // count >= least and count < most, in one comparison.
    const uint64_t least = least_iterations / copies == 0 ? 0 : least_iterations / copies - 1;
    work_.enough = b_.CreateICmpULT(b_.CreateSub(work_.backedges, b_.getInt64(least)),
                                    b_.getInt64(kMostGuardedBackedges - least));
    if (inside != nullptr) require(inside);
    for (const AccessGroup& group : work_.accesses.groups) emit_start(group);
    for (const Rerolling::Advancing& advancing : work_.rerolling.advancing)
      work_.advancing_starts.push_back(expand(advancing.start));
    const std::vector<std::pair<size_t, size_t>> pairs = pairs_to_compare();
    work_.apart = pairs.size() <= kMostComparisons;
    for (const auto& [one, other] : work_.apart ? pairs : work_.rerolling.apart) emit_apart(one, other);
    return true;
  }

 private:
  void require(Value* condition) {
    work_.guard = work_.guard == nullptr ? condition : b_.CreateAnd(work_.guard, condition);
  }
  Value* expand(const llvm::SCEV* expression) {
    return expander_.expandCodeFor(expression, expression->getType(), place_);
  }

  void emit_start(const AccessGroup& group) {
    Value* start = expand(group.start);
    if (group.may_wrap()) {
      start = b_.CreateZExt(start, b_.getInt64Ty());
      // Below 2^32 + 2^20 + 2^16 * 2^31: signed comparisons of 64 bits are right where the count is in range.
      Value* const way = b_.CreateMul(work_.backedges, b_.getInt64(static_cast<uint64_t>(group.step)));
      Value* const last = b_.CreateAdd(start, way);
      Value* const highest = b_.CreateAdd(group.step >= 0 ? last : start, b_.getInt64(group.span));
      require(b_.CreateICmpSLT(highest, b_.getInt64(int64_t{1} << 32)));
      if (group.step < 0) require(b_.CreateICmpSGE(last, b_.getInt64(0)));
    }
    Value* const index = b_.CreateAdd(start, expand(group.outer));
    work_.starts.push_back(b_.CreateGEP(b_.getInt8Ty(), expand(group.base), index));
  }

  // Where they are compared here, LLVM need not: it would compare every two addresses, and refuse where more
  // than one of a group are loaded.
  std::vector<std::pair<size_t, size_t>> pairs_to_compare() const {
    std::vector<bool> stored(work_.accesses.groups.size());
    for (const AffineAccess& access : work_.accesses.all)
      if (access.is_store) stored[access.group] = true;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t one = 0; one < stored.size(); ++one)
      for (size_t other = one + 1; other < stored.size(); ++other)
        if (stored[one] || stored[other]) pairs.emplace_back(one, other);
    return pairs;
  }

  // [lowest, end) of all that a group's members touch.
  std::pair<Value*, Value*> extent(size_t index) {
    const AccessGroup& group = work_.accesses.groups[index];
    Value* const start = b_.CreatePtrToInt(work_.starts[index], b_.getInt64Ty());
    Value* const last =
        b_.CreateAdd(start, b_.CreateMul(work_.backedges, b_.getInt64(static_cast<uint64_t>(group.step))));
    return {b_.CreateAdd(group.step >= 0 ? start : last, b_.getInt64(static_cast<uint64_t>(group.low))),
            b_.CreateAdd(group.step >= 0 ? last : start, b_.getInt64(static_cast<uint64_t>(group.high)))};
  }
  void emit_apart(size_t one, size_t other) {
    const auto [low, end] = extent(one);
    const auto [other_low, other_end] = extent(other);
    require(b_.CreateOr(b_.CreateICmpULE(end, other_low), b_.CreateICmpULE(other_end, low)));
  }

  GuardedLoop& work_;
  llvm::ScalarEvolution& evolution_;
  Instruction* const place_;
  llvm::SCEVExpander expander_;
  llvm::IRBuilder<> b_;
};

}  // namespace

GuardedLoop::Shape GuardedLoop::shape() const {
  Shape shape{.instructions = block->size()};
  for (const Instruction& instruction : *block)
    for (const llvm::User* user : instruction.users())
      shape.uses_behind += llvm::cast<Instruction>(user)->getParent() != block ? 1 : 0;
  return shape;
}
void GuardedLoop::remember_shape() {
  remembered_ = shape();
}
bool GuardedLoop::has_kept_its_shape() const {
  return shape() == remembered_;
}

std::vector<llvm::Loop*> latest_first(llvm::LoopInfo& loops) {
  std::vector<llvm::Loop*> innermost;
  const auto all = loops.getLoopsInPreorder();
  for (llvm::Loop* loop : llvm::reverse(all))
    if (loop->isInnermost()) innermost.push_back(loop);
  return innermost;
}

bool GuardedLoop::may_wrap() const {
  return std::any_of(accesses.groups.begin(), accesses.groups.end(),
                     [](const AccessGroup& group) { return group.may_wrap(); });
}

std::optional<GuardedLoop> find_guarded_loop(llvm::Loop& loop, llvm::DominatorTree& dominators,
                                             llvm::ScalarEvolution& evolution) {
  if (loop.getNumBlocks() != 1 || !loop.isLoopSimplifyForm() || !loop.isLCSSAForm(dominators)) return {};
  BasicBlock* const block = loop.getHeader();
  if (block->size() > kMostInstructionsGuarded || !loop.getUniqueExitBlock()) return {};
  if (is_marked(loop, "llvm.loop.vectorize.enable") || is_marked(loop, "llvm.loop.isvectorized")) return {};
  const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  if (!branch || !branch->isConditional()) return {};
  std::optional<AffineAccesses> accesses = find_affine_accesses(loop, evolution);
  if (!accesses || accesses->all.empty()) return {};
  GuardedLoop found;
  found.loop = &loop;
  found.before = loop.getLoopPreheader();
  found.block = block;
  found.after = loop.getUniqueExitBlock();
  found.accesses = std::move(*accesses);
  found.location = branch->getDebugLoc();
  const bool uncounted = is_uncounted(loop);
  found.identity =
      uncounted ? counted_loop_identity(block->getContext(), loop.getLoopID()) : loop.getLoopID();
  found.rerolling = find_copies(loop, found.accesses, evolution);
  const Backedges backedges = emit_backedges(loop, dominators, evolution, found.location);
  if (!backedges.count) return {};
  found.backedges = backedges.count;
  found.backedges_known_to_llvm = backedges.known_to_llvm && !uncounted;
  for (PHINode& phi : block->phis())
    if (const std::optional<int64_t> step = induction_step(phi, loop, evolution))
      found.inductions.push_back({&phi, *step});
  return found;
}

bool emit_guard(const IrModule& ir, GuardedLoop& loop, llvm::ScalarEvolution& evolution,
                uint64_t least_iterations, bool reorders) {
  MemoryReach reach{.kind = MemoryReach::Kind::kShowsNothing};
  if (reorders && ir.request.options.bounds == BoundsChecks::kGuardPages)
    reach = find_memory_reach(ir, *loop.loop, evolution, loop.backedges);
  if (reach.kind == MemoryReach::Kind::kUnknown) return false;
  loop.inside = reach.kind == MemoryReach::Kind::kKnown;
  return Preparation(loop, evolution).emit(least_iterations, reach.inside);
}

void branch_on_guard(GuardedLoop& loop, BasicBlock* second_entry, BasicBlock* own_entry) {
  BasicBlock& before = *loop.before;
  Instruction* const old = before.getTerminator();
  BasicBlock* behind = second_entry;
  if (loop.guard != nullptr) {
    behind = BasicBlock::Create(before.getContext(), "guard", before.getParent(), second_entry);
    llvm::BranchInst::Create(second_entry, own_entry, loop.guard, behind)->setDebugLoc(loop.location);
    for (PHINode& phi : own_entry->phis()) phi.addIncoming(phi.getIncomingValueForBlock(&before), behind);
  }
  llvm::BranchInst::Create(behind, own_entry, loop.enough, old)->setDebugLoc(loop.location);
  old->eraseFromParent();
  if (loop.guard != nullptr) sink_into(*behind, before, {second_entry});
  loop.block->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop,
                                           plain_loop_identity(loop.block->getContext(), loop.identity));
}

}  // namespace hindsight::jit::optimizing
