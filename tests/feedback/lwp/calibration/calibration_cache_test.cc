// Calibrations on disk: hostile files, hostile places, several processes.
#include "feedback/lwp/calibration/calibration_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace hindsight::lwp {
namespace {

namespace fs = std::filesystem;

Calibration kept_example() {
  Calibration c;
  c.tsc_ghz = 2.6;
  c.core_ghz = 3.6;
  c.l1 = {32 << 10, 1.1, 60};
  c.l2 = {1 << 20, 3.9, 78};
  c.l3 = {32 << 20, 13, 104};
  c.memory = {0, 110, 420};
  c.mispredict_ns = 5.8;
  c.seconds = 0.03;
  return c;
}
constexpr const char* kKey = "a processor; microcode 0x1; kernel 6.1";

TEST(CalibrationText, SurvivesTheTripExactly) {
  Calibration c = kept_example();
  c.l3.latency_ns = 1.0 / 3 + 12;
  const auto back = parse_calibration(format_calibration(c, kKey), kKey, "test");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, c);
}

TEST(CalibrationText, EveryPrefixIsAnError) {
  const std::string text = format_calibration(kept_example(), kKey);
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(parse_calibration(text.substr(0, n), kKey, "test")) << n;
}

TEST(CalibrationText, DamagedBytesAreErrorsOrPlausibleFigures) {
  const std::string text = format_calibration(kept_example(), kKey);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 2; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto read = parse_calibration(damaged, kKey, "test");
    EXPECT_TRUE(!read || plausible(*read));
  }
}

TEST(CalibrationText, OfAnotherMachineOrWithOtherFieldsIsRefused) {
  const std::string text = format_calibration(kept_example(), kKey);
  EXPECT_FALSE(parse_calibration(text, "another", "test"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return parse_calibration(other, kKey, "test").has_value();
  };
  EXPECT_FALSE(changed("calibration 1", "calibration 2"));
  EXPECT_FALSE(changed("core_ghz 3.6\n", ""));
  EXPECT_FALSE(changed("core_ghz 3.6\n", "core_ghz 3.6\ncore_ghz 3.6\n"));
  EXPECT_FALSE(changed("core_ghz 3.6\n", "core_ghz 3.6\nfuture 1\n"));
  EXPECT_FALSE(changed("core_ghz 3.6\n", "core_ghz nan\n"));
  EXPECT_FALSE(changed("core_ghz 3.6\n", "core_ghz 1e999\n"));
  EXPECT_FALSE(changed("core_ghz 3.6\n", "core_ghz 3.6 \n"));
  EXPECT_FALSE(changed("l1.bytes 32768\n", "l1.bytes -1\n"));
  EXPECT_FALSE(changed("end\n", "end\nmore\n"));
}

class CalibrationCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hindsight-calibration-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    for (const char* name : {"HINDSIGHT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
    fs::remove_all(folder);
  }
  std::string place() const { return folder + "/deep/er"; }
  std::string file() const { return calibration_path(place(), kKey); }
  void write(const std::string& text) {
    fs::create_directories(place());
    std::ofstream(file(), std::ios::binary) << text;
    ::chmod(file().c_str(), 0600);
  }
  // Refused, with a reason that has these words in it.
  void expect_ignored(const std::string& words) {
    const auto loaded = load_calibration(place(), kKey);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().describe().find(words), std::string::npos) << loaded.error().describe();
    EXPECT_NE(loaded.error().describe().find(file()), std::string::npos) << loaded.error().describe();
  }
  std::string folder;
  std::vector<std::pair<std::string, std::optional<std::string>>> before;
};

TEST_F(CalibrationCache, IsEmptyAtFirstAndKeepsWhatIsStored) {
  const auto nothing = load_calibration(place(), kKey);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  ASSERT_TRUE(store_calibration(place(), kKey, kept_example()));
  ASSERT_TRUE(store_calibration(place(), kKey, kept_example()));
  const auto loaded = load_calibration(place(), kKey);
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ(**loaded, kept_example());
  EXPECT_EQ(std::distance(fs::directory_iterator(place()), fs::directory_iterator()), 1)
      << "a file left over";
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(place().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CalibrationCache, HasAFileForEachMachine) {
  ASSERT_TRUE(store_calibration(place(), kKey, kept_example()));
  ASSERT_TRUE(store_calibration(place(), "another", kept_example()));
  EXPECT_NE(calibration_path(place(), kKey), calibration_path(place(), "another"));
  EXPECT_TRUE(*load_calibration(place(), kKey));
  EXPECT_TRUE(*load_calibration(place(), "another"));
}

TEST_F(CalibrationCache, IgnoresAFileThatIsDamagedOrCutOff) {
  const std::string text = format_calibration(kept_example(), kKey);
  write(text.substr(0, text.size() / 2));
  expect_ignored("ends too early");
  write("");
  expect_ignored("first line");
  write(std::string(1 << 20, 'x'));
  expect_ignored("too long");
  write(std::string(200, '\0'));
  expect_ignored("first line");
}

TEST_F(CalibrationCache, IgnoresAFileThatOthersMayWrite) {
  write(format_calibration(kept_example(), kKey));
  ASSERT_TRUE(load_calibration(place(), kKey));
  ::chmod(file().c_str(), 0620);
  expect_ignored("written by others");
  ::chmod(file().c_str(), 0602);
  expect_ignored("written by others");
}

TEST_F(CalibrationCache, IgnoresAFileOfSomebodyElse) {
  write(format_calibration(kept_example(), kKey));
  if (::chown(file().c_str(), ::geteuid() + 1, ::getegid()) != 0)
    GTEST_SKIP() << "only root gives files away";
  expect_ignored("somebody else");
}

TEST_F(CalibrationCache, IgnoresLinksPipesAndFolders) {
  fs::create_directories(place());
  const std::string real = folder + "/real";
  std::ofstream(real) << format_calibration(kept_example(), kKey);
  fs::create_symlink(real, file());
  expect_ignored("link");
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  expect_ignored("regular");  // and does not wait for a writer
  fs::remove(file());
  fs::create_directory(file());
  expect_ignored("regular");
}

TEST_F(CalibrationCache, AFileInPlaceOfTheFolderIsNoCache) {
  std::ofstream(folder + "/deep") << "a file";
  const auto loaded = load_calibration(place(), kKey);
  ASSERT_TRUE(loaded);
  EXPECT_FALSE(*loaded);
  const Status stored = store_calibration(place(), kKey, kept_example());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().kind, ErrorKind::kResource);
}

TEST_F(CalibrationCache, WritersAtTheSameTimeLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      Calibration c = kept_example();
      c.memory.latency_ns += i;
      for (int k = 0; k < 50; ++k) EXPECT_TRUE(store_calibration(place(), kKey, c));
    });
  }
  for (int k = 0; k < 200; ++k) {
    const auto loaded = load_calibration(place(), kKey);
    ASSERT_TRUE(loaded) << loaded.error().describe();  // absent, or whole
  }
  for (auto& writer : writers) writer.join();
  const auto loaded = load_calibration(place(), kKey);
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ(std::distance(fs::directory_iterator(place()), fs::directory_iterator()), 1);
}

TEST_F(CalibrationCache, LiesWhereTheEnvironmentSays) {
  ::setenv("HINDSIGHT_CACHE_DIR", "/a", 1);
  ::setenv("XDG_CACHE_HOME", "/b", 1);
  ::setenv("HOME", "/c", 1);
  EXPECT_EQ(calibration_folder(), "/a");
  ::unsetenv("HINDSIGHT_CACHE_DIR");
  EXPECT_EQ(calibration_folder(), "/b/hindsight");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(calibration_folder(), "/c/.cache/hindsight");
  ::unsetenv("HOME");
  EXPECT_EQ(calibration_folder(), "");
}

TEST_F(CalibrationCache, WithoutAHomeNothingIsReadOrWritten) {
  for (const char* name : {"HINDSIGHT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
  std::string note;
  EXPECT_FALSE(known_calibration(note));
  EXPECT_EQ(note, "");
  const auto measured = machine_calibration(false);
  if (!measured) GTEST_SKIP() << measured.error().describe();
  EXPECT_TRUE(measured->measured);
  EXPECT_EQ(measured->file, "");
}

TEST_F(CalibrationCache, WhatWasMeasuredIsKnownAfterwardsUntilItIsMeasuredAnew) {
  ::setenv("HINDSIGHT_CACHE_DIR", place().c_str(), 1);
  const auto first = machine_calibration(false);
  if (!first) GTEST_SKIP() << first.error().describe();
  EXPECT_TRUE(first->measured);
  const auto second = machine_calibration(false);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->measured);
  EXPECT_EQ(second->values, first->values);
  const auto third = machine_calibration(true);
  if (!third) GTEST_SKIP() << third.error().describe();
  EXPECT_TRUE(third->measured);
}

TEST(MachineKey, IsOneLineAndTheSameTwice) {
  EXPECT_EQ(machine_key(), machine_key());
  EXPECT_EQ(machine_key().find('\n'), std::string::npos);
  EXPECT_FALSE(machine_key().empty());
}

}  // namespace
}  // namespace hindsight::lwp
