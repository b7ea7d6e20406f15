#include <algorithm>
#include <map>
#include <set>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

struct Found {
  std::string name;
  uint64_t next;
  uint64_t inode;
  Filetype type;
};

struct Page {
  std::vector<Found> entries;  // the whole ones
  uint32_t used = 0;
};

Page read_page(Guest& guest, uint32_t fd, uint32_t length, uint64_t cookie) {
  const uint32_t buffer = guest.reserve(length);
  const uint32_t used = guest.reserve(4);
  EXPECT_EQ(guest.call("fd_readdir", fd, buffer, length, cookie, used), Errno::kSuccess);
  Page page;
  page.used = guest.get<uint32_t>(used);
  EXPECT_LE(page.used, length);
  for (uint32_t at = 0; at + 24 <= page.used;) {
    const uint32_t name = guest.get<uint32_t>(buffer + at + 16);
    if (at + 24 + name > page.used) break;
    page.entries.push_back({guest.get_string(buffer + at + 24, name), guest.get<uint64_t>(buffer + at),
                            guest.get<uint64_t>(buffer + at + 8),
                            static_cast<Filetype>(guest.get<uint8_t>(buffer + at + 20))});
    at += 24 + name;
  }
  return page;
}

TEST(WasiReaddir, ListsDotAndDotdotFirstWithTheDirectorysInode) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const Page page = read_page(guest, kRoot, 1000, 0);
  ASSERT_EQ(page.entries.size(), 2u);
  EXPECT_EQ(page.entries[0].name, ".");
  EXPECT_EQ(page.entries[1].name, "..");
  const uint32_t at = guest.reserve(64);
  ASSERT_EQ(guest.call("fd_filestat_get", kRoot, at), Errno::kSuccess);
  EXPECT_EQ(page.entries[0].inode, guest.get<uint64_t>(at + 8));
  EXPECT_EQ(page.entries[1].inode, page.entries[0].inode) << "what is above is not the guest's to know";
}

TEST(WasiReaddir, TellsTypesAndInodes) {
  TempDir dir;
  write_host_file(dir / "file", "");
  std::filesystem::create_directory(dir / "sub");
  std::filesystem::create_symlink("file", dir / "link");
  Guest guest(directory_config(dir.path()));
  std::map<std::string, Found> by_name;
  for (const Found& found : read_page(guest, kRoot, 1000, 0).entries) by_name[found.name] = found;
  ASSERT_EQ(by_name.size(), 5u);
  EXPECT_EQ(by_name["file"].type, Filetype::kRegularFile);
  EXPECT_EQ(by_name["sub"].type, Filetype::kDirectory);
  EXPECT_EQ(by_name["link"].type, Filetype::kSymbolicLink);
  const uint32_t at = guest.reserve(64);
  ASSERT_EQ(guest.stat(kRoot, "link", false, at), Errno::kSuccess);
  EXPECT_EQ(by_name["link"].inode, guest.get<uint64_t>(at + 8));
}

TEST(WasiReaddir, ABufferIsFilledToTheEndUntilTheListIs) {
  TempDir dir;
  write_host_file(dir / "name", "");
  Guest guest(directory_config(dir.path()));
  // "." takes 25 bytes, ".." 26, "name" 28.
  for (const uint32_t length : {0u, 1u, 23u, 24u, 25u, 30u, 51u, 60u, 78u})
    EXPECT_EQ(read_page(guest, kRoot, length, 0).used, length);
  EXPECT_EQ(read_page(guest, kRoot, 79, 0).used, 79u);
  EXPECT_EQ(read_page(guest, kRoot, 80, 0).used, 79u);
  EXPECT_EQ(read_page(guest, kRoot, 80, 3).used, 0u);
  EXPECT_EQ(read_page(guest, kRoot, 80, ~uint64_t{0}).used, 0u);
}

TEST(WasiReaddir, EveryEntryIsSeenOnceWhateverTheBufferAndWhileTheyAreRemoved) {
  TempDir dir;
  constexpr int kFiles = 200;
  for (const bool remove : {false, true}) {
    for (int i = 0; i < kFiles; i++) write_host_file(dir / ("file" + std::to_string(i)), "");
    Guest guest(directory_config(dir.path()));
    std::multiset<std::string> seen;
    uint64_t cookie = 0;
    while (true) {
      guest.forget();
      const Page page = read_page(guest, kRoot, 100, cookie);
      for (const Found& found : page.entries) {
        seen.insert(found.name);
        cookie = found.next;
        if (remove && found.type == Filetype::kRegularFile) {
          EXPECT_EQ(guest.path_call("path_unlink_file", kRoot, found.name), Errno::kSuccess);
        }
      }
      if (page.used < 100) break;
    }
    EXPECT_EQ(seen.size(), kFiles + 2u);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), kFiles + 2u);
    EXPECT_EQ(std::filesystem::is_empty(dir.path()), remove);
  }
}

TEST(WasiReaddir, StartingOverSeesWhatIsNew) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  EXPECT_EQ(read_page(guest, kRoot, 1000, 0).entries.size(), 2u);
  write_host_file(dir / "new", "");
  EXPECT_EQ(read_page(guest, kRoot, 1000, 0).entries.size(), 3u);
}

TEST(WasiReaddir, NeedsADirectoryAndRoom) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto file = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(file);
  EXPECT_EQ(guest.call("fd_readdir", *file, 64, 64, uint64_t{0}, 16), Errno::kNotdir);
  EXPECT_EQ(guest.call("fd_readdir", kRoot, 64, 0xffffffff, uint64_t{0}, 16), Errno::kFault);
  EXPECT_EQ(guest.call("fd_readdir", kRoot, 64, 64, uint64_t{0}, guest.bytes.size() - 3), Errno::kFault);
  EXPECT_EQ(guest.call("fd_readdir", 99, 64, 64, uint64_t{0}, 16), Errno::kBadf);
}

}  // namespace
}  // namespace hindsight::wasi
