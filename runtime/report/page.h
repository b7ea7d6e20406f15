// The frame of every HTML page: one self-contained file, no script, no network. What goes into `body` must
// have passed escape_html() wherever it came from outside.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hindsight::report {

std::string html_page(std::string_view title, std::string_view subtitle, std::string_view body);

// A row of figures with their captions, both plain text.
struct Figure {
  std::string value, caption;
};
std::string html_figures(const std::vector<Figure>& figures);

// One horizontal bar a row, drawn as SVG, on an axis that starts at zero.
struct Bar {
  std::string label, group, value_text,
      style;                            // `style`: a class of the page's sheet, such as "gain" or "loss"
  double value = 0, low = 0, high = 0;  // low == high: no spread drawn
};
// `reference` draws a vertical line (1.0 for ratios; 0 for none).
std::string html_bars(const std::vector<Bar>& bars, double reference);

// Lines through points, drawn as SVG: a logarithmic axis to the right, a linear one from zero upwards. Each line is named
// at its end.
struct LinePoint {
  double x = 0, y = 0, low = 0, high = 0;  // x > 0; low == high: no spread drawn
};
struct Line {
  std::string label;
  std::vector<LinePoint> points;  // by x
};
// `reference` as above; `across` and `up` say what the axes are.
std::string html_lines(const std::vector<Line>& lines, double reference, std::string_view across,
                       std::string_view up);

}  // namespace hindsight::report
