// Rows that follow each other in memory, as those of a sparse matrix: where one ends the next begins.
//
//   for (i = 0; i < n; ++i)
//     for (e = offset[i]; e < offset[i + 1]; ++e)
//       sum += x[column[e]]
//
// What lies past a row's end is what comes next then, however short the row is.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Value.h>

#include <map>

namespace hindsight::jit::optimizing {

// `steps`: variables of `loop`, of which each run begins somewhere. True if one of them begins where the run before has come to; or where
// something says that it ends: the next offset in an array that the loop around goes through, or what that loop carries on.
bool rows_follow_each_other(const llvm::Loop& loop, const std::map<llvm::PHINode*, llvm::Value*>& steps);

}  // namespace hindsight::jit::optimizing
