// For programs that are written down once, with words that stand for what differs.
#pragma once

#include <string>
#include <string_view>

namespace hindsight::jit::testing {

inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

}  // namespace hindsight::jit::testing
