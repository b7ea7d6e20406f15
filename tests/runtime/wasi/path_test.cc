// What the path calls do inside the tree. escape_test.cc is about its wall.
#include "tests/runtime/wasi/resolver_fixture.h"

namespace hindsight::wasi {
namespace {

namespace fs = std::filesystem;

class WasiPaths : public OnBothResolvers {
 protected:
  void SetUp() override {
    OnBothResolvers::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(dir_ / "a/b");
    write_host_file(dir_ / "a/b/file", "deep");
    write_host_file(dir_ / "file", "top");
    fs::create_symlink("a/b", dir_ / "to_dir");
    fs::create_symlink("b/../../file", dir_ / "a/to_file");
    fs::create_symlink("missing", dir_ / "dangling");
    fs::create_symlink("loop", dir_ / "loop");
    guest_ = std::make_unique<Guest>(with_strategy(directory_config(dir_.path())));
  }

  std::string content(std::string_view path) {
    const auto fd = guest_->open(kRoot, path);
    if (!fd) return "errno " + std::to_string(static_cast<int>(fd.error()));
    return guest_->read(*fd, 100).value_or("unreadable");
  }
  uint8_t type_of(std::string_view path, bool follow) {
    const uint32_t at = guest_->reserve(64);
    EXPECT_EQ(guest_->stat(kRoot, path, follow, at), Errno::kSuccess) << path;
    return guest_->get<uint8_t>(at + layout::kFilestat.filetype);
  }

  TempDir dir_;
  std::unique_ptr<Guest> guest_;
};

INSTANTIATE_TEST_SUITE_P(Both, WasiPaths, kBothResolvers, strategy_name);

TEST_P(WasiPaths, ManySpellingsLeadToTheSameFile) {
  for (const std::string_view path :
       {"a/b/file", "./a/./b/file", "a//b///file", "a/b/../b/file", "a/../a/b/file", "to_dir/file",
        "a/b/../../to_dir/../b/file", "a/.//b/../../a/b/../b///./file"})
    EXPECT_EQ(content(path), "deep") << path;
  EXPECT_EQ(content("a/to_file"), "top");
  EXPECT_EQ(content("to_dir/../to_file"), "top");
}

TEST_P(WasiPaths, ErrorsAreThoseOfPosix) {
  const std::pair<std::string_view, Errno> expected[] = {
      {"missing", Errno::kNoent},
      {"missing/file", Errno::kNoent},
      {"file/below", Errno::kNotdir},
      {"file/", Errno::kNotdir},
      {"file/.", Errno::kNotdir},
      {"file/..", Errno::kNotdir},
      {"dangling", Errno::kNoent},
      {"loop", Errno::kLoop},
      {"loop/file", Errno::kLoop},
      {"", Errno::kNoent},
      {std::string_view("file\0", 5), Errno::kInval},
  };
  for (const auto& [path, error] : expected) EXPECT_EQ(guest_->try_open(kRoot, path), error) << path;
  EXPECT_EQ(guest_->try_open(kRoot, std::string(5000, 'x')), Errno::kNametoolong);
  EXPECT_EQ(guest_->try_open(kRoot, std::string(300, 'x')), Errno::kNametoolong);
  EXPECT_EQ(guest_->try_open(77, "file"), Errno::kBadf);
  const auto file = guest_->open(kRoot, "file");
  ASSERT_TRUE(file);
  EXPECT_EQ(guest_->try_open(*file, "file"), Errno::kNotdir);
  EXPECT_EQ(guest_->try_open(kRoot, "a", kForWriting), Errno::kIsdir);
}

TEST_P(WasiPaths, ALinkIsFollowedOnlyWhereAsked) {
  EXPECT_EQ(guest_->try_open(kRoot, "a/to_file", {.follow = false}), Errno::kLoop);
  EXPECT_EQ(guest_->try_open(kRoot, "to_dir", {.follow = false, .flags = oflags::kDirectory}),
            Errno::kNotdir);
  EXPECT_EQ(guest_->try_open(kRoot, "to_dir", {.flags = oflags::kDirectory}), Errno::kSuccess);
  EXPECT_EQ(guest_->try_open(kRoot, "to_dir/", {.follow = false}), Errno::kSuccess);
  EXPECT_EQ(type_of("a/to_file", true), static_cast<uint8_t>(Filetype::kRegularFile));
  EXPECT_EQ(type_of("a/to_file", false), static_cast<uint8_t>(Filetype::kSymbolicLink));
  EXPECT_EQ(type_of("to_dir/", false), static_cast<uint8_t>(Filetype::kDirectory));
}

TEST_P(WasiPaths, FortyLinksAreFollowedAndNotOneMore) {
  fs::create_symlink("file", dir_ / "chain1");
  for (int i = 2; i <= 41; i++)
    fs::create_symlink("chain" + std::to_string(i - 1), dir_ / ("chain" + std::to_string(i)));
  EXPECT_EQ(content("chain40"), "top");
  EXPECT_EQ(guest_->try_open(kRoot, "chain41"), Errno::kLoop);
}

TEST_P(WasiPaths, OpenFlagsCreateTruncateAndExclude) {
  EXPECT_EQ(guest_->try_open(kRoot, "a/new", kCreating), Errno::kSuccess);
  EXPECT_TRUE(fs::exists(dir_ / "a/new"));
  OpenOptions exclusive = kCreating;
  exclusive.flags |= oflags::kExcl;
  EXPECT_EQ(guest_->try_open(kRoot, "a/new", exclusive), Errno::kExist);
  EXPECT_EQ(guest_->try_open(kRoot, "dangling", exclusive), Errno::kExist);
  EXPECT_EQ(guest_->try_open(kRoot, "dangling", kCreating), Errno::kSuccess);
  EXPECT_TRUE(fs::exists(dir_ / "missing")) << "created through the link";
  OpenOptions truncating = kForWriting;
  truncating.flags = oflags::kTrunc;
  EXPECT_EQ(guest_->try_open(kRoot, "file", truncating), Errno::kSuccess);
  EXPECT_EQ(fs::file_size(dir_ / "file"), 0u);
  OpenOptions directory = kCreating;
  directory.flags |= oflags::kDirectory;
  EXPECT_EQ(guest_->try_open(kRoot, "d", directory), Errno::kInval);
  EXPECT_EQ(guest_->try_open(kRoot, "d/", kCreating), Errno::kIsdir);
  EXPECT_EQ(guest_->try_open(kRoot, "a/.", kCreating), Errno::kIsdir);
  EXPECT_EQ(guest_->try_open(kRoot, "file", {.flags = 0x10}), Errno::kInval);
  EXPECT_EQ(guest_->try_open(kRoot, "file", {.fd_flags = 0x20}), Errno::kInval);
}

TEST_P(WasiPaths, DirectoriesAreMadeAndRemoved) {
  EXPECT_EQ(guest_->path_call("path_create_directory", kRoot, "a/new/"), Errno::kSuccess);
  EXPECT_EQ(guest_->path_call("path_create_directory", kRoot, "a/new"), Errno::kExist);
  EXPECT_EQ(guest_->path_call("path_create_directory", kRoot, "."), Errno::kExist);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "a"), Errno::kNotempty);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "a/new/"), Errno::kSuccess);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "a/new"), Errno::kNoent);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "file"), Errno::kNotdir);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "to_dir"), Errno::kNotdir);
  EXPECT_EQ(guest_->path_call("path_remove_directory", kRoot, "a/b/."), Errno::kInval);
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "a/b"), Errno::kIsdir);
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "a/b/"), Errno::kIsdir);
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "file/"), Errno::kNotdir);
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "to_dir/"), Errno::kNotdir);
  EXPECT_EQ(guest_->path_call("path_unlink_file", kRoot, "to_dir"), Errno::kSuccess);
  EXPECT_TRUE(fs::exists(dir_ / "a/b/file")) << "the link was removed and not what it names";
}

TEST_P(WasiPaths, RenamingMovesAcrossDirectories) {
  EXPECT_EQ(guest_->rename(kRoot, "file", kRoot, "a/b/file2"), Errno::kSuccess);
  EXPECT_EQ(read_host_file(dir_ / "a/b/file2"), "top");
  EXPECT_EQ(guest_->rename(kRoot, "missing", kRoot, "x"), Errno::kNoent);
  EXPECT_EQ(guest_->rename(kRoot, "a/b/", kRoot, "moved/"), Errno::kSuccess);
  EXPECT_EQ(content("moved/file"), "deep");
  EXPECT_EQ(guest_->rename(kRoot, "moved/file/", kRoot, "x"), Errno::kNotdir);
  EXPECT_EQ(guest_->rename(kRoot, "moved", kRoot, "."), Errno::kBusy);
  EXPECT_EQ(guest_->rename(kRoot, "moved", kRoot, "moved/below"), Errno::kInval);
  // A link is moved itself.
  EXPECT_EQ(guest_->rename(kRoot, "dangling", kRoot, "a/dangling"), Errno::kSuccess);
  EXPECT_TRUE(fs::is_symlink(dir_ / "a/dangling"));
}

TEST_P(WasiPaths, LinksAreMadeAndRead) {
  EXPECT_EQ(guest_->link(kRoot, false, "file", kRoot, "a/hard"), Errno::kSuccess);
  EXPECT_EQ(fs::hard_link_count(dir_ / "file"), 2u);
  EXPECT_EQ(guest_->link(kRoot, false, "file", kRoot, "a/hard"), Errno::kExist);
  EXPECT_EQ(guest_->link(kRoot, false, "a", kRoot, "x"), Errno::kPerm);
  EXPECT_EQ(guest_->link(kRoot, false, "a/", kRoot, "x"), Errno::kPerm);
  EXPECT_EQ(guest_->link(kRoot, false, "file/", kRoot, "x"), Errno::kNotdir);
  EXPECT_EQ(guest_->link(kRoot, false, "file", kRoot, "x/"), Errno::kNoent);
  EXPECT_EQ(guest_->link(kRoot, true, "file", kRoot, "x"), Errno::kInval);
  EXPECT_EQ(guest_->symlink("any thing", kRoot, "a/soft"), Errno::kSuccess);
  EXPECT_EQ(guest_->readlink(kRoot, "a/soft"), "any thing");
  EXPECT_EQ(guest_->readlink(kRoot, "a/soft", 3), "any") << "cut as readlink does";
  EXPECT_EQ(guest_->readlink(kRoot, "a/soft", 0), "");
  EXPECT_EQ(guest_->readlink(kRoot, "file").error(), Errno::kInval);
  EXPECT_EQ(guest_->symlink("x", kRoot, "file"), Errno::kExist);
  EXPECT_EQ(guest_->symlink("x", kRoot, "new/"), Errno::kNoent);
}

TEST_P(WasiPaths, TimesAreSetOnTheFileOrOnTheLink) {
  const uint32_t at = guest_->reserve(64);
  const auto mtime = [&](bool follow) {
    EXPECT_EQ(guest_->stat(kRoot, "a/to_file", follow, at), Errno::kSuccess);
    return guest_->get<uint64_t>(at + layout::kFilestat.mtim);
  };
  EXPECT_EQ(guest_->set_times(kRoot, true, "a/to_file", 0, 1'000'000'007, fstflags::kMtim), Errno::kSuccess);
  EXPECT_EQ(mtime(true), 1'000'000'007u);
  EXPECT_NE(mtime(false), 1'000'000'007u);
  EXPECT_EQ(guest_->set_times(kRoot, false, "a/to_file", 0, 2'000'000'000, fstflags::kMtim), Errno::kSuccess);
  EXPECT_EQ(mtime(true), 1'000'000'007u);
  EXPECT_EQ(mtime(false), 2'000'000'000u);
  EXPECT_EQ(guest_->set_times(kRoot, true, "file", 0, 0, fstflags::kAtim | fstflags::kAtimNow),
            Errno::kInval);
  EXPECT_EQ(guest_->set_times(kRoot, true, "file", 0, 0, 0x10), Errno::kInval);
}

TEST_P(WasiPaths, OpeningAPipeDoesNotBlock) {
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const auto reader = guest_->open(kRoot, "fifo", {.base = rights::kFdRead});
  ASSERT_TRUE(reader);
  const auto writer = guest_->open(kRoot, "fifo", {.base = rights::kFdWrite});
  ASSERT_TRUE(writer);
  EXPECT_EQ(guest_->write(*writer, "through"), 7u);
  EXPECT_EQ(guest_->read(*reader, 100), "through");
}

TEST(Descriptors, AreOpenedUpToTheLimitAndNothingIsCreatedBeyondIt) {
  const TempDir folder;
  Config config;
  config.preopens.push_back({.host_path = folder.path(), .guest_path = "/"});
  config.max_descriptors = 5;  // three streams, the folder and one more
  Guest guest(std::move(config));
  OpenOptions options;
  options.flags = oflags::kCreat;
  const auto fd = guest.open(3, "a", options);
  ASSERT_TRUE(fd);
  EXPECT_EQ(guest.try_open(3, "b", options), Errno::kMfile);
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  EXPECT_EQ(guest.call("fd_close", *fd), Errno::kSuccess);
  EXPECT_TRUE(guest.open(3, "b", options));
}

}  // namespace
}  // namespace hindsight::wasi
