// A guest without an engine: some memory, a context, and calls made through the function table.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/wasi/abi.h"
#include "runtime/wasi/functions.h"
#include "runtime/wasi/guest_memory.h"
#include "runtime/wasi/wasi_context.h"

namespace hindsight::wasi {

// Errnos are told by number in failures; the names are in abi.h.
inline void PrintTo(Errno error, std::ostream* out) {
  *out << "errno " << static_cast<int>(error);
}

// A directory of its own for each test, removed with it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hindsight-wasi-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_host_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_host_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct OpenOptions {
  bool follow = true;
  uint16_t flags = 0;
  uint64_t base = rights::kAll & ~rights::kFdWrite;
  uint64_t inheriting = rights::kAll;
  uint16_t fd_flags = 0;
};

class Guest {
 public:
  explicit Guest(Config config) {
    auto created = WasiContext::create(std::move(config));
    if (!created) {
      ADD_FAILURE() << created.error().describe();
      std::abort();
    }
    context = std::move(*created);
  }

  GuestMemory memory() { return {bytes.data(), bytes.size()}; }

  // Space in guest memory. Addresses start above 0 and are odd on purpose: nothing may need alignment.
  uint32_t reserve(uint64_t size) {
    const uint32_t at = next_;
    next_ = static_cast<uint32_t>((at + size + 8) | 1);
    if (next_ > bytes.size()) std::abort();
    return at;
  }
  uint32_t put(std::string_view text) {
    const uint32_t at = reserve(text.size());
    if (!text.empty()) std::memcpy(bytes.data() + at, text.data(), text.size());
    return at;
  }
  template <typename T>
  T get(uint64_t at) {
    const auto value = memory().load<T>(at);
    EXPECT_TRUE(value.has_value());
    return value.value_or(T{});
  }
  std::string get_string(uint64_t at, uint64_t length) {
    EXPECT_TRUE(memory().contains(at, length));
    return {reinterpret_cast<const char*>(bytes.data() + at), length};
  }
  void forget() { next_ = 17; }

  template <typename... Args>
  Outcome raw_call(std::string_view name, uint64_t* result, Args... args) {
    const WasiFunction* function = find_function(name);
    if (!function) {
      ADD_FAILURE() << "no function " << name;
      return {};
    }
    EXPECT_EQ(function->signature.find(':'), sizeof...(Args)) << name;
    // The upper halves of i32 slots are not the callee's to look at.
    std::array<uint64_t, sizeof...(Args) + 1> slots{static_cast<uint64_t>(args)...};
    for (size_t i = 0; i < sizeof...(Args); i++) {
      if (function->signature[i] == 'i') slots[i] |= 0xdeadbeef00000000;
    }
    return function->call(*context, memory(), slots.data(), result);
  }

  template <typename... Args>
  Errno call(std::string_view name, Args... args) {
    uint64_t result = ~uint64_t{0};
    EXPECT_FALSE(raw_call(name, &result, args...).exited());
    EXPECT_LE(result, static_cast<uint64_t>(Errno::kNotcapable)) << name;
    return static_cast<Errno>(result);
  }

  // A call whose arguments are (fd, path): the path is put in memory first.
  Errno path_call(std::string_view name, uint32_t fd, std::string_view path) {
    return call(name, fd, put(path), path.size());
  }

  std::expected<uint32_t, Errno> open(uint32_t fd, std::string_view path, OpenOptions options = {}) {
    const uint32_t opened = reserve(4);
    const Errno error =
        call("path_open", fd, options.follow ? kLookupSymlinkFollow : 0, put(path), path.size(),
             options.flags, options.base, options.inheriting, options.fd_flags, opened);
    if (error != Errno::kSuccess) return std::unexpected(error);
    return get<uint32_t>(opened);
  }
  // For comparing: success, or the errno.
  Errno try_open(uint32_t fd, std::string_view path, OpenOptions options = {}) {
    const auto opened = open(fd, path, options);
    if (!opened) return opened.error();
    return call("fd_close", *opened);
  }

  uint32_t put_iovec(uint32_t buffer, uint32_t length) {
    const uint32_t at = reserve(layout::iovec::kSize);
    EXPECT_TRUE(memory().store(at + layout::iovec::kBuf, buffer));
    EXPECT_TRUE(memory().store(at + layout::iovec::kLen, length));
    return at;
  }
  std::expected<uint32_t, Errno> write(uint32_t fd, std::string_view text) {
    const uint32_t done = reserve(4);
    const Errno error =
        call("fd_write", fd, put_iovec(put(text), static_cast<uint32_t>(text.size())), 1, done);
    if (error != Errno::kSuccess) return std::unexpected(error);
    return get<uint32_t>(done);
  }
  std::expected<std::string, Errno> read(uint32_t fd, uint32_t length) {
    const uint32_t done = reserve(4);
    const uint32_t buffer = reserve(length);
    const Errno error = call("fd_read", fd, put_iovec(buffer, length), 1, done);
    if (error != Errno::kSuccess) return std::unexpected(error);
    return get_string(buffer, get<uint32_t>(done));
  }

  Errno stat(uint32_t fd, std::string_view path, bool follow, uint32_t at) {
    return call("path_filestat_get", fd, follow ? kLookupSymlinkFollow : 0, put(path), path.size(), at);
  }
  Errno rename(uint32_t old_fd, std::string_view old_path, uint32_t new_fd, std::string_view new_path) {
    return call("path_rename", old_fd, put(old_path), old_path.size(), new_fd, put(new_path),
                new_path.size());
  }
  Errno link(uint32_t old_fd, bool follow, std::string_view old_path, uint32_t new_fd,
             std::string_view new_path) {
    return call("path_link", old_fd, follow ? kLookupSymlinkFollow : 0, put(old_path), old_path.size(),
                new_fd, put(new_path), new_path.size());
  }
  Errno symlink(std::string_view target, uint32_t fd, std::string_view path) {
    return call("path_symlink", put(target), target.size(), fd, put(path), path.size());
  }
  std::expected<std::string, Errno> readlink(uint32_t fd, std::string_view path, uint32_t length = 256) {
    const uint32_t buffer = reserve(length);
    const uint32_t used = reserve(4);
    const Errno error = call("path_readlink", fd, put(path), path.size(), buffer, length, used);
    if (error != Errno::kSuccess) return std::unexpected(error);
    return get_string(buffer, get<uint32_t>(used));
  }
  Errno set_times(uint32_t fd, bool follow, std::string_view path, uint64_t atim, uint64_t mtim,
                  uint32_t flags) {
    return call("path_filestat_set_times", fd, follow ? kLookupSymlinkFollow : 0, put(path), path.size(),
                atim, mtim, flags);
  }

  std::unique_ptr<WasiContext> context;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(256 * 1024);

 private:
  uint32_t next_ = 17;
};

// Standard streams closed, so that no test touches the runner's.
inline Config quiet_config() {
  Config config;
  config.stdin_fd = config.stdout_fd = config.stderr_fd = -1;
  return config;
}

inline Config directory_config(const std::filesystem::path& path) {
  Config config = quiet_config();
  config.preopens.push_back({.host_path = path.string(), .guest_path = "/data"});
  return config;
}

inline constexpr uint32_t kRoot = 3;  // the first preopened directory

inline constexpr OpenOptions kForWriting{.base = rights::kAll};
inline constexpr OpenOptions kCreating{.flags = oflags::kCreat, .base = rights::kAll};

}  // namespace hindsight::wasi
