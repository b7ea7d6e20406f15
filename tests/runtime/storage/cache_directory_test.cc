// The code cache's folder under several processes, foreign owners and a bound.
#include "runtime/storage/cache_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/system_failures.h"
#include "runtime/storage/code_cache_file.h"

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
    key_ = std::make_shared<const UserKey>(root_ + "/key");
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
  std::shared_ptr<const UserKey> key_;
};

TEST_F(CacheDirectoryTest, HoldsNothingUntilSomethingIsWritten) {
  const CacheDirectory directory(folder_, key_);
  EXPECT_EQ(directory.read("f-0.code").value(), std::nullopt);
  EXPECT_THAT(directory.entries().value(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CacheDirectoryTest, IsMadeForItsOwnerAlone) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "f-0.code", bytes(10)));
  EXPECT_EQ(directory.read("f-0.code").value(), bytes(10));
  for (const std::string& path : {root_ + "/a", folder_}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << path;
  }
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/f-0.code").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0400u);
}

TEST_F(CacheDirectoryTest, GivesNothingThatSomebodyElseOwns) {
  ASSERT_TRUE(put(CacheDirectory(folder_, key_), "f-0.code", bytes(10)));
  const CacheDirectory of_another(folder_, key_, CacheDirectory::kCodeSuffix, UINT64_MAX, ::geteuid() + 1);
  const auto read = of_another.read("f-0.code");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(read.error().describe(), HasSubstr("belongs to user"));
  EXPECT_FALSE(put(of_another, "f-0.code", bytes(5)));
  EXPECT_EQ(CacheDirectory(folder_, key_).read("f-0.code").value(), bytes(10));
}

TEST_F(CacheDirectoryTest, GivesAMergerWhatWasThereBefore) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "f-0.code", bytes(3)));
  ASSERT_TRUE(directory.update("f-0.code", [&](std::optional<Bytes> old) {
    EXPECT_EQ(old, bytes(3));
    return bytes(4);
  }));
  EXPECT_EQ(directory.read("f-0.code").value(), bytes(4));
  ASSERT_TRUE(directory.update("f-0.code", [&](std::optional<Bytes>) { return Bytes(); }));
  EXPECT_EQ(directory.read("f-0.code").value(), bytes(4));
}

TEST_F(CacheDirectoryTest, ForgetsWhatWasUsedLeastRecently) {
  const CacheDirectory directory(folder_, key_, CacheDirectory::kCodeSuffix, 1000);
  ASSERT_TRUE(put(directory, "a-0.code", bytes(400)));
  ASSERT_TRUE(put(directory, "b-0.code", bytes(400)));
  set_used("a-0.code", 100);
  set_used("b-0.code", 200);
  directory.touch("a-0.code");
  ASSERT_TRUE(put(directory, "c-0.code", bytes(400)));
  EXPECT_THAT(names(directory), testing::UnorderedElementsAre("a-0.code", "c-0.code"));
  // Never what was just written, unless it alone is too much: then nothing changes.
  ASSERT_TRUE(put(directory, "d-0.code", bytes(900)));
  EXPECT_THAT(names(directory), ElementsAre("d-0.code"));
  const Status too_much = put(directory, "e-0.code", bytes(1001));
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().kind, ErrorKind::kResource);
  EXPECT_THAT(names(directory), ElementsAre("d-0.code"));
}

TEST_F(CacheDirectoryTest, ClearsAwayWhatWritersLeftWhoWereKilled) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "a-0.code", bytes(10)));
  std::ofstream(folder_ + "/0-0.code.tmp") << "half of somethi";
  ASSERT_TRUE(put(directory, "b-0.code", bytes(10)));
  EXPECT_FALSE(fs::exists(folder_ + "/0-0.code.tmp"));
  EXPECT_EQ(directory.clear().value(), 2u);
}

TEST_F(CacheDirectoryTest, SaysThatAFolderCannotBeMade) {
  std::ofstream(root_ + "/a") << "a file";
  const Status failed = put(CacheDirectory(folder_, key_), "f-0.code", bytes(1));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().describe(), HasSubstr(folder_));
}

// Many processes add a function each to the same file, again and again, while others read it.
TEST_F(CacheDirectoryTest, ProcessesNeitherLoseEachOthersFunctionsNorSeeHalfAFile) {
  constexpr uint32_t kWriters = 4, kRounds = 25;
  const CacheDirectory directory(folder_, key_);
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
          const Status updated = directory.update("f-0.code", [&](std::optional<Bytes> old) {
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
        const auto read = directory.read("f-0.code");
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
  const auto file = parse_cache_file(*directory.read("f-0.code").value());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->functions.size(), size_t{kWriters} * kRounds);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// As somebody with the user's rights would.
void overwrite(const std::string& path, const std::string& text) {
  const auto mode = fs::status(path).permissions();
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(path, std::ios::binary) << text;
  fs::permissions(path, mode);
}

// ---------------------------------------------------------------- seals

TEST_F(CacheDirectoryTest, GivesNothingThatWasChangedByAnybodyWithoutTheKey) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "f-0.code", bytes(100)));
  const std::string path = folder_ + "/f-0.code", whole = text_of(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    overwrite(path, changed);
    const auto read = directory.read("f-0.code");
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(read.error().place, path);
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    overwrite(path, whole.substr(0, length));
    EXPECT_FALSE(directory.read("f-0.code")) << length;
  }
  overwrite(path, whole + "x");
  EXPECT_FALSE(directory.read("f-0.code"));
  overwrite(path, whole);
  EXPECT_EQ(directory.read("f-0.code").value(), bytes(100));
}

TEST_F(CacheDirectoryTest, GivesNothingThatIsSealedWithAnotherKeyOrUnderAnotherName) {
  const CacheDirectory directory(folder_, key_);
  const auto other = std::make_shared<const UserKey>(root_ + "/other");
  ASSERT_TRUE(put(directory, "f-0.code", bytes(100)));
  ASSERT_TRUE(put(CacheDirectory(folder_, other), "a-0.code", bytes(100)));
  EXPECT_THAT(directory.read("a-0.code").error().describe(), HasSubstr("wrong seal"));
  fs::copy_file(folder_ + "/f-0.code", folder_ + "/b-0.code");
  EXPECT_THAT(directory.read("b-0.code").error().describe(), HasSubstr("wrong seal"));
  const CacheDirectory without(folder_, std::make_shared<const UserKey>(root_ + "/none"));
  EXPECT_THAT(without.read("f-0.code").error().describe(), HasSubstr("a key that is gone"));
  EXPECT_FALSE(fs::exists(root_ + "/none"));  // reading makes no key
}

TEST_F(CacheDirectoryTest, NamesFilesOfEarlierVersionsAsSuchAndReplacesThem) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "f-0.code", bytes(100)));
  for (const char* old : {"hindcode and so on", "hindsight-kept-profile 1 0123 2\n{}"}) {
    overwrite(folder_ + "/f-0.code", old);
    EXPECT_THAT(directory.read("f-0.code").error().message, HasSubstr("an earlier version"));
    ASSERT_TRUE(directory.update("f-0.code", [&](std::optional<Bytes> before) {
      EXPECT_EQ(before, std::nullopt);
      return bytes(7);
    }));
    EXPECT_EQ(directory.read("f-0.code").value(), bytes(7));
  }
}

TEST_F(CacheDirectoryTest, MakesItsKeyOnceForItsOwnerAlone) {
  constexpr int kMakers = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kMakers; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const UserKey own(root_ + "/key");
      const auto code = own.code_of("name", bytes(3), UserKey::Missing::kMake);
      ::_exit(code && *code ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  struct stat status {};
  ASSERT_EQ(::stat((root_ + "/key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat((root_ + "/key/key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0400u);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ + "/key"), {}), 1);  // nothing is left of making it
  const auto code = key_->code_of("name", bytes(3), UserKey::Missing::kLeave).value();
  EXPECT_EQ(UserKey(root_ + "/key").code_of("name", bytes(3), UserKey::Missing::kLeave).value(), code);
  EXPECT_NE(key_->code_of("name", bytes(4), UserKey::Missing::kLeave).value(), code);
  EXPECT_NE(key_->code_of("nam", bytes(3), UserKey::Missing::kLeave).value(), code);
}

TEST_F(CacheDirectoryTest, KeepsNothingUnderAKeyThatOthersMayHaveMadeOrRead) {
  ASSERT_TRUE(put(CacheDirectory(folder_, key_), "f-0.code", bytes(10)));
  const std::string folder = root_ + "/key", file = folder + "/key", good = text_of(file);
  const auto refused = [&](const std::string& words, uid_t owner = ::geteuid()) {
    const CacheDirectory directory(folder_, std::make_shared<const UserKey>(folder, owner));
    const auto read = directory.read("f-0.code");
    ASSERT_FALSE(read) << words;
    EXPECT_EQ(read.error().place, file);
    EXPECT_THAT(read.error().message, HasSubstr(words));
    EXPECT_FALSE(put(directory, "f-0.code", bytes(20)));
  };
  // What a guest makes has no other modes, whatever the umask.
  for (const mode_t mode : {0600, 0644, 0440, 0404, 0666}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    refused("its mode is");
  }
  ASSERT_EQ(::chmod(file.c_str(), 0400), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  refused("others can enter its folder");
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  refused("belongs to user", ::geteuid() + 1);
  for (const std::string& damaged :
       {std::string(), good.substr(1), good + "0", std::string(good.size(), 'a')}) {
    overwrite(file, damaged);
    refused("it is damaged");
  }
  overwrite(file, good);
  fs::rename(file, folder + "/elsewhere");
  fs::create_symlink("elsewhere", file);
  refused("it is a link");
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0400), 0);
  refused("no regular file");
  fs::remove(file);
  fs::rename(folder + "/elsewhere", file);
  EXPECT_EQ(CacheDirectory(folder_, std::make_shared<const UserKey>(folder)).read("f-0.code").value(),
            bytes(10));
}

// ---------------------------------------------------------------- what is removed

TEST_F(CacheDirectoryTest, IsEmptiedOnlyIfItIsOurs) {
  const auto refused = [&](const std::string& folder, const std::string& words) {
    const auto cleared = CacheDirectory(folder, nullptr).clear();
    ASSERT_FALSE(cleared) << folder;
    EXPECT_EQ(cleared.error().kind, ErrorKind::kUsage) << folder;
    EXPECT_EQ(cleared.error().place, folder);
    EXPECT_THAT(cleared.error().message, HasSubstr(words)) << folder;
  };
  refused(root_ + "/none", "no such folder");
  std::ofstream(root_ + "/file") << "text";
  refused(root_ + "/file", "is no folder");
  refused(root_ + "/file/x", "is no folder");
  fs::create_directory(root_ + "/empty");
  refused(root_ + "/empty", "nothing that was kept");
  // Somebody's folder: with files that only look a little like ours, or with ours among others.
  const std::string mine = root_ + "/mine";
  fs::create_directory(mine);
  for (const char* name : {"notes.code", "a.profile", "thesis.tmp", "a-0.codex"})
    std::ofstream(mine + "/" + name) << "x";
  refused(mine, "holds other things");
  ASSERT_TRUE(put(CacheDirectory(mine, key_, CacheDirectory::kCodeSuffix, 200), "a-0.code", bytes(50)));
  ASSERT_TRUE(put(CacheDirectory(mine, key_, CacheDirectory::kCodeSuffix, 200), "b-0.code", bytes(50)));
  EXPECT_FALSE(fs::exists(mine + "/a-0.code"));  // the bound is kept all the same
  refused(mine, "holds other things");
  for (const char* name : {"notes.code", "a.profile", "thesis.tmp", "a-0.codex", "b-0.code"})
    EXPECT_TRUE(fs::exists(mine + "/" + name)) << name;
  // Another program's mark is not ours.
  std::ofstream(mine + "/CACHEDIR.TAG") << "Signature: 8a477f597d28d172789f06886806bc55\n";
  refused(mine, "holds other things");
}

TEST_F(CacheDirectoryTest, IsMarkedWhenItIsMadeAndThenEmptiedOfOurFilesAlone) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "a-0.code", bytes(10)));
  EXPECT_THAT(text_of(folder_ + "/CACHEDIR.TAG"),
              testing::StartsWith("Signature: 8a477f597d28d172789f06886806bc55\n"));
  std::ofstream(folder_ + "/notes.code") << "not ours";
  std::ofstream(folder_ + "/0-0.code.tmp") << "half of somethi";
  EXPECT_EQ(directory.clear().value(), 1u);
  EXPECT_TRUE(fs::exists(folder_ + "/notes.code"));
  EXPECT_FALSE(fs::exists(folder_ + "/0-0.code.tmp"));
  EXPECT_EQ(directory.clear().value(), 0u);
  // Folders of earlier versions have no mark, and nothing but our files.
  fs::remove(folder_ + "/notes.code");
  ASSERT_TRUE(put(directory, "b-0.code", bytes(10)));
  fs::remove(folder_ + "/CACHEDIR.TAG");
  EXPECT_EQ(directory.clear().value(), 1u);
}

TEST_F(CacheDirectoryTest, CountsCallsThatFailAndTellsTheFirst) {
  CacheDirectory directory(folder_, key_);
  std::vector<std::string> told;
  directory.on_first_failure([&](const std::string& what) { told.push_back(what); });
  // A folder in the place of what a killed writer left: it cannot be removed as a file is.
  fs::create_directories(folder_ + "/f-0.code.tmp");
  fs::permissions(root_ + "/a", fs::perms::owner_all);
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_FALSE(put(directory, "f-0.code", bytes(10)));
  EXPECT_FALSE(put(directory, "f-0.code", bytes(10)));
  EXPECT_GE(directory.failed_calls(), 2u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], testing::AllOf(HasSubstr(folder_), HasSubstr("f-0.code.tmp cannot be removed")));
}

uint64_t kept_file_failures() {
  for (const SystemFailureCount& failure : system_failures())
    if (failure.what == SystemFailure::kKeptFiles) return failure.count;
  return 0;
}

TEST_F(CacheDirectoryTest, CountsEveryCallThatFailsForReports) {
  fs::create_directories(folder_ + "/.lock");  // which cannot be opened as a file is
  fs::permissions(folder_, fs::perms::owner_all);
  const uint64_t before = kept_file_failures();
  for (uint64_t times = 1; times <= 2; ++times) {
    const Status failed = put(CacheDirectory(folder_, key_), "f-0.code", bytes(1));
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().describe(), HasSubstr("the lock cannot be opened: Is a directory"));
    EXPECT_EQ(kept_file_failures(), before + times);
  }
  EXPECT_TRUE(said_where_it_happens(SystemFailure::kKeptFiles));
}

// In a process of its own, which SIGXFSZ would end.
TEST_F(CacheDirectoryTest, AWriteBeyondTheLimitOfFileSizesIsAnError) {
  const CacheDirectory directory(folder_, key_);
  ASSERT_TRUE(put(directory, "f-0.code", bytes(100)));
  const uint64_t before = kept_file_failures();
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{500, 500};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    const Status failed = put(directory, "f-0.code", bytes(5000));
    if (failed || failed.error().message != "cannot be written: File too large") ::_exit(3);
    if (directory.read("f-0.code").value() != bytes(100)) ::_exit(4);
    if (kept_file_failures() != before + 1) ::_exit(5);
    // The signal is as it was, and one that was pending stays.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::raise(SIGXFSZ);
    if (put(directory, "f-0.code", bytes(5000))) ::_exit(6);
    const timespec now{};
    ::_exit(::sigtimedwait(&set, nullptr, &now) == SIGXFSZ ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hindsight::rt
