#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace hindsight {
namespace {

namespace fs = std::filesystem;

class FreeMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-free-memory-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(FreeMemory, IsUnboundedWhereNothingSays) {
  EXPECT_EQ(free_memory(root_), UINT64_MAX);
  put("/proc/meminfo", "nonsense\n");
  put("/proc/self/cgroup", "1:name=systemd:/x\n0::/some\n");
  put("/sys/fs/cgroup/some/memory.max", "max\n");
  EXPECT_EQ(free_memory(root_), UINT64_MAX);
}

TEST_F(FreeMemory, IsTheLeastOfWhatTheMachineAndTheGroupsHave) {
  put("/proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:     900 kB\n");
  EXPECT_EQ(free_memory(root_), 900u * 1024);
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/sys/fs/cgroup/outer/inner/memory.max", "800000\n");
  put("/sys/fs/cgroup/outer/inner/memory.current", "300000\n");
  EXPECT_EQ(free_memory(root_), 500'000u);
  put("/sys/fs/cgroup/outer/inner/memory.stat", "anon 7\ninactive_file 100000\n");
  EXPECT_EQ(free_memory(root_), 600'000u);
  // One above has less left; and one that is over its limit has nothing.
  put("/sys/fs/cgroup/outer/memory.max", "400000");
  put("/sys/fs/cgroup/outer/memory.current", "390000");
  EXPECT_EQ(free_memory(root_), 10'000u);
  put("/sys/fs/cgroup/memory.max", "100");
  put("/sys/fs/cgroup/memory.current", "200");
  EXPECT_EQ(free_memory(root_), 0u);
}

TEST_F(FreeMemory, OfThisMachineIsSomething) {
  EXPECT_GT(free_memory(), 0u);
}

}  // namespace
}  // namespace hindsight
