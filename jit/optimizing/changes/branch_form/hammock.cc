#include "jit/optimizing/changes/branch_form/hammock.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>

#include <algorithm>
#include <utility>

#include "jit/optimizing/changes/branch_form/form_parameters.h"
#include "jit/optimizing/ir/load_user.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;

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
  // `leaves_out`: what costs more to execute for nothing than a guess that it is not come to, which takes
  // `mispredict_cycles` where it is wrong.
  HammockFinder(llvm::BranchInst& branch, const llvm::Loop& loop, bool leaves_out, double mispredict_cycles)
      : loop_(loop), leaves_out_(leaves_out), mispredict_cycles_(mispredict_cycles) {
    found_.branch = &branch;
  }

  std::expected<Hammock, std::string_view> find() {
    if (found_.branch->getSuccessor(0) == found_.branch->getSuccessor(1))
      return std::unexpected("both arms are the same");
    if (leaves(*found_.branch->getSuccessor(0)) || leaves(*found_.branch->getSuccessor(1)))
      return std::unexpected("it decides whether the loop goes on");
    come_to(*found_.branch);
    while (ends_.size() > 1) {
      const Shares shares = shares_of_ends();
      auto inside = std::ranges::find_if(
          ends_, [&](const BasicBlock* end) { return is_inside(*end) && !is_better_aside(*end, shares); });
      if (inside == ends_.end()) {
        if (leave_out_one(shares)) continue;
        inside = std::ranges::find_if(ends_, [&](const BasicBlock* end) { return is_inside(*end); });
        if (inside == ends_.end()) return std::unexpected(reason_.empty() ? why_not_met() : reason_);
      }
      BasicBlock& block = **inside;
      ends_.erase(inside);
      add(block);
      if (found_.blocks.size() > kMostBlocksOfAHammock || found_.operations > kMostSelectOperations)
        return std::unexpected("the arms are too long to execute both");
    }
    if (!ends_.empty()) found_.join = ends_.front();
    if (!both_come_to_join())
      return std::unexpected(why_aside_.empty() ? "an arm leaves the loop" : why_aside_);
    if (found_.join == &found_.from()) return std::unexpected("an arm is the back edge of a loop");
    return std::move(found_);
  }

 private:
  using Shares = std::map<const BasicBlock*, double>;

  // All ways to it come through the hammock, or from aside, for which there may be a copy.
  bool is_entered_here(const BasicBlock& block) const {
    return &block != &found_.from() && &block != loop_.getHeader() &&
           llvm::all_of(llvm::predecessors(&block), [&](const BasicBlock* before) {
             return before == &found_.from() || found_.contains(before) ||
                    (llvm::is_contained(aside_, before) && may_be_copied(block, *before));
           });
  }
  static bool may_be_copied(const BasicBlock& block, const BasicBlock& before) {
    return block.getUniqueSuccessor() != nullptr && operations_of(block) <= kMostCopiedAside &&
           llvm::count(llvm::successors(&before), &block) == 1;
  }
  // And it may be executed for nothing.
  bool is_inside(const BasicBlock& block) {
    if (!is_entered_here(block)) return false;
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
  Shares shares_of_ends() const {
    return shares_of_blocks(
        found_, [](const llvm::BranchInst& branch) { return weighed_share(branch).value_or(0.5); });
  }
  // A guess that it is not gone costs less, in the mean, than what is executed for nothing.
  bool is_better_aside(const BasicBlock& block, const Shares& shares) const {
    const double share = shares.at(&block);
    return leaves_out_ && share <= kSeldomGone &&
           share * mispredict_cycles_ * kOperationsACycle < (1 - share) * operations_of(block);
  }
  // A way that is seldom gone, if there is one that leads where the others meet.
  bool leave_out_one(const Shares& shares) {
    std::vector<const BasicBlock*> way;
    const auto aside = std::ranges::find_if(ends_, [&](const BasicBlock* end) {
      if (!is_entered_here(*end) || shares.at(end) > kSeldomGone) return false;
      way = way_to_another_end(*end);
      return !way.empty();
    });
    if (aside == ends_.end()) return false;
    aside_.insert(aside_.end(), way.begin(), way.end());
    found_.asides.push_back(*aside);
    found_.share_aside += shares.at(*aside);
    found_.exits += static_cast<unsigned>(llvm::pred_size(*aside));
    ends_.erase(aside);
    why_aside_ = std::exchange(reason_, {});
    return true;
  }
  // Its blocks, entered through the first alone, and left for one other end, or for what is out of the loop. Empty: it is not like that.
  std::vector<const BasicBlock*> way_to_another_end(const BasicBlock& begin) const {
    std::vector<const BasicBlock*> way{&begin};
    const BasicBlock* end = nullptr;
    for (size_t i = 0; i < way.size(); ++i) {
      if (way.size() > kMostBlocksAside) return {};
      for (const BasicBlock* to : llvm::successors(way[i])) {
        if (leaves(*to) || llvm::is_contained(way, to)) continue;
        if (!llvm::is_contained(ends_, to)) {
          if (to == &found_.from() || to == loop_.getHeader()) return {};
          way.push_back(to);
        } else if (end == nullptr || end == to) {
          end = to;
        } else {
          return {};
        }
      }
    }
    const bool is_entered_at_begin = std::ranges::all_of(way, [&](const BasicBlock* block) {
      return block == &begin || llvm::all_of(llvm::predecessors(block), [&](const BasicBlock* before) {
               return llvm::is_contained(way, before);
             });
    });
    return end != nullptr && is_entered_at_begin ? way : std::vector<const BasicBlock*>();
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
  const bool leaves_out_;
  const double mispredict_cycles_;
  Hammock found_;
  std::vector<const BasicBlock*> aside_;  // what was left out
  std::vector<BasicBlock*> ends_;         // of the ways so far that are in the loop, each once
  std::string_view reason_;
  std::string_view why_aside_;  // the last one was left out
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

std::expected<Hammock, std::string_view> find_hammock(llvm::BranchInst& branch, const llvm::Loop& loop,
                                                      double mispredict_cycles) {
  auto hammock = HammockFinder(branch, loop, true, mispredict_cycles).find();
  return hammock ? std::move(hammock) : HammockFinder(branch, loop, false, mispredict_cycles).find();
}

std::optional<double> weighed_share(const Instruction& instruction) {
  uint64_t yes = 0, no = 0;
  if (!llvm::extractBranchWeights(instruction, yes, no) || yes + no == 0) return std::nullopt;
  return static_cast<double>(yes) / static_cast<double>(yes + no);
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
