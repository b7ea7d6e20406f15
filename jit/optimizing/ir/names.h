// Names that rooms of the optimizer agree on. They are symbols of the object that linking defines or looks
// for, sections, and metadata by which one step tells another what an instruction is.
#pragma once

#include <string>

#include "base/ids.h"

namespace hindsight::jit::optimizing {

// Symbols.

// Its value: the size of the largest frame (IrModule::frame_bytes).
inline constexpr const char* kFrameBytesSymbol = "hindsight_frame_bytes";
// A name whose tables LLVM knows how to write. Linked to nothing that could be called.
inline constexpr const char* kPersonalitySymbol = "__gxx_personality_v0";
// What the names of the object's own variables begin with that others write (loop_exits.h).
inline constexpr const char* kExitSlotPrefix = "hindsight_exit_";
// The slot of a loop's exit.
inline std::string exit_symbol(LoopIndex loop) {
  return kExitSlotPrefix + std::to_string(loop.value);
}
inline constexpr const char* kCellPrefix = "hindsight_loop_cell_";
// The name by which code refers to CodeVersion::loop_cells[index].
inline std::string cell_symbol(uint32_t index) {
  return kCellPrefix + std::to_string(index);
}

// What a nest's code counts its work in (NestWork).
inline constexpr const char* kNestWorkSymbol = "hindsight_nest_work";

// Sections: of what hardly ever runs (cold_parts.h).
inline constexpr const char* kColdSectionPrefix = ".text.split.";

// Metadata.

// Marks the users that loads have which are asked about, until a pass has found them (protect.h).
inline constexpr const char* kTemporaryUser = "hindsight.temporary";
// Marks the branch that ends the check of the stack (early_return.h).
inline constexpr const char* kStackCheck = "hindsight.stack_check";
// Says of a branch on which an innermost loop goes on or is left how often it was left there, of how many times (IrModule::exit_counts).
inline constexpr const char* kExitCounts = "hindsight.exit_counts";
// Marks the call that a memory.copy or memory.fill is (usual_values.h).
inline constexpr const char* kBulk = "hindsight.bulk";

}  // namespace hindsight::jit::optimizing
