#include "runtime/engine/wasi_binding.h"

#include <algorithm>
#include <array>

#include "runtime/instance/instance.h"
#include "runtime/storage/sealed_file.h"
#include "runtime/wasi/functions.h"
#include "runtime/wasi/wasi_context.h"

namespace hindsight::rt {
namespace {

constexpr size_t kMostSlots = 16;

// "iIi:i" (see wasi/functions.h).
wasm::FuncType parse_signature(std::string_view signature) {
  wasm::FuncType type;
  auto* list = &type.params;
  for (char c : signature) {
    if (c == ':')
      list = &type.results;
    else
      list->push_back(c == 'I' ? wasm::ValType::kI64 : wasm::ValType::kI32);
  }
  return type;
}

wasi::Sink to_sink(std::function<void(std::string_view)> sink) {
  if (!sink) return {};
  return [sink = std::move(sink)](std::span<const std::byte> bytes) {
    sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
}

wasi::Config to_config(WasiConfig config) {
  wasi::Config result;
  result.args = std::move(config.args);
  for (auto& [name, value] : config.env) result.env.push_back(name + "=" + value);
  for (auto& [host, guest] : config.preopens)
    result.preopens.push_back({.host_path = std::move(host), .guest_path = std::move(guest)});
  result.stdin_text = std::move(config.stdin_text);
  result.stdout_sink = to_sink(std::move(config.stdout_sink));
  result.stderr_sink = to_sink(std::move(config.stderr_sink));
  return result;
}

// What this engine uses, and, where other runs keep theirs.
std::vector<wasi::OwnFolder> own_folders(const EngineConfig& engine) {
  constexpr const char* kCode = "--code-cache DIR or --no-code-cache (EngineConfig::code_cache_directory)";
  constexpr const char* kProfiles = "--profile-dir DIR or --no-profile (EngineConfig::profile_directory)";
  constexpr const char* kKey =
      "HINDSIGHT_KEY_DIR=DIR, or neither code nor profiles (EngineConfig::key_directory)";
  const bool keeps = !engine.code_cache_directory.empty() || !engine.profile_directory.empty();
  const std::string key = engine.key_directory.empty() ? default_key_directory() : engine.key_directory;
  std::vector<wasi::OwnFolder> folders;
  const auto add = [&](std::string path, const char* what, bool in_use, const char* remedy) {
    const bool known =
        std::any_of(folders.begin(), folders.end(), [&](const auto& f) { return f.path == path; });
    if (!path.empty() && !known) folders.push_back({std::move(path), what, in_use, remedy});
  };
  add(engine.code_cache_directory, "the code cache", true, kCode);
  add(engine.profile_directory, "the kept profiles", true, kProfiles);
  add(key, "the key of both", keeps, kKey);
  add(default_code_cache_directory(), "the code cache", false, kCode);
  add(default_profile_directory(), "the kept profiles", false, kProfiles);
  add(default_key_directory(), "the key of both", false, kKey);
  return folders;
}

Status call(const wasi::WasiFunction& function, wasi::WasiContext& context, Instance* caller, size_t results,
            uint64_t* slots) {
  wasi::GuestMemory memory;
  if (caller != nullptr && caller->memory() != nullptr)
    memory = {.base = caller->memory()->base(), .size = caller->memory()->bytes()};
  // Arguments and results share the slots; a call may write a result before it has read all arguments.
  std::array<uint64_t, kMostSlots> out{};
  const wasi::Outcome outcome = function.call(context, memory, slots, out.data());
  if (outcome.exited()) return make_error(ErrorKind::kExit, std::to_string(outcome.code));
  for (size_t i = 0; i < results; i++) slots[i] = out[i];
  return {};
}

}  // namespace

Result<WasiBinding> bind_wasi(WasiConfig config, const EngineConfig& engine, uint64_t max_descriptors) {
  wasi::Config host = to_config(std::move(config));
  host.max_descriptors = max_descriptors;
  host.own_folders = own_folders(engine);
  host.own_file_starts = {std::string(kSealedFileStart), std::string(UserKey::kFileStart)};
  HINDSIGHT_ASSIGN(auto made, wasi::WasiContext::create(std::move(host)));
  const std::shared_ptr<wasi::WasiContext> context = std::move(made);
  WasiBinding binding;
  binding.interrupt = [context](bool interrupted) {
    if (interrupted)
      context->interrupt();
    else
      context->clear_interrupt();
  };
  const auto bind = [&](std::string_view module, std::span<const wasi::WasiFunction> functions) {
    for (const wasi::WasiFunction& function : functions) {
      BoundWasiFunction b;
      b.module = module;
      b.name = function.name;
      b.type = parse_signature(function.signature);
      b.body = [&function, context, results = b.type.results.size()](Instance* caller, uint64_t* slots) {
        return call(function, *context, caller, results, slots);
      };
      binding.functions.push_back(std::move(b));
    }
  };
  bind(wasi::kModuleName, wasi::functions());
  bind(wasi::kUnstableModuleName, wasi::unstable_functions());
  return binding;
}

}  // namespace hindsight::rt
