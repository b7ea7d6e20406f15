// The table. A signature string is made from the type of the call that stands beside the name. So the two
// cannot disagree, and neither can the number of slots that the call reads.
#include "runtime/wasi/functions.h"

#include <algorithm>
#include <array>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi {
namespace {

Outcome finish(Outcome outcome, uint64_t*) {
  return outcome;
}

Outcome finish(Errno error, uint64_t* results) {
  results[0] = static_cast<uint64_t>(error);
  return Outcome::returned();
}

Outcome finish(calls::ErrnoOrExit end, uint64_t* results) {
  if (end.exit_code) return Outcome::exit(*end.exit_code);
  return finish(end.error, results);
}

template <auto function>
struct Binding;

template <typename R, typename... Args, R (*function)(WasiContext&, GuestMemory, Args...)>
struct Binding<function> {
  static constexpr bool kHasResult = !std::is_same_v<R, Outcome>;

  static constexpr auto kSignature = [] {
    static_assert(((std::is_same_v<Args, uint32_t> || std::is_same_v<Args, uint64_t>)&&...));
    std::array<char, sizeof...(Args) + 1 + kHasResult> letters{};
    size_t at = 0;
    ((letters[at++] = sizeof(Args) == 8 ? 'I' : 'i'), ...);
    letters[at++] = ':';
    if (kHasResult) letters[at++] = 'i';
    return letters;
  }();

  static Outcome call(WasiContext& context, GuestMemory memory, const uint64_t* args,
                      uint64_t* results) noexcept {
    const WasiContext::Call scope(context);
    // Nothing may be thrown across guest frames: what still can be thrown is an allocation that the guest's
    // own sizes caused, or an embedder's sink.
    try {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return finish(function(context, memory, static_cast<Args>(args[I])...), results);
      }
      (std::index_sequence_for<Args...>{});
    } catch (const std::bad_alloc&) {
      return fail(Errno::kNomem, results);
    } catch (...) {
      return fail(Errno::kIo, results);
    }
  }

 private:
  static Outcome fail(Errno error, uint64_t* results) {
    if constexpr (kHasResult) return finish(error, results);
    return Outcome::returned();
  }
};

template <auto function>
constexpr WasiFunction bind(std::string_view name) {
  using Bound = Binding<function>;
  return {name, std::string_view(Bound::kSignature.data(), Bound::kSignature.size()), &Bound::call};
}

#define HINDSIGHT_WASI_CALL(name) bind<&calls::name>(#name)

constexpr std::array kFunctions{
    HINDSIGHT_WASI_CALL(args_get),
    HINDSIGHT_WASI_CALL(args_sizes_get),
    HINDSIGHT_WASI_CALL(environ_get),
    HINDSIGHT_WASI_CALL(environ_sizes_get),
    HINDSIGHT_WASI_CALL(clock_res_get),
    HINDSIGHT_WASI_CALL(clock_time_get),
    HINDSIGHT_WASI_CALL(fd_advise),
    HINDSIGHT_WASI_CALL(fd_allocate),
    HINDSIGHT_WASI_CALL(fd_close),
    HINDSIGHT_WASI_CALL(fd_datasync),
    HINDSIGHT_WASI_CALL(fd_fdstat_get),
    HINDSIGHT_WASI_CALL(fd_fdstat_set_flags),
    HINDSIGHT_WASI_CALL(fd_fdstat_set_rights),
    HINDSIGHT_WASI_CALL(fd_filestat_get),
    HINDSIGHT_WASI_CALL(fd_filestat_set_size),
    HINDSIGHT_WASI_CALL(fd_filestat_set_times),
    HINDSIGHT_WASI_CALL(fd_pread),
    HINDSIGHT_WASI_CALL(fd_prestat_get),
    HINDSIGHT_WASI_CALL(fd_prestat_dir_name),
    HINDSIGHT_WASI_CALL(fd_pwrite),
    HINDSIGHT_WASI_CALL(fd_read),
    HINDSIGHT_WASI_CALL(fd_readdir),
    HINDSIGHT_WASI_CALL(fd_renumber),
    HINDSIGHT_WASI_CALL(fd_seek),
    HINDSIGHT_WASI_CALL(fd_sync),
    HINDSIGHT_WASI_CALL(fd_tell),
    HINDSIGHT_WASI_CALL(fd_write),
    HINDSIGHT_WASI_CALL(path_create_directory),
    HINDSIGHT_WASI_CALL(path_filestat_get),
    HINDSIGHT_WASI_CALL(path_filestat_set_times),
    HINDSIGHT_WASI_CALL(path_link),
    HINDSIGHT_WASI_CALL(path_open),
    HINDSIGHT_WASI_CALL(path_readlink),
    HINDSIGHT_WASI_CALL(path_remove_directory),
    HINDSIGHT_WASI_CALL(path_rename),
    HINDSIGHT_WASI_CALL(path_symlink),
    HINDSIGHT_WASI_CALL(path_unlink_file),
    HINDSIGHT_WASI_CALL(poll_oneoff),
    HINDSIGHT_WASI_CALL(proc_exit),
    HINDSIGHT_WASI_CALL(proc_raise),
    HINDSIGHT_WASI_CALL(sched_yield),
    HINDSIGHT_WASI_CALL(random_get),
    HINDSIGHT_WASI_CALL(sock_accept),
    HINDSIGHT_WASI_CALL(sock_recv),
    HINDSIGHT_WASI_CALL(sock_send),
    HINDSIGHT_WASI_CALL(sock_shutdown),
};

#undef HINDSIGHT_WASI_CALL

constexpr std::array kChanged{
    bind<&calls::unstable_fd_filestat_get>("fd_filestat_get"),
    bind<&calls::unstable_fd_seek>("fd_seek"),
    bind<&calls::unstable_path_filestat_get>("path_filestat_get"),
    bind<&calls::unstable_poll_oneoff>("poll_oneoff"),
};

constexpr auto kUnstableFunctions = [] {
  std::array<WasiFunction, kFunctions.size() - 1> all{};
  size_t count = 0;
  for (const WasiFunction& function : kFunctions) {
    if (function.name == "sock_accept") continue;
    const auto changed = std::ranges::find(kChanged, function.name, &WasiFunction::name);
    all[count++] = changed == kChanged.end() ? function : *changed;
  }
  return all;
}();

}  // namespace

std::span<const WasiFunction> unstable_functions() {
  return kUnstableFunctions;
}

std::span<const WasiFunction> functions() {
  return kFunctions;
}

const WasiFunction* find_function(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name, &WasiFunction::name);
  return found == kFunctions.end() ? nullptr : &*found;
}

}  // namespace hindsight::wasi
