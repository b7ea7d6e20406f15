// Places an object into the code arena, by JITLink with a memory manager of our own.
//
// JITLink writes through the arena's writable view and relocates for the executable one, so no page is ever
// both. One allocation holds the whole object, code first. Debug sections stay in the object.
//
// JITLink is used without ORC's sessions and dylibs: there is one object, nothing in it is looked up by name
// from elsewhere, and everything it needs from outside is a short list of C library functions.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "jit/code/code_arena.h"

namespace hindsight::jit::optimizing {

struct LinkedCode {
  CodeAllocation memory;
  uint32_t code_bytes = 0;   // instructions, at the start
  uint32_t text_offset = 0;  // of the object's .text in the allocation
  uint32_t text_bytes = 0;
  std::map<std::string, const std::byte*> symbols;  // defined functions, in the executable view
};

Result<LinkedCode> link_code(std::span<const char> object, CodeArena& arena);

}  // namespace hindsight::jit::optimizing
