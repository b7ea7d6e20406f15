#include <algorithm>

#include "jit/abi/call_layout.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/type_words.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/values.h"
#include "runtime/exec/enter.h"
#include "runtime/exec/interrupt.h"

namespace hindsight::rt {

Trap to_public(const GuestTrap& trap) {
  Trap result;
  result.name = jit::to_string(trap.code);
  result.detail = trap.detail;
  for (const GuestFrame& frame : trap.frames)
    result.backtrace.push_back({frame.module->function_name(frame.function), frame.function.value,
                                frame.offset ? std::optional(frame.offset->value) : std::nullopt,
                                frame.inlined});
  result.frames_left_out = trap.frames_left_out;
  if (trap.exception != nullptr) {
    const Tag& tag = tag_of(*trap.exception);
    ThrownException thrown{tag.name, {}};
    const uint64_t* in = jit::exception_values(trap.exception);
    for (const wasm::ValType type : tag.type.params) {
      thrown.values.push_back(read_slots(type, in));
      if (wasm::is_exn_ref(type)) thrown.values.back().bits = 0;
    }
    result.exception = std::move(thrown);
  }
  return result;
}

void note_outcome(StoreState& state, const Status& status) {
  state.last_trap.reset();
  state.exit_code.reset();
  if (status || !state.store->trap) return;
  if (state.store->trap->code == jit::TrapCode::kExit)
    state.exit_code = state.store->trap->exit_code;
  else
    state.last_trap = to_public(*state.store->trap);
}

template <typename T>
Result<T> InstanceHandle::find(std::string_view export_name, const char* what) const {
  const auto value = instance_.find_export(export_name);
  if (!value)
    return make_error(ErrorKind::kUsage, std::string("no such export, wanted a ") + what,
                      std::string(export_name));
  if (!std::holds_alternative<T>(*value))
    return make_error(ErrorKind::kUsage, std::string("the export is not a ") + what,
                      std::string(export_name));
  return std::get<T>(*value);
}

Result<jit::FuncRef*> InstanceHandle::find_ref(std::string_view export_name) const {
  HINDSIGHT_ASSIGN(const Func function, find<Func>(export_name, "function"));
  return function.ref;
}

Result<FunctionType> InstanceHandle::function_type(std::string_view export_name) const {
  HINDSIGHT_ASSIGN(const jit::FuncRef* ref, find_ref(export_name));
  return to_public(jit::type_of_canonical_id(ref->type_id));
}

Result<hindsight::Instance::Function*> InstanceHandle::find_function(std::string_view export_name) {
  HINDSIGHT_ASSIGN(jit::FuncRef * ref, find_ref(export_name));
  const StoreUse use(*state_->store);
  if (!use) return StoreUse::refusal();
  auto& function = state_->functions[ref];
  if (function == nullptr) {
    const wasm::FuncType& type = jit::type_of_canonical_id(ref->type_id);
    auto invoke = state_->engine->code().trampolines().invoke(type);
    if (!invoke) {
      state_->functions.erase(ref);
      return std::unexpected(invoke.error());
    }
    function = std::make_unique<Function>(Function{ref, *invoke, &type});
    function->takes_functions = std::ranges::any_of(type.params, wasm::is_func_ref);
    function->returns_exceptions = std::ranges::any_of(type.results, wasm::is_exn_ref);
  }
  if (export_name == "_start") function->ends_program = true;
  return function.get();
}

namespace {

Status check_functions(const wasm::FuncType& type, const uint64_t* slots, const Store& store) {
  for (const wasm::ValType param : type.params)
    if (!fits(read_slots(param, slots), param, store) && wasm::is_func_ref(param))
      return make_error(ErrorKind::kUsage, "an argument is a funcref that is not the store's");
  return {};
}

// Nothing outside the guest keeps an exception alive.
Status take_out_exceptions(const wasm::FuncType& type, uint64_t* slots) {
  Status status;
  for (const wasm::ValType result : type.results) {
    if (wasm::is_exn_ref(result) && *slots != 0) {
      *slots = 0;
      status = make_error(
          ErrorKind::kUsage,
          "the function returned a caught exception, which cannot leave the guest; let it throw it");
    }
    slots += jit::words_of(result);
  }
  return status;
}

}  // namespace

namespace {

// A call that runs, also if it ends by an exception of the host's (no memory).
class RunningCall {
 public:
  // `over` gets what is to go with the last call.
  RunningCall(StoreState& state, std::shared_ptr<StoreState>& over) : state_(state), over_(over) {
    state_.calls++;
  }
  ~RunningCall() {
    if (--state_.calls == 0 && state_.until_call_ends != nullptr) [[unlikely]]
      over_ = std::move(state_.until_call_ends);
  }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

 private:
  StoreState& state_;
  std::shared_ptr<StoreState>& over_;
};

}  // namespace

Status InstanceHandle::call_raw(Function* function, std::span<uint64_t> slots) {
  std::shared_ptr<StoreState> over;  // first, so that it goes when nothing here uses the store any more
  if (slots.size() < jit::call_words(*function->type))
    return make_error(ErrorKind::kUsage, "too few slots for the function's arguments and results");
  if (function->takes_functions) [[unlikely]]
    HINDSIGHT_TRY(check_functions(*function->type, slots.data(), *state_->store));
  // From here on this handle may go, and with it every other one.
  StoreState& state = *state_;
  const StoreUse use(*state.store);
  if (!use) [[unlikely]]
    return StoreUse::refusal();
  const RunningCall running(state, over);
  Status status = enter(*state.store, function->invoke, *function->ref, slots.data());
  if (state.threads != nullptr) [[unlikely]]
    status = state.threads->settle(status, function->ends_program);
  if (!status || state.last_trap || state.exit_code) note_outcome(state, status);
  if (function->returns_exceptions && status) [[unlikely]]
    status = take_out_exceptions(*function->type, slots.data());
  return status;
}

Result<std::vector<Value>> InstanceHandle::call(std::string_view export_name, std::span<const Value> args) {
  const std::shared_ptr<StoreState> state = state_;  // stays, if a host function lets this handle go
  HINDSIGHT_ASSIGN(Function * function, find_function(export_name));
  const wasm::FuncType& type = *function->type;
  if (args.size() != type.params.size())
    return make_error(
        ErrorKind::kUsage,
        "wants " + std::to_string(type.params.size()) + " arguments, got " + std::to_string(args.size()),
        std::string(export_name));
  std::vector<uint64_t> slots(std::max(jit::call_words(type), 1u));
  uint64_t* out = slots.data();
  for (size_t i = 0; i < args.size(); i++) {
    if (wasm::is_exn_ref(type.params[i]) && args[i].kind == ValueKind::kExnRef && args[i].bits != 0)
      return make_error(ErrorKind::kUsage, "argument " + std::to_string(i + 1) + " can only be null",
                        std::string(export_name));
    if (!fits(args[i], type.params[i], *state->store))
      return make_error(ErrorKind::kUsage,
                        "argument " + std::to_string(i + 1) + " is to be " + jit::type_text(type.params[i]) +
                            ", not " + describe(args[i]),
                        std::string(export_name));
    write_slots(args[i], out);
  }
  HINDSIGHT_TRY(call_raw(function, slots));
  std::vector<Value> results;
  const uint64_t* in = slots.data();
  for (wasm::ValType result : type.results) results.push_back(read_slots(result, in));
  return results;
}

Result<std::span<std::byte>> InstanceHandle::memory(std::string_view export_name) {
  if (!export_name.empty()) {
    HINDSIGHT_ASSIGN(const Memory* memory, find<Memory*>(export_name, "memory"));
    return memory->span();
  }
  if (instance_.memory() == nullptr) return make_error(ErrorKind::kUsage, "the instance has no memory");
  return instance_.memory()->span();
}

Result<Value> InstanceHandle::global(std::string_view export_name) const {
  HINDSIGHT_ASSIGN(const Global* global, find<Global*>(export_name, "global"));
  if (wasm::is_exn_ref(global->type().type) && global->bits() != 0)
    return make_error(ErrorKind::kUsage, "the global is an exnref, which cannot leave the guest",
                      std::string(export_name));
  const uint64_t words[] = {global->bits(), global->high_bits()};
  const uint64_t* in = words;
  return read_slots(global->type().type, in);
}

Status InstanceHandle::set_global(std::string_view export_name, const Value& value) {
  HINDSIGHT_ASSIGN(Global * global, find<Global*>(export_name, "global"));
  if (!global->type().mutable_)
    return make_error(ErrorKind::kUsage, "the global is not mutable", std::string(export_name));
  const StoreUse use(*state_->store);
  if (!use) return StoreUse::refusal();
  if (value.kind == ValueKind::kExnRef && value.bits != 0)
    return make_error(ErrorKind::kUsage, "the global is an exnref and can only be set to null",
                      std::string(export_name));
  if (!fits(value, global->type().type, *state_->store))
    return make_error(ErrorKind::kUsage, "the global is a " + jit::type_text(global->type().type),
                      std::string(export_name));
  global->set_bits(slot_of(value), value.high);
  return {};
}

void InstanceHandle::interrupt() {
  rt::interrupt(state_->store);
}

void InstanceHandle::clear_interrupt() {
  rt::clear_interrupt(state_->store);
}

void InstanceHandle::set_timeout(std::chrono::milliseconds limit) {
  rt::set_timeout(state_->store, limit);
}

std::shared_ptr<const hindsight::Module> InstanceHandle::module() const {
  auto& code = static_cast<ModuleCode&>(instance_.code());
  return std::make_shared<const ModuleHandle>(state_->engine, code.shared_from_this());
}

}  // namespace hindsight::rt
