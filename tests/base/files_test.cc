#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace hindsight {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-files-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  void put(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    std::ranges::sort(found);
    return found;
  }
  fs::path folder_;
};

TEST_F(Files, AreReadWholeWhateverTheirLength) {
  for (const size_t length : {0, 1, 65535, 65536, 65537, 300'000}) {
    std::string text(length, '\0');
    for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 31 >> 3);
    put("file", text);
    const auto bytes = read_file(path("file"), 1 << 20);
    ASSERT_TRUE(bytes) << bytes.error().describe();
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()), text);
  }
}

TEST_F(Files, AreReadUpToTheirBound) {
  put("file", std::string(1 << 20, 'x'));
  EXPECT_TRUE(read_file(path("file"), 1 << 20));
  put("file", std::string((1 << 20) + 1, 'x'));
  const auto bytes = read_file(path("file"), 1 << 20);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, "is larger than 1 MiB");
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20)) << "it has no end";
}

TEST_F(Files, SayWhyTheyCannotBeRead) {
  const auto missing = read_file(path("missing"), 1 << 20);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(missing.error().message, "cannot be opened: No such file or directory");
  EXPECT_EQ(missing.error().place, path("missing"));
  const auto folder = read_file(folder_, 1 << 20);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "cannot be read: Is a directory");
}

TEST_F(Files, AreReplacedByAllPartsWithTheirMode) {
  const std::string_view parts[] = {"first, ", "", "second"};
  for (const mode_t mode : {0600, 0400}) {
    ASSERT_TRUE(replace_file(AT_FDCWD, path("file"), {.parts = parts, .mode = mode, .synced = true}));
    EXPECT_EQ(text_of("file"), "first, second");
    struct stat status {};
    ASSERT_EQ(::stat(path("file").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
  EXPECT_THAT(names(), testing::ElementsAre("file"));
}

TEST_F(Files, TakeNoNameThatAnotherWriterMayHave) {
  // As writers of this process id left them, and one that is a way out of the folder.
  for (int i = 0; i < 3; ++i)
    put("file." + std::to_string(::getpid()) + "." + std::to_string(i) + ".tmp", "theirs");
  put("elsewhere", "elsewhere");
  fs::create_symlink(path("elsewhere"), path("file." + std::to_string(::getpid()) + ".3.tmp"));
  const std::string_view parts[] = {"ours"};
  ASSERT_TRUE(replace_file(AT_FDCWD, path("file"), {.parts = parts}));
  EXPECT_EQ(text_of("file"), "ours");
  EXPECT_EQ(text_of("elsewhere"), "elsewhere");
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(Files, RemoveWhatWasLeftUnderATemporaryNameOfTheirs) {
  put("file.tmp", std::string(1000, 'x'));
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(folder, 0);
  const std::string_view parts[] = {"ours"};
  EXPECT_TRUE(replace_file(folder, "file", {.parts = parts, .temporary = "file.tmp"}));
  ::close(folder);
  EXPECT_EQ(text_of("file"), "ours");
  EXPECT_THAT(names(), testing::ElementsAre("file"));
}

TEST_F(Files, StayAsTheyWereWhereWritingFails) {
  put("file", "before");
  const std::string large(1 << 20, 'x');
  const std::string_view parts[] = {large};
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight{1024, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto replaced = replace_file(AT_FDCWD, path("file"), {.parts = parts});
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ASSERT_FALSE(replaced);
  EXPECT_STREQ(replaced.error().step, "written");
  EXPECT_EQ(replaced.error().error, EFBIG);
  EXPECT_EQ(text_of("file"), "before");
  EXPECT_THAT(names(), testing::ElementsAre("file"));

  const auto nowhere = replace_file(AT_FDCWD, path("missing/file"), {.parts = parts});
  ASSERT_FALSE(nowhere);
  EXPECT_STREQ(nowhere.error().step, "created");
  fs::create_directory(path("folder"));
  const auto over = replace_file(AT_FDCWD, path("folder"), {.parts = parts});
  ASSERT_FALSE(over);
  EXPECT_STREQ(over.error().step, "put in place");
  EXPECT_THAT(names(), testing::ElementsAre("file", "folder"));
}

}  // namespace
}  // namespace hindsight
