// An address as a sum of values times constants: base + 40 * index + 8.
#pragma once

#include <llvm/IR/Value.h>

#include <cstdint>
#include <vector>

namespace hindsight::jit::optimizing {

struct AddressTerms {
  struct Term {
    const llvm::Value* value = nullptr;
    int64_t times = 1;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms = {};
  int64_t constant = 0;
  bool is_whole = true;  // else more may be added, or it may be anything
};

// Of an address in linear memory, without where that begins, or of an index. Sums wrap as the address does; a value that wraps before
// it is widened is taken not to.
AddressTerms terms_of(const llvm::Value& address);

// All that a value may be, if that is few; else nothing. A comparison, a choice of two constants, one or two bits.
std::vector<int64_t> numbers_of(const llvm::Value& value);

}  // namespace hindsight::jit::optimizing
