// Ways out of a preopened directory, each tried on both resolvers. The tree:
//
//   outside/secret, outside/dir/inner     what the guest must neither see nor touch
//   inside/                               the first preopened directory (kRoot)
//   second/                               another one
#include <fcntl.h>
#include <sys/syscall.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/runtime/wasi/resolver_fixture.h"

namespace hindsight::wasi {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSecond = 4;

class WasiEscape : public OnBothResolvers {
 protected:
  void SetUp() override {
    OnBothResolvers::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(dir_ / "outside/dir");
    write_host_file(dir_ / "outside/secret", "secret");
    write_host_file(dir_ / "outside/dir/inner", "secret");
    fs::create_directories(dir_ / "inside/a/b");
    write_host_file(dir_ / "inside/file", "mine");
    write_host_file(dir_ / "inside/a/b/file", "mine");
    fs::create_directories(dir_ / "second");
    Config config = directory_config(dir_ / "inside");
    config.preopens.push_back({.host_path = (dir_ / "second").string(), .guest_path = "/second"});
    guest_ = std::make_unique<Guest>(with_strategy(std::move(config)));
    before_ = outside();
  }

  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(outside(), before_) << "something outside was changed";
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      EXPECT_TRUE(entry.path().filename() == "outside" || entry.path().filename() == "inside" ||
                  entry.path().filename() == "second")
          << entry.path() << " was made beside the preopened directory";
  }

  // Everything about the outside that a guest could have changed.
  std::map<std::string, std::string> outside() const {
    std::map<std::string, std::string> state;
    const auto note = [&](const fs::path& path) {
      struct stat status;
      EXPECT_EQ(::lstat(path.c_str(), &status), 0);
      const bool directory = S_ISDIR(status.st_mode);
      state[path.string()] =
          (directory ? "" : read_host_file(path)) + " links " + std::to_string(status.st_nlink) + " mtime " +
          std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
    };
    note(dir_ / "outside");
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / "outside")) note(entry.path());
    return state;
  }

  // No call does anything with a path that leads out, and each says why. `reached` is what must not be:
  // kNoent would tell the guest what exists outside.
  void expect_no_call_takes(std::string_view path) {
    SCOPED_TRACE(path);
    Guest& guest = *guest_;
    guest.forget();
    for (const bool follow : {true, false}) {
      for (const uint16_t flags : {0, int{oflags::kCreat}, int{oflags::kTrunc}, int{oflags::kDirectory}}) {
        OpenOptions options;
        options.follow = follow;
        options.flags = flags;
        EXPECT_EQ(guest.try_open(kRoot, path, options), Errno::kNotcapable);
        options.base = rights::kAll;
        if (flags != oflags::kDirectory) {
          EXPECT_EQ(guest.try_open(kRoot, path, options), Errno::kNotcapable);
        }
      }
      EXPECT_EQ(guest.stat(kRoot, path, follow, 64), Errno::kNotcapable);
      EXPECT_EQ(guest.set_times(kRoot, follow, path, 1, 1, fstflags::kMtim), Errno::kNotcapable);
    }
    EXPECT_EQ(guest.readlink(kRoot, path).error(), Errno::kNotcapable);
    expect_no_name_call_takes(path);
  }

  void expect_no_name_call_takes(std::string_view path) {
    SCOPED_TRACE(path);
    Guest& guest = *guest_;
    EXPECT_EQ(guest.path_call("path_create_directory", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.path_call("path_remove_directory", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.rename(kRoot, path, kRoot, "taken"), Errno::kNotcapable);
    EXPECT_EQ(guest.rename(kRoot, "file", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.rename(kSecond, "own", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.link(kRoot, false, path, kRoot, "taken"), Errno::kNotcapable);
    EXPECT_EQ(guest.link(kRoot, false, "file", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.symlink("file", kRoot, path), Errno::kNotcapable);
    EXPECT_FALSE(fs::exists(fs::symlink_status(dir_ / "inside/taken")));
    EXPECT_EQ(read_host_file(dir_ / "inside/file"), "mine");
  }

  TempDir dir_;
  std::unique_ptr<Guest> guest_;
  std::map<std::string, std::string> before_;
};

INSTANTIATE_TEST_SUITE_P(Both, WasiEscape, kBothResolvers, strategy_name);

TEST_P(WasiEscape, ByDotDot) {
  for (const std::string path :
       {"..", "../", "../outside/secret", "../outside/none", "../new", "a/../../outside/secret",
        "a/b/../../../outside/secret", "./../outside/secret", "a//..//..//outside//secret", "a/b/../../..",
        "../inside/file", "a/../../inside/file", "../second/x", "..//../../../etc/passwd"}) {
    expect_no_call_takes(path);
  }
}

TEST_P(WasiEscape, ByAnAbsolutePath) {
  for (const std::string& path : {std::string("/"), std::string("//"), std::string("/etc/passwd"),
                                  std::string("///etc/passwd"), (dir_ / "outside/secret").string(),
                                  (dir_ / "inside/file").string(), std::string("/.."), std::string("/file")})
    expect_no_call_takes(path);
}

TEST_P(WasiEscape, ByDotDotFromADirectoryOfItsOwn) {
  const auto sub = guest_->open(kRoot, "a/b");
  ASSERT_TRUE(sub);
  // Even within the preopened tree: this descriptor stands for what is below it.
  EXPECT_EQ(guest_->try_open(*sub, "../b/file"), Errno::kNotcapable);
  EXPECT_EQ(guest_->try_open(*sub, "../../file"), Errno::kNotcapable);
  EXPECT_EQ(guest_->try_open(*sub, "../../../outside/secret"), Errno::kNotcapable);
  EXPECT_EQ(guest_->try_open(*sub, "file"), Errno::kSuccess);
}

TEST_P(WasiEscape, ThroughLinksThatTheHostHasLeft) {
  const fs::path in = dir_ / "inside";
  fs::create_directory_symlink("../outside", in / "up");
  fs::create_directory_symlink(dir_ / "outside", in / "absolute");
  fs::create_directory_symlink("..", in / "parent");
  fs::create_directory_symlink("/", in / "root");
  fs::create_directory_symlink("up", in / "chain");
  fs::create_directory_symlink("a/b/../../../outside", in / "winding");
  fs::create_directory_symlink("../../parent/outside", in / "a/b/nested");
  fs::create_directory_symlink(in, in / "home");  // absolute, though it leads back
  for (const std::string path :
       {"up/secret", "up/dir/inner", "absolute/secret", "parent/outside/secret", "root/etc/passwd",
        "chain/secret", "winding/secret", "a/b/nested/secret", "home/file", "up/../second/x",
        "parent/inside/file", "a/../up/dir/../secret"})
    expect_no_call_takes(path);
  // A link as the last component.
  for (const std::string path : {"up", "absolute", "parent", "root", "chain", "winding", "home"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(guest_->try_open(kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest_->try_open(kRoot, path, {.follow = false}), Errno::kLoop);
    EXPECT_EQ(guest_->stat(kRoot, path, true, 64), Errno::kNotcapable);
    EXPECT_EQ(guest_->set_times(kRoot, true, path, 1, 1, fstflags::kMtim), Errno::kNotcapable);
    // A trailing slash follows what NOFOLLOW would not.
    for (const std::string& slashed : {path + "/", path + "//", path + "/."}) {
      EXPECT_EQ(guest_->try_open(kRoot, slashed, {.follow = false}), Errno::kNotcapable) << slashed;
      EXPECT_EQ(guest_->stat(kRoot, slashed, false, 64), Errno::kNotcapable) << slashed;
      EXPECT_EQ(guest_->set_times(kRoot, false, slashed, 1, 1, fstflags::kMtim), Errno::kNotcapable);
      EXPECT_EQ(guest_->readlink(kRoot, slashed).error(), Errno::kNotcapable) << slashed;
    }
  }
}

TEST_P(WasiEscape, ByCallsOnALinkWithATrailingSlash) {
  fs::create_directory_symlink("../outside/dir", dir_ / "inside/link");
  fs::create_symlink("../outside/new", dir_ / "inside/dangling");
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "link/"), Errno::kNotdir);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "link/"), Errno::kNotdir);
  EXPECT_NE(guest_->rename(kRoot, "link/", kRoot, "taken"), Errno::kSuccess);
  EXPECT_NE(guest_->rename(kRoot, "a/", kRoot, "link/"), Errno::kSuccess);
  EXPECT_NE(guest_->rename(kRoot, "a/", kRoot, "dangling/"), Errno::kSuccess);
  EXPECT_EQ(guest_->link(kRoot, false, "link/", kRoot, "taken"), Errno::kNotdir);
  EXPECT_NE(guest_->link(kRoot, false, "file", kRoot, "dangling/"), Errno::kSuccess);
  EXPECT_NE(guest_->symlink("file", kRoot, "dangling/"), Errno::kSuccess);
  EXPECT_NE(guest_->path_call("path_create_directory", kRoot, "dangling/"), Errno::kSuccess);
  EXPECT_NE(guest_->try_open(kRoot, "dangling/", kCreating), Errno::kSuccess);
}

TEST_P(WasiEscape, ByCreatingOrTruncatingThroughALink) {
  fs::create_symlink("../outside/new", dir_ / "inside/dangling");
  fs::create_symlink(dir_ / "outside/new", dir_ / "inside/absolute");
  fs::create_symlink("../outside/secret", dir_ / "inside/victim");
  EXPECT_EQ(guest_->try_open(kRoot, "dangling", kCreating), Errno::kNotcapable);
  EXPECT_EQ(guest_->try_open(kRoot, "absolute", kCreating), Errno::kNotcapable);
  OpenOptions exclusive = kCreating;
  exclusive.flags |= oflags::kExcl;
  EXPECT_EQ(guest_->try_open(kRoot, "dangling", exclusive), Errno::kExist);
  OpenOptions truncating = kForWriting;
  truncating.flags = oflags::kTrunc;
  EXPECT_EQ(guest_->try_open(kRoot, "victim", truncating), Errno::kNotcapable);
  EXPECT_EQ(guest_->try_open(kRoot, "victim", kForWriting), Errno::kNotcapable);
  EXPECT_EQ(guest_->path_call("path_create_directory", kRoot, "dangling"), Errno::kExist);
}

TEST_P(WasiEscape, ThroughLinksThatTheGuestMakes) {
  EXPECT_EQ(guest_->symlink("/etc/passwd", kRoot, "absolute"), Errno::kNotcapable);
  EXPECT_EQ(guest_->symlink("../outside/secret", kRoot, "up"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "up"), Errno::kNotcapable);
  // Harmless where it is made, not where it is moved to.
  EXPECT_EQ(guest_->symlink("../../../file", kRoot, "a/b/deep"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "a/b/deep"), Errno::kNotcapable);
  EXPECT_EQ(guest_->symlink("../../file", kRoot, "a/b/good"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "a/b/good"), Errno::kSuccess);
  EXPECT_EQ(guest_->rename(kRoot, "a/b", kRoot, "b"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "b/good"), Errno::kNotcapable);
  // Nor with a hard link to the link, which has no place of its own.
  EXPECT_EQ(guest_->link(kRoot, false, "b/good", kRoot, "hard"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "hard"), Errno::kNotcapable);
  // Nor in another preopened directory.
  EXPECT_EQ(guest_->rename(kRoot, "up", kSecond, "up"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kSecond, "up"), Errno::kNotcapable);
  EXPECT_EQ(guest_->symlink("../inside/file", kSecond, "across"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kSecond, "across"), Errno::kNotcapable);
}

TEST_P(WasiEscape, ByAHardLinkToAFileOutside) {
  fs::create_symlink("../outside/secret", dir_ / "inside/link");
  fs::create_directory_symlink("../outside", dir_ / "inside/up");
  EXPECT_EQ(guest_->link(kRoot, true, "link", kRoot, "taken"), Errno::kInval);
  EXPECT_EQ(guest_->link(kRoot, false, "up/secret", kRoot, "taken"), Errno::kNotcapable);
  EXPECT_EQ(guest_->link(kRoot, false, "file", kRoot, "up/planted"), Errno::kNotcapable);
  // Linking the link gives another link, as useless as the first.
  EXPECT_EQ(guest_->link(kRoot, false, "link", kRoot, "taken"), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "taken"), Errno::kNotcapable);
}

TEST_P(WasiEscape, BetweenPreopenedDirectoriesOnlyWhatTheGuestNames) {
  EXPECT_EQ(guest_->rename(kRoot, "file", kSecond, "file"), Errno::kSuccess);
  EXPECT_EQ(read_host_file(dir_ / "second/file"), "mine");
  EXPECT_EQ(guest_->rename(kSecond, "file", kRoot, "../file"), Errno::kNotcapable);
  EXPECT_EQ(guest_->rename(kSecond, "file", kRoot, ".."), Errno::kNotcapable);
  EXPECT_EQ(guest_->rename(kRoot, ".", kSecond, "x"), Errno::kBusy);
  EXPECT_EQ(guest_->rename(kRoot, "..", kSecond, "x"), Errno::kNotcapable);
}

TEST_P(WasiEscape, ThroughMagicLinksOfProc) {
  Guest guest(with_strategy(directory_config("/proc")));
  for (const std::string_view path : {"self/root/etc/passwd", "self/cwd/.", "self/fd/0", "thread-self/root/"})
    EXPECT_NE(guest.try_open(kRoot, path, {.base = rights::kFdRead}), Errno::kSuccess) << path;
  EXPECT_EQ(guest.try_open(kRoot, "self/stat", {.base = rights::kFdRead}), Errno::kSuccess);
}

// The race that checking first and opening later would lose: one name is now a directory, now a link out.
TEST_P(WasiEscape, BySwappingADirectoryForALinkMeanwhile) {
  fs::create_directory(dir_ / "inside/swap");
  write_host_file(dir_ / "inside/swap/secret", "mine");
  fs::create_directory_symlink("../outside", dir_ / "inside/other");
  const std::string swap = (dir_ / "inside/swap").string();
  const std::string other = (dir_ / "inside/other").string();
  constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE
  if (::syscall(SYS_renameat2, AT_FDCWD, swap.c_str(), AT_FDCWD, other.c_str(), kExchange) != 0)
    GTEST_SKIP() << "this file system cannot exchange two names";

  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop.load()) ::syscall(SYS_renameat2, AT_FDCWD, swap.c_str(), AT_FDCWD, other.c_str(), kExchange);
  });
  int read = 0;
  int refused = 0;
  // Ends early once both sides of the race have been seen often.
  for (int i = 0; i < 20000 && (read < 300 || refused < 300); i++) {
    guest_->forget();
    const auto fd = guest_->open(kRoot, "swap/secret", kForWriting);
    if (!fd) {
      EXPECT_TRUE(fd.error() == Errno::kNotcapable || fd.error() == Errno::kNotdir) << i;
      refused++;
    } else {
      EXPECT_EQ(guest_->read(*fd, 10), "mine");
      EXPECT_EQ(guest_->call("fd_close", *fd), Errno::kSuccess);
      read++;
    }
    // Names in the swapped directory: what is made and removed is never outside.
    if (guest_->path_call("path_create_directory", kRoot, "swap/made") == Errno::kSuccess)
      (void)guest_->path_call("path_remove_directory", kRoot, "swap/made");
  }
  stop.store(true);
  swapper.join();
  // TearDown compares the outside, its times included: nothing was made there, not even for a moment.
}

// Both resolvers are one wall: the same answer to everything.
TEST(WasiResolvers, GiveTheSameAnswers) {
  if (PathResolver::best() != PathResolver::Strategy::kOpenat2)
    GTEST_SKIP() << "this kernel or its seccomp filter does not offer openat2";
  TempDir dir;
  fs::create_directories(dir / "a/b/c");
  write_host_file(dir / "file", "");
  write_host_file(dir / "a/file", "");
  const std::pair<const char*, const char*> links[] = {
      {"l_file", "file"},      {"l_dir", "a/b"},     {"l_out", "../x"},     {"l_abs", "/etc"},
      {"l_none", "none"},      {"l_loop", "l_loop"}, {"l_slash", "a/b/"},   {"l_fslash", "file/"},
      {"l_dot", "."},          {"l_chain", "l_dir"}, {"a/l_up", "../file"}, {"a/l_up2", "../.."},
      {"a/b/l_root", "../.."},
  };
  for (const auto& [name, target] : links) fs::create_symlink(target, dir / name);
  const int root = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(root, 0);
  const PathResolver kernel(PathResolver::Strategy::kOpenat2);
  const PathResolver walk(PathResolver::Strategy::kWalk);

  std::vector<std::string> bases = {".", "a", "a/b", "none", "a/none", "file", "a/file"};
  for (const auto& link : links) bases.push_back(link.first);
  std::vector<std::string> paths;
  for (const std::string& base : bases) {
    for (const char* suffix : {"", "/", "/.", "/..", "/../file", "/c", "/c/../..", "/file", "/../../..",
                               "/../../../x", "/l_up", "/none"})
      paths.push_back(base + suffix);
  }
  int compared = 0;
  for (const std::string& path : paths) {
    for (const int flags :
         {O_RDONLY, O_PATH, O_RDONLY | O_NOFOLLOW, O_PATH | O_NOFOLLOW, O_RDONLY | O_DIRECTORY,
          O_PATH | O_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, O_RDWR}) {
      const auto answer = [&](const PathResolver& resolver) -> std::pair<Errno, uint64_t> {
        const auto opened = resolver.open(root, path, flags);
        if (!opened) return {opened.error(), 0};
        struct stat status;
        EXPECT_EQ(::fstat(opened->get(), &status), 0);
        return {Errno::kSuccess, status.st_ino};
      };
      EXPECT_EQ(answer(kernel), answer(walk)) << path << " flags " << std::oct << flags;
      compared++;
    }
    // Creating: what one makes is removed before the other tries.
    for (const int flags : {O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_NOFOLLOW, O_RDWR | O_CREAT | O_EXCL}) {
      const auto answer = [&](const PathResolver& resolver) {
        const auto opened = resolver.open(root, path, flags, 0600);
        const Errno error = opened ? Errno::kSuccess : opened.error();
        for (const char* made : {"none", "a/none", "a/b/none", "a/b/file", "a/b/l_up", "c", "a/c", "l_up"})
          fs::remove(dir / made);
        return error;
      };
      EXPECT_EQ(answer(kernel), answer(walk)) << path << " flags " << std::oct << flags;
      compared++;
    }
  }
  EXPECT_EQ(compared, static_cast<int>(paths.size() * 11));
  ::close(root);
}

}  // namespace
}  // namespace hindsight::wasi
