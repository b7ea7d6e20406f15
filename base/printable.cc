#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace hindsight {
namespace {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // 0: the byte at this place starts no well-formed UTF-8 sequence
};

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t index) { return static_cast<uint8_t>(text[index]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  size_t length = 0;
  char32_t value = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2, value = lead & 0x1f;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3, value = lead & 0x0f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4, value = lead & 0x07;
  } else {
    return {};
  }
  if (length > text.size() - at) return {};
  for (size_t k = 1; k < length; ++k) {
    if ((byte(at + k) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(at + k) & 0x3f);
  }
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (too_long || surrogate || value > 0x10ffff) return {};
  return {value, length};
}

// Characters that change how their neighbours are shown, end a line, or show nothing at all.
bool hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

std::string escape(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(c));
  }
}

// The end of text that is too long is worth as much as the beginning. It tells a name from its neighbours, and says what is the matter in a
// line.
std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return printable(text);
  const auto inside = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  constexpr size_t kLongestSequence = 4;
  size_t first = most / 2, last = text.size() - (most - most / 2);
  for (size_t k = 1; k < kLongestSequence && inside(first); ++k) --first;
  for (size_t k = 1; k < kLongestSequence && inside(last); ++k) ++last;
  return fmt::format("{}...({} bytes left out)...{}", printable(text.substr(0, first)), last - first,
                     printable(text.substr(last)));
}

}  // namespace

std::string printable(std::string_view text, bool multi_line) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at]));
      ++at;
      continue;
    }
    const bool kept = multi_line && (c.value == '\t' || c.value == '\n');
    if (!hidden(c.value) || kept)
      out += text.substr(at, c.bytes);
    else
      out += escape(c.value);
    at += c.bytes;
  }
  return out;
}

std::string printable_name(std::string_view name) {
  return shortened(name, kMostNameBytes);
}
std::string printable_line(std::string_view line) {
  return shortened(line, kMostLineBytes);
}

}  // namespace hindsight
