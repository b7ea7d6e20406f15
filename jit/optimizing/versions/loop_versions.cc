#include "jit/optimizing/versions/loop_versions.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/ir/names.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

struct Version {
  BasicBlock* entry = nullptr;
  BasicBlock* header = nullptr;
  BasicBlock* latch = nullptr;
  BasicBlock* turn = nullptr;   // from the latch: on to the header, or out to the tail
  BasicBlock* leave = nullptr;  // from there to the tail
  PHINode* left = nullptr;      // iterations of the strip, this one included
};

class VersionMaker {
 public:
  VersionMaker(llvm::Loop& loop, llvm::DebugLoc location)
      : loop_(loop),
        context_(loop.getHeader()->getContext()),
        function_(*loop.getHeader()->getParent()),
        location_(std::move(location)),
        before_(loop.getLoopPreheader()) {
    with_.header = loop.getHeader();
    with_.latch = loop.getLoopLatch();
    loop.getUniqueExitBlocks(exits_);
  }

  LoopVersions make(const std::function<VersionChoice(llvm::IRBuilder<>&)>& choose,
                    const std::function<void(Instruction*, Value*)>& ended) {
    LoopVersions versions;
    BasicBlock* const head = new_block("versions.head");
    BasicBlock* const tail = new_block("versions.tail");
    copy_loop();

    // Head: what the loop carried is carried from strip to strip.
    llvm::IRBuilder<> b(head);
    b.SetCurrentDebugLocation(location_);
    struct Carried {
      PHINode *in_head, *in_with, *in_without;
    };
    std::vector<Carried> carried;
    for (PHINode& phi : with_.header->phis()) {
      PHINode* const in_head = b.CreatePHI(phi.getType(), 2);
      auto* const in_without = llvm::cast<PHINode>(map_[&phi]);
      in_head->addIncoming(phi.getIncomingValueForBlock(with_.entry), before_);
      phi.setIncomingValueForBlock(with_.entry, in_head);
      in_without->setIncomingValueForBlock(without_.entry, in_head);
      carried.push_back({in_head, &phi, in_without});
      versions.first[&phi] = in_head;
    }
    versions.with_entry = with_.entry;
    const VersionChoice choice = choose(b);
    b.CreateCondBr(choice.with, with_.entry, without_.entry);
    before_->getTerminator()->replaceSuccessorWith(with_.header, head);

    for (Version* version : {&with_, &without_}) count_turns(*version, choice.count, tail);

    // Tail.
    b.SetInsertPoint(tail);
    b.SetCurrentDebugLocation(location_);
    for (const Carried& c : carried) {
      Value* const next = merged(c.in_with->getIncomingValueForBlock(with_.turn),
                                 c.in_without->getIncomingValueForBlock(without_.turn), tail);
      c.in_head->addIncoming(next, tail);
      versions.next[c.in_with] = next;
    }
    b.SetInsertPoint(tail);
    ended(b.CreateBr(head), choice.count);
    for (BasicBlock* exit : exits_) account(*exit, choice.count, ended);
    return versions;
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, &function_, loop_.getHeader());
  }

  void copy_loop() {
    with_.entry = new_block("with");
    without_.entry = new_block("without");
    const std::vector<BasicBlock*> copies = copy_blocks(loop_.getBlocks(), ".without", map_);
    map_[before_] = without_.entry;
    llvm::remapInstructionsInBlocks(copies, map_);
    without_.header = llvm::cast<BasicBlock>(map_[with_.header]);
    without_.latch = llvm::cast<BasicBlock>(map_[with_.latch]);
    for (PHINode& phi : with_.header->phis()) phi.replaceIncomingBlockWith(before_, with_.entry);
    for (const auto& [entry, header] :
         {std::pair{with_.entry, with_.header}, {without_.entry, without_.header}})
      llvm::BranchInst::Create(header, entry)->setDebugLoc(location_);
    // What comes after the loop has more ways in, as often as an edge leads there.
    for (BasicBlock* exit : exits_) {
      for (PHINode& phi : exit->phis()) {
        for (unsigned i = 0, n = phi.getNumIncomingValues(); i < n; ++i) {
          BasicBlock* const from = phi.getIncomingBlock(i);
          if (loop_.contains(from))
            phi.addIncoming(copy_of(phi.getIncomingValue(i)), llvm::cast<BasicBlock>(map_[from]));
        }
      }
    }
  }

  Value* copy_of(Value* value) const {
    const auto found = map_.find(value);
    return found == map_.end() ? value : static_cast<Value*>(found->second);
  }

  void count_turns(Version& version, Value* count, BasicBlock* tail) {
    llvm::Type* const type = count->getType();
    version.turn = new_block("turn");
    version.leave = new_block("turn.leave");
    version.latch->getTerminator()->replaceSuccessorWith(version.header, version.turn);
    for (PHINode& phi : version.header->phis()) phi.replaceIncomingBlockWith(version.latch, version.turn);
    version.left = PHINode::Create(type, 2, "left", version.header->begin());
    version.left->setDebugLoc(location_);
    llvm::IRBuilder<> b(version.turn);
    b.SetCurrentDebugLocation(location_);
    Value* const next = b.CreateSub(version.left, llvm::ConstantInt::get(type, 1));
    version.left->addIncoming(count, version.entry);
    version.left->addIncoming(next, version.turn);
    constexpr uint32_t kMostly = 1000;
    b.CreateCondBr(b.CreateIsNotNull(next), version.header, version.leave,
                   llvm::MDBuilder(context_).createBranchWeights(kMostly, 1));
    b.SetInsertPoint(version.leave);
    b.CreateBr(tail);
  }

  // What a value of the loop is in the tail: through a phi of each version's own way out (LCSSA).
  Value* merged(Value* in_with, Value* in_without, BasicBlock* tail) {
    if (in_with == in_without) return in_with;
    PHINode* const phi = phi_in(tail, in_with->getType(), 2);
    for (const auto& [version, value] : {std::pair{&with_, in_with}, {&without_, in_without}}) {
      PHINode* const leaving = phi_in(version->leave, value->getType(), 1);
      leaving->addIncoming(value, version->turn);
      phi->addIncoming(leaving, version->leave);
    }
    return phi;
  }
  PHINode* phi_in(BasicBlock* block, llvm::Type* type, unsigned values) {
    PHINode* const phi = PHINode::Create(type, values, "", block->begin());
    phi->setDebugLoc(location_);
    return phi;
  }

  // The iterations since the head, where the loop is left. Not where it is left for good.
  void account(BasicBlock& exit, Value* count, const std::function<void(Instruction*, Value*)>& ended) {
    if (llvm::isa<llvm::UnreachableInst>(exit.getTerminator())) return;
    PHINode* const left = phi_in(&exit, count->getType(), 4);
    for (BasicBlock* from : llvm::predecessors(&exit))
      left->addIncoming(loop_.contains(from) ? with_.left : without_.left, from);
    Instruction* const rest = &*exit.getFirstInsertionPt();
    llvm::IRBuilder<> b(rest);
    b.SetCurrentDebugLocation(location_);
    ended(rest, b.CreateAdd(b.CreateSub(count, left), llvm::ConstantInt::get(count->getType(), 1)));
  }

  llvm::Loop& loop_;
  llvm::LLVMContext& context_;
  llvm::Function& function_;
  const llvm::DebugLoc location_;
  BasicBlock* const before_;
  llvm::SmallVector<BasicBlock*, 4> exits_;
  Version with_, without_;
  llvm::ValueToValueMapTy map_;  // of the loop to its copy
};

}  // namespace

std::string_view why_not_in_versions(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  if (!loop.isLoopSimplifyForm() || !loop.isLCSSAForm(dominators))
    return "the loop is not in simplified form";
  const auto turns = llvm::count(llvm::successors(loop.getLoopLatch()), loop.getHeader());
  if (turns != 1) return "the loop has two back edges";
  for (const BasicBlock* block : loop.blocks()) {
    // A landing pad would have two loops; an indirect jump cannot have another target.
    const Instruction* const end = block->getTerminator();
    if (!llvm::isa<llvm::BranchInst, llvm::SwitchInst, llvm::UnreachableInst, llvm::ReturnInst>(end))
      return "the loop catches exceptions";
    for (const Instruction& instruction : *block) {
      const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (instruction.getType()->isTokenTy() || (call != nullptr && call->cannotDuplicate()))
        return "the loop contains an instruction that cannot be copied";
    }
  }
  return {};
}

VersionChoice choice_of(const CellCode& cell, llvm::IRBuilder<>& b) {
  llvm::Value* const left =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, cell.load(b, kCellCountdown),
                              llvm::ConstantInt::getSigned(b.getInt32Ty(), kShortestVersionStrip - 1));
  return {.count = b.CreateAdd(left, b.getInt32(1)), .with = b.CreateIsNotNull(cell.load(b, kCellEnabled))};
}

double expected_turns(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  double leaves = 0;
  for (const llvm::BasicBlock* block : exiting) {
    uint64_t yes = 0, no = 0;
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (branch == nullptr || !branch->isConditional()) continue;
    if (const llvm::MDNode* const counts = branch->getMetadata(kExitCounts)) {
      const auto count = [&](unsigned which) {
        return llvm::mdconst::extract<llvm::ConstantInt>(counts->getOperand(which))
            ->getValue()
            .roundToDouble();
      };
      leaves += count(0) / std::max(count(1), 1.0);
      continue;
    }
    if (!llvm::extractBranchWeights(*branch, yes, no)) continue;
    const double out = static_cast<double>(loop.contains(branch->getSuccessor(0)) ? no : yes);
    leaves += out / static_cast<double>(std::max<uint64_t>(yes + no, 1));
  }
  return leaves > 0 ? 1 / leaves : 0;
}

size_t instructions_of(const llvm::Loop& loop) {
  size_t size = 0;
  for (const llvm::BasicBlock* block : loop.blocks()) size += block->size();
  return size;
}

LoopVersions make_versions(llvm::Loop& loop, llvm::DebugLoc location,
                           const std::function<VersionChoice(llvm::IRBuilder<>&)>& choose,
                           const std::function<void(Instruction*, Value*)>& ended) {
  return VersionMaker(loop, std::move(location)).make(choose, ended);
}

}  // namespace hindsight::jit::optimizing
