// What dry runs of both forms are made of as code (dry_run_code.cc, iteration_run_code.cc): the choice of a group, what it keeps
// beside memory, copies that do no harm.
#pragma once

#include <llvm/IR/CFG.h>

#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing::interleaving {

class DryRunCode : protected GroupCode {
 public:
  // While analyses are good.
  DryRunCode(IrModule& ir, llvm::Function& function, DryRunShape& shape, const llvm::LoopInfo& loops,
             llvm::ScalarEvolution& evolution, uint32_t cell, const llvm::DebugLoc& location);

 protected:
  ~DryRunCode() = default;

  using Unknown = llvm::SmallPtrSet<const Instruction*, 16>;
  using Guesses = std::map<const Instruction*, BasicBlock*>;

  // Of a loop within the search: its turn, and where the next step begins with it.
  struct TurnWithin {
    BasicBlock *from = nullptr, *turn = nullptr, *resume = nullptr;
  };

  // A buffer in the frame: for the heads under way, and for each search what its head left.
  struct OwnBytes {
    Value *begin = nullptr,
          *first = nullptr;  // where the program has it, and what was in there when the group began
    llvm::AllocaInst *of_heads = nullptr, *of_searches = nullptr;
  };
  static constexpr uint32_t kBufferBytes = DryRunShape::Buffer::kBytes;

  llvm::Type* bytes() const { return llvm::FixedVectorType::get(ir_.i8, kBufferBytes); }
  void copy_bytes(Builder& b, Value* from, Value* to) const {
    b.CreateAlignedStore(b.CreateAlignedLoad(bytes(), from, llvm::Align(1)), to, llvm::Align(1));
  }
  llvm::ConstantInt* word(uint32_t value) const { return llvm::ConstantInt::get(ir_.i32, value); }
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(ir_.context, name, &function_, latch_->getNextNode());
  }
  static BasicBlock* block_copy(const Copies& copies, BasicBlock* block) {
    return llvm::cast<BasicBlock>(copy_of(copies, block));
  }
  PHINode* phi_in(BasicBlock* block, llvm::Type* type) const {
    PHINode* const phi = PHINode::Create(type, 4, "", block->begin());
    phi->setDebugLoc(location_);
    return phi;
  }
  // The other lines of a node: so many bytes from the address each, which is where the load begins to look.
  void fetch_rest_of_node(Builder& b, Value* address, uint32_t memory, const std::vector<int64_t>& bytes,
                          const Instruction& load);
  void end_loop(Builder& b, Value* again, BasicBlock* first, BasicBlock* out) {
    b.CreateCondBr(again, first, out)
        ->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
  }

  // Whether there is one, and how wide it is. Makes the blocks that both forms have.
  void emit_group();
  // What both forms have in the frame, and what memory has of what the group keeps beside it. Ends without a terminator.
  void emit_begin();
  // What the group keeps beside memory is as memory has it.
  void start_own(Builder& b);

  // Copies whose operands are those of their own place by now.
  void make_harmless(const std::vector<BasicBlock*>& originals, Copies& copies);
  // A copy of an access goes to the bytes in the frame, if it is there that the original goes. Returns what a load brings.
  Value* access_own_bytes(Builder& b, size_t number_of_buffer, const Instruction& original,
                          Instruction& copy);

  // Where a copy of a block leaves heads or steps: `inner`, a block of the original, is gone on with at
  // `continues`; what comes after the search, or instead, is `over`.
  void redirect(const Copies& copies, BasicBlock& original, BasicBlock* inner, BasicBlock* continues,
                BasicBlock* over, BasicBlock* out);

  // Rounds, in each of which all that are still active take a step, in turn.
  struct Rounds {
    BasicBlock *step = nullptr, *step_end = nullptr;
    BasicBlock* over = nullptr;  // of one that is not active any more
    PHINode *active = nullptr, *number = nullptr;
    PHINode *index = nullptr, *still = nullptr,
            *still_now = nullptr;  // of those active; before and after this step
  };
  // In `round_`: its ways in, each with how many are active by then. Sets `slot_`. The step ends without a terminator.
  Rounds begin_rounds(const std::vector<std::pair<BasicBlock*, Value*>>& from);
  // At the end of `block`: it stays active.
  void stay_active(const Rounds& rounds, BasicBlock* block);
  void end_rounds(const Rounds& rounds);

  // The loop's header looks whether a group is over, and the rest of it goes on.
  void weave_in();

  DryRunShape& shape_;
  const InterleaveShape& parts_;
  const llvm::LoopInfo& loops_;
  const CellCode cell_;
  Speculation speculation_;
  BasicBlock *const header_, *const latch_, *const before_;
  llvm::SmallVector<BasicBlock*, 4> exits_;
  BasicBlock *group_ = nullptr, *begin_ = nullptr, *round_ = nullptr, *done_ = nullptr, *without_ = nullptr;
  Value *strip_ = nullptr, *width_ = nullptr, *width64_ = nullptr;
  llvm::AllocaInst *turns_ = nullptr, *waiting_ = nullptr;  // of loops within; the numbers of active searches
  std::vector<llvm::AllocaInst*> own_;                      // places, beside memory
  std::vector<llvm::AllocaInst*> own_of_searches_;          // the same for each, where they have their own
  std::vector<Value*> first_;                               // what memory has there
  std::vector<OwnBytes> buffers_;
  std::vector<TurnWithin> turns_within_;
  Value* slot_ = nullptr;  // of the search whose step it is; null in heads
  const Unknown* unknown_;
  const Guesses* guesses_;

 private:
  void place_buffers(llvm::ScalarEvolution& evolution);
  void make_harmless(Instruction& original, Instruction& copy, Copies& copies);
  // A turn of a loop within is one of so many.
  void bound_turn(Instruction& end, unsigned successor, const Copies& copies, BasicBlock& original,
                  BasicBlock* out);
};

}  // namespace hindsight::jit::optimizing::interleaving
