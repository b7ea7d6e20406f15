#include "jit/optimizing/changes/prefetch/recursion_code.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <set>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/fetch_line.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// Where all of `loads` come behind, in no loop that the access is not in. Null: they do not come behind it.
Instruction* place_before(const std::vector<const Instruction*>& loads, const Instruction& access,
                          const llvm::DominatorTree& dominators, const llvm::LoopInfo& loops) {
  llvm::BasicBlock* block = nullptr;
  for (const Instruction* load : loads) {
    if (!dominators.dominates(&access, load)) continue;
    auto* const its = const_cast<llvm::BasicBlock*>(load->getParent());
    block = block == nullptr ? its : dominators.findNearestCommonDominator(block, its);
  }
  const llvm::Loop* const around = loops.getLoopFor(access.getParent());
  const auto depth = [&](const llvm::BasicBlock* of) { return loops.getLoopDepth(of); };
  while (block != nullptr && depth(block) > depth(access.getParent())) {
    const auto* const node = dominators.getNode(loops.getLoopFor(block)->getHeader())->getIDom();
    block = node == nullptr ? nullptr : node->getBlock();
  }
  if (block == nullptr || loops.getLoopFor(block) != around) return nullptr;
  Instruction* const end = block->getTerminator();
  if (!dominators.dominates(&access, end)) return nullptr;
  // Before the first of them, and before a call, during which what is fetched comes.
  for (Instruction& instruction : *block)
    if (dominators.dominates(&access, &instruction) &&
        (llvm::is_contained(loads, &instruction) || llvm::isa<llvm::CallInst>(instruction)))
      return &instruction;
  return end;
}

// Where a node with another index begins, from an access to one.
Value* element(llvm::IRBuilder<>& b, Value* at_access, Value& index, const RecursionFetch& its) {
  const auto wide = [&](Value* narrow) { return b.CreateSExtOrTrunc(narrow, b.getInt64Ty()); };
  Value* const between = b.CreateSub(wide(&index), wide(its.index));
  Value* const bytes = b.CreateMul(between, b.getInt64(static_cast<uint64_t>(its.scale)));
  return further_by(b, b.CreateGEP(b.getInt8Ty(), at_access, bytes), -its.place);
}

void emit_fetch(const RecursionWork::Fetch& fetch, IrModule& ir, llvm::Function& function,
                const CellCode& cell, const llvm::DebugLoc& location) {
  const RecursionFetch& its = fetch.what;
  Instruction* const rest = fetch.before != nullptr ? fetch.before : fetch.access->getNextNode();
  llvm::IRBuilder<> b(rest);
  b.SetCurrentDebugLocation(location);
  Value* const is_on = b.CreateIsNotNull(cell.load(b, kCellEnabled));
  Instruction* const end = llvm::SplitBlockAndInsertIfThen(is_on, rest, false, ir.likely);
  end->setDebugLoc(location);
  b.SetInsertPoint(end);
  b.SetCurrentDebugLocation(location);
  Speculation memory(ir, function, location);
  // An access has been, so the memory has a page.
  memory.use_memory(b, 0);
  Value* const at_access = llvm::getLoadStorePointerOperand(fetch.access);
  Value* const base = llvm::getUnderlyingObject(at_access, 0);
  const uint64_t bytes = ir.module.getDataLayout().getTypeStoreSize(its.address);
  for (const int64_t link : its.links) {
    Value* const place = memory.clamp(b, further_by(b, at_access, link - its.place), 0, bytes);
    llvm::LoadInst* const next =
        ir.mark(b.CreateAlignedLoad(its.address, place, llvm::Align(1)), IrModule::World::kMemory);
    tell_origin(ir, *next, *fetch.access);
    Value* const node = its.scale == 0 ? b.CreateGEP(ir.i8, base, b.CreateZExt(next, ir.i64))
                                       : element(b, at_access, *next, its);
    for (const int64_t at : its.fetched) {
      Value* fetched = further_by(b, node, at);
      // It may lead anywhere with 64 bits or an index, and what is not the guest's is not to be fetched.
      if (its.scale != 0 || !its.address->isIntegerTy(32)) fetched = memory.clamp(b, fetched, 0, 1);
      tell_origin(ir, *fetch_line(b, fetched), *fetch.access);
    }
  }
}

}  // namespace

void choose_places(RecursionWork& work, const llvm::DominatorTree& dominators, const llvm::LoopInfo& loops,
                   const llvm::BlockFrequencyInfo& frequencies) {
  std::set<int64_t> fetched;
  for (const auto& fetch : work.fetches) fetched.insert(fetch.what.fetched.begin(), fetch.what.fetched.end());
  const std::vector<RecursionWork::Fetch> all = std::move(work.fetches);
  work.fetches.clear();
  for (const RecursionWork::Fetch& fetch : all) {
    const bool is_later = llvm::any_of(all, [&](const RecursionWork::Fetch& other) {
      return other.access != fetch.access && dominators.dominates(other.access, fetch.access);
    });
    if (is_later) continue;
    RecursionWork::Fetch& first = work.fetches.emplace_back(fetch);
    first.what.fetched = {fetched.begin(), fetched.end()};
    Instruction* const later = place_before(first.what.loads, *first.access, dominators, loops);
    if (later == nullptr) continue;
    const auto often = [&](const Instruction& of) {
      return static_cast<double>(frequencies.getBlockFreq(of.getParent()).getFrequency());
    };
    if (often(*later) >= kMostNodesThatLeadOn * often(*first.access)) continue;
    // What stands there by now may be gone when other changes have been made: the end of a block in front of a loop is.
    llvm::Type* const flag = llvm::Type::getInt1Ty(later->getContext());
    first.before = new llvm::FreezeInst(llvm::PoisonValue::get(flag), "", later->getIterator());
  }
}

void emit_recursion_fetches(ChangeSet& changes, llvm::Function& function, const RecursionWork& work) {
  const CellCode cell(changes.ir, function, work.cell);
  const llvm::DebugLoc location = loop_location(changes.ir, function, work.claim.loop());
  for (const RecursionWork::Fetch& fetch : work.fetches) {
    // Another change may have done away with the index.
    if (fetch.what.scale == 0 || fetch.what.index != nullptr)
      emit_fetch(fetch, changes.ir, function, cell, location);
    cell.emit_countdown(llvm::ConstantInt::get(changes.ir.i32, 1), fetch.access->getNextNode(), location);
    if (fetch.before != nullptr) fetch.before->eraseFromParent();
  }
}

}  // namespace hindsight::jit::optimizing
