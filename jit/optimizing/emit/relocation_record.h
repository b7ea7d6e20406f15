// What linking writes that depends on where things lie, as relocations that jit/code can do again without
// LLVM.
//
// JITLink could spare code the way over its table of addresses (GOT) and its stubs where the target is near.
// What is near differs from process to process, so loads from the table stay. Calls of the C library are made
// direct by jit/code's relocate(), which goes back to the stub where it has to.
#pragma once

#include <map>
#include <string>

#include "jit/code/relocation.h"
#include "jit/optimizing/emit/link_code.h"

namespace llvm::jitlink {
class LinkGraph;
}

namespace hindsight::jit::optimizing {

// What LLVM's passes may call where the program had a loop, by name. They work on linear memory: a fault
// inside is recognized by its address, like one in generated code.
const std::map<std::string, OutsideFunction>& outside_functions();

// Precondition: the graph's blocks have their addresses in code.memory, and nothing is written yet. An edge
// of a kind that is not known here makes the code immovable; it is linked all the same.
void record_relocations(llvm::jitlink::LinkGraph& graph, LinkedCode& code);

}  // namespace hindsight::jit::optimizing
