// The line in front of a file that is kept between runs:
//
//   hindsight-sealed 1 <code, 64 hexadecimal digits> <length of what follows>
//
// The code (UserKey::code_of) is of the file's name and of all that follows the line. Nothing of a file is parsed
// before its code was found right, and of the line itself only its two numbers are used.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/storage/user_key.h"

namespace hindsight::rt {

// How such a file begins.
inline constexpr std::string_view kSealedFileStart = "hindsight-sealed ";
// Longer is no such line, with its line break.
inline constexpr size_t kMostSealBytes = 128;

struct Seal {
  UserKey::Code code{};
  uint64_t contents_bytes = 0;
  size_t line_bytes = 0;  // the contents follow
};

// The line for these contents. Makes the key if need be. Errors: those of UserKey.
Result<std::string> seal_line(const UserKey& key, std::string_view name, std::span<const std::byte> contents);

// `start`: the file's first bytes, kMostSealBytes of them if it has so many. Error kUsage: what is wrong, in words that go
// on from the file's name.
Result<Seal> parse_seal(std::string_view start);

// Error kUsage: the same; those of UserKey, with its path as their place.
Status check_seal(const UserKey& key, std::string_view name, const Seal& seal,
                  std::span<const std::byte> contents);

}  // namespace hindsight::rt
