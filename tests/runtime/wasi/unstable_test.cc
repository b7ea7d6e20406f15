// wasi_unstable, what went before preview 1: where it is another.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

Errno call(Guest& guest, std::string_view name, std::vector<uint64_t> args) {
  const auto all = unstable_functions();
  const auto found = std::ranges::find(all, name, &WasiFunction::name);
  EXPECT_NE(found, all.end()) << name;
  uint64_t result = ~uint64_t{0};
  EXPECT_FALSE(found->call(*guest.context, guest.memory(), args.data(), &result).exited());
  return static_cast<Errno>(result);
}

Config with_folder(const TempDir& folder) {
  Config config;
  config.preopens.push_back({.host_path = folder.path(), .guest_path = "/"});
  return config;
}

TEST(WasiUnstable, HasAllFunctionsButTheOneThatCameLater) {
  EXPECT_EQ(unstable_functions().size(), functions().size() - 1);
  for (const WasiFunction& function : unstable_functions()) {
    EXPECT_NE(function.name, "sock_accept");
    EXPECT_EQ(find_function(function.name)->signature, function.signature) << function.name;
  }
}

TEST(WasiUnstable, CountsSeeksFromThePositionTheEndAndTheStart) {
  const TempDir folder;
  write_host_file(folder / "f", "0123456789");
  Guest guest(with_folder(folder));
  const auto fd = guest.open(3, "f");
  ASSERT_TRUE(fd);
  const uint32_t at = guest.reserve(8);
  EXPECT_EQ(call(guest, "fd_seek", {*fd, 4, 2, at}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at), 4u);
  EXPECT_EQ(call(guest, "fd_seek", {*fd, 3, 0, at}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at), 7u);
  EXPECT_EQ(call(guest, "fd_seek", {*fd, static_cast<uint64_t>(-1), 1, at}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at), 9u);
  EXPECT_EQ(call(guest, "fd_seek", {*fd, 0, 3, at}), Errno::kInval);
}

TEST(WasiUnstable, TellsAFilesAttributesInFewerBytes) {
  const TempDir folder;
  write_host_file(folder / "f", "0123456789");
  Guest guest(with_folder(folder));
  const uint32_t path = guest.put("f");
  const uint32_t at = guest.reserve(64);
  ASSERT_TRUE(guest.memory().store(at + 56, uint64_t{0x1234567812345678}));
  EXPECT_EQ(call(guest, "path_filestat_get", {3, 0, path, 1, at}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint8_t>(at + 16), static_cast<uint8_t>(Filetype::kRegularFile));
  EXPECT_EQ(guest.get<uint32_t>(at + 20), 1u);   // links
  EXPECT_EQ(guest.get<uint64_t>(at + 24), 10u);  // bytes
  EXPECT_NE(guest.get<uint64_t>(at + 40), 0u);   // modified
  EXPECT_EQ(guest.get<uint64_t>(at + 56), 0x1234567812345678u);
  const auto fd = guest.open(3, "f");
  ASSERT_TRUE(fd);
  EXPECT_EQ(call(guest, "fd_filestat_get", {*fd, at}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(at + 24), 10u);
}

TEST(WasiUnstable, ReadsSubscriptionsWhoseClocksHaveNames) {
  Guest guest(Config{});
  const uint32_t two = guest.reserve(2 * 56), events = guest.reserve(2 * 32), count = guest.reserve(4);
  const auto put = [&](uint32_t at, auto value) { ASSERT_TRUE(guest.memory().store(at, value)); };
  put(two, uint64_t{7});
  put(two + 16, uint64_t{99});  // the name
  put(two + 24, uint32_t{1});   // monotonic
  put(two + 32, uint64_t{3'600'000'000'000});
  put(two + 56, uint64_t{8});
  put(two + 56 + 24, uint32_t{1});
  put(two + 56 + 32, uint64_t{1});
  EXPECT_EQ(call(guest, "poll_oneoff", {two, events, 2, count}), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(count), 1u);
  EXPECT_EQ(guest.get<uint64_t>(events), 8u);
}

}  // namespace
}  // namespace hindsight::wasi
