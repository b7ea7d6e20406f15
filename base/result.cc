#include "base/result.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace hindsight {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadModule:
      return "bad module";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kLink:
      return "link error";
    case ErrorKind::kTrap:
      return "trap";
    case ErrorKind::kExit:
      return "exit";
    case ErrorKind::kResource:
      return "resource";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kInternal:
      return "internal error";
  }
  return "unknown";
}

std::string Error::describe() const {
  std::string text;
  if (!place.empty()) text += printable_line(place);
  if (offset) text += fmt::format("{}0x{:x}", text.empty() ? "at " : ":", *offset);
  if (!text.empty()) text += ": ";
  return text + to_string(kind) + ": " + printable_line(message);
}

std::unexpected<Error> make_error(ErrorKind kind, std::string message, std::string place,
                                  std::optional<uint64_t> offset) {
  return std::unexpected(Error{kind, printable_line(message), std::move(place), offset});
}

}  // namespace hindsight
