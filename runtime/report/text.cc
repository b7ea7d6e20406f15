#include "runtime/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/printable.h"

namespace hindsight::report {
namespace {

size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace

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

std::string shortened(const std::string& text, size_t limit) {
  // Cut between code points: continuation bytes belong to the character before them.
  size_t characters = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    if ((static_cast<unsigned char>(text[k]) & 0xc0) == 0x80) continue;
    if (++characters > limit) return text.substr(0, k) + "…";
  }
  return text;
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
