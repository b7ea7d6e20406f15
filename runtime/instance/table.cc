#include "runtime/instance/table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hindsight::rt {

namespace {

constexpr uint64_t kEntryBytes = sizeof(void*);

}  // namespace

Result<std::unique_ptr<Table>> Table::create(const wasm::TableType& type,
                                             std::shared_ptr<StoreBudget> budget) {
  const StoreLimits& limits = budget->limits();
  const uint64_t entries = type.limits.min;
  const uint64_t most = std::min(limits.table_elements, kMaxTableEntries);
  const auto what = [&] { return "a table of " + std::to_string(entries) + " elements"; };
  if (entries > most) return StoreBudget::refusal(what(), entries, 0, "elements", most, "table-elements");
  if (!budget->take_table(entries * kEntryBytes))
    return StoreBudget::refusal(what(), entries * kEntryBytes, budget->table_bytes(), "bytes",
                                limits.table_bytes, "table-bytes");
  std::unique_ptr<Table> table(new Table(std::move(budget)));
  table->capacity_ = entries;
  table->type_ = type;
  table->record_.max = std::min<uint64_t>(type.limits.max.value_or(UINT32_MAX), most);
  if (entries != 0) {
    table->record_.elements = static_cast<void**>(std::calloc(entries, kEntryBytes));
    if (table->record_.elements == nullptr)
      return make_error(ErrorKind::kResource, "no memory for " + what());
    table->record_.size = entries;
  }
  return table;
}

Table::~Table() {
  std::free(record_.elements);
  budget_->give_table(capacity_ * kEntryBytes);
}

std::optional<uint32_t> Table::grow(uint32_t delta, void* init) noexcept {
  const uint64_t old_size = record_.size;
  if (delta > record_.max - old_size) return std::nullopt;
  const uint64_t size = old_size + delta;
  if (size > capacity_) {
    // Twice as much, so that growing one by one is linear; where that is too much, just what is asked for.
    const uint64_t roomy = std::clamp(2 * capacity_, size, record_.max);
    for (const uint64_t capacity : {roomy, size}) {
      const uint64_t more = (capacity - capacity_) * kEntryBytes;
      if (!budget_->take_table(more)) continue;
      if (void* const moved = std::realloc(record_.elements, capacity * kEntryBytes)) {
        record_.elements = static_cast<void**>(moved);
        capacity_ = capacity;
        break;
      }
      budget_->give_table(more);
    }
    if (size > capacity_) return std::nullopt;
  }
  std::fill_n(record_.elements + old_size, delta, init);
  record_.size = size;
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
