// What counts of branches say of ways that meet: a guess had better be the usual one.
#pragma once

#include <llvm/IR/Instructions.h>

#include <optional>

namespace hindsight::jit::optimizing {

// How often the branch that leads to where ways meet goes the one that brings this value; empty: nobody counted, or it was nearly
// always the same.
std::optional<double> share_of_way(const llvm::PHINode& join, const llvm::Value& value);

}  // namespace hindsight::jit::optimizing
