// What hardly ever runs of a function goes into a section of its own, ".text.split.*". So what runs lies close together
// once it is moved (jit/code/move_code.h).
//
// These are blocks that run less than once in kCallsOfCold calls of the function, by the weights of its branches. They
// are traps and other things that the generator calls unlikely, and sides of branches that were never seen (requests of
// kind kSplitCold). The sections are made by LLVM's MachineFunctionSplitter, which asks for a profile with a count of
// calls and a limit of what is cold. Both are said here. Nothing is said of what is hot, so that no other pass takes
// one function to be dearer than another.
#pragma once

#include <llvm/IR/Module.h>

namespace hindsight::jit::optimizing {

// Marks all functions that catch no exceptions. Runs after the passes and before code generation.
void mark_for_splitting(llvm::Module& module);

}  // namespace hindsight::jit::optimizing
