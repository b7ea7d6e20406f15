#include <set>

#include "runtime/wasi/errno.h"
#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

TEST(WasiTable, HoldsEveryFunctionOfPreview1Once) {
  std::set<std::string_view> names;
  for (const WasiFunction& function : functions()) names.insert(function.name);
  EXPECT_EQ(names.size(), functions().size());
  EXPECT_EQ(names.size(), 46u);
  EXPECT_EQ(find_function("fd_no_such_call"), nullptr);
}

// As wasi-libc imports them.
TEST(WasiTable, SignaturesAreThoseThatCompilersImport) {
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"args_get", "ii:i"},
      {"clock_res_get", "ii:i"},
      {"clock_time_get", "iIi:i"},
      {"fd_advise", "iIIi:i"},
      {"fd_allocate", "iII:i"},
      {"fd_close", "i:i"},
      {"fd_fdstat_set_rights", "iII:i"},
      {"fd_filestat_set_size", "iI:i"},
      {"fd_filestat_set_times", "iIIi:i"},
      {"fd_pread", "iiiIi:i"},
      {"fd_prestat_dir_name", "iii:i"},
      {"fd_read", "iiii:i"},
      {"fd_readdir", "iiiIi:i"},
      {"fd_seek", "iIii:i"},
      {"path_filestat_get", "iiiii:i"},
      {"path_filestat_set_times", "iiiiIIi:i"},
      {"path_link", "iiiiiii:i"},
      {"path_open", "iiiiiIIii:i"},
      {"path_readlink", "iiiiii:i"},
      {"path_rename", "iiiiii:i"},
      {"path_symlink", "iiiii:i"},
      {"poll_oneoff", "iiii:i"},
      {"proc_exit", "i:"},
      {"proc_raise", "i:i"},
      {"sched_yield", ":i"},
      {"random_get", "ii:i"},
      {"sock_accept", "iii:i"},
      {"sock_recv", "iiiiii:i"},
      {"sock_send", "iiiii:i"},
      {"sock_shutdown", "ii:i"},
  };
  for (const auto& [name, signature] : expected) {
    const WasiFunction* function = find_function(name);
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function->signature, signature) << name;
  }
}

// Whatever a guest passes, it gets an errno. Tried is every function with pointers and lengths at the far
// end of the address space, which wrap in 32 bits.
TEST(WasiTable, NoFunctionLooksOutsideGuestMemory) {
  TempDir dir;
  write_host_file(dir / "file", "text");
  for (const uint64_t value : {uint64_t{0xffffffff}, uint64_t{0xfffffff8}, uint64_t{256 * 1024 - 1}}) {
    for (const uint64_t fd : {uint64_t{1}, uint64_t{kRoot}, value}) {
      for (const WasiFunction& function : functions()) {
        if (function.name == "proc_exit" || function.name == "proc_raise") continue;
        Config config = directory_config(dir.path());
        config.stdout_sink = [](std::span<const std::byte>) {};
        Guest guest(std::move(config));
        std::array<uint64_t, 16> args;
        args.fill(value);
        args[0] = fd;
        uint64_t result = 0;
        EXPECT_FALSE(function.call(*guest.context, guest.memory(), args.data(), &result).exited());
        EXPECT_LE(result, 76u) << function.name;
      }
    }
  }
  EXPECT_EQ(read_host_file(dir / "file"), "text");
}

TEST(WasiTable, AThrowingSinkBecomesAnIoError) {
  Config config = quiet_config();
  config.stdout_sink = [](std::span<const std::byte>) { throw 1; };
  Guest guest(std::move(config));
  EXPECT_EQ(guest.write(1, "x").error(), Errno::kIo);
}

TEST(WasiErrno, HostErrorsKeepTheirMeaning) {
  EXPECT_EQ(from_host(0), Errno::kSuccess);
  EXPECT_EQ(from_host(ENOENT), Errno::kNoent);
  EXPECT_EQ(static_cast<int>(from_host(ENOENT)), 44);
  EXPECT_EQ(static_cast<int>(from_host(EBADF)), 8);
  EXPECT_EQ(static_cast<int>(from_host(EXDEV)), 75);
  EXPECT_EQ(static_cast<int>(from_host(EOPNOTSUPP)), 58);
  EXPECT_EQ(static_cast<int>(from_host(EWOULDBLOCK)), 6);
  EXPECT_EQ(from_host(123456), Errno::kIo);
}

}  // namespace
}  // namespace hindsight::wasi
