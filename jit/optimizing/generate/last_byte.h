// In which bits of a value does the last byte of a load show? An access traps exactly if its last byte is out of
// bounds: memories only grow, and addresses do not wrap. LLVM reads no more of a place than what is made of it needs.
// So a load of four bytes under `and 255` becomes one of the first byte, which may lie inside where the fourth does
// not. Reading less is harmless as long as the last byte is read. Whether it has to be is followed from the load
// through whatever computes, bit by bit. Each bit of a set would be another one for another last byte, whatever else
// there is.
//
// What is only known at run time, such as a factor, may turn out to be a constant. That happens when LLVM has unrolled a loop or
// followed a branch. A zero then makes the other factor's bits go. So bits are followed when LLVM has unrolled what it unrolls for good. What is
// variable then stays so, unless it is a phi of constants.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>

namespace hindsight::jit::optimizing {

// Bits of a value, the lanes of a vector one after the other. Width 1 and empty: the type has no bits that are
// followed.
using BitSet = llvm::APInt;

BitSet last_byte(const llvm::LoadInst& load);
// The bits of the user's result in which `bits` of the operand show; empty: none, or nothing is known of this operator.
// Precondition: the user is no phi, store, terminator or call of something unknown.
BitSet shown_bits(const llvm::Use& use, const BitSet& bits, const llvm::DataLayout& layout);
// Whether LLVM might store less than the whole value, or nothing: it is what was loaded from there, with some of
// the bytes the same.
bool may_store_less(const llvm::StoreInst& store);

}  // namespace hindsight::jit::optimizing
