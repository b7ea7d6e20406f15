#include "runtime/instance/table.h"

#include <algorithm>
#include <cstring>

namespace hindsight::rt {

std::unique_ptr<Table> Table::create(const wasm::TableType& type) {
  if (type.limits.min > kMaxTableEntries) return nullptr;
  std::unique_ptr<Table> table(new Table);
  table->type_ = type;
  table->elements_.assign(type.limits.min, nullptr);
  table->record_ = {table->elements_.data(), table->elements_.size(),
                    std::min<uint64_t>(type.limits.max.value_or(UINT32_MAX), kMaxTableEntries)};
  return table;
}

std::optional<uint32_t> Table::grow(uint32_t delta, void* init) {
  const uint64_t old_size = record_.size;
  if (delta > record_.max - old_size) return std::nullopt;
  elements_.resize(old_size + delta, init);
  record_.elements = elements_.data();
  record_.size = elements_.size();
  return static_cast<uint32_t>(old_size);
}

uint64_t Global::bits() const {
  uint64_t bits;
  std::memcpy(&bits, cell_->bytes, sizeof bits);
  // The upper half of a small value's cell is undefined.
  if (type_.type == wasm::ValType::kI32 || type_.type == wasm::ValType::kF32)
    bits = static_cast<uint32_t>(bits);
  return bits;
}

uint64_t Global::high_bits() const {
  uint64_t bits = 0;
  if (type_.type == wasm::ValType::kV128) std::memcpy(&bits, cell_->bytes + 8, sizeof bits);
  return bits;
}

void Global::set_bits(uint64_t bits, uint64_t high) {
  std::memcpy(cell_->bytes, &bits, sizeof bits);
  if (type_.type == wasm::ValType::kV128) std::memcpy(cell_->bytes + 8, &high, sizeof high);
}

}  // namespace hindsight::rt
