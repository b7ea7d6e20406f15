#include "runtime/report/guest_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/printable.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

using Kind = GuestEventReport::Kind;

std::string name_of(const Kind& kind) {
  const std::string what = fmt::format("{} {}", kind.value ? "value" : "event", kind.flags);
  return kind.name.empty() ? what : kind.name;
}

// A row a kind, a mark a bucket in which it happened, the stronger the more often.
std::string time_line(const GuestEventReport& guest, double seconds) {
  constexpr double kLabel = 210, kWidth = 1072, kRow = 24, kTop = 22, kRight = 12;
  double end = seconds;
  for (const Kind& kind : guest.kinds) end = std::max(end, kind.last_seconds);
  if (!(end > 0) || guest.kinds.empty()) return {};
  const double plot = kWidth - kLabel - kRight;
  const double height = kTop + kRow * static_cast<double>(guest.kinds.size()) + 8;
  const auto x = [&](double at) { return kLabel + plot * std::clamp(at / end, 0.0, 1.0); };
  std::string out = fmt::format(
      "<div class=\"scroll\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" style=\"min-width:640px\">",
      kWidth, height);
  for (int k = 0; k <= 5; ++k) {
    const double at = end * k / 5;
    out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2:.0f}\"/>",
                       x(at), kTop, height - 6);
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"14\" text-anchor=\"{}\">{}</text>", x(at),
                       k == 5 ? "end" : "middle", escape_html(seconds_text(at)));
  }
  double y = kTop;
  for (const Kind& kind : guest.kinds) {
    const std::string name = name_of(kind);
    out += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}<title>{}</title></text>", y + 16,
                       escape_html(shortened(printable(name), 27)), escape_html(name));
    uint64_t most = 1;
    for (const uint64_t count : kind.timeline) most = std::max(most, count);
    for (size_t b = 0; b < kind.timeline.size(); ++b) {
      if (kind.timeline[b] == 0) continue;
      const double begin = guest.bucket_seconds * static_cast<double>(b);
      const double left = x(begin), width = std::max(2.0, x(begin + guest.bucket_seconds) - left);
      const double strength = 0.35 + 0.65 * std::log1p(static_cast<double>(kind.timeline[b])) /
                                         std::log1p(static_cast<double>(most));
      out += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" "
          "opacity=\"{:.2f}\"><title>{} at {}</title></rect>",
          kind.value ? "gain" : "plainbar", left, y + 5, width, strength, kind.timeline[b],
          escape_html(seconds_text(begin)));
    }
    y += kRow;
  }
  return out + "</svg></div>\n";
}

std::string data1_text(const Kind& kind) {
  constexpr size_t kShown = 6;
  std::string out;
  uint64_t rest = kind.data1_others;
  for (size_t i = 0; i < kind.data1.size(); ++i) {
    if (i >= kShown) {
      rest += kind.data1[i].count;
      continue;
    }
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", kind.data1[i].value, kind.data1[i].count);
  }
  if (rest != 0) out += fmt::format(", others ({})", rest);
  return out;
}

std::string place_text(const Kind& kind) {
  if (kind.function.empty()) return "not attributed";
  std::string out =
      kind.wasm_offset ? fmt::format("{} +{:#x}", kind.function, *kind.wasm_offset) : kind.function;
  return kind.more_sites ? out + " and others" : out;
}

std::string table(const GuestEventReport& guest, bool values) {
  std::string rows;
  for (const Kind& kind : guest.kinds) {
    if (kind.value != values) continue;
    rows += fmt::format(
        "<tr><td class=\"name\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.6g}</td><td>{}</td><td "
        "class=\"name\">{}</td></tr>\n",
        escape_html(name_of(kind)), kind.flags, kind.count, escape_html(seconds_text(kind.first_seconds)),
        escape_html(seconds_text(kind.last_seconds)), kind.least, kind.greatest, kind.mean,
        escape_html(data1_text(kind)), escape_html(place_text(kind)));
  }
  if (rows.empty()) return {};
  return fmt::format(
      "<h3>{}</h3>\n<div class=\"scroll\"><table><tr><th>{}</th><th class=\"n\">flags</th><th "
      "class=\"n\">records</th><th class=\"n\">first</th>"
      "<th class=\"n\">last</th><th class=\"n\">data2, least</th><th class=\"n\">greatest</th><th "
      "class=\"n\">mean</th>"
      "<th>data1 (records)</th><th>called in</th></tr>\n{}</table></div>\n",
      values ? "Values" : "Events", values ? "value" : "event", rows);
}

// Sizes spread over orders of magnitude: a bar for each number of bits.
std::string distributions(const GuestEventReport& guest) {
  std::string out;
  for (const Kind& kind : guest.kinds) {
    if (!kind.value || kind.count == 0) continue;
    size_t low = 0, high = 64;
    while (low < 64 && kind.widths[low] == 0) ++low;
    while (high > 0 && kind.widths[high] == 0) --high;
    if (low >= high) continue;  // all of one order
    constexpr double kLabel = 210, kWidth = 1072, kRow = 20;
    uint64_t most = 1;
    for (const uint64_t count : kind.widths) most = std::max(most, count);
    out += fmt::format(
        "<h3>{}</h3>\n<div class=\"scroll\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
        "style=\"min-width:640px\">",
        escape_html(name_of(kind)), kWidth, kRow * static_cast<double>(high - low + 1) + 8);
    double y = 0;
    for (size_t bits = low; bits <= high; ++bits) {
      const uint64_t least = bits == 0 ? 0 : uint64_t{1} << (bits - 1);
      const uint64_t greatest = bits == 0 ? 0 : least + (least - 1);
      const std::string label =
          least == greatest ? fmt::format("{}", least) : fmt::format("{} to {}", least, greatest);
      const double width =
          (kWidth - kLabel - 120) * static_cast<double>(kind.widths[bits]) / static_cast<double>(most);
      out += fmt::format(
          "<text class=\"soft\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text><rect class=\"gain\" "
          "x=\"{:.0f}\" y=\"{:.1f}\" "
          "width=\"{:.1f}\" height=\"12\" rx=\"2\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
          kLabel - 8, y + 15, label, kLabel, y + 5, std::max(0.5, width), kLabel + width + 8, y + 15,
          kind.widths[bits]);
      y += kRow;
    }
    out += "</svg></div>\n";
  }
  if (!out.empty()) out = "<p class=\"note\">How many records had a value of which size.</p>\n" + out;
  return out;
}

}  // namespace

std::string guest_section(const GuestEventReport& guest, double seconds) {
  const uint64_t calls = guest.inserted + guest.values_seen + guest.calls_off;
  if (calls == 0 && guest.kinds.empty()) return {};
  std::string out = "<h2>The guest's own events</h2>\n";
  out += fmt::format(
      "<p class=\"note\">{} events inserted, {} of them into a full ring and missed. {} values seen, {} "
      "recorded, {} of these missed. "
      "{} calls without a unit.{}</p>\n",
      guest.inserted, guest.inserted_full, guest.values_seen, guest.values_stored, guest.values_full,
      guest.calls_off,
      guest.left_out == 0 ? std::string()
                          : fmt::format(" {} records are of kinds beyond those shown.", guest.left_out));
  if (guest.kinds.empty()) return out;
  return out + time_line(guest, seconds) + table(guest, false) + table(guest, true) + distributions(guest);
}

}  // namespace hindsight::report
