#include "runtime/storage/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace hindsight::rt {
namespace {

constexpr std::string_view kSealVersion = "1";
// What files of earlier versions, which had checksums only, begin with.
constexpr std::string_view kUnsealedStarts[] = {"hindcode", "hindsight-kept-profile "};

std::unexpected<Error> bad(std::string why) {
  return make_error(ErrorKind::kUsage, std::move(why));
}

// Up to the next space, which is left out.
std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

Result<std::string> seal_line(const UserKey& key, std::string_view name,
                              std::span<const std::byte> contents) {
  HINDSIGHT_ASSIGN(const auto code, key.code_of(name, contents, UserKey::Missing::kMake));
  std::string line = fmt::format("{}{} ", kSealedFileStart, kSealVersion);
  for (const uint8_t byte : *code) line += fmt::format("{:02x}", byte);
  return line + fmt::format(" {}\n", contents.size());
}

Result<Seal> parse_seal(std::string_view start) {
  for (const std::string_view unsealed : kUnsealedStarts) {
    if (start.starts_with(unsealed))
      return bad("was written by an earlier version of the program, without a seal");
  }
  const size_t known = std::min(start.size(), kSealedFileStart.size());
  if (start.substr(0, known) != kSealedFileStart.substr(0, known)) return bad("has no seal");
  const size_t newline = start.substr(0, kMostSealBytes).find('\n');
  if (newline == std::string_view::npos)
    return bad(start.size() < kMostSealBytes ? fmt::format("is truncated: {} bytes", start.size())
                                             : "is damaged: its first line does not end");
  std::string_view line = start.substr(0, newline);
  line.remove_prefix(std::min(kSealedFileStart.size(), line.size()));
  if (const std::string_view version = next_word(line); version != kSealVersion)
    return bad(fmt::format("was written by another version of the program: its seal is of format {}, not {}",
                           version.substr(0, 16), kSealVersion));
  Seal seal;
  seal.line_bytes = newline + 1;
  const std::string_view digits = next_word(line);
  if (digits.size() != 2 * seal.code.size()) return bad("is damaged: its seal is too short or too long");
  for (size_t i = 0; i < seal.code.size(); ++i) {
    const char* const at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, seal.code[i], 16).ptr != at + 2)
      return bad("is damaged: its seal is no hexadecimal number");
  }
  const char* const end = line.data() + line.size();
  const auto [stopped, error] = std::from_chars(line.data(), end, seal.contents_bytes);
  if (error != std::errc() || stopped != end || line.empty()) return bad("is damaged: it says no length");
  return seal;
}

Status check_seal(const UserKey& key, std::string_view name, const Seal& seal,
                  std::span<const std::byte> contents) {
  if (seal.contents_bytes != contents.size()) {
    return bad(fmt::format("{}: {} of {} bytes",
                           seal.contents_bytes > contents.size() ? "is truncated" : "has grown",
                           contents.size(), seal.contents_bytes));
  }
  HINDSIGHT_ASSIGN(const auto code, key.code_of(name, contents, UserKey::Missing::kLeave));
  if (!code) return bad("is sealed with a key that is gone");
  if (!UserKey::same(*code, seal.code))
    return bad(
        "has a wrong seal: it was changed, or made, by something else than this program with your key");
  return {};
}

}  // namespace hindsight::rt
