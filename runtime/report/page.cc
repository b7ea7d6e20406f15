#include "runtime/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

constexpr std::string_view kStyle = R"css(
:root{--ink:#1c2330;--soft:#5c6675;--line:#dfe3ea;--ground:#fff;--panel:#f5f7fa;--gain:#177a6b;--loss:#b4452f;--even:#8a94a3;--accent:#2f5fb3}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b4;--line:#323a46;--ground:#14181e;--panel:#1c222a;--gain:#4fc3ae;--loss:#e5846d;--even:#7f8a99;--accent:#82abf0}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;margin:0}h2{font-size:18px;margin:40px 0 12px}
p.sub{color:var(--soft);margin:4px 0 24px;overflow-wrap:anywhere}
p.note{color:var(--soft);font-size:13px;max-width:80ch}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.figure{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 14px}
.figure b{display:block;font-size:20px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.figure span{color:var(--soft);font-size:13px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:2px solid var(--line);white-space:nowrap}
td{border-bottom:1px solid var(--line);vertical-align:top}
th,td{padding:6px 12px 6px 0}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.name{overflow-wrap:anywhere;font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:13px}
td ul{margin:0;padding-left:16px;color:var(--soft);font-size:13px}
.tag{display:inline-block;padding:0 8px;border-radius:10px;border:1px solid currentColor;font-size:12px;white-space:nowrap}
.good{color:var(--gain)}.bad{color:var(--loss)}.plain{color:var(--soft)}
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px;overflow-x:auto;font-size:13px}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--ink);font:12px system-ui,"DejaVu Sans",sans-serif}
svg text.soft{fill:var(--soft)}
svg .gain{fill:var(--gain)}svg .loss{fill:var(--loss)}svg .even{fill:var(--even)}svg .plainbar{fill:var(--accent)}
svg .c0{--c:var(--accent)}svg .c1{--c:var(--gain)}svg .c2{--c:var(--loss)}svg .c3{--c:#9a6fc4}svg .c4{--c:#b98a1f}svg .c5{--c:#3f94b5}
svg path.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}svg circle.line{fill:var(--c)}svg line.line{stroke:var(--c);opacity:.45}svg text.line{fill:var(--c)}
svg .spread{stroke:var(--ink);stroke-width:1.5;opacity:.65}svg .axis{stroke:var(--line)}svg .ref{stroke:var(--soft);stroke-dasharray:3 3}
footer{margin-top:48px;color:var(--soft);font-size:13px}
)css";

double nice_step(double span) {
  if (!(span > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(span / 4)));
  for (const double step : {1.0, 2.0, 5.0, 10.0}) {
    if (step * power >= span / 5) return step * power;
  }
  return 10 * power;
}

}  // namespace

std::string html_page(std::string_view title, std::string_view subtitle, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">"
      "<title>{}</title><style>{}</style></head>\n<body><main>\n<h1>{}</h1>\n<p "
      "class=\"sub\">{}</p>\n{}\n</main></body></html>\n",
      escape_html(title), kStyle, escape_html(title), escape_html(subtitle), body);
}

std::string html_figures(const std::vector<Figure>& figures) {
  std::string out = "<div class=\"figures\">";
  for (const auto& figure : figures) {
    out += fmt::format("<div class=\"figure\"><b>{}</b><span>{}</span></div>", escape_html(figure.value),
                       escape_html(figure.caption));
  }
  return out + "</div>\n";
}

std::string html_bars(const std::vector<Bar>& bars, double reference) {
  if (bars.empty()) return {};
  constexpr double kLabel = 210, kRight = 150, kWidth = 1072, kRow = 24, kTop = 22;
  double top = reference;
  for (const auto& bar : bars) {
    for (const double value : {bar.value, bar.high}) {
      if (std::isfinite(value)) top = std::max(top, value);
    }
  }
  if (!(top > 0)) top = 1;
  const double step = nice_step(top);
  const double end = std::ceil(top / step - 1e-9) * step;
  const double plot = kWidth - kLabel - kRight;
  const auto x = [&](double value) {
    return kLabel + plot * std::clamp(std::isfinite(value) ? value / end : 0.0, 0.0, 1.0);
  };
  size_t groups = 0;
  for (size_t k = 0; k < bars.size(); ++k) groups += k == 0 || bars[k].group != bars[k - 1].group ? 1 : 0;
  const double height = kTop + kRow * static_cast<double>(bars.size() + groups) + 8;

  std::string out = fmt::format(
      "<div class=\"scroll\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" style=\"min-width:640px\">",
      kWidth, height);
  for (int k = 0; k <= static_cast<int>(std::lround(end / step)); ++k) {
    const double value = step * k;
    out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2:.0f}\"/>",
                       x(value), kTop, height - 6);
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"14\" text-anchor=\"middle\">{:g}</text>",
                       x(value), value);
  }
  double y = kTop;
  for (size_t k = 0; k < bars.size(); ++k) {
    const Bar& bar = bars[k];
    if (k == 0 || bar.group != bars[k - 1].group) {
      out += fmt::format("<text class=\"soft\" x=\"0\" y=\"{:.1f}\" font-weight=\"600\">{}</text>", y + 17,
                         escape_html(bar.group));
      y += kRow;
    }
    out += fmt::format("<text x=\"12\" y=\"{:.1f}\">{}<title>{}</title></text>", y + 16,
                       escape_html(shortened(printable(bar.label), 27)), escape_html(bar.label));
    out +=
        fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" rx=\"2\"/>",
                    escape_html(bar.style), kLabel, y + 5, std::max(0.5, x(bar.value) - kLabel));
    if (bar.high > bar.low) {
      out += fmt::format(
          "<line class=\"spread\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>"
          "<line class=\"spread\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{2:.1f}\" y2=\"{4:.1f}\"/>"
          "<line class=\"spread\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{4:.1f}\"/>",
          x(bar.low), x(bar.high), y + 8, y + 12, y + 16);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x(std::max(bar.value, bar.high)) + 8,
                       y + 16, escape_html(bar.value_text));
    y += kRow;
  }
  if (reference > 0) {
    out += fmt::format("<line class=\"ref\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2:.0f}\"/>",
                       x(reference), kTop, height - 6);
  }
  return out + "</svg></div>\n";
}

std::string html_lines(const std::vector<Line>& lines, double reference, std::string_view across,
                       std::string_view up) {
  constexpr double kWidth = 1072, kHeight = 460, kLeft = 56, kRight = 190, kTop = 26, kBottom = 44;
  constexpr double kLabelHeight = 15;
  constexpr size_t kColours = 6;
  double least = HUGE_VAL, most = 0, top = reference;
  for (const Line& line : lines) {
    for (const LinePoint& point : line.points) {
      if (!(point.x > 0) || !std::isfinite(point.x)) continue;
      least = std::min(least, point.x);
      most = std::max(most, point.x);
      for (const double value : {point.y, point.high})
        if (std::isfinite(value)) top = std::max(top, value);
    }
  }
  if (!(most > 0)) return {};
  if (most < least * 1.01) most = least * 1.01;
  if (!(top > 0)) top = 1;
  const double step = nice_step(top);
  const double end = std::ceil(top / step - 1e-9) * step;
  const auto x = [&](double value) {
    const double place = std::log(std::max(value, least) / least) / std::log(most / least);
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(place, 0.0, 1.0);
  };
  const auto y = [&](double value) {
    const double place = std::isfinite(value) ? std::clamp(value / end, 0.0, 1.0) : 0.0;
    return kHeight - kBottom - (kHeight - kTop - kBottom) * place;
  };

  std::string out = fmt::format(
      "<div class=\"scroll\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" style=\"min-width:640px\">"
      "<text class=\"soft\" x=\"0\" y=\"14\">{}</text>"
      "<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>",
      kWidth, kHeight, escape_html(up), kWidth - kRight, kHeight - 6, escape_html(across));
  for (int k = 0; k <= static_cast<int>(std::lround(end / step)); ++k) {
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"soft\" x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>",
        kLeft, kWidth - kRight, y(step * k), kLeft - 8, y(step * k) + 4, step * k);
  }
  for (double decade = std::pow(10, std::floor(std::log10(least))); decade <= most; decade *= 10) {
    for (const double mark : {decade, 2 * decade, 5 * decade}) {
      if (mark < least * 0.999 || mark > most * 1.001) continue;
      out += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/>"
          "<text class=\"soft\" x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4:g}</text>",
          x(mark), kTop, kHeight - kBottom, kHeight - kBottom + 16, mark);
    }
  }
  if (reference > 0)
    out += fmt::format("<line class=\"ref\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>",
                       kLeft, kWidth - kRight, y(reference));

  struct Label {
    double y;
    size_t line;
  };
  std::vector<Label> labels;
  for (size_t k = 0; k < lines.size(); ++k) {
    const size_t colour = k % kColours;
    std::string path, marks;
    for (const LinePoint& point : lines[k].points) {
      if (!(point.x > 0) || !std::isfinite(point.x)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.x), y(point.y));
      if (point.high > point.low)
        marks +=
            fmt::format("<line class=\"line\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>",
                        x(point.x), y(point.low), y(point.high));
      marks +=
          fmt::format("<circle class=\"line\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x(point.x), y(point.y));
    }
    if (path.empty()) continue;
    out += fmt::format("<g class=\"c{}\"><path class=\"line\" d=\"{}\"/>{}</g>", colour, path, marks);
    labels.push_back({y(lines[k].points.back().y) + 4, k});
  }
  // Names stand beside the ends of their lines, pushed apart where these are close together.
  std::ranges::sort(labels, {}, &Label::y);
  for (size_t k = 1; k < labels.size(); ++k)
    labels[k].y = std::max(labels[k].y, labels[k - 1].y + kLabelHeight);
  double lowest = kHeight - kBottom + 4;
  for (size_t k = labels.size(); k-- > 0; lowest -= kLabelHeight) labels[k].y = std::min(labels[k].y, lowest);
  for (const Label& label : labels)
    out += fmt::format("<g class=\"c{}\"><text class=\"line\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>",
                       label.line % kColours, kWidth - kRight + 10, label.y,
                       escape_html(shortened(printable(lines[label.line].label), 24)));
  return out + "</svg></div>\n";
}

}  // namespace hindsight::report
