#include "runtime/code/code_services.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/thread_processor.h"
#include "jit/baseline/baseline_compiler.h"
#include "runtime/code/machine_identity.h"
#include "runtime/code/optimizer_loader.h"
#include "runtime/exec/quiescence.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {

namespace {

// Such a thread has a tenth of a processor that it shares with a guest, and all of one that nobody wants.
constexpr int kTrialsBelowGuests = 10;

}  // namespace

CodeServices::CodeServices(const jit::CompileOptions& options, uint32_t compile_threads)
    : options_(options),
      threads_(compile_threads != 0 ? compile_threads : std::max(2u, usable_processors()) - 1),
      threads_for_trials_(threads_.most(), kTrialsBelowGuests) {}

Result<std::unique_ptr<CodeServices>> CodeServices::create(const jit::CompileOptions& options,
                                                           uint32_t compile_threads) {
  std::unique_ptr<CodeServices> services(new CodeServices(options, compile_threads));
  // Where address space is limited a smaller arena is better than none.
  for (size_t bytes = size_t{512} << 20; services->arena_ == nullptr; bytes /= 4) {
    auto arena = jit::CodeArena::create(bytes);
    if (arena) {
      services->arena_ = std::move(*arena);
    } else if (bytes < (size_t{16} << 20)) {
      return std::unexpected(arena.error());
    }
  }
  const auto begin = reinterpret_cast<uintptr_t>(services->arena_->executable_begin());
  const auto end = reinterpret_cast<uintptr_t>(services->arena_->executable_end());
  if (!code_ranges().add(begin, end)) {
    services->arena_.reset();
    return make_error(ErrorKind::kResource, "too many engines in this process");
  }
  HINDSIGHT_ASSIGN(services->trampolines_, jit::make_trampolines(*services->arena_));
  return services;
}

CodeServices::~CodeServices() {
  if (arena_ == nullptr) return;
  // No guest runs any more: whatever waits to be freed can go.
  retired_.collect([](std::span<const jit::CodeRange>, std::vector<bool>&) { return true; },
                   [this](const jit::CodeVersion& version) { registry_.remove(version); });
  code_ranges().remove(reinterpret_cast<uintptr_t>(arena_->executable_begin()));
}

Result<jit::Optimizer*> CodeServices::optimizer() {
  const std::lock_guard lock(optimizer_mutex_);
  if (optimizer_error_) return std::unexpected(*optimizer_error_);
  if (optimizer_ == nullptr) {
    auto loaded = load_optimizer();
    if (!loaded) {
      optimizer_error_ = loaded.error();
      has_no_optimizer_.store(true, std::memory_order_relaxed);
      return std::unexpected(loaded.error());
    }
    optimizer_ = std::move(*loaded);
    const std::vector<std::string> files = optimizer_->files();
    if (files.size() == 2)
      compiler_files_ = CompilerFiles{file_identity(files[0]), files[1], file_identity(files[1])};
  }
  return optimizer_.get();
}

std::optional<CodeServices::CompilerFiles> CodeServices::compiler_files() {
  const std::lock_guard lock(optimizer_mutex_);
  return compiler_files_;
}

void CodeServices::say_system_failures() {
  if (!log) return;
  for (const SystemFailureCount& failure : system_failures()) {
    if (said_where_it_happens(failure.what)) continue;
    if (failures_said_[static_cast<size_t>(failure.what)].exchange(true, std::memory_order_relaxed)) continue;
    say(LogLevel::kWarning, "system",
        fmt::format("the system refused this process {}{}; said once, counted in reports", failure.words,
                    failure.first_error == 0 ? "" : fmt::format(": {}", std::strerror(failure.first_error))));
  }
}

size_t CodeServices::collect_retired() {
  return retired_.collect([](std::span<const jit::CodeRange> ranges,
                             std::vector<bool>& live) { return scan_guest_threads(ranges, live); },
                          [this](const jit::CodeVersion& version) { registry_.remove(version); });
}

}  // namespace hindsight::rt
