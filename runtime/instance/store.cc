#include "runtime/instance/store.h"

#include <climits>

#include "jit/abi/type_registry.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {

Store::Store(StoreServices services)
    : services_(std::move(services)), thread_(std::make_unique<jit::ThreadState>()) {
  if (services_.budget == nullptr) services_.budget = std::make_shared<StoreBudget>();
  exceptions_.set_limit(services_.budget->limits().exception_bytes);
  if (services_.trampolines != nullptr) {
    unwind_ = services_.trampolines->unwind();
    services_.trampolines->prepare(*thread_);
  }
  thread_->store = this;
  entry_->store = this;
  entry_->add_listener([this](bool interrupted) { parker_.set_interrupted(interrupted); });
  // Without a unit nothing is counted: the counters are reloaded with this when they run out.
  thread_->lwp_instructions = thread_->lwp_branches = thread_->lwp_values = INT32_MAX;
}

std::shared_ptr<Store> Store::create(StoreServices services) {
  return std::shared_ptr<Store>(new Store(std::move(services)));
}

Store::~Store() {
  // Importers before exporters: each takes its aliases back from the instances that it imports from.
  while (!instances_.empty()) instances_.pop_back();
  // The timer may have the state for a moment longer; what the listeners keep goes here and now.
  std::vector<std::function<void(bool)>> listeners;
  void (*forget)(const EntryState&) = nullptr;
  {
    const std::lock_guard lock(entry_->mutex);
    listeners.swap(entry_->listeners);
    entry_->store = nullptr;
    forget = entry_->forget;
  }
  if (forget != nullptr) forget(*entry_);
}

Result<Memory*> Store::add_memory(const wasm::MemoryType& type, uint32_t index) {
  HINDSIGHT_ASSIGN(auto memory, Memory::create(type, services_.bounds, services_.max_memory_bytes, index,
                                               services_.budget));
  return memories_.emplace_back(std::move(memory)).get();
}

Result<Table*> Store::add_table(const wasm::TableType& type) {
  HINDSIGHT_ASSIGN(auto table, Table::create(type, services_.budget));
  if (wasm::is_exn_ref(type.element)) exception_tables_.push_back(table.get());
  return tables_.emplace_back(std::move(table)).get();
}

Global* Store::add_global(const wasm::GlobalType& type, jit::GlobalCell* cell) {
  return globals_.emplace_back(std::make_unique<Global>(type, cell)).get();
}

Tag* Store::add_tag(uint32_t type_id, std::string name) {
  return tags_
      .emplace_back(std::make_unique<Tag>(
          Tag{jit::type_of_canonical_id(type_id), type_id, std::move(name), jit::TypeId::again(type_id)}))
      .get();
}

// (Element segments hold no exceptions but those of immutable globals.)
void Store::mark_exceptions() {
  for (const Table* table : exception_tables_)
    for (uint32_t i = 0; i < table->size(); i++) exceptions_.mark(reinterpret_cast<uint64_t>(table->get(i)));
  for (const Global* global : exception_globals_) exceptions_.mark(global->bits());
  if (trap) exceptions_.mark(reinterpret_cast<uint64_t>(trap->exception));
}

Result<HostFunction*> Store::add_host_function(wasm::FuncType type, std::string name, RawHostFunction body) {
  HINDSIGHT_ASSIGN(const void* code, services_.trampolines->host_call(type));
  auto function = std::make_unique<HostFunction>();
  function->store = this;
  function->type = std::move(type);
  function->name = std::move(name);
  function->body = std::move(body);
  function->code = code;
  function->type_held = jit::TypeId(function->type);
  function->type_id = function->type_held.value();
  function->unbound.dispatch = services_.dispatch;
  function->unbound.thread = thread_.get();
  function->unbound.function = function.get();
  function->ref.code.store(code, std::memory_order_release);
  function->ref.callee_context = &function->unbound;
  function->ref.type_id = function->type_id;
  function->ref.owner = nullptr;
  const auto ref = reinterpret_cast<uintptr_t>(&function->ref);
  func_refs_.emplace(ref, ref + sizeof(jit::FuncRef));
  return host_functions_.emplace_back(std::move(function)).get();
}

BoundHostFunction* Store::bind(HostFunction& function, Instance& caller) {
  auto bound = std::make_unique<BoundHostFunction>(function.unbound);
  bound->caller = &caller;
  return bound_.emplace_back(std::move(bound)).get();
}

Instance* Store::add_instance(std::unique_ptr<Instance> instance) {
  const wasm::Module& module = *instance->module();
  for (uint32_t i = module.imported_globals; i < module.globals.size(); i++)
    if (wasm::is_exn_ref(module.globals[i].type.type)) exception_globals_.push_back(instance->global(i));
  const auto refs = reinterpret_cast<uintptr_t>(jit::func_refs(instance->context()));
  if (module.function_count() != 0)
    func_refs_.emplace(refs, refs + module.function_count() * sizeof(jit::FuncRef));
  return instances_.emplace_back(std::move(instance)).get();
}

bool Store::is_function(const void* reference) const {
  const auto address = reinterpret_cast<uintptr_t>(reference);
  auto range = func_refs_.upper_bound(address);
  if (range == func_refs_.begin()) return false;
  --range;
  return address < range->second && (address - range->first) % sizeof(jit::FuncRef) == 0;
}

}  // namespace hindsight::rt
