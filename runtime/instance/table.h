// Table and Global: what instances share besides functions and memories. Owned by a store, used by one thread
// at a time. All index arguments are checked; nothing here traps, callers turn false into a trap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "jit/abi/vm_context.h"
#include "jit/wasm/types.h"
#include "runtime/instance/store_budget.h"

namespace hindsight::rt {

// No table gets larger, whatever its type allows: growing beyond it fails, as the specification permits.
inline constexpr uint64_t kMaxTableEntries = 10'000'000;

class Table {
 public:
  // `budget` bounds what it and other tables hold. Entries are null; memory is touched where something else is
  // stored. Errors: kResource.
  static Result<std::unique_ptr<Table>> create(
      const wasm::TableType& type, std::shared_ptr<StoreBudget> budget = std::make_shared<StoreBudget>());
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(record_.size); }
  void* get(uint32_t index) const { return record_.elements[index]; }  // index < size()
  void set(uint32_t index, void* value) { record_.elements[index] = value; }
  // The entries [index, index + count) are in bounds.
  void fill(uint32_t index, uint32_t count, void* value) {
    std::fill_n(record_.elements + index, count, value);
  }
  bool in_bounds(uint64_t index, uint64_t count) const {
    return count <= record_.size && index <= record_.size - count;
  }
  // Entries before growing, or nothing (then unchanged): beyond the type's maximum or a limit, or no memory. Allocates
  // nothing else and throws nothing.
  std::optional<uint32_t> grow(uint32_t delta, void* init) noexcept;

  const wasm::TableType& type() const { return type_; }  // as declared; the element's is canonical
  jit::TableRecord* record() { return &record_; }

 private:
  explicit Table(std::shared_ptr<StoreBudget> budget) : budget_(std::move(budget)) {}
  wasm::TableType type_;
  const std::shared_ptr<StoreBudget> budget_;
  // The entries are on the C heap, not C++'s. Large blocks of it move by renaming pages, and fresh ones of calloc are
  // touched by nobody until they are used.
  uint64_t capacity_ = 0;      // entries of record_.elements; charged to budget_
  jit::TableRecord record_{};  // owns the entries; what generated code reads
};

class Global {
 public:
  // `cell`: where the value lives (an instance's context); null: in this object.
  Global(const wasm::GlobalType& type, jit::GlobalCell* cell) : type_(type), cell_(cell ? cell : &own_) {}
  Global(const Global&) = delete;
  Global& operator=(const Global&) = delete;

  const wasm::GlobalType& type() const { return type_; }
  jit::GlobalCell* cell() const { return cell_; }
  uint64_t bits() const;       // of a v128 the low half
  uint64_t high_bits() const;  // of a v128; 0 for all others
  void set_bits(uint64_t bits, uint64_t high = 0);

 private:
  wasm::GlobalType type_;
  jit::GlobalCell own_{};
  jit::GlobalCell* cell_;
};

}  // namespace hindsight::rt
