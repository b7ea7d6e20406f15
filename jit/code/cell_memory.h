// What LoopCells and TraversalHistories are made of. Each cell is one allocation, followed by its history
// where the loop has one. The history's places are memory of their own. All of it goes with the last owner of
// the cell.
#pragma once

#include <cstdint>
#include <memory>

#include "jit/abi/loop_cell.h"
#include "jit/abi/traversal_history.h"

namespace hindsight::jit {

// Where in a cell's memory its history is.
inline constexpr int32_t kCellHistory = sizeof(LoopCell);

std::shared_ptr<LoopCell> make_loop_cell();
// The places are zero, and take memory only where they are written, up to 32 MiB. `places` is null if there
// is no room for them.
std::shared_ptr<LoopCell> make_loop_cell_with_history();
// Precondition: the cell was made with one.
TraversalHistory& history_of(LoopCell& cell);
// From now on whole traversals are written down. Any thread.
void remember_whole_traversals(TraversalHistory& history);

}  // namespace hindsight::jit
