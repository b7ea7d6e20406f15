// Descriptors: numbers, rights, flags, attributes.
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

struct Fdstat {
  Filetype type;
  uint16_t flags;
  uint64_t base;
  uint64_t inheriting;
};

Fdstat fdstat(Guest& guest, uint32_t fd) {
  namespace field = layout::fdstat;
  const uint32_t at = guest.reserve(field::kSize);
  EXPECT_EQ(guest.call("fd_fdstat_get", fd, at), Errno::kSuccess);
  return {static_cast<Filetype>(guest.get<uint8_t>(at + field::kFiletype)),
          guest.get<uint16_t>(at + field::kFlags), guest.get<uint64_t>(at + field::kRightsBase),
          guest.get<uint64_t>(at + field::kRightsInheriting)};
}

size_t open_host_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count++;
  return count;
}

TEST(WasiDescriptors, PreopenedDirectoriesAreFoundByAskingFromThree) {
  TempDir dir;
  Config config = directory_config(dir.path());
  config.preopens.push_back({.host_path = dir.path().string(), .guest_path = "."});
  Guest guest(std::move(config));
  const uint32_t at = guest.reserve(8);
  ASSERT_EQ(guest.call("fd_prestat_get", 3, at), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(at), 0u);
  EXPECT_EQ(guest.get<uint32_t>(at + 4), 5u);
  const uint32_t name = guest.reserve(5);
  EXPECT_EQ(guest.call("fd_prestat_dir_name", 3, name, 4), Errno::kNametoolong);
  ASSERT_EQ(guest.call("fd_prestat_dir_name", 3, name, 5), Errno::kSuccess);
  EXPECT_EQ(guest.get_string(name, 5), "/data");
  ASSERT_EQ(guest.call("fd_prestat_get", 4, at), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(at + 4), 1u);
  EXPECT_EQ(guest.call("fd_prestat_get", 5, at), Errno::kBadf);
  // What the guest opens itself is not preopened.
  const auto opened = guest.open(3, ".");
  ASSERT_TRUE(opened);
  EXPECT_EQ(guest.call("fd_prestat_get", *opened, at), Errno::kBadf);
}

TEST(WasiDescriptors, CreationNamesTheDirectoryThatCannotBeOpened) {
  const auto created = WasiContext::create(directory_config("/no/such/directory"));
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(created.error().place, "/no/such/directory");
}

TEST(WasiDescriptors, TheContextClosesWhatTheGuestLeftOpen) {
  TempDir dir;
  const size_t before = open_host_descriptors();
  {
    Guest guest(directory_config(dir.path()));
    for (int i = 0; i < 10; i++) ASSERT_TRUE(guest.open(kRoot, "file" + std::to_string(i), kCreating));
    const uint32_t used = guest.reserve(4);
    ASSERT_EQ(guest.call("fd_readdir", kRoot, 1000, 100, uint64_t{0}, used), Errno::kSuccess);
    // Failures leave nothing open either.
    for (int i = 0; i < 10; i++) EXPECT_FALSE(guest.open(kRoot, "file0/below"));
    EXPECT_GT(open_host_descriptors(), before + 10);
  }
  EXPECT_EQ(open_host_descriptors(), before);
}

TEST(WasiDescriptors, TheLowestFreeNumberIsGivenNext) {
  TempDir dir;
  Config config = directory_config(dir.path());
  config.stdin_text = "";
  config.stdout_sink = config.stderr_sink = [](std::span<const std::byte>) {};
  Guest guest(std::move(config));
  const auto a = guest.open(kRoot, "a", kCreating);
  const auto b = guest.open(kRoot, "b", kCreating);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, 4u);
  EXPECT_EQ(*b, 5u);
  EXPECT_EQ(guest.call("fd_close", *a), Errno::kSuccess);
  EXPECT_EQ(guest.call("fd_close", *a), Errno::kBadf);
  EXPECT_EQ(guest.open(kRoot, "c", kCreating), 4u);
  EXPECT_EQ(guest.call("fd_close", 0), Errno::kSuccess);
  EXPECT_EQ(guest.open(kRoot, "d", kCreating), 0u);
  EXPECT_EQ(guest.call("fd_close", 1'000'000), Errno::kBadf);
  EXPECT_EQ(guest.call("fd_close", 0xffffffff), Errno::kBadf);
}

TEST(WasiDescriptors, RenumberingMovesOntoAnOpenNumberOnly) {
  TempDir dir;
  write_host_file(dir / "a", "A");
  write_host_file(dir / "b", "B");
  Guest guest(directory_config(dir.path()));
  const auto a = guest.open(kRoot, "a");
  const auto b = guest.open(kRoot, "b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(guest.call("fd_renumber", *a, *b), Errno::kSuccess);
  EXPECT_EQ(guest.read(*b, 8), "A");
  EXPECT_EQ(guest.read(*a, 8).error(), Errno::kBadf);
  EXPECT_EQ(guest.call("fd_renumber", *b, *a), Errno::kBadf);
  EXPECT_EQ(guest.call("fd_renumber", *b, 0xfffffff0), Errno::kBadf);
  EXPECT_EQ(guest.call("fd_renumber", *b, *b), Errno::kSuccess);
  EXPECT_EQ(guest.read(*b, 8), "");
}

TEST(WasiDescriptors, RightsOnlyShrink) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  const Fdstat before = fdstat(guest, *fd);
  EXPECT_EQ(before.type, Filetype::kRegularFile);
  EXPECT_EQ(before.base, rights::kAllFile);
  EXPECT_EQ(before.inheriting, 0u);
  const uint64_t fewer = before.base & ~rights::kFdWrite;
  EXPECT_EQ(guest.call("fd_fdstat_set_rights", *fd, fewer, uint64_t{0}), Errno::kSuccess);
  EXPECT_EQ(guest.write(*fd, "x").error(), Errno::kBadf);
  EXPECT_EQ(guest.call("fd_fdstat_set_rights", *fd, before.base, uint64_t{0}), Errno::kNotcapable);
  EXPECT_EQ(guest.call("fd_fdstat_set_rights", *fd, fewer, uint64_t{1}), Errno::kNotcapable);
  EXPECT_EQ(fdstat(guest, *fd).base, fewer);
}

TEST(WasiDescriptors, ADirectoryPassesOnNoMoreThanItsInheritingRights) {
  TempDir dir;
  write_host_file(dir / "file", "text");
  Guest guest(directory_config(dir.path()));
  const uint64_t base = fdstat(guest, kRoot).base;
  ASSERT_EQ(guest.call("fd_fdstat_set_rights", kRoot, base, rights::kFdRead), Errno::kSuccess);
  const auto fd = guest.open(kRoot, "file");
  ASSERT_TRUE(fd);
  EXPECT_EQ(fdstat(guest, *fd).base, rights::kFdRead);
  EXPECT_EQ(guest.call("fd_tell", *fd, 16), Errno::kNotcapable);
  EXPECT_EQ(guest.try_open(kRoot, "file", kForWriting), Errno::kNotcapable);
}

TEST(WasiDescriptors, EveryPathCallNeedsItsRight) {
  TempDir dir;
  write_host_file(dir / "file", "text");
  Guest guest(directory_config(dir.path()));
  ASSERT_EQ(guest.call("fd_fdstat_set_rights", kRoot, uint64_t{0}, uint64_t{0}), Errno::kSuccess);
  EXPECT_EQ(guest.try_open(kRoot, "file"), Errno::kNotcapable);
  EXPECT_EQ(guest.stat(kRoot, "file", true, 64), Errno::kNotcapable);
  EXPECT_EQ(guest.set_times(kRoot, true, "file", 0, 0, 0), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_create_directory", kRoot, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_remove_directory", kRoot, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, "file"), Errno::kNotcapable);
  EXPECT_EQ(guest.rename(kRoot, "file", kRoot, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.link(kRoot, false, "file", kRoot, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.symlink("file", kRoot, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.readlink(kRoot, "file").error(), Errno::kNotcapable);
  EXPECT_EQ(guest.call("fd_readdir", kRoot, 64, 64, uint64_t{0}, 16), Errno::kNotcapable);
}

TEST(WasiDescriptors, NothingUnderAReadOnlyPreopenCanBeChanged) {
  TempDir dir;
  std::filesystem::create_directory(dir / "sub");
  write_host_file(dir / "sub/file", "text");
  Config config = directory_config(dir.path());
  config.preopens[0].read_only = true;
  Guest guest(std::move(config));
  const auto sub = guest.open(kRoot, "sub");
  ASSERT_TRUE(sub);
  EXPECT_EQ(guest.try_open(*sub, "file", kForWriting), Errno::kNotcapable);
  EXPECT_EQ(guest.try_open(*sub, "new", {.flags = oflags::kCreat}), Errno::kNotcapable);
  EXPECT_EQ(guest.try_open(*sub, "file", {.flags = oflags::kTrunc}), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_create_directory", *sub, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_unlink_file", *sub, "file"), Errno::kNotcapable);
  EXPECT_EQ(guest.path_call("path_remove_directory", kRoot, "sub"), Errno::kNotcapable);
  EXPECT_EQ(guest.rename(*sub, "file", *sub, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.link(*sub, false, "file", *sub, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.symlink("file", *sub, "new"), Errno::kNotcapable);
  EXPECT_EQ(guest.set_times(*sub, true, "file", 1, 1, fstflags::kAtim), Errno::kNotcapable);
  const auto file = guest.open(*sub, "file");
  ASSERT_TRUE(file);
  EXPECT_EQ(guest.read(*file, 10), "text");
  EXPECT_EQ(guest.call("fd_filestat_set_size", *file, uint64_t{0}), Errno::kNotcapable);
  EXPECT_EQ(guest.call("fd_filestat_set_times", *file, uint64_t{1}, uint64_t{1}, fstflags::kAtim),
            Errno::kNotcapable);
  EXPECT_EQ(guest.write(*file, "x").error(), Errno::kBadf);
}

TEST(WasiDescriptors, FlagsAreToldAsTheyWereSet) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  OpenOptions options = kCreating;
  options.fd_flags = fdflags::kAppend | fdflags::kNonblock;
  const auto fd = guest.open(kRoot, "file", options);
  ASSERT_TRUE(fd);
  EXPECT_EQ(fdstat(guest, *fd).flags, fdflags::kAppend | fdflags::kNonblock);
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", *fd, 0), Errno::kSuccess);
  EXPECT_EQ(fdstat(guest, *fd).flags, 0);
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", *fd, fdflags::kAppend), Errno::kSuccess);
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", *fd, fdflags::kAppend | fdflags::kSync), Errno::kNotsup);
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", *fd, 0x20), Errno::kInval);
  EXPECT_EQ(fdstat(guest, *fd).flags, fdflags::kAppend);
}

TEST(WasiDescriptors, AGuestCannotChangeTheModeOfASharedStream) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Config config = quiet_config();
  config.stdin_fd = ends[0];
  Guest guest(std::move(config));
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", 0, fdflags::kNonblock), Errno::kSuccess);
  EXPECT_EQ(::fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(guest.read(0, 4).error(), Errno::kAgain);
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", 0, fdflags::kAppend), Errno::kNotsup);
  // Closing it closes the guest's duplicate only.
  EXPECT_EQ(guest.call("fd_close", 0), Errno::kSuccess);
  EXPECT_GE(::fcntl(ends[0], F_GETFD), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(WasiDescriptors, StreamsAreDescribedByWhatTheyAre) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Config config = quiet_config();
  config.stdin_fd = sockets[0];
  config.stdout_fd = ends[1];
  config.stderr_sink = [](std::span<const std::byte>) {};
  Guest guest(std::move(config));
  EXPECT_EQ(fdstat(guest, 0).type, Filetype::kSocketStream);
  EXPECT_EQ(guest.call("sock_shutdown", 0, 0), Errno::kNotsup);
  EXPECT_EQ(fdstat(guest, 1).type, Filetype::kUnknown);
  EXPECT_EQ(fdstat(guest, 1).base & rights::kFdRead, 0u);
  EXPECT_NE(fdstat(guest, 1).base & rights::kFdWrite, 0u);
  EXPECT_EQ(fdstat(guest, 2).type, Filetype::kUnknown);
  EXPECT_EQ(guest.call("fd_seek", 1, uint64_t{0}, 1, 16), Errno::kSpipe);
  EXPECT_EQ(guest.call("fd_tell", 2, 16), Errno::kSpipe);
  for (const int fd : {sockets[0], sockets[1], ends[0], ends[1]}) ::close(fd);
}

TEST(WasiDescriptors, ATerminalIsATerminalToWasiLibc) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "this system has no pseudo-terminals";
  Config config = quiet_config();
  config.stdout_fd = terminal;
  Guest guest(std::move(config));
  // isatty asks for exactly this: a character device that has no right to seek or tell.
  EXPECT_EQ(fdstat(guest, 1).type, Filetype::kCharacterDevice);
  EXPECT_EQ(fdstat(guest, 1).base & (rights::kFdSeek | rights::kFdTell), 0u);
  EXPECT_EQ(guest.call("fd_seek", 1, uint64_t{0}, 1, 16), Errno::kSpipe);
  ::close(terminal);
}

TEST(WasiDescriptors, FilestatHasTheLayoutOfTheSpecification) {
  TempDir dir;
  write_host_file(dir / "file", "12345");
  struct stat host;
  ASSERT_EQ(::stat((dir / "file").c_str(), &host), 0);
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file");
  ASSERT_TRUE(fd);
  const uint32_t at = guest.reserve(64);
  std::memset(guest.bytes.data() + at, 0xff, 65);
  ASSERT_EQ(guest.call("fd_filestat_get", *fd, at), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at), host.st_dev);
  EXPECT_EQ(guest.get<uint64_t>(at + 8), host.st_ino);
  EXPECT_EQ(guest.get<uint64_t>(at + 16), 4u) << "regular file, padding zeroed";
  EXPECT_EQ(guest.get<uint64_t>(at + 24), 1u);
  EXPECT_EQ(guest.get<uint64_t>(at + 32), 5u);
  EXPECT_EQ(guest.get<uint64_t>(at + 48),
            static_cast<uint64_t>(host.st_mtim.tv_sec) * 1'000'000'000 + host.st_mtim.tv_nsec);
  EXPECT_EQ(guest.bytes[at + 64], 0xff);
  EXPECT_EQ(guest.call("fd_filestat_get", *fd, guest.bytes.size() - 63), Errno::kFault);
}

TEST(WasiDescriptors, SizeTimesAndSpaceCanBeSet) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  EXPECT_EQ(guest.call("fd_filestat_set_size", *fd, uint64_t{100}), Errno::kSuccess);
  EXPECT_EQ(std::filesystem::file_size(dir / "file"), 100u);
  EXPECT_EQ(guest.call("fd_filestat_set_size", *fd, ~uint64_t{0}), Errno::kInval);
  const Errno allocated = guest.call("fd_allocate", *fd, uint64_t{100}, uint64_t{100});
  if (allocated == Errno::kSuccess) {
    EXPECT_EQ(std::filesystem::file_size(dir / "file"), 200u);
  } else {
    EXPECT_EQ(allocated, Errno::kNotsup);
  }
  EXPECT_EQ(guest.call("fd_allocate", *fd, uint64_t{0}, uint64_t{0}), Errno::kInval);
  EXPECT_EQ(guest.call("fd_advise", *fd, uint64_t{0}, uint64_t{10}, 3), Errno::kSuccess);
  EXPECT_EQ(guest.call("fd_advise", *fd, uint64_t{0}, uint64_t{10}, 6), Errno::kInval);
  EXPECT_EQ(guest.call("fd_advise", *fd, ~uint64_t{0}, uint64_t{10}, 0), Errno::kInval);
  EXPECT_EQ(guest.call("fd_sync", *fd), Errno::kSuccess);
  EXPECT_EQ(guest.call("fd_datasync", *fd), Errno::kSuccess);

  const uint32_t at = guest.reserve(64);
  ASSERT_EQ(guest.call("fd_filestat_set_times", *fd, uint64_t{1'500'000'000}, uint64_t{2'000'000'001},
                       fstflags::kAtim | fstflags::kMtim),
            Errno::kSuccess);
  ASSERT_EQ(guest.call("fd_filestat_get", *fd, at), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at + 40), 1'500'000'000u);
  EXPECT_EQ(guest.get<uint64_t>(at + 48), 2'000'000'001u);
  ASSERT_EQ(guest.call("fd_filestat_set_times", *fd, uint64_t{0}, uint64_t{0}, fstflags::kMtimNow),
            Errno::kSuccess);
  ASSERT_EQ(guest.call("fd_filestat_get", *fd, at), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at + 40), 1'500'000'000u) << "was not asked for";
  EXPECT_GT(guest.get<uint64_t>(at + 48), 2'000'000'001u);
  EXPECT_EQ(guest.call("fd_filestat_set_times", *fd, uint64_t{0}, uint64_t{0},
                       fstflags::kMtim | fstflags::kMtimNow),
            Errno::kInval);
}

TEST(WasiDescriptors, AClosedStandardStreamIsClosedForTheGuest) {
  Guest guest(quiet_config());
  EXPECT_EQ(guest.read(0, 1).error(), Errno::kBadf);
  EXPECT_EQ(guest.write(1, "x").error(), Errno::kBadf);
}

}  // namespace
}  // namespace hindsight::wasi
