// What is the embedder's own stays out of reach, on both resolvers. The tree:
//
//     home/                                   the first preopened directory (kRoot), unless a test says otherwise
//     home/.cache/hindsight/code/a-0.code     kept code, mode 0400, with a seal in front
//     home/.cache/hindsight/code/.lock        ordinary files beside it
//     home/.state/hindsight/key               the key
//     home/file                               the guest's
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <map>

#include "tests/runtime/wasi/resolver_fixture.h"

namespace hindsight::wasi {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kCode = ".cache/hindsight/code/a-0.code";
constexpr const char* kKey = ".state/hindsight/key";

class WasiOwnFiles : public OnBothResolvers {
 protected:
  void SetUp() override {
    OnBothResolvers::SetUp();
    if (IsSkipped()) return;
    home_ = dir_ / "home";
    fs::create_directories(home_ / ".cache/hindsight/code");
    fs::create_directories(home_ / ".state/hindsight");
    fs::create_directories(home_ / "sub");
    own(home_ / kCode, "sealed 1 and so on");
    own(home_ / kKey, "secret 1 0123456789");
    write_host_file(home_ / ".cache/hindsight/code/.lock", "lock");
    write_host_file(home_ / "file", "mine");
  }
  static void own(const fs::path& path, std::string_view text) {
    write_host_file(path, text);
    ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  }
  Config config(bool in_use, const fs::path& preopened, const fs::path& code, const fs::path& key) const {
    Config config = with_strategy(directory_config(preopened));
    config.own_folders = {{code.string(), "the code cache", in_use, "elsewhere with the code"},
                          {key.string(), "the key", in_use, "elsewhere with the key"}};
    config.own_file_starts = {"sealed ", "secret "};
    return config;
  }
  Config config(bool in_use, const fs::path& preopened) const {
    return config(in_use, preopened, home_ / ".cache/hindsight/code", home_ / ".state/hindsight");
  }
  // Why a directory that must not be given is refused.
  static std::string refusal(Config config) {
    const std::string path = config.preopens[0].host_path;
    const auto made = WasiContext::create(std::move(config));
    if (made) return "given";
    EXPECT_EQ(made.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(made.error().place, path);
    return made.error().message;
  }
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> state;
    for (const auto& entry : fs::recursive_directory_iterator(home_)) {
      struct stat status {};
      EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
      const std::string name = entry.path().lexically_relative(home_).string();
      if (!name.starts_with(".cache/h") && !name.starts_with(".state/h")) continue;
      state[name] = (S_ISREG(status.st_mode) ? read_host_file(entry.path()) : "") + " links " +
                    std::to_string(status.st_nlink) + " inode " + std::to_string(status.st_ino) + " mode " +
                    std::to_string(status.st_mode) + " mtime " + std::to_string(status.st_mtim.tv_sec) + "." +
                    std::to_string(status.st_mtim.tv_nsec);
    }
    return state;
  }
  // Every call that takes a path, with this one of something that is there and is not the guest's.
  static void expect_no_call_takes(Guest& guest, std::string_view path) {
    SCOPED_TRACE(path);
    for (const bool follow : {true, false}) {
      for (const uint16_t flags :
           {0, int{oflags::kCreat}, int{oflags::kTrunc}, oflags::kCreat | oflags::kTrunc}) {
        for (const uint64_t base :
             {rights::kAll, rights::kAll & ~rights::kFdWrite, uint64_t{rights::kFdWrite}}) {
          OpenOptions options;
          options.follow = follow;
          options.flags = flags;
          options.base = base;
          EXPECT_NE(guest.try_open(kRoot, path, options), Errno::kSuccess) << follow << flags << base;
        }
      }
      OpenOptions directory;
      directory.flags = oflags::kDirectory;
      EXPECT_NE(guest.try_open(kRoot, path, directory), Errno::kSuccess);
      EXPECT_EQ(guest.stat(kRoot, path, follow, 64), Errno::kNotcapable);
      EXPECT_EQ(guest.set_times(kRoot, follow, path, 1, 1, fstflags::kMtim), Errno::kNotcapable);
      EXPECT_NE(guest.link(kRoot, follow, path, kRoot, "taken"), Errno::kSuccess);
      guest.forget();
    }
    EXPECT_NE(guest.rename(kRoot, path, kRoot, "taken"), Errno::kSuccess);
    EXPECT_NE(guest.rename(kRoot, "file", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.rename(kRoot, "sub", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.link(kRoot, false, "file", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.symlink("file", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.path_call("path_create_directory", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.path_call("path_remove_directory", kRoot, path), Errno::kSuccess);
    EXPECT_NE(guest.path_call("path_unlink_file", kRoot, path), Errno::kSuccess);
    guest.forget();
  }

  TempDir dir_;
  fs::path home_;
};

INSTANTIATE_TEST_SUITE_P(Both, WasiOwnFiles, kBothResolvers, strategy_name);

TEST_P(WasiOwnFiles, ADirectoryThatContainsWhatIsInUseIsRefusedWithWhatToDo) {
  for (const fs::path& path :
       {home_, home_ / ".", home_ / "sub/..", dir_.path(), fs::path("/"), home_ / ".cache"}) {
    const std::string words = refusal(config(true, path));
    EXPECT_THAT(words,
                HasSubstr("it contains the code cache (" + (home_ / ".cache/hindsight/code").string() + ")"))
        << path;
    EXPECT_THAT(words, HasSubstr("elsewhere with the code")) << path;
    EXPECT_THAT(words, HasSubstr("a narrower directory")) << path;
  }
  EXPECT_THAT(refusal(config(true, home_)), HasSubstr("elsewhere with the key"));
  EXPECT_THAT(refusal(config(true, home_ / ".cache")), testing::Not(HasSubstr("key")));
  EXPECT_EQ(refusal(config(true, home_ / "sub")), "given");
}

TEST_P(WasiOwnFiles, ADirectoryThatLiesInThemIsRefusedWhoeverUsesThem) {
  fs::create_directories(home_ / ".cache/hindsight/code/deeper");
  for (const bool in_use : {false, true}) {
    for (const char* path : {".cache/hindsight/code", ".cache/hindsight/code/deeper", ".state/hindsight"})
      EXPECT_THAT(refusal(config(in_use, home_ / path)), HasSubstr("it lies in the ")) << path;
  }
}

TEST_P(WasiOwnFiles, NeitherLinksNorMissingFoldersHideThem) {
  // By a link to the preopened directory.
  fs::create_directory_symlink(home_, dir_ / "alias");
  EXPECT_THAT(refusal(config(true, dir_ / "alias")), HasSubstr("it contains"));
  // By links on the way to the folders, of which the guest could make others.
  fs::create_directories(dir_ / "far/code");
  fs::create_directories(dir_ / "links");
  fs::create_directory_symlink(dir_ / "far", dir_ / "links/second");
  fs::create_directory_symlink("../links/second", home_ / "first");
  for (const char* path : {"home", "links", "far", "."})
    EXPECT_THAT(refusal(config(true, dir_ / path, home_ / "first/code", "")), HasSubstr("it contains"))
        << path;
  EXPECT_EQ(refusal(config(true, home_ / "sub", home_ / "first/code", "")), "given");
  // Folders that will be made.
  EXPECT_THAT(refusal(config(true, home_, home_ / "not/yet/there", "")), HasSubstr("it contains"));
  EXPECT_THAT(refusal(config(true, home_, "", home_ / "first/not/yet")), HasSubstr("it contains"));
  EXPECT_EQ(refusal(config(true, home_ / "sub", home_ / "not/yet/there", "")), "given");
}

TEST_P(WasiOwnFiles, WhereOthersMayUseThemNoCallReachesThem) {
  Guest guest(config(false, home_));
  const auto before = state();
  ASSERT_GE(before.size(), 5u);
  // By their names, by those of the folders, by names that would be new, and through links that the guest makes.
  ASSERT_EQ(guest.symlink(".cache/hindsight/code", kRoot, "way"), Errno::kSuccess);
  ASSERT_EQ(guest.symlink(kKey, kRoot, "thing"), Errno::kSuccess);
  for (const char* path : {kCode, kKey, ".cache/hindsight/code/.lock", ".cache/hindsight/code/b-0.code",
                           "way/a-0.code", "way/new", "sub/../way/.lock", ".cache/hindsight/code",
                           ".cache/hindsight/code/", ".cache/hindsight/./code/.", ".state/hindsight"})
    expect_no_call_takes(guest, path);
  for (const bool directory : {false, true}) {
    OpenOptions options;
    if (directory) options.flags = oflags::kDirectory;
    EXPECT_NE(guest.try_open(kRoot, "thing", options), Errno::kSuccess);
    EXPECT_NE(guest.try_open(kRoot, "way", options), Errno::kSuccess);
  }
  EXPECT_EQ(guest.stat(kRoot, "thing", true, 64), Errno::kNotcapable);
  // Nor from a directory above them, nor by moving or removing one.
  const auto cache = guest.open(kRoot, ".cache/hindsight");
  ASSERT_TRUE(cache);
  EXPECT_EQ(guest.try_open(*cache, "code/a-0.code"), Errno::kNotcapable);
  EXPECT_EQ(guest.try_open(*cache, "code"), Errno::kNotcapable);
  for (const char* path :
       {".cache", ".cache/hindsight", ".cache/hindsight/code", ".state", ".state/hindsight/"}) {
    EXPECT_EQ(guest.rename(kRoot, path, kRoot, "moved"), Errno::kNotcapable) << path;
    EXPECT_EQ(guest.rename(kRoot, "sub", kRoot, path), Errno::kNotcapable) << path;
    EXPECT_EQ(guest.path_call("path_remove_directory", kRoot, path), Errno::kNotcapable) << path;
  }
  EXPECT_EQ(state(), before);
  // What is beside them is the guest's.
  EXPECT_EQ(guest.try_open(kRoot, "file", kForWriting), Errno::kSuccess);
  EXPECT_EQ(guest.try_open(kRoot, ".cache/other", kCreating), Errno::kSuccess);
  EXPECT_EQ(guest.rename(kRoot, "sub", kRoot, ".cache/sub"), Errno::kSuccess);
  EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, "way"), Errno::kSuccess);
}

// By their mode and beginning alone: in folders that nobody told of, and under other names.
TEST_P(WasiOwnFiles, FilesOfOursAreKnownWhereverTheyLie) {
  own(home_ / "sub/elsewhere.code", "sealed 1 and so on");
  own(home_ / "sub/key", "secret 1 0123456789");
  own(home_ / "sub/begun", "");
  fs::create_hard_link(home_ / kKey, home_ / "linked");
  fs::create_directories(dir_ / "none");
  Guest guest(config(false, home_, dir_ / "none", dir_ / "none"));
  const auto before = read_host_file(home_ / "sub/key");
  for (const char* path : {"sub/elsewhere.code", "sub/key", "linked"}) {
    SCOPED_TRACE(path);
    for (const bool follow : {true, false}) {
      OpenOptions reading;
      reading.follow = follow;
      EXPECT_EQ(guest.try_open(kRoot, path, reading), Errno::kNotcapable);
      EXPECT_EQ(guest.stat(kRoot, path, follow, 64), Errno::kNotcapable);
      EXPECT_EQ(guest.set_times(kRoot, follow, path, 1, 1, fstflags::kMtim), Errno::kNotcapable);
    }
    EXPECT_EQ(guest.try_open(kRoot, path, kForWriting), Errno::kAcces);
    for (const uint64_t base : {rights::kAll, rights::kAll & ~rights::kFdWrite}) {
      OpenOptions emptying;
      emptying.flags = oflags::kTrunc;
      emptying.base = base;
      EXPECT_EQ(guest.try_open(kRoot, path, emptying), Errno::kAcces);
    }
    EXPECT_EQ(guest.link(kRoot, false, path, kRoot, "taken"), Errno::kNotcapable);
    EXPECT_EQ(guest.rename(kRoot, path, kRoot, "taken"), Errno::kNotcapable);
    EXPECT_EQ(guest.rename(kRoot, "file", kRoot, path), Errno::kNotcapable);
    EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, path), Errno::kNotcapable);
  }
  EXPECT_EQ(guest.try_open(kRoot, "sub/begun"), Errno::kNotcapable);  // what it will be cannot be known
  EXPECT_EQ(read_host_file(home_ / "sub/key"), before);
  // Others of that mode are read, moved and removed as ever.
  own(home_ / "readonly", "another's text that is read");
  const auto opened = guest.open(kRoot, "readonly");
  ASSERT_TRUE(opened);
  EXPECT_EQ(guest.read(*opened, 100), "another's text that is read");
  EXPECT_EQ(guest.stat(kRoot, "readonly", true, 64), Errno::kSuccess);
  EXPECT_EQ(guest.rename(kRoot, "readonly", kRoot, "moved"), Errno::kSuccess);
  EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, "moved"), Errno::kSuccess);
}

TEST_P(WasiOwnFiles, OtherFilesAreEmptiedAsEver) {
  Guest guest(config(false, home_));
  for (const uint64_t base : {rights::kAll, rights::kAll & ~rights::kFdWrite}) {
    write_host_file(home_ / "sub/text", "text");
    OpenOptions emptying;
    emptying.flags = oflags::kTrunc;
    emptying.base = base;
    EXPECT_EQ(guest.try_open(kRoot, "sub/text", emptying), Errno::kSuccess);
    EXPECT_EQ(read_host_file(home_ / "sub/text"), "");
    EXPECT_EQ(guest.try_open(kRoot, "sub", emptying), Errno::kIsdir);
    EXPECT_EQ(guest.try_open(kRoot, "sub/none", emptying), Errno::kNoent);
    // Nobody reads the pipe: only who would read it can open it.
    ASSERT_EQ(::mkfifo((home_ / "sub/pipe").c_str(), 0600), 0);
    EXPECT_EQ(guest.try_open(kRoot, "sub/pipe", emptying), Errno::kSuccess);
    fs::remove(home_ / "sub/pipe");
  }
}

// No call makes a file of that mode, so that a guest cannot put a key of its own where there is none.
TEST_P(WasiOwnFiles, AGuestMakesNoFileThatWouldBeTakenForOurs) {
  const mode_t before = ::umask(022);
  for (const mode_t umask : {0, 022, 027, 077}) {
    ::umask(umask);
    Guest guest(config(false, home_ / "sub"));
    const auto made = guest.open(kRoot, "key", kCreating);
    ASSERT_TRUE(made);
    ASSERT_TRUE(guest.write(*made, "secret 1 0123456789"));
    struct stat status {};
    ASSERT_EQ(::stat((home_ / "sub/key").c_str(), &status), 0);
    EXPECT_NE(status.st_mode & 07777, 0400u);
    fs::remove(home_ / "sub/key");
  }
  ::umask(before);
}

TEST_P(WasiOwnFiles, BindMountsHideNothing) {
  fs::create_directories(dir_ / "mounted");
  fs::create_directories(dir_ / "view/code");
  if (::mount(home_.c_str(), (dir_ / "mounted").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "this process may not mount";
  ASSERT_EQ(::mount((home_ / ".cache/hindsight/code").c_str(), (dir_ / "view/code").c_str(), nullptr, MS_BIND,
                    nullptr),
            0);
  EXPECT_THAT(refusal(config(true, dir_ / "mounted")), HasSubstr("it contains"));
  EXPECT_THAT(refusal(config(true, dir_ / "view/code")), HasSubstr("it lies in"));
  {
    Guest guest(config(false, dir_ / "view"));
    for (const char* path : {"code", "code/a-0.code", "code/.lock"}) {
      EXPECT_EQ(guest.try_open(kRoot, path), Errno::kNotcapable) << path;
      EXPECT_EQ(guest.stat(kRoot, path, true, 64), Errno::kNotcapable) << path;
    }
    EXPECT_EQ(guest.try_open(kRoot, "code/new", kCreating), Errno::kNotcapable);
    EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, "code/a-0.code"), Errno::kNotcapable);
  }
  EXPECT_EQ(::umount((dir_ / "view/code").c_str()), 0);
  EXPECT_EQ(::umount((dir_ / "mounted").c_str()), 0);
}

}  // namespace
}  // namespace hindsight::wasi
