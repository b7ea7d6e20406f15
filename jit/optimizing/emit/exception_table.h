// Where calls that throw land, from the object's exception tables (.gcc_except_table).
//
// LLVM writes one table a function that has landing pads: ranges of code offsets, and a landing pad for each.
// It is the "language-specific data area" of the C++ ABI for Itanium, section "Exception Handling", as GCC
// lays it out. Nothing else of that ABI is used: no unwind tables, no personality; frames have frame
// pointers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "jit/code/code_version.h"
#include "jit/optimizing/emit/link_code.h"

namespace hindsight::jit::optimizing {

// `functions`: the names of all functions that the object defines, in the order in which LLVM emitted them.
// kInternal if the tables are not what LLVM is known to write.
Status add_exception_handlers(std::span<const char> object, const LinkedCode& code,
                              std::span<const std::string> functions,
                              std::vector<ExceptionHandler>& handlers);

}  // namespace hindsight::jit::optimizing
