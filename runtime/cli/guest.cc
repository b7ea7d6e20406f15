#include "runtime/cli/guest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/printable.h"
#include "runtime/cli/messages.h"
#include "runtime/cli/values.h"

namespace hindsight::cli {
namespace {

bool exports_function(const Module& module, std::string_view name) {
  const auto exports = module.exports();
  return std::any_of(exports.begin(), exports.end(),
                     [&](const ExportType& e) { return e.kind == "func" && e.name == name; });
}

std::string exported_functions(const Module& module) {
  std::string out;
  size_t count = 0;
  for (const auto& e : module.exports()) {
    if (e.kind != "func") continue;
    if (++count > 12) return out + ", ...";
    out += (out.empty() ? "" : ", ") + printable_name(e.name);
  }
  return out.empty() ? "none" : out;
}

int exit_status_of(const Error& error, const Instance* instance) {
  if (instance != nullptr && instance->exit_code()) return static_cast<int>(*instance->exit_code() & 0xff);
  uint32_t status = 0;  // during instantiation there is no instance to ask; the message is the decimal status
  std::from_chars(error.message.data(), error.message.data() + error.message.size(), status);
  return static_cast<int>(status & 0xff);
}

// Sorts an error of running guest code into an end of the guest, or hands it back.
Status settle(const Error& error, const Instance* instance, const Trap* trap, GuestEnd& end) {
  if (error.kind == ErrorKind::kExit) {
    end.exit_status = exit_status_of(error, instance);
    return {};
  }
  if (error.kind == ErrorKind::kTrap) {
    end.exit_status = kTrapped;
    end.trap = trap != nullptr ? trap->to_string() : error.describe();
    return {};
  }
  return std::unexpected(error);
}

}  // namespace

Result<std::shared_ptr<const Module>> load_module(Engine& engine, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return make_error(ErrorKind::kResource, "a directory is no module", path);
  }
  auto module = engine.load_file(path);
  if (module || module.error().kind != ErrorKind::kUsage) return module;
  const Error& error = module.error();
  return make_error(ErrorKind::kResource, error.message, error.place, error.offset);
}

Result<Guest> run_guest(Engine& engine, const RunPlan& plan) {
  HINDSIGHT_ASSIGN(std::shared_ptr<const Module> module, load_module(engine, plan.module_path));
  return run_guest(engine, std::move(module), plan);
}

Result<Guest> run_guest(Engine& engine, std::shared_ptr<const Module> module, const RunPlan& plan) {
  Guest guest;
  guest.module = std::move(module);
  const bool invokes = !plan.invoke.empty();
  const std::string entry = invokes ? plan.invoke : "_start";
  // Without _start the start function is the program: instantiating runs it.
  const bool starts =
      !invokes && !exports_function(*guest.module, entry) && guest.module->has_start_function();
  if (!starts && !exports_function(*guest.module, entry)) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format(
            "the module exports no function '{}'{}; exported functions: {}", printable_name(entry),
            invokes ? "" : " and has no start function, so it is no program (name a function with --invoke)",
            exported_functions(*guest.module)),
        plan.module_path);
  }

  Linker linker(engine);
  HINDSIGHT_TRY(linker.define_wasi(plan.wasi));
  // One limit for all that the guest does, its start function and _initialize included: each call has what is left.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + plan.timeout;
  const auto limit_next_call = [&] {
    if (plan.timeout.count() == 0) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    linker.set_timeout(std::max(left, std::chrono::milliseconds(1)));
  };
  limit_next_call();
  auto instance = linker.instantiate(guest.module);
  if (!instance) {
    HINDSIGHT_TRY(settle(instance.error(), nullptr, linker.last_trap(), guest.end));
    return guest;
  }
  guest.instance = std::move(*instance);
  if (starts) {
    if (plan.timeout.count() > 0) guest.instance->set_timeout(std::chrono::milliseconds(0));
    return guest;
  }

  // Arguments are checked before anything of the module but its start function ran.
  std::vector<Value> arguments;
  if (invokes) {
    HINDSIGHT_ASSIGN(const FunctionType type, guest.instance->function_type(entry));
    HINDSIGHT_ASSIGN(arguments, parse_arguments(entry, type, plan.guest_args));
  }
  limit_next_call();
  // Only reactors have one; it runs once, before any other export.
  if (exports_function(*guest.module, "_initialize") && entry != "_initialize") {
    if (const auto initialized = guest.instance->call("_initialize", {}); !initialized) {
      HINDSIGHT_TRY(
          settle(initialized.error(), guest.instance.get(), guest.instance->last_trap(), guest.end));
      return guest;
    }
  }
  limit_next_call();
  auto results = guest.instance->call(entry, arguments);
  if (!results) {
    HINDSIGHT_TRY(settle(results.error(), guest.instance.get(), guest.instance->last_trap(), guest.end));
  } else if (invokes) {
    guest.end.results = std::move(*results);
  }
  return guest;
}

}  // namespace hindsight::cli
