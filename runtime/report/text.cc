#include "runtime/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hindsight::report {
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
  if (at + length > text.size()) return {};
  for (size_t k = 1; k < length; ++k) {
    if ((byte(at + k) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(at + k) & 0x3f);
  }
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (too_long || surrogate || value > 0x10ffff) return {};
  return {value, length};
}

// Characters that change how their neighbours are shown, or show nothing at all.
bool hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
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
    const bool kept = c.value == '\t' || (multi_line && c.value == '\n');
    if (!hidden(c.value) || kept) {
      out += text.substr(at, c.bytes);
    } else if (c.value < 0x80) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c.value));
    } else {
      out += fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(c.value));
    }
    at += c.bytes;
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text, true)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string age_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 172'800) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86'400);
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double size = std::fabs(seconds);
  if (size >= 100) return fmt::format("{:.0f} s", seconds);
  if (size >= 10) return fmt::format("{:.1f} s", seconds);
  if (size >= 1 || size == 0) return fmt::format("{:.2f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], width(row[k]));
  }
  size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t w : widths) total += w;
  const std::string line = std::string(total, '-') + "\n";
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (r == 1 || std::find(rules_.begin(), rules_.end(), r) != rules_.end()) out += line;
    std::string text;
    for (size_t k = 0; k < rows_[r].size(); ++k) {
      const std::string padding(widths[k] - width(rows_[r][k]), ' ');
      const bool right = k < alignment_.size() && alignment_[k] == 'r';
      text += right ? padding + rows_[r][k] : rows_[r][k] + padding;
      text += "  ";
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  }
  return out;
}

}  // namespace hindsight::report
