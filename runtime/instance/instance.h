// Instance: one instantiated module. It has the module's VmContext (entry slots and globals), what it
// imports and exports, and what is left of its segments. instantiate() follows the specification's order.
// Imports are matched, everything is allocated, then active element and data segments are written one by
// one. The start function is left to the caller (runtime/exec enters guest code).
//
// (The public API's hindsight::Instance is an interface in front of this one; all of the inside is in
// namespace hindsight::rt.)
//
// Threads: like its store, except publish(), which any thread may call.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/fork_gate.h"
#include "base/ids.h"
#include "base/result.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/vm_context.h"
#include "jit/wasm/module.h"
#include "runtime/instance/code_source.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

struct Func {
  jit::FuncRef* ref = nullptr;
  HostFunction* host = nullptr;  // null: a wasm function, ref->owner is its instance
};
using Extern = std::variant<Func, Table*, Memory*, Global*, Tag*>;
wasm::ExternKind kind_of(const Extern& value);

class Instance {
 public:
  // `imports`: one value an import, in order; all of `store` (or created in it). Matches types, allocates,
  // links and runs active segments. On failure after linking the instance stays in the store (see Store).
  // Errors: kLink "incompatible import type: ...", kTrap (a segment out of bounds; store.trap is set),
  // kResource. `code` outlives the instance.
  static Result<Instance*> instantiate(Store& store, std::shared_ptr<const wasm::Module> module,
                                       std::shared_ptr<CodeSource> code, const std::vector<Extern>& imports);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Store& store() const { return store_; }
  const std::shared_ptr<const wasm::Module>& module() const { return module_; }
  CodeSource& code() const { return *code_; }
  jit::VmContext* context() const { return context_; }

  // Any index of the function index space; for an import, this instance's copy.
  jit::FuncRef* func_ref(FuncIndex f) const { return jit::func_refs(context_) + f.value; }
  Memory* memory(uint32_t index = 0) const { return index < memories_.size() ? memories_[index] : nullptr; }
  Table* table(uint32_t index) const { return tables_[index]; }
  Tag* tag(uint32_t index) const { return tags_[index]; }
  Global* global(uint32_t index) const { return globals_[index]; }
  std::optional<Extern> find_export(std::string_view name) const;
  Extern export_value(const wasm::Export& e) const;

  // Makes `code` the entry of defined function `f`: a release store to its slot and to the copies in every
  // instance that imports it. Any thread.
  void publish(FuncIndex f, const void* code);
  // For CodeSource::attach: fills a slot that nobody can have seen yet.
  void set_initial_entry(FuncIndex f, const void* code) {
    func_ref(f)->code.store(code, std::memory_order_release);
  }

  // Bulk operations; false: out of bounds (nothing, or for segments nothing more, is written).
  bool memory_init(uint32_t data_index, uint32_t memory, uint64_t dst, uint32_t src, uint32_t n);
  bool table_init(uint32_t elem_index, uint32_t table_index, uint32_t dst, uint32_t src, uint32_t n);
  void drop_data(uint32_t index) { data_sizes_[index] = 0; }
  void drop_elements(uint32_t index) {
    elements_[index].clear();
    elements_[index].shrink_to_fit();
  }

 private:
  Instance(Store& store, std::shared_ptr<const wasm::Module> module, std::shared_ptr<CodeSource> code);
  Status match_imports(const std::vector<Extern>& imports) const;
  Status allocate(const std::vector<Extern>& imports);
  void link_function(FuncIndex f, const Func& import);
  uint64_t evaluate(const wasm::ConstExpr& init) const;
  uint64_t run_const_ops(std::span<const wasm::ConstOp> ops) const;
  Status run_segments();
  // Registers `copy` (a FuncRef in another instance's context) of function f and gives it the present entry.
  void add_alias(FuncIndex f, jit::FuncRef* copy);
  void remove_alias(FuncIndex f, jit::FuncRef* copy);

  struct FreeContext {
    void operator()(std::byte* p) const;
  };

  Store& store_;
  std::shared_ptr<const wasm::Module> module_;
  std::shared_ptr<CodeSource> code_;
  jit::VmLayout layout_;
  std::unique_ptr<std::byte, FreeContext> context_memory_;
  jit::VmContext* context_ = nullptr;
  std::vector<Memory*> memories_;  // index spaces, imports first
  std::vector<Table*> tables_;
  std::vector<Global*> globals_;
  std::vector<Tag*> tags_;
  std::vector<jit::TableRecord*> table_records_;    // VmContext::tables
  jit::TypeIds type_ids_;                           // VmContext::type_ids
  std::vector<jit::GlobalCell*> imported_globals_;  // VmContext::imported_globals
  std::vector<std::vector<void*>> elements_;        // evaluated element segments; empty once dropped
  std::vector<uint32_t> data_sizes_;                // 0 once dropped
  ForkSafeMutex alias_mutex_;                       // protects aliases_, and orders add_alias with publish
  std::unordered_map<uint32_t, std::vector<jit::FuncRef*>> aliases_;
};

}  // namespace hindsight::rt
