#include "jit/abi/vm_context.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

// Invariant: the header and every FuncRef are multiples of 16 bytes, so GlobalCells are aligned where the
// context itself is.
static_assert(sizeof(VmContext) % alignof(GlobalCell) == 0 && sizeof(FuncRef) % alignof(GlobalCell) == 0);

VmLayout::VmLayout(const wasm::Module& module) : imported_globals_(module.imported_globals) {
  const size_t globals = sizeof(VmContext) + sizeof(FuncRef) * module.functions.size();
  globals_ = static_cast<int32_t>(globals);
  const size_t memories = globals + sizeof(GlobalCell) * (module.globals.size() - module.imported_globals);
  memories_ = static_cast<int32_t>(memories);
  const size_t tags = memories + sizeof(MemoryCell) * module.memories.size();
  tags_ = static_cast<int32_t>(tags);
  total_ = tags + sizeof(void*) * module.tags.size();
}

}  // namespace hindsight::jit
