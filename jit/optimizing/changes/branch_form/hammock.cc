#include "jit/optimizing/changes/branch_form/hammock.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "jit/optimizing/changes/branch_form/if_conversion.h"
#include "jit/optimizing/ir/load_user.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;

constexpr unsigned kMostSelectOperations = 32;  // of all blocks
constexpr size_t kMostBlocks = 16;

bool is_free(const Instruction& instruction) {
  return is_pin(instruction) || llvm::isa<llvm::PHINode, llvm::ZExtInst, llvm::TruncInst, llvm::BitCastInst,
                                          llvm::GetElementPtrInst, llvm::FreezeInst>(instruction);
}

std::string_view why_not_in_an_arm(const Instruction& instruction) {
  const llvm::DataLayout& layout = instruction.getModule()->getDataLayout();
  const auto fits = [&](llvm::Type* type) {
    const llvm::TypeSize size = layout.getTypeStoreSize(type);
    return !size.isScalable() && size.getFixedValue() <= kMostAccessBytes;
  };
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return load->isSimple() && fits(load->getType()) ? "" : "an arm has an access that other threads see";
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return store->isSimple() && fits(store->getValueOperand()->getType())
               ? ""
               : "an arm has an access that other threads see";
  if (is_pin(instruction) || llvm::isa<llvm::PHINode>(instruction)) return {};
  if (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction))
    return "an arm contains a call";
  switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::FDiv:
    case Instruction::FRem:
      return "an arm contains a division";
    default:
      break;
  }
  return llvm::isSafeToSpeculativelyExecute(&instruction) ? "" : "an arm has a side effect";
}

std::string_view why_no_arm(const BasicBlock& block) {
  for (const Instruction& instruction : block) {
    if (instruction.isTerminator()) break;
    if (const std::string_view why = why_not_in_an_arm(instruction); !why.empty()) return why;
  }
  const auto* const end = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (end == nullptr) return "the arms do not meet right after them";
  return end->isConditional() && end->getSuccessor(0) == end->getSuccessor(1) ? "both arms are the same" : "";
}

class HammockFinder {
 public:
  HammockFinder(llvm::BranchInst& branch, const llvm::Loop& loop) : loop_(loop) { found_.branch = &branch; }

  std::expected<Hammock, std::string_view> find() {
    if (found_.branch->getSuccessor(0) == found_.branch->getSuccessor(1))
      return std::unexpected("both arms are the same");
    if (leaves(*found_.branch->getSuccessor(0)) || leaves(*found_.branch->getSuccessor(1)))
      return std::unexpected("it decides whether the loop goes on");
    come_to(*found_.branch);
    while (ends_.size() > 1) {
      const auto inside = std::ranges::find_if(ends_, [&](const BasicBlock* end) { return is_inside(*end); });
      if (inside == ends_.end()) return std::unexpected(reason_.empty() ? why_not_met() : reason_);
      BasicBlock& block = **inside;
      ends_.erase(inside);
      add(block);
      if (found_.blocks.size() > kMostBlocks || found_.operations > kMostSelectOperations)
        return std::unexpected("the arms are too long to execute both");
    }
    if (!ends_.empty()) found_.join = ends_.front();
    if (!both_come_to_join()) return std::unexpected("an arm leaves the loop");
    if (found_.join == &found_.from()) return std::unexpected("an arm is the back edge of a loop");
    return std::move(found_);
  }

 private:
  // All ways to it come through the hammock, and it may be executed for nothing.
  bool is_inside(const BasicBlock& block) {
    const bool is_entered_here = llvm::all_of(llvm::predecessors(&block), [&](const BasicBlock* before) {
      return before == &found_.from() || found_.contains(before);
    });
    if (!is_entered_here || &block == &found_.from() || &block == loop_.getHeader()) return false;
    const std::string_view why = why_no_arm(block);
    if (reason_.empty()) reason_ = why;
    return why.empty();
  }
  void add(BasicBlock& block) {
    found_.blocks.push_back(&block);
    found_.operations += operations_of(block);
    for (const Instruction& instruction : block)
      found_.accesses += llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction) ? 1 : 0;
    found_.branches += llvm::succ_size(&block) > 1 ? 1 : 0;
    come_to(*block.getTerminator());
  }
  void come_to(Instruction& end) {
    for (BasicBlock* to : llvm::successors(&end)) {
      if (leaves(*to))
        ++found_.exits;
      else if (!llvm::is_contained(ends_, to))
        ends_.push_back(to);
    }
  }
  bool leaves(const BasicBlock& block) const { return !loop_.contains(&block); }
  // Each way of the branch does, sooner or later.
  bool both_come_to_join() const {
    return found_.join != nullptr &&
           llvm::all_of(llvm::successors(found_.branch),
                        [&](const BasicBlock* way) { return found_.come_to_by(way).contains(found_.join); });
  }
  // One of the ends goes on to another, but is come to from elsewhere too.
  std::string_view why_not_met() const {
    const bool is_shared = llvm::any_of(ends_, [&](const BasicBlock* end) {
      const BasicBlock* const after = end->getUniqueSuccessor();
      return after != nullptr && llvm::any_of(ends_, [&](const BasicBlock* other) {
               return other != end && (other == after || other->getUniqueSuccessor() == after);
             });
    });
    return is_shared ? "an arm is entered from elsewhere" : "the arms do not meet right after them";
  }

  const llvm::Loop& loop_;
  Hammock found_;
  std::vector<BasicBlock*> ends_;  // of the ways so far that are in the loop, each once
  std::string_view reason_;
};

}  // namespace

bool Hammock::contains(const BasicBlock* block) const {
  return llvm::is_contained(blocks, block);
}

std::set<const BasicBlock*> Hammock::come_to_by(const BasicBlock* way) const {
  std::set<const BasicBlock*> come_to{way};
  for (const BasicBlock* block : blocks)
    if (come_to.contains(block)) come_to.insert(llvm::succ_begin(block), llvm::succ_end(block));
  return come_to;
}

unsigned operations_of(const BasicBlock& block) {
  unsigned operations = 0;
  for (const Instruction& instruction : block)
    operations += instruction.isTerminator() || is_free(instruction) ? 0 : 1;
  return operations;
}

std::expected<Hammock, std::string_view> find_hammock(llvm::BranchInst& branch, const llvm::Loop& loop) {
  return HammockFinder(branch, loop).find();
}

std::map<const BasicBlock*, double> shares_of_blocks(const Hammock& hammock, const TakenShare& taken) {
  std::map<const BasicBlock*, double> shares{{&hammock.from(), 1.0}};
  const auto pass_on = [&](const BasicBlock& block) {
    const double share = shares[&block];
    const auto& end = llvm::cast<llvm::BranchInst>(*block.getTerminator());
    const double first = end.isConditional() ? taken(end) : 1;
    shares[end.getSuccessor(0)] += share * first;
    if (end.isConditional()) shares[end.getSuccessor(1)] += share * (1 - first);
  };
  pass_on(hammock.from());
  for (const BasicBlock* block : hammock.blocks) pass_on(*block);
  return shares;
}

}  // namespace hindsight::jit::optimizing
