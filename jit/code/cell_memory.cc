#include "jit/code/cell_memory.h"

#include <sys/mman.h>

#include <atomic>

namespace hindsight::jit {
namespace {

constexpr size_t kPlacesBytes = sizeof(uint32_t) * (size_t{kHistoryCapacity} + kMostTurnsAhead);

struct CellWithHistory {
  LoopCell cell;
  TraversalHistory history;

  CellWithHistory() {
    void* const places = mmap(nullptr, kPlacesBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (places != MAP_FAILED) history.places = static_cast<uint32_t*>(places);
  }
  ~CellWithHistory() {
    if (history.places != nullptr) munmap(history.places, kPlacesBytes);
  }
  CellWithHistory(const CellWithHistory&) = delete;
  CellWithHistory& operator=(const CellWithHistory&) = delete;
};
static_assert(offsetof(CellWithHistory, history) == kCellHistory);

}  // namespace

std::shared_ptr<LoopCell> make_loop_cell() {
  return std::make_shared<LoopCell>();
}

std::shared_ptr<LoopCell> make_loop_cell_with_history() {
  const auto both = std::make_shared<CellWithHistory>();
  return {both, &both->cell};
}

TraversalHistory& history_of(LoopCell& cell) {
  return reinterpret_cast<CellWithHistory*>(&cell)->history;
}

void remember_whole_traversals(TraversalHistory& history) {
  // All of it will be touched. Where there are no huge pages, small ones do.
  if (history.places != nullptr) ::madvise(history.places, kPlacesBytes, MADV_HUGEPAGE);
  std::atomic_ref(history.last).store(kHistoryCapacity - 1, std::memory_order_relaxed);
}

}  // namespace hindsight::jit
