// Places an object into the code arena, by ORC's object linking layer (JITLink) with a memory manager of our
// own.
//
// JITLink writes through the arena's writable view and relocates for the executable one, so no page is ever
// both. One allocation holds the whole object, code first. Debug sections, unwind tables and exception tables
// stay in the object.
//
// Each object has an ORC session and a dylib of its own, for the time of linking. So nothing in it is looked
// up by name later, and compiles on different threads share nothing. Everything it needs from outside is a
// short list of C library functions, and the version's loop cells, defined as absolute symbols. What linking
// writes that depends on where these and the code are is noted (relocation_record.h), so that the code can be
// moved.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "jit/code/code_arena.h"
#include "jit/code/relocation.h"

namespace hindsight::jit::optimizing {

struct LinkedCode {
  CodeAllocation memory;
  uint32_t code_bytes = 0;  // instructions, at the start
  // The object's sections of instructions, by name.
  struct Text {
    uint32_t offset = 0;  // in the allocation
    uint32_t bytes = 0;
  };
  std::map<std::string, Text> texts;
  // The bytes of all that runs, where what hardly ever does lies after it and may be left there
  // (cold_parts.h); else 0.
  uint32_t hot_bytes = 0;
  std::map<std::string, const std::byte*> symbols;  // defined functions and slots, in the executable view
  // Empty: the code cannot be moved, because of `immovable`.
  std::optional<std::vector<CodeRelocation>> relocations;
  std::string immovable;
};

// `frame_bytes`: the value of kFrameBytesSymbol, see IrModule::frame_bytes.
Result<LinkedCode> link_code(std::span<const char> object, CodeArena& arena, uint32_t frame_bytes,
                             std::span<const std::shared_ptr<LoopCell>> cells);

}  // namespace hindsight::jit::optimizing
