// Handles hold what the C++ API hands out; every function translates and nothing more. Nothing is thrown to
// C: the exceptions that the library's own allocations can raise are caught at this border.
#include "runtime/capi/hindsight_c.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/hindsight.h"
#include "runtime/report/feedback_json.h"
#include "runtime/report/json_value.h"

using hindsight::Error;
using hindsight::ErrorKind;
using hindsight::Result;
using hindsight::Status;
using hindsight::Value;
using hindsight::ValueKind;

struct hindsight_error {
  Error error;
  std::string text;
};
// Functions without a result cannot say that there was no memory for what they were to do. The handle says it instead,
// when it is used.
struct Forgetful {
  bool out_of_memory = false;
};
struct hindsight_config : Forgetful {
  hindsight::EngineConfig config;
};
struct hindsight_engine {
  std::shared_ptr<hindsight::Engine> engine;
};
struct hindsight_module {
  std::shared_ptr<const hindsight::Module> module;
};
struct hindsight_wasi : Forgetful {
  hindsight::WasiConfig config;
};
struct hindsight_linker : Forgetful {
  hindsight_linker(std::shared_ptr<hindsight::Engine> e, const hindsight::StoreLimits& limits)
      : engine(std::move(e)), linker(*engine, limits) {}
  std::shared_ptr<hindsight::Engine> engine;  // must outlive the linker
  hindsight::Linker linker;
};
struct hindsight_instance : Forgetful {
  std::shared_ptr<hindsight::Instance> instance;
};
struct hindsight_caller {
  hindsight::Caller& caller;
};

namespace {

static_assert(static_cast<int>(ErrorKind::kBadModule) == HINDSIGHT_BAD_MODULE);
static_assert(static_cast<int>(ErrorKind::kUnsupported) == HINDSIGHT_UNSUPPORTED);
static_assert(static_cast<int>(ErrorKind::kLink) == HINDSIGHT_LINK);
static_assert(static_cast<int>(ErrorKind::kTrap) == HINDSIGHT_TRAP);
static_assert(static_cast<int>(ErrorKind::kExit) == HINDSIGHT_EXIT);
static_assert(static_cast<int>(ErrorKind::kResource) == HINDSIGHT_RESOURCE);
static_assert(static_cast<int>(ErrorKind::kUsage) == HINDSIGHT_USAGE);
static_assert(static_cast<int>(ErrorKind::kInternal) == HINDSIGHT_INTERNAL);
static_assert(static_cast<int>(ValueKind::kI32) == HINDSIGHT_I32);
static_assert(static_cast<int>(ValueKind::kI64) == HINDSIGHT_I64);
static_assert(static_cast<int>(ValueKind::kF32) == HINDSIGHT_F32);
static_assert(static_cast<int>(ValueKind::kF64) == HINDSIGHT_F64);
static_assert(static_cast<int>(ValueKind::kFuncRef) == HINDSIGHT_FUNCREF);
static_assert(static_cast<int>(ValueKind::kExternRef) == HINDSIGHT_EXTERNREF);
static_assert(static_cast<int>(ValueKind::kV128) == HINDSIGHT_V128);
static_assert(static_cast<int>(ValueKind::kExnRef) == HINDSIGHT_EXNREF);
static_assert(static_cast<int>(hindsight::TierMode::kOptimized) == HINDSIGHT_TIER_OPTIMIZED);
static_assert(static_cast<int>(hindsight::LogLevel::kWarning) == HINDSIGHT_LOG_WARNING);
static_assert(hindsight::kStoreLimitNames.size() == HINDSIGHT_LIMIT_CODE_BYTES + 1);
static_assert(hindsight::kStoreLimitNames[HINDSIGHT_LIMIT_TABLE_ELEMENTS].name == "table-elements");
static_assert(hindsight::kStoreLimitNames[HINDSIGHT_LIMIT_DESCRIPTORS].name == "descriptors");
static_assert(hindsight::kStoreLimitNames[HINDSIGHT_LIMIT_EXCEPTION_BYTES].name == "exception-bytes");
static_assert(hindsight::kStoreLimitNames[HINDSIGHT_LIMIT_CODE_BYTES].name == "code-bytes");

// Made when the library is loaded: there is no memory for another when it is needed. Nobody deletes it.
hindsight_error g_out_of_memory{Error{ErrorKind::kResource, "out of memory", "", {}},
                                "resource: out of memory"};

hindsight_error* wrap(const Error& error) noexcept {
  try {
    return new hindsight_error{error, error.describe()};
  } catch (...) {
    return &g_out_of_memory;
  }
}

// The border: every function that can throw has its body in one of these.
//
// A body that returns a hindsight_error* or NULL.
template <typename Body>
hindsight_error* guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return &g_out_of_memory;
  } catch (const std::exception& exception) {
    try {
      return wrap(Error{ErrorKind::kInternal, exception.what(), "", {}});
    } catch (...) {
      return &g_out_of_memory;
    }
  } catch (...) {
    return &g_out_of_memory;
  }
}
// One that makes a handle or a string; NULL where it cannot.
template <typename Body>
auto made_or_null(Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return nullptr;
  }
}
// One without a result.
template <typename Body>
void noted(Forgetful* handle, Body body) noexcept {
  try {
    body();
  } catch (...) {
    handle->out_of_memory = true;
  }
}

char* new_string(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

Value from_c(const hindsight_value& value) {
  Value out;
  out.kind = static_cast<ValueKind>(value.kind);
  switch (value.kind) {
    case HINDSIGHT_I32:
      out.bits = static_cast<uint32_t>(value.of.i32);
      break;
    case HINDSIGHT_I64:
      out.bits = static_cast<uint64_t>(value.of.i64);
      break;
    case HINDSIGHT_F32:
      out.bits = std::bit_cast<uint32_t>(value.of.f32);
      break;
    case HINDSIGHT_F64:
      out.bits = std::bit_cast<uint64_t>(value.of.f64);
      break;
    case HINDSIGHT_FUNCREF:
    case HINDSIGHT_EXTERNREF:
    case HINDSIGHT_EXNREF:
      out.bits = value.of.ref;
      break;
    case HINDSIGHT_V128:
      std::memcpy(&out.bits, value.of.v128, 8);
      std::memcpy(&out.high, value.of.v128 + 8, 8);
      break;
  }
  return out;
}

hindsight_value to_c(const Value& value) {
  hindsight_value out{};
  out.kind = static_cast<hindsight_value_kind>(value.kind);
  switch (value.kind) {
    case ValueKind::kI32:
      out.of.i32 = static_cast<int32_t>(value.bits);
      break;
    case ValueKind::kI64:
      out.of.i64 = static_cast<int64_t>(value.bits);
      break;
    case ValueKind::kF32:
      out.of.f32 = std::bit_cast<float>(static_cast<uint32_t>(value.bits));
      break;
    case ValueKind::kF64:
      out.of.f64 = std::bit_cast<double>(value.bits);
      break;
    case ValueKind::kFuncRef:
    case ValueKind::kExternRef:
    case ValueKind::kExnRef:
      out.of.ref = value.bits;
      break;
    case ValueKind::kV128:
      std::memcpy(out.of.v128, &value.bits, 8);
      std::memcpy(out.of.v128 + 8, &value.high, 8);
      break;
  }
  return out;
}

std::vector<Value> from_c(const hindsight_value* values, size_t count) {
  std::vector<Value> out;
  out.reserve(count);
  for (size_t k = 0; k < count; ++k) out.push_back(from_c(values[k]));
  return out;
}

std::vector<ValueKind> kinds_from_c(const hindsight_value_kind* kinds, size_t count) {
  std::vector<ValueKind> out;
  for (size_t k = 0; k < count; ++k) out.push_back(static_cast<ValueKind>(kinds[k]));
  return out;
}

void kinds_to_c(const std::vector<ValueKind>& kinds, hindsight_value_kind* out, size_t capacity,
                size_t* count) {
  for (size_t k = 0; k < std::min(kinds.size(), capacity); ++k)
    out[k] = static_cast<hindsight_value_kind>(kinds[k]);
  if (count != nullptr) *count = kinds.size();
}

const char* kind_name(ValueKind kind) {
  static constexpr const char* kNames[] = {"i32",     "i64",       "f32",  "f64",
                                           "funcref", "externref", "v128", "exnref"};
  return kNames[static_cast<size_t>(kind)];
}

void add_type(hindsight::report::Json& entry, const std::optional<hindsight::FunctionType>& type) {
  if (!type) return;
  entry["params"] = hindsight::report::Json::array();
  entry["results"] = hindsight::report::Json::array();
  for (const ValueKind kind : type->params) entry["params"].push_back(kind_name(kind));
  for (const ValueKind kind : type->results) entry["results"].push_back(kind_name(kind));
}

// Owns the user pointer of a host function: its finalizer runs with the last copy of the callback.
struct HostUser {
  void* user = nullptr;
  void (*finalize)(void*) = nullptr;
  HostUser(void* u, void (*f)(void*)) : user(u), finalize(f) {}
  HostUser(const HostUser&) = delete;
  HostUser& operator=(const HostUser&) = delete;
  ~HostUser() {
    if (finalize != nullptr) finalize(user);
  }
};

std::shared_ptr<HostUser> new_host_user(void* user, void (*finalize)(void*)) {
  try {
    return std::make_shared<HostUser>(user, finalize);
  } catch (...) {
    if (finalize != nullptr) finalize(user);
    throw;
  }
}

std::function<void(std::string_view)> sink(hindsight_write_callback callback, void* user) {
  return [callback, user](std::string_view text) { callback(user, text.data(), text.size()); };
}

}  // namespace

extern "C" {

const char* hindsight_version(void) {
  return hindsight::version();
}
void hindsight_string_delete(char* text) {
  std::free(text);
}

// ---------------------------------------------------------------- errors

hindsight_error* hindsight_error_new(hindsight_error_kind kind, const char* message) {
  return guarded([&] { return wrap(Error{static_cast<ErrorKind>(kind), message, "", {}}); });
}
hindsight_error_kind hindsight_error_get_kind(const hindsight_error* error) {
  return static_cast<hindsight_error_kind>(error->error.kind);
}
const char* hindsight_error_message(const hindsight_error* error) {
  return error->error.message.c_str();
}
const char* hindsight_error_text(const hindsight_error* error) {
  return error->text.c_str();
}
void hindsight_error_delete(hindsight_error* error) {
  if (error != &g_out_of_memory) delete error;
}

// ---------------------------------------------------------------- configuration

hindsight_config* hindsight_config_new(void) {
  return made_or_null([&]() -> hindsight_config* { return new hindsight_config; });
}
void hindsight_config_delete(hindsight_config* config) {
  delete config;
}
void hindsight_config_set_tier(hindsight_config* config, hindsight_tier tier) {
  noted(config, [&] { config->config.tier = static_cast<hindsight::TierMode>(tier); });
}
void hindsight_config_set_feedback(hindsight_config* config, bool on) {
  noted(config, [&] { config->config.feedback = on; });
}
void hindsight_config_set_profiling(hindsight_config* config, bool on) {
  noted(config, [&] { config->config.profiling = on; });
}
void hindsight_config_set_unit(hindsight_config* config, const char* unit) {
  noted(config, [&] { config->config.unit = unit; });
}
void hindsight_config_set_guest_lwp(hindsight_config* config, bool on) {
  noted(config, [&] { config->config.guest_lwp = on; });
}
void hindsight_config_set_guard_pages(hindsight_config* config, bool on) {
  noted(config, [&] { config->config.guard_pages = on; });
}
void hindsight_config_set_compile_threads(hindsight_config* config, uint32_t threads) {
  noted(config, [&] { config->config.compile_threads = threads; });
}
void hindsight_config_set_max_stack_bytes(hindsight_config* config, size_t bytes) {
  noted(config, [&] { config->config.max_stack_bytes = bytes; });
}
void hindsight_config_set_max_memory_bytes(hindsight_config* config, uint64_t bytes) {
  noted(config, [&] { config->config.max_memory_bytes = bytes; });
}
void hindsight_config_set_limit(hindsight_config* config, hindsight_limit limit, uint64_t value) {
  noted(config, [&] {
    const auto index = static_cast<size_t>(limit);
    if (index < hindsight::kStoreLimitNames.size())
      config->config.limits.*hindsight::kStoreLimitNames[index].value = value;
  });
}
void hindsight_config_set_profile_in(hindsight_config* config, const char* path) {
  noted(config, [&] { config->config.profile_in = path; });
}
void hindsight_config_set_profile_out(hindsight_config* config, const char* path) {
  noted(config, [&] { config->config.profile_out = path; });
}
void hindsight_config_set_code_cache(hindsight_config* config, const char* directory, uint64_t most_bytes) {
  noted(config, [&] {
    config->config.code_cache_directory = directory == nullptr ? "" : directory;
    config->config.code_cache_bytes = most_bytes;
  });
}
void hindsight_config_set_key_directory(hindsight_config* config, const char* directory) {
  noted(config, [&] { config->config.key_directory = directory == nullptr ? "" : directory; });
}
void hindsight_config_set_log(hindsight_config* config, hindsight_log_level least,
                              hindsight_log_callback callback, void* user) {
  noted(config, [&] {
    config->config.log_level = static_cast<hindsight::LogLevel>(least);
    config->config.log = [callback, user](hindsight::LogLevel level, std::string_view topic,
                                          std::string_view line) {
      try {
        callback(user, static_cast<hindsight_log_level>(level), std::string(topic).c_str(),
                 std::string(line).c_str());
      } catch (const std::bad_alloc&) {
        callback(user, HINDSIGHT_LOG_WARNING, "log", "no memory for a line of the log");
      }
    };
  });
}

// ---------------------------------------------------------------- engine

hindsight_error* hindsight_engine_new(const hindsight_config* config, hindsight_engine** out) {
  return guarded([&]() -> hindsight_error* {
    if (config != nullptr && config->out_of_memory) return &g_out_of_memory;
    auto engine = hindsight::Engine::create(config == nullptr ? hindsight::EngineConfig{} : config->config);
    if (!engine) return wrap(engine.error());
    *out = new hindsight_engine{std::move(*engine)};
    return nullptr;
  });
}
void hindsight_engine_delete(hindsight_engine* engine) {
  delete engine;
}
char* hindsight_engine_feedback_json(const hindsight_engine* engine) {
  return made_or_null(
      [&]() -> char* { return new_string(hindsight::report::to_json(engine->engine->feedback_report())); });
}
hindsight_error* hindsight_engine_save_profile(const hindsight_engine* engine, const char* path) {
  return guarded([&]() -> hindsight_error* {
    const Status saved = engine->engine->save_profile(path);
    return saved ? nullptr : wrap(saved.error());
  });
}
void hindsight_engine_wait_for_compiles(hindsight_engine* engine) {
  (void)guarded([&]() -> hindsight_error* {
    engine->engine->wait_for_compiles();
    return nullptr;
  });
}
char* hindsight_lwp_info(bool json) {
  return made_or_null([&]() -> char* { return new_string(hindsight::lwp_info(json)); });
}

// ---------------------------------------------------------------- modules

hindsight_error* hindsight_module_new(hindsight_engine* engine, const void* bytes, size_t size,
                                      const char* name, hindsight_module** out) {
  return guarded([&]() -> hindsight_error* {
    auto module = engine->engine->load({static_cast<const std::byte*>(bytes), size}, name);
    if (!module) return wrap(module.error());
    *out = new hindsight_module{std::move(*module)};
    return nullptr;
  });
}
hindsight_error* hindsight_module_new_from_file(hindsight_engine* engine, const char* path,
                                                hindsight_module** out) {
  return guarded([&]() -> hindsight_error* {
    auto module = engine->engine->load_file(path);
    if (!module) return wrap(module.error());
    *out = new hindsight_module{std::move(*module)};
    return nullptr;
  });
}
void hindsight_module_delete(hindsight_module* module) {
  delete module;
}
char* hindsight_module_describe_json(const hindsight_module* module) {
  return made_or_null([&]() -> char* {
    using hindsight::report::Json;
    Json all{{"name", module->module->name()},
             {"hash", module->module->content_hash_hex()},
             {"imports", Json::array()},
             {"exports", Json::array()}};
    for (const auto& import : module->module->imports()) {
      Json entry{{"module", import.module}, {"name", import.name}, {"kind", import.kind}};
      add_type(entry, import.function);
      all["imports"].push_back(std::move(entry));
    }
    for (const auto& exported : module->module->exports()) {
      Json entry{{"name", exported.name}, {"kind", exported.kind}};
      add_type(entry, exported.function);
      all["exports"].push_back(std::move(entry));
    }
    return new_string(all.text());
  });
}

// ---------------------------------------------------------------- WASI

hindsight_wasi* hindsight_wasi_new(void) {
  return made_or_null([&]() -> hindsight_wasi* { return new hindsight_wasi; });
}
void hindsight_wasi_delete(hindsight_wasi* wasi) {
  delete wasi;
}
void hindsight_wasi_add_argument(hindsight_wasi* wasi, const char* argument) {
  noted(wasi, [&] { wasi->config.args.emplace_back(argument); });
}
void hindsight_wasi_add_variable(hindsight_wasi* wasi, const char* key, const char* value) {
  noted(wasi, [&] { wasi->config.env.emplace_back(key, value); });
}
void hindsight_wasi_add_directory(hindsight_wasi* wasi, const char* host_path, const char* guest_path) {
  noted(wasi, [&] { wasi->config.preopens.emplace_back(host_path, guest_path); });
}
void hindsight_wasi_set_stdin(hindsight_wasi* wasi, const void* bytes, size_t size) {
  noted(wasi, [&] { wasi->config.stdin_text = std::string(static_cast<const char*>(bytes), size); });
}
void hindsight_wasi_set_stdout(hindsight_wasi* wasi, hindsight_write_callback callback, void* user) {
  noted(wasi, [&] { wasi->config.stdout_sink = sink(callback, user); });
}
void hindsight_wasi_set_stderr(hindsight_wasi* wasi, hindsight_write_callback callback, void* user) {
  noted(wasi, [&] { wasi->config.stderr_sink = sink(callback, user); });
}

// ---------------------------------------------------------------- linking

void* hindsight_caller_memory(hindsight_caller* caller, size_t* size) {
  const auto memory = caller->caller.memory();
  *size = memory.size();
  return memory.data();
}

hindsight_linker* hindsight_linker_new(hindsight_engine* engine) {
  return made_or_null([&]() -> hindsight_linker* {
    return new hindsight_linker(engine->engine, engine->engine->config().limits);
  });
}
hindsight_linker* hindsight_linker_new_limited(hindsight_engine* engine, const hindsight_config* limits) {
  return made_or_null(
      [&]() -> hindsight_linker* { return new hindsight_linker(engine->engine, limits->config.limits); });
}
void hindsight_linker_delete(hindsight_linker* linker) {
  delete linker;
}
void hindsight_linker_set_timeout_ms(hindsight_linker* linker, uint64_t milliseconds) {
  noted(linker, [&] { linker->linker.set_timeout(std::chrono::milliseconds(milliseconds)); });
}

void hindsight_linker_define_function(hindsight_linker* linker, const char* module, const char* name,
                                      const hindsight_value_kind* params, size_t param_count,
                                      const hindsight_value_kind* results, size_t result_count,
                                      hindsight_host_callback callback, void* user,
                                      void (*finalize)(void* user)) {
  noted(linker, [&] {
    // First, so that `user` is finalized whatever there is no memory for.
    const auto owner = new_host_user(user, finalize);
    hindsight::FunctionType type{kinds_from_c(params, param_count), kinds_from_c(results, result_count)};
    linker->linker.define_host(module, name, std::move(type),
                               [callback, owner](hindsight::Caller& caller, std::span<const Value> args,
                                                 std::span<Value> out) -> Status {
                                 std::vector<hindsight_value> c_args, c_results;
                                 for (const Value& value : args) c_args.push_back(to_c(value));
                                 for (const Value& value : out) c_results.push_back(to_c(value));
                                 hindsight_caller c_caller{caller};
                                 const std::unique_ptr<hindsight_error, void (*)(hindsight_error*)> failed(
                                     callback(owner->user, &c_caller, c_args.data(), c_args.size(),
                                              c_results.data(), c_results.size()),
                                     hindsight_error_delete);
                                 if (failed != nullptr) return std::unexpected(failed->error);
                                 for (size_t k = 0; k < out.size(); ++k) {
                                   const Value value = from_c(c_results[k]);
                                   if (value.kind != out[k].kind) {
                                     return hindsight::make_error(
                                         ErrorKind::kUsage, "a host function changed the kind of a result");
                                   }
                                   out[k] = value;
                                 }
                                 return {};
                               });
  });
}

void hindsight_linker_define_instance(hindsight_linker* linker, const char* module,
                                      const hindsight_instance* instance) {
  noted(linker, [&] { linker->linker.define_instance(module, instance->instance); });
}
hindsight_error* hindsight_linker_define_shared_memory(hindsight_linker* linker, const char* module,
                                                       const char* name, const hindsight_instance* owner,
                                                       const char* export_name) {
  return guarded([&]() -> hindsight_error* {
    const Status defined = linker->linker.define_shared_memory(module, name, *owner->instance, export_name);
    return defined ? nullptr : wrap(defined.error());
  });
}
hindsight_error* hindsight_linker_define_wasi(hindsight_linker* linker, const hindsight_wasi* wasi) {
  return guarded([&]() -> hindsight_error* {
    if (wasi->out_of_memory) return &g_out_of_memory;
    const Status defined = linker->linker.define_wasi(wasi->config);
    return defined ? nullptr : wrap(defined.error());
  });
}
hindsight_error* hindsight_linker_instantiate(hindsight_linker* linker, const hindsight_module* module,
                                              hindsight_instance** out) {
  return guarded([&]() -> hindsight_error* {
    if (linker->out_of_memory) return &g_out_of_memory;
    auto instance = linker->linker.instantiate(module->module);
    if (!instance) return wrap(instance.error());
    *out = new hindsight_instance{{}, std::move(*instance)};
    return nullptr;
  });
}

char* hindsight_linker_trap_text(const hindsight_linker* linker) {
  return made_or_null([&]() -> char* {
    const hindsight::Trap* trap = linker->linker.last_trap();
    return trap == nullptr ? nullptr : new_string(trap->to_string());
  });
}

// ---------------------------------------------------------------- instances

void hindsight_instance_delete(hindsight_instance* instance) {
  delete instance;
}

hindsight_error* hindsight_instance_function_type(const hindsight_instance* instance, const char* name,
                                                  hindsight_value_kind* params, size_t param_capacity,
                                                  size_t* param_count, hindsight_value_kind* results,
                                                  size_t result_capacity, size_t* result_count) {
  return guarded([&]() -> hindsight_error* {
    const auto type = instance->instance->function_type(name);
    if (!type) return wrap(type.error());
    kinds_to_c(type->params, params, param_capacity, param_count);
    kinds_to_c(type->results, results, result_capacity, result_count);
    return nullptr;
  });
}

hindsight_error* hindsight_instance_call(hindsight_instance* instance, const char* name,
                                         const hindsight_value* args, size_t arg_count,
                                         hindsight_value* results, size_t result_count) {
  return guarded([&]() -> hindsight_error* {
    if (std::exchange(instance->out_of_memory, false)) return &g_out_of_memory;
    // A host function may delete the handle.
    const std::shared_ptr<hindsight::Instance> kept = instance->instance;
    // Checked before the guest runs: afterwards its effects could not be taken back.
    const auto type = kept->function_type(name);
    if (!type) return wrap(type.error());
    if (type->results.size() != result_count) {
      return wrap(Error{ErrorKind::kUsage,
                        "the function has " + std::to_string(type->results.size()) +
                            " results, room was given for " + std::to_string(result_count),
                        name,
                        {}});
    }
    const auto values = kept->call(name, from_c(args, arg_count));
    if (!values) return wrap(values.error());
    for (size_t k = 0; k < result_count; ++k) results[k] = to_c((*values)[k]);
    return nullptr;
  });
}

hindsight_error* hindsight_instance_memory(hindsight_instance* instance, const char* name, void** data,
                                           size_t* size) {
  return guarded([&]() -> hindsight_error* {
    const auto memory =
        instance->instance->memory(name == nullptr ? std::string_view{} : std::string_view{name});
    if (!memory) return wrap(memory.error());
    *data = memory->data();
    *size = memory->size();
    return nullptr;
  });
}
hindsight_error* hindsight_instance_global(const hindsight_instance* instance, const char* name,
                                           hindsight_value* out) {
  return guarded([&]() -> hindsight_error* {
    const auto value = instance->instance->global(name);
    if (!value) return wrap(value.error());
    *out = to_c(*value);
    return nullptr;
  });
}
hindsight_error* hindsight_instance_set_global(hindsight_instance* instance, const char* name,
                                               const hindsight_value* value) {
  return guarded([&]() -> hindsight_error* {
    const Status set = instance->instance->set_global(name, from_c(*value));
    return set ? nullptr : wrap(set.error());
  });
}
void hindsight_instance_interrupt(hindsight_instance* instance) {
  noted(instance, [&] { instance->instance->interrupt(); });
}
void hindsight_instance_clear_interrupt(hindsight_instance* instance) {
  noted(instance, [&] { instance->instance->clear_interrupt(); });
}
void hindsight_instance_set_timeout_ms(hindsight_instance* instance, uint64_t milliseconds) {
  noted(instance, [&] { instance->instance->set_timeout(std::chrono::milliseconds(milliseconds)); });
}
bool hindsight_instance_exit_code(const hindsight_instance* instance, uint32_t* code) {
  const auto status = instance->instance->exit_code();
  if (status && code != nullptr) *code = *status;
  return status.has_value();
}

char* hindsight_instance_trap_text(const hindsight_instance* instance) {
  return made_or_null([&]() -> char* {
    const hindsight::Trap* trap = instance->instance->last_trap();
    return trap == nullptr ? nullptr : new_string(trap->to_string());
  });
}
size_t hindsight_instance_trap_frame_count(const hindsight_instance* instance) {
  const hindsight::Trap* trap = instance->instance->last_trap();
  return trap == nullptr ? 0 : trap->backtrace.size();
}
bool hindsight_instance_trap_frame(const hindsight_instance* instance, size_t index, hindsight_frame* out) {
  const hindsight::Trap* trap = instance->instance->last_trap();
  if (trap == nullptr || index >= trap->backtrace.size()) return false;
  const hindsight::Frame& frame = trap->backtrace[index];
  *out = {frame.function.c_str(), frame.function_index, frame.wasm_offset.has_value(),
          frame.wasm_offset.value_or(0), frame.inlined};
  return true;
}

}  // extern "C"
