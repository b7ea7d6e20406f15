// What a function has too long for LLVM is cut into pieces.
//
// Problem: some of LLVM's passes walk from a value to its operands, to their operands, and so on, many of them by calling themselves.
// Others walk along all users of a value each time they meet one of them. So a chain of 14,000 shifts, each of the result of the one
// before, overflows any stack. One number that 10,000 additions use makes code generation quadratic. Each takes a few bytes of WebAssembly
// an operation.
//
// Idea: every so many operations the value goes through an empty piece of assembly, of which LLVM knows nothing. It ends the walks, and is
// no instruction. What cannot be seen across it is what could be simplified across it. So the pieces are much longer than what people write
// and what compilers unroll (tests/jit/growth/hostile_test.cc): the cut changes nothing there.
//
// Passes that ask what is known of a value's bits go six operations deep, along each operand. Where every operation is a product of two
// products, that is 64 ways for each of them. InstCombine took 0.6 ms a square, in all its runs. So products of products are cut after a
// few.
//
// By the function's own shape and nothing else: the same function is always cut in the same places.
#pragma once

#include <llvm/IR/Function.h>

namespace hindsight::jit::optimizing {

// Operations in a row, each of which has the one before as an operand; across blocks, not around loops.
inline constexpr unsigned kMostInAChain = 1000;
// Products in a row, each of which has products of as many as factors.
inline constexpr unsigned kMostProducts = 5;
// Uses of one value in one block.
inline constexpr unsigned kMostUsesInABlock = 1000;

// Locals are values by now. Returns how many cuts were made.
size_t cut_chains(llvm::Function& function);

}  // namespace hindsight::jit::optimizing
