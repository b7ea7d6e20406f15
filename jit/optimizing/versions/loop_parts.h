// What every pass needs that copies loops.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <vector>

namespace hindsight::jit::optimizing {

// A new identity for a loop (two loops must not share one), with what the old one said and more.
llvm::MDNode* loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old,
                            llvm::ArrayRef<llvm::Metadata*> more);
// Copies of the blocks in their order, loops among them with identities of their own. Operands are still
// those of the originals; `copies` says what became of what.
std::vector<llvm::BasicBlock*> copy_blocks(llvm::ArrayRef<llvm::BasicBlock*> blocks, const char* suffix,
                                           llvm::ValueToValueMapTy& copies);
// The value of a loop of one block after it: a phi in its exit (LCSSA).
llvm::Value* closed_value(llvm::Value* value, llvm::BasicBlock* loop, llvm::BasicBlock* exit);

// Moves what is computed in `from` for `to` alone, or for `others`, which `to` dominates, to the beginning of `to`. Nothing that
// touches memory moves.
void sink_into(llvm::BasicBlock& to, llvm::BasicBlock& from,
               llvm::ArrayRef<const llvm::BasicBlock*> others = {});

// Whether a block that a loop is left for ends in a trap.
bool only_traps(const llvm::BasicBlock& block);

// The loop does not become vectors.
llvm::MDNode* scalar_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old);
// The loop stays as it is: neither vectorized nor unrolled with a remainder.
llvm::MDNode* plain_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old);
// The loop counts, but as it was LLVM would have found no count. It becomes vectors where WidenPass would have made it
// fit for them, and else stays as it is (vectors/uncounted_loops.h).
llvm::MDNode* uncounted_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old);
bool is_uncounted(const llvm::Loop& loop);
// What was said of the loop before it was uncounted.
llvm::MDNode* counted_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* uncounted);

}  // namespace hindsight::jit::optimizing
