// The line in front of a profile that programs keep for themselves:
//   hindsight-kept-profile 1 <SHA-256 of what follows, in hexadecimal digits> <its length>
#include <fmt/format.h>

#include <charconv>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/sha256.h"

namespace hindsight::feedback {
namespace {

constexpr std::string_view kWord = "hindsight-kept-profile ";
constexpr std::string_view kVersion = "1";

std::string hash_of(std::string_view text) {
  std::string digits;
  for (const uint8_t byte : wasm::sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()}))
    digits += fmt::format("{:02x}", byte);
  return digits;
}

// Up to the next space, which is left out.
std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::string seal(std::string_view text) {
  return fmt::format("{}{} {} {}\n{}", kWord, kVersion, hash_of(text), text.size(), text);
}

bool is_sealed(std::string_view text) {
  return text.starts_with(kWord);
}

Result<std::string_view> unseal(std::string_view sealed) {
  const auto bad = [](std::string why) { return make_error(ErrorKind::kUsage, std::move(why)); };
  if (sealed.empty()) return bad("is empty");
  if (!is_sealed(sealed)) return bad("is no profile that was kept: its first line says something else");
  const size_t newline = sealed.find('\n');
  if (newline == std::string_view::npos || newline > 256) return bad("is cut off in its first line");
  std::string_view line = sealed.substr(kWord.size(), newline - kWord.size());
  const std::string_view text = sealed.substr(newline + 1);
  const std::string_view version = next_word(line);
  if (version != kVersion) {
    return bad(fmt::format("was written by another version of the program: its format is {}, not {}",
                           version.substr(0, 16), kVersion));
  }
  const std::string_view hash = next_word(line);
  size_t length = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
  if (error != std::errc() || end != line.data() + line.size()) return bad("is damaged: it says no length");
  if (length != text.size()) return bad(fmt::format("is cut off: {} bytes of {}", text.size(), length));
  if (hash != hash_of(text)) return bad("is damaged: its checksum is another");
  return text;
}

}  // namespace hindsight::feedback
