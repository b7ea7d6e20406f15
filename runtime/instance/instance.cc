#include "runtime/instance/instance.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace hindsight::rt {

wasm::ExternKind kind_of(const Extern& value) {
  static constexpr wasm::ExternKind kKinds[] = {wasm::ExternKind::kFunc, wasm::ExternKind::kTable,
                                                wasm::ExternKind::kMemory, wasm::ExternKind::kGlobal,
                                                wasm::ExternKind::kTag};
  return kKinds[value.index()];
}

void Instance::FreeContext::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{64});
}

Instance::Instance(Store& store, std::shared_ptr<const wasm::Module> module, std::shared_ptr<CodeSource> code)
    : store_(store), module_(std::move(module)), code_(std::move(code)), layout_(*module_) {}

Instance::~Instance() {
  code_->detach(*this);
  if (context_ == nullptr) return;
  for (uint32_t i = 0; i < module_->imported_functions; i++) {
    jit::FuncRef* copy = func_ref(FuncIndex(i));
    if (copy->owner == nullptr) continue;
    static_cast<Instance*>(copy->owner)->remove_alias(FuncIndex(copy->func_index), copy);
  }
}

Extern Instance::export_value(const wasm::Export& e) const {
  switch (e.kind) {
    case wasm::ExternKind::kFunc: {
      jit::FuncRef* ref = func_ref(FuncIndex(e.index));
      HostFunction* host =
          ref->owner == nullptr ? static_cast<BoundHostFunction*>(ref->callee_context)->function : nullptr;
      return Func{ref, host};
    }
    case wasm::ExternKind::kTable:
      return tables_[e.index];
    case wasm::ExternKind::kMemory:
      return memories_[e.index];
    case wasm::ExternKind::kGlobal:
      return globals_[e.index];
    case wasm::ExternKind::kTag:
      return tags_[e.index];
  }
  __builtin_unreachable();
}

std::optional<Extern> Instance::find_export(std::string_view name) const {
  const wasm::Export* e = module_->find_export(name);
  if (e == nullptr) return std::nullopt;
  return export_value(*e);
}

void Instance::publish(FuncIndex f, const void* code) {
  // The lock orders this with add_alias: a copy either gets the new entry from us, or was made after our
  // store and copied it. The stores are release: what the code's bytes are was written before.
  const std::lock_guard lock(alias_mutex_);
  func_ref(f)->code.store(code, std::memory_order_release);
  const auto it = aliases_.find(f.value);
  if (it == aliases_.end()) return;
  for (jit::FuncRef* copy : it->second) copy->code.store(code, std::memory_order_release);
}

void Instance::add_alias(FuncIndex f, jit::FuncRef* copy) {
  const std::lock_guard lock(alias_mutex_);
  copy->code.store(func_ref(f)->code.load(std::memory_order_acquire), std::memory_order_release);
  aliases_[f.value].push_back(copy);
}

void Instance::remove_alias(FuncIndex f, jit::FuncRef* copy) {
  const std::lock_guard lock(alias_mutex_);
  const auto it = aliases_.find(f.value);
  if (it != aliases_.end()) std::erase(it->second, copy);
}

bool Instance::memory_init(uint32_t data_index, uint32_t memory_index, uint64_t dst, uint32_t src,
                           uint32_t n) {
  const uint32_t size = data_sizes_[data_index];
  const wasm::DataSegment& segment = module_->data[data_index];
  Memory* memory = memories_[memory_index];
  if (n > size || src > size - n || !memory->in_bounds(dst, n)) return false;
  if (n != 0) std::memcpy(memory->base() + dst, module_->bytes.data() + segment.begin.value + src, n);
  return true;
}

bool Instance::table_init(uint32_t elem_index, uint32_t table_index, uint32_t dst, uint32_t src, uint32_t n) {
  const std::vector<void*>& items = elements_[elem_index];
  Table* table = tables_[table_index];
  if (n > items.size() || src > items.size() - n || !table->in_bounds(dst, n)) return false;
  for (uint32_t i = 0; i < n; i++) table->set(dst + i, items[src + i]);
  return true;
}

}  // namespace hindsight::rt
