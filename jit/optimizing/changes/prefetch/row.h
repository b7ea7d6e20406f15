// Rows that begin at unrelated places: the edges of a vertex that a queue names, the elements of a vector of vectors. What lies
// past the end of one is not what comes next. So none of its elements is prefetched by running on in memory:
//
//   for (; head != tail; ++head)
//     prefetch seen[target[e]] of the first elements of a row some entries ahead, each if that row has it
//     for (e = offset[queue[head]]; e < offset[queue[head] + 1]; ++e)
//       prefetch seen[target[e + so many]], if this row has it; else this element's again, which is there
//       ...
//
// A row's end is what one of its loop's variables is compared with to leave it.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <vector>

namespace hindsight::jit::optimizing {

// An integer variable of a loop's header, and what ends the loop when it comes there.
struct RowEnd {
  llvm::PHINode* counter = nullptr;
  llvm::Value* end = nullptr;
};
// What may say where the rows of a loop end. Some may have nothing to do with that.
std::vector<RowEnd> find_row_ends(const llvm::Loop& loop);

struct Row {
  llvm::Loop* loop = nullptr;
  RowEnd ends;
  std::map<llvm::PHINode*, llvm::ConstantInt*> steps;  // of the loop's variables, `ends.counter` among them
  std::map<const llvm::Instruction*, bool> accesses;   // to each element: whether they miss anew for each
};

// How many of a row's elements are fetched from the loop around, and how far ahead of each element the row's own loop is then.
uint32_t elements_at_once(const Row& row);
// Rows of so many elements in the mean are prefetched as any loop is: only few of what is fetched lies past an end.
bool has_long_rows(const llvm::Loop& loop);

}  // namespace hindsight::jit::optimizing
