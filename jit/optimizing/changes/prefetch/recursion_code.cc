#include "jit/optimizing/changes/prefetch/recursion_code.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>
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

// Fetches that a switch turns on.
class FetchCode {
 public:
  // In front of `rest`. `at_node`: an access to a node.
  FetchCode(IrModule& ir, const CellCode& cell, Instruction* rest, const llvm::DebugLoc& location,
            const RecursionWork::Fetch& at_node)
      : ir_(ir),
        its_(at_node.what),
        access_(*at_node.access),
        b_(rest),
        memory_(ir, *rest->getFunction(), location) {
    b_.SetCurrentDebugLocation(location);
    Value* const is_on = b_.CreateIsNotNull(cell.load(b_, kCellEnabled));
    Instruction* const end = llvm::SplitBlockAndInsertIfThen(is_on, rest, false, ir.likely);
    end->setDebugLoc(location);
    b_.SetInsertPoint(end);
    b_.SetCurrentDebugLocation(location);
    // An access has been, so the memory has a page.
    memory_.use_memory(b_, 0);
  }

  void add_links() {
    Value* const at_access = llvm::getLoadStorePointerOperand(&access_);
    std::optional<int64_t> place;
    Value* first = nullptr;
    for (const RecursionLink& link : its_.links) {
      if (place != link.place) first = node_at(further_by(b_, at_access, link.place - its_.place));
      place = link.place;
      fetch_node(link.further == 0 ? first : further_by(b_, first, link.further));
    }
  }
  void add_row(const RecursionRow& row) {
    Value* const base = llvm::getUnderlyingObject(row.load->getPointerOperand(), 0);
    for (int64_t ahead = 1; ahead <= kNodesAheadInARow; ++ahead) {
      Value* const link = element_ahead(b_, row, ahead);
      if (link == nullptr) return;
      Value* const node = node_at(link);
      fetch_node(node);
      // The next one is there by now, unless the row has just been begun.
      if (ahead != 1 || !row.begin_place) continue;
      llvm::LoadInst* const begin = load(further_by(b_, node, *row.begin_place));
      fetch(b_.CreateGEP(ir_.i8, base, b_.CreateZExt(begin, ir_.i64)), false);
    }
  }

 private:
  // The node whose address or index is at `link`.
  Value* node_at(Value* link) {
    llvm::LoadInst* const next = load(link);
    if (its_.scale != 0) return element(*next);
    Value* const base = llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&access_), 0);
    return b_.CreateGEP(ir_.i8, base, b_.CreateZExt(next, ir_.i64));
  }
  void fetch_node(Value* node) {
    for (const int64_t at : its_.fetched) fetch(further_by(b_, node, at), its_.scale != 0);
  }
  llvm::LoadInst* load(Value* place) {
    const uint64_t bytes = ir_.module.getDataLayout().getTypeStoreSize(its_.address);
    llvm::LoadInst* const value =
        ir_.mark(b_.CreateAlignedLoad(its_.address, memory_.clamp(b_, place, 0, bytes), llvm::Align(1)),
                 IrModule::World::kMemory);
    tell_origin(ir_, *value, access_);
    return value;
  }
  // It may lead anywhere with 64 bits or an index, and what is not the guest's is not to be fetched.
  void fetch(Value* place, bool is_by_index) {
    if (is_by_index || !its_.address->isIntegerTy(32)) place = memory_.clamp(b_, place, 0, 1);
    tell_origin(ir_, *fetch_line(b_, place), access_);
  }
  // Where a node with another index begins, from an access to one.
  Value* element(Value& index) {
    const auto wide = [&](Value* narrow) { return b_.CreateSExtOrTrunc(narrow, ir_.i64); };
    Value* const between = b_.CreateSub(wide(&index), wide(its_.index));
    Value* const bytes = b_.CreateMul(between, b_.getInt64(static_cast<uint64_t>(its_.scale)));
    return further_by(b_, b_.CreateGEP(ir_.i8, llvm::getLoadStorePointerOperand(&access_), bytes),
                      -its_.place);
  }

  IrModule& ir_;
  const RecursionFetch& its_;
  Instruction& access_;
  llvm::IRBuilder<> b_;
  Speculation memory_;
};

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
  for (const RecursionWork::Fetch& fetch : work.fetches) {
    for (const RecursionRow& row : fetch.what.rows) {
      const bool is_known = llvm::any_of(
          work.rows, [&](const RecursionWork::Row& other) { return other.what.load == row.load; });
      // From one index to another is known from an access to a node.
      if (!is_known && (fetch.what.scale == 0 || dominators.dominates(fetch.access, row.load)))
        work.rows.push_back({.what = row, .from = &fetch});
    }
  }
}

void emit_recursion_fetches(ChangeSet& changes, llvm::Function& function, const RecursionWork& work) {
  const CellCode cell(changes.ir, function, work.cell);
  const llvm::DebugLoc location = loop_location(changes.ir, function, work.claim.loop());
  // Another change may have done away with an index.
  const auto is_known = [](const RecursionFetch& what) { return what.scale == 0 || what.index != nullptr; };
  for (const RecursionWork::Row& row : work.rows) {
    if (!is_known(row.from->what)) continue;
    FetchCode(changes.ir, cell, row.what.load->getNextNode(), location, *row.from).add_row(row.what);
  }
  for (const RecursionWork::Fetch& fetch : work.fetches) {
    Instruction* const rest = fetch.before != nullptr ? fetch.before : fetch.access->getNextNode();
    if (!fetch.what.links.empty() && is_known(fetch.what))
      FetchCode(changes.ir, cell, rest, location, fetch).add_links();
    cell.emit_countdown(llvm::ConstantInt::get(changes.ir.i32, 1), fetch.access->getNextNode(), location);
    if (fetch.before != nullptr) fetch.before->eraseFromParent();
  }
}

}  // namespace hindsight::jit::optimizing
