#include "base/free_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

namespace hindsight {
namespace {

// The first bytes of a small file. Empty where it cannot be read: then it says nothing, as on systems that have no such file.
std::string contents_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text(8192, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t n = ::read(file, text.data() + length, text.size() - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    length += static_cast<size_t>(n);
  }
  ::close(file);
  text.resize(length);
  return text;
}

std::optional<uint64_t> number_at(std::string_view text) {
  const size_t digit = text.find_first_not_of(" \t");
  if (digit == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + digit, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The number after a word at the beginning of a line.
std::optional<uint64_t> number_of(std::string_view text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(word)) return number_at(line.substr(word.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

uint64_t left_of(uint64_t limit, uint64_t used) {
  return limit > used ? limit - used : 0;
}

uint64_t of_address_space(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const auto pages = number_at(contents_of(root + "/proc/self/statm"));
  return pages ? left_of(limit.rlim_cur, *pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)))
               : UINT64_MAX;
}

uint64_t of_control_groups(const std::string& root) {
  const std::string groups = contents_of(root + "/proc/self/cgroup");
  const size_t own = groups.starts_with("0::") ? 0 : groups.find("\n0::");
  if (own == std::string::npos) return UINT64_MAX;
  const size_t begin = groups.find("::", own) + 2;
  std::string group = groups.substr(begin, groups.find('\n', begin) - begin);
  uint64_t left = UINT64_MAX;
  for (;;) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto most = number_at(contents_of(folder + "/memory.max"));  // none: "max", or not limited here
    const auto used = most ? number_at(contents_of(folder + "/memory.current")) : std::nullopt;
    if (used) {
      const uint64_t of_files = number_of(contents_of(folder + "/memory.stat"), "inactive_file ").value_or(0);
      left = std::min(left, left_of(*most, left_of(*used, of_files)));
    }
    const size_t slash = group.rfind('/');
    if (group.size() <= 1 || slash == std::string::npos) return left;
    group.resize(slash);
  }
}

uint64_t of_machine(const std::string& root) {
  const auto kibibytes = number_of(contents_of(root + "/proc/meminfo"), "MemAvailable:");
  return kibibytes ? *kibibytes * 1024 : UINT64_MAX;
}

}  // namespace

uint64_t free_memory(const std::string& root) {
  return std::min({of_address_space(root), of_control_groups(root), of_machine(root)});
}

}  // namespace hindsight
