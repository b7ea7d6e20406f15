// The code cache's folder under several processes, foreign owners and a bound.
#include "runtime/engine/cache_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/engine/code_cache_file.h"

namespace hindsight::rt {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Bytes = CacheDirectory::Bytes;

class CacheDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-cache-directory-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = root_ + "/a/b";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  static Bytes bytes(size_t n, int value = 1) { return Bytes(n, static_cast<std::byte>(value)); }
  static Status put(const CacheDirectory& directory, const std::string& name, const Bytes& contents) {
    return directory.update(name, [&](std::optional<Bytes>) { return contents; });
  }
  // As if it had been used so many seconds after the epoch.
  void set_used(const std::string& name, time_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ + "/" + name).c_str(), times, 0), 0);
  }
  static std::vector<std::string> names(const CacheDirectory& directory) {
    std::vector<std::string> names;
    const auto entries = directory.entries().value();
    for (const CacheDirectory::Entry& entry : entries) names.push_back(entry.name);
    return names;
  }
  std::string root_, folder_;
};

TEST_F(CacheDirectoryTest, HoldsNothingUntilSomethingIsWritten) {
  const CacheDirectory directory(folder_);
  EXPECT_EQ(directory.read("x.code").value(), std::nullopt);
  EXPECT_THAT(directory.entries().value(), IsEmpty());
  EXPECT_EQ(directory.clear().value(), 0u);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CacheDirectoryTest, IsMadeForItsOwnerAlone) {
  const CacheDirectory directory(folder_);
  ASSERT_TRUE(put(directory, "x.code", bytes(10)));
  EXPECT_EQ(directory.read("x.code").value(), bytes(10));
  for (const std::string& path : {root_ + "/a", folder_}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << path;
  }
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/x.code").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CacheDirectoryTest, GivesNothingThatSomebodyElseOwns) {
  ASSERT_TRUE(put(CacheDirectory(folder_), "x.code", bytes(10)));
  const CacheDirectory of_another(folder_, UINT64_MAX, ::geteuid() + 1);
  const auto read = of_another.read("x.code");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(read.error().describe(), HasSubstr("belongs to user"));
  EXPECT_FALSE(put(of_another, "x.code", bytes(5)));
  EXPECT_EQ(CacheDirectory(folder_).read("x.code").value(), bytes(10));
}

TEST_F(CacheDirectoryTest, GivesAMergerWhatWasThereBefore) {
  const CacheDirectory directory(folder_);
  ASSERT_TRUE(put(directory, "x.code", bytes(3)));
  ASSERT_TRUE(directory.update("x.code", [&](std::optional<Bytes> old) {
    EXPECT_EQ(old, bytes(3));
    return bytes(4);
  }));
  EXPECT_EQ(directory.read("x.code").value(), bytes(4));
  ASSERT_TRUE(directory.update("x.code", [&](std::optional<Bytes>) { return Bytes(); }));
  EXPECT_EQ(directory.read("x.code").value(), bytes(4));
}

TEST_F(CacheDirectoryTest, ForgetsWhatWasUsedLeastRecently) {
  const CacheDirectory directory(folder_, 1000);
  ASSERT_TRUE(put(directory, "a.code", bytes(400)));
  ASSERT_TRUE(put(directory, "b.code", bytes(400)));
  set_used("a.code", 100);
  set_used("b.code", 200);
  directory.touch("a.code");
  ASSERT_TRUE(put(directory, "c.code", bytes(400)));
  EXPECT_THAT(names(directory), testing::UnorderedElementsAre("a.code", "c.code"));
  // Never what was just written, unless it alone is too much: then nothing changes.
  ASSERT_TRUE(put(directory, "d.code", bytes(1000)));
  EXPECT_THAT(names(directory), ElementsAre("d.code"));
  const Status too_much = put(directory, "e.code", bytes(1001));
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().kind, ErrorKind::kResource);
  EXPECT_THAT(names(directory), ElementsAre("d.code"));
}

TEST_F(CacheDirectoryTest, ClearsAwayWhatWritersLeftWhoWereKilled) {
  const CacheDirectory directory(folder_);
  ASSERT_TRUE(put(directory, "a.code", bytes(10)));
  std::ofstream(folder_ + "/z.code.tmp") << "half of somethi";
  ASSERT_TRUE(put(directory, "b.code", bytes(10)));
  EXPECT_FALSE(fs::exists(folder_ + "/z.code.tmp"));
  EXPECT_EQ(directory.clear().value(), 2u);
}

TEST_F(CacheDirectoryTest, SaysThatAFolderCannotBeMade) {
  std::ofstream(root_ + "/a") << "a file";
  const Status failed = put(CacheDirectory(folder_), "x.code", bytes(1));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().describe(), HasSubstr(folder_));
}

// Many processes add a function each to the same file, again and again, while others read it.
TEST_F(CacheDirectoryTest, ProcessesNeitherLoseEachOthersFunctionsNorSeeHalfAFile) {
  constexpr uint32_t kWriters = 4, kRounds = 25;
  const CacheDirectory directory(folder_);
  std::vector<pid_t> children;
  const auto start = [&](auto body) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(body() ? 0 : 1);
    children.push_back(child);
  };
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    start([&] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        for (bool done = false; !done;) {  // the lock's patience may end first on a loaded machine
          const Status updated = directory.update("x.code", [&](std::optional<Bytes> old) {
            CacheFile file;
            if (old) file = parse_cache_file(*old).value();
            CachedFunction mine;
            mine.function = FuncIndex(round * kWriters + writer);
            mine.image = bytes(2000, static_cast<int>(writer));
            file.functions.push_back(std::move(mine));
            std::sort(file.functions.begin(), file.functions.end(),
                      [](const auto& a, const auto& b) { return a.function < b.function; });
            return format_cache_file(file);
          });
          if (!updated && updated.error().message.find("keeps it locked") == std::string::npos) return false;
          done = updated.has_value();
        }
      }
      return true;
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    start([&] {
      for (size_t seen = 0; seen < kWriters * kRounds;) {
        const auto read = directory.read("x.code");
        if (!read) return false;
        if (!*read) continue;
        const auto file = parse_cache_file(**read);
        if (!file || file->functions.size() < seen) return false;
        seen = file->functions.size();
      }
      return true;
    });
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const auto file = parse_cache_file(*directory.read("x.code").value());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->functions.size(), size_t{kWriters} * kRounds);
}

}  // namespace
}  // namespace hindsight::rt
