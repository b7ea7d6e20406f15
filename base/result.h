// Errors are values. Every fallible function of the project returns Result<T>; nothing is thrown across rooms
// or guest frames. An Error says what kind of failure it is (so that callers can choose an exit status), and
// what happened. It also says where (file, byte offset, function): enough for a user to act on.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace hindsight {

enum class ErrorKind : uint8_t {
  kBadModule,    // bytes or text that are not a valid WebAssembly module
  kUnsupported,  // valid somewhere, but a feature that this build does not implement
  kLink,         // an import that is missing or has another type
  kTrap,         // guest code trapped
  kExit,         // guest called proc_exit; not a failure by itself
  kResource,     // memory, address space, descriptors, permissions
  kUsage,        // an argument of an API or command that cannot be used
  kInternal,     // our bug
};

const char* to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string
      message;  // one sentence: what is wrong and, where known, what to do; printable (base/printable.h)
  std::string place;               // file, function or section, its bytes as they are; may be empty
  std::optional<uint64_t> offset;  // byte offset inside `place`, where that means something

  // "place:0xoffset: kind: message", with the parts that exist: one line, printable.
  std::string describe() const;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// The one function that makes errors: a place to put a breakpoint. What `message` quotes is made printable.
[[nodiscard]] std::unexpected<Error> make_error(ErrorKind kind, std::string message, std::string place = {},
                                                std::optional<uint64_t> offset = std::nullopt);

}  // namespace hindsight

// Propagates the error of a Result-returning expression.
#define HINDSIGHT_CONCAT_INNER(a, b) a##b
#define HINDSIGHT_CONCAT(a, b) HINDSIGHT_CONCAT_INNER(a, b)
#define HINDSIGHT_TRY(expr)                                                          \
  do {                                                                               \
    auto&& hindsight_try_result = (expr);                                            \
    if (!hindsight_try_result) return std::unexpected(hindsight_try_result.error()); \
  } while (0)
#define HINDSIGHT_ASSIGN(decl, expr)                                               \
  auto HINDSIGHT_CONCAT(hindsight_result_, __LINE__) = (expr);                     \
  if (!HINDSIGHT_CONCAT(hindsight_result_, __LINE__))                              \
    return std::unexpected(HINDSIGHT_CONCAT(hindsight_result_, __LINE__).error()); \
  decl = std::move(*HINDSIGHT_CONCAT(hindsight_result_, __LINE__))
