// What of a function hardly ever runs goes into a section of its own, ".text.split.*", so that what runs lies close
// together once it is moved (jit/code/move_code.h).
//
// Which blocks these are: those that run less than once in kCallsOfCold calls of the function, by the weights of its
// branches: traps and other things that the generator calls unlikely, and sides of branches that were never seen
// (requests of kind kSplitCold). The sections are made by LLVM's MachineFunctionSplitter, which asks for a profile with a
// count of calls and a limit of what is cold: both are said here, and nothing is said of what is hot, so that no other
// pass takes one function to be dearer than another.
#pragma once

#include <llvm/IR/Module.h>

namespace hindsight::jit::optimizing {

inline constexpr uint64_t kCallsOfCold = 10'000;

// Of all functions that catch no exceptions. Behind the passes, in front of code generation.
void mark_for_splitting(llvm::Module& module);

}  // namespace hindsight::jit::optimizing
