// A row that a loop goes through, whose elements lead to what a function calls itself with:
//
//   for (child = node[28]; child != node[32]; child += 4) visit(load child)
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>

#include <cstdint>
#include <optional>

namespace hindsight::jit::optimizing {

struct RecursionRow {
  llvm::LoadInst* load = nullptr;  // of an element
  int64_t stride = 0;              // bytes from one to the next
  // What tells how many are left: the loop ends when a step makes it `end`.
  llvm::WeakTrackingVH counter = {};
  llvm::WeakTrackingVH end = {};
  int64_t step = 0;                         // of which `stride` is a multiple
  const llvm::LoadInst* begin = nullptr;    // of where the row begins; null: not known
  std::optional<int64_t> begin_place = {};  // of that in the node, where it is known to be there
};

// By how much a phi of the loop's header goes on in each iteration. 0: that is not constant.
int64_t step_of(const llvm::PHINode& phi, const llvm::Loop& loop);

// Empty: it goes through no row in its innermost loop, or nobody knows how long that is.
std::optional<RecursionRow> row_of(const llvm::LoadInst& load, const llvm::LoopInfo& loops);

// Where the element is that is so many ahead of the row's own, or the last one. Emitted where the loop has its counter; null: it has not.
llvm::Value* element_ahead(llvm::IRBuilderBase& b, const RecursionRow& row, int64_t ahead);

}  // namespace hindsight::jit::optimizing
