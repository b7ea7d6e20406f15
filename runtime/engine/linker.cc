#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/printable.h"
#include "jit/abi/type_words.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/lwp_binding.h"
#include "runtime/engine/values.h"
#include "runtime/engine/wasi_binding.h"
#include "runtime/exec/enter.h"
#include "runtime/exec/interrupt.h"
#include "runtime/instance/store_use.h"

namespace hindsight {
namespace {

class CallerHandle final : public Caller {
 public:
  CallerHandle(rt::StoreState& state, rt::Instance* instance) : state_(state), inside_(instance) {}

  std::span<std::byte> memory() override {
    rt::Memory* memory = inside_ != nullptr ? inside_->memory() : nullptr;
    return memory != nullptr ? memory->span() : std::span<std::byte>{};
  }
  Instance& instance() override {
    // Not owning: the store is being run by this very call.
    if (!handle_)
      handle_.emplace(std::shared_ptr<rt::StoreState>(std::shared_ptr<void>(), &state_), *inside_);
    return *handle_;
  }

  std::unexpected<Error> throw_exception(std::string_view tag_export,
                                         std::span<const Value> values) override {
    const auto found = inside_ != nullptr ? inside_->find_export(tag_export) : std::nullopt;
    if (!found || !std::holds_alternative<rt::Tag*>(*found))
      return make_error(ErrorKind::kUsage, "no such export, wanted a tag", std::string(tag_export));
    const rt::Tag& tag = *std::get<rt::Tag*>(*found);
    const std::vector<wasm::ValType>& types = tag.type.params;
    bool fit = values.size() == types.size();
    for (size_t i = 0; fit && i < types.size(); i++) fit = rt::fits(values[i], types[i], *state_.store);
    if (!fit)
      return make_error(ErrorKind::kUsage, "an exception of this tag has values " + jit::type_text(tag.type),
                        std::string(tag_export));
    std::vector<uint64_t> slots(2 * values.size() + 1);
    uint64_t* out = slots.data();
    for (const Value& value : values) rt::write_slots(value, out);
    return rt::throw_from_host(*state_.store, tag, slots.data());
  }

 private:
  rt::StoreState& state_;
  rt::Instance* inside_;
  std::optional<rt::InstanceHandle> handle_;
};

}  // namespace

struct Linker::Impl {
  using Name = std::pair<std::string, std::string>;
  std::shared_ptr<rt::EngineHandle> engine;
  std::shared_ptr<rt::StoreState> state;
  // An Extern of the store, or why the definition cannot be used.
  std::map<Name, Result<rt::Extern>> definitions;
  bool store_used = false;
  bool lwp_defined = false;

  void define(std::string_view module, std::string_view name, Result<rt::Extern> value) {
    definitions.insert_or_assign(Name(module, name), std::move(value));
  }
  void define_raw(std::string_view module, std::string_view name, wasm::FuncType type,
                  rt::RawHostFunction body, bool of_store = false) {
    store_used = true;
    auto made = state->store->add_host_function(
        std::move(type), std::string(module) + "." + std::string(name), std::move(body));
    if (!made) return define(module, name, std::unexpected(made.error()));
    (*made)->of_store = of_store;
    define(module, name, rt::Extern(rt::Func{&(*made)->ref, *made}));
  }
  // hindsight_lwp, for the first module that asks; what the embedder defined under its names stays.
  void define_lwp() {
    if (std::exchange(lwp_defined, true)) return;
    for (rt::BoundLwpFunction& f : rt::bind_lwp(*state->store, engine->feed()))
      if (!definitions.contains(Name(rt::kLwpModule, f.name)))
        define_raw(rt::kLwpModule, f.name, std::move(f.type), std::move(f.body), /*of_store=*/true);
  }
  // A threaded program's memory, which nobody defined: by convention its host makes it.
  Result<rt::Extern> make_memory(const wasm::Import& import) {
    HINDSIGHT_ASSIGN(rt::Memory * memory, state->store->add_memory(import.memory, 0));
    define(import.module, import.name, rt::Extern(memory));
    return rt::Extern(memory);
  }
};

Linker::Linker(Engine& engine) : Linker(engine, engine.config().limits) {}

Linker::Linker(Engine& engine, const StoreLimits& limits) : impl_(std::make_shared<Impl>()) {
  impl_->engine = std::static_pointer_cast<rt::EngineHandle>(engine.shared_from_this());
  impl_->state = std::make_shared<rt::StoreState>();
  impl_->state->engine = impl_->engine;
  impl_->state->store =
      rt::Store::create(impl_->engine->store_services(std::make_shared<rt::StoreBudget>(limits)));
  impl_->state->store->embedder = impl_->state.get();
}

Linker::~Linker() = default;
Linker::Linker(Linker&&) noexcept = default;
Linker& Linker::operator=(Linker&&) noexcept = default;

void Linker::define_host(std::string_view module, std::string_view name, FunctionType type,
                         HostFunction function) {
  // The state outlives the function: the store is its last member to go. A caller on a thread that the guest
  // spawned has a store, and so a state, of its own.
  rt::StoreState* first = impl_->state.get();
  auto body = [first, type, function = std::move(function)](rt::Instance* caller, uint64_t* slots) -> Status {
    rt::StoreState* const state =
        caller != nullptr ? static_cast<rt::StoreState*>(caller->store().embedder) : first;
    std::vector<Value> args;
    args.reserve(type.params.size());
    const uint64_t* in = slots;
    for (ValueKind kind : type.params) {
      args.push_back(rt::read_slots(rt::from_public(kind), in));
      if (kind == ValueKind::kExnRef && args.back().bits != 0)
        return make_error(ErrorKind::kUsage, "argument " + std::to_string(args.size()) +
                                                 " is a caught exception, which cannot leave the guest");
    }
    std::vector<Value> results;
    results.reserve(type.results.size());
    for (ValueKind kind : type.results) results.push_back({kind, 0});
    CallerHandle handle(*state, caller);
    HINDSIGHT_TRY(function(handle, args, results));
    uint64_t* out = slots;
    for (size_t i = 0; i < results.size(); i++) {
      if (results[i].kind != type.results[i])
        return make_error(ErrorKind::kUsage, "the host function returned a value of the wrong type");
      if (!rt::fits(results[i], rt::from_public(type.results[i]), *state->store))
        return make_error(ErrorKind::kUsage, "the host function returned a " +
                                                 rt::to_string(results[i].kind) +
                                                 " that is not its caller's store's");
      rt::write_slots(results[i], out);
    }
    return {};
  };
  impl_->define_raw(module, name, rt::from_public(type), std::move(body));
}

void Linker::define_instance(std::string_view module, std::shared_ptr<Instance> instance) {
  auto& handle = static_cast<rt::InstanceHandle&>(*instance);
  if (handle.state()->store != impl_->state->store) {
    if (impl_->store_used || handle.state()->engine != impl_->engine) {
      for (const wasm::Export& e : handle.inside().module()->exports)
        impl_->define(module, e.name,
                      make_error(ErrorKind::kLink, "the instance belongs to another linker's store",
                                 std::string(module)));
      return;
    }
    // A fresh linker joins the store of what it is given first.
    impl_->state = handle.state();
  }
  impl_->store_used = true;
  for (const wasm::Export& e : handle.inside().module()->exports)
    impl_->define(module, e.name, handle.inside().export_value(e));
}

Status Linker::define_wasi(WasiConfig config) {
  rt::StoreState& state = *impl_->state;
  HINDSIGHT_ASSIGN(rt::WasiBinding wasi, rt::bind_wasi(std::move(config), impl_->engine->config(),
                                                       state.store->budget()->limits().descriptors));
  for (rt::BoundWasiFunction& f : wasi.functions)
    impl_->define_raw(f.module, f.name, std::move(f.type), std::move(f.body));
  if (state.threads == nullptr) {
    state.threads = std::make_shared<rt::GuestThreads>(*impl_->engine, state.store);
    state.store->entry_state().add_listener(
        [threads = state.threads](bool interrupted) { threads->interrupt(interrupted); });
  }
  state.threads->add_wasi(std::move(wasi.interrupt));
  wasm::FuncType type;
  type.params = type.results = {wasm::ValType::kI32};
  impl_->define_raw(rt::kThreadModule, rt::kThreadSpawn, std::move(type),
                    [threads = state.threads](rt::Instance* caller, uint64_t* slots) -> Status {
                      const auto argument = static_cast<uint32_t>(slots[0]);
                      const int32_t id = caller != nullptr ? threads->spawn(*caller, argument) : -1;
                      slots[0] = static_cast<uint32_t>(id);
                      return {};
                    });
  return {};
}

Status Linker::define_shared_memory(std::string_view module, std::string_view name, Instance& owner,
                                    std::string_view export_name) {
  const auto value = static_cast<rt::InstanceHandle&>(owner).inside().find_export(export_name);
  rt::Memory* const* memory = value ? std::get_if<rt::Memory*>(&*value) : nullptr;
  if (memory == nullptr || !(*memory)->type().shared)
    return make_error(ErrorKind::kUsage, "the instance exports no shared memory of this name",
                      std::string(export_name));
  impl_->state->store->keep_memory((*memory)->shared_from_this());
  impl_->define(module, name, rt::Extern(*memory));
  return {};
}

void Linker::set_timeout(std::chrono::milliseconds limit) {
  rt::set_timeout(impl_->state->store, limit);
}

const Trap* Linker::last_trap() const {
  const std::optional<Trap>& trap = impl_->state->last_trap;
  return trap ? &*trap : nullptr;
}

Result<std::shared_ptr<Instance>> Linker::instantiate(std::shared_ptr<const Module> module) {
  auto& handle = static_cast<const rt::ModuleHandle&>(*module);
  if (handle.engine() != impl_->engine.get())
    return make_error(ErrorKind::kUsage, "the module was loaded by another engine", handle.name());
  // Both stay, whatever a host function of the start function lets go.
  const std::shared_ptr<Impl> impl_ = this->impl_;
  const std::shared_ptr<rt::StoreState> kept = impl_->state;
  const rt::StoreUse use(*kept->store);
  if (!use) return rt::StoreUse::refusal();
  impl_->store_used = true;
  kept->last_trap.reset();  // what fails below before anything ran has none
  std::vector<rt::Extern> imports;
  const bool threaded = impl_->state->threads != nullptr && rt::GuestThreads::wanted_by(handle.wasm());
  for (const wasm::Import& import : handle.wasm().imports) {
    if (import.module == rt::kLwpModule && impl_->engine->config().guest_lwp) impl_->define_lwp();
    const auto it = impl_->definitions.find({import.module, import.name});
    if (it == impl_->definitions.end() && impl_->state->threads != nullptr &&
        import.kind == wasm::ExternKind::kMemory && import.memory.shared) {
      HINDSIGHT_ASSIGN(rt::Extern made, impl_->make_memory(import));
      imports.push_back(made);
      continue;
    }
    if (it == impl_->definitions.end())
      return make_error(
          ErrorKind::kLink,
          "unknown import: \"" + printable_name(import.module) + "\" \"" + printable_name(import.name) + "\"",
          handle.name(), import.offset.value);
    if (!it->second) return std::unexpected(it->second.error());
    imports.push_back(*it->second);
  }
  if (threaded) HINDSIGHT_TRY(rt::GuestThreads::check(handle.wasm(), imports));
  rt::StoreState& state = *kept;
  auto instance = rt::Instance::instantiate(*state.store, handle.code()->module(), handle.code(), imports);
  if (!instance) {
    rt::note_outcome(state, std::unexpected(instance.error()));
    return std::unexpected(instance.error());
  }
  Status started = rt::run_start(**instance);
  if (state.threads != nullptr) started = state.threads->settle(started, false);
  rt::note_outcome(state, started);
  if (!started) return std::unexpected(started.error());
  return std::make_shared<rt::InstanceHandle>(kept, **instance);
}

}  // namespace hindsight
