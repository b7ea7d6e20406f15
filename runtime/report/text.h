// Text as pages and tables need it. What came from outside (function names, guest output, file names) is made safe to
// show by base/printable.h, and by escape_html() in pages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hindsight::report {

// For HTML text and attribute values in double quotes: printable() first, then & < > " ' as entities.
std::string escape_html(std::string_view text);

// The first so many code points, and "…" if there were more.
std::string shortened(const std::string& text, size_t limit);

// "1.23 s", "45.6 ms", "7.8 us": three figures and a unit.
std::string seconds_text(double seconds);

// "3 s", "5 min", "2 h", "9 days": how long ago, in whole ones.
std::string age_text(double seconds);

// Columns of a plain table, padded by code points. The first row is the header and is underlined.
class TextTable {
 public:
  // `alignment` has one character a column: 'l' or 'r'.
  explicit TextTable(std::string alignment) : alignment_(std::move(alignment)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // A line across the table before the next row.
  void rule() { rules_.push_back(rows_.size()); }
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> rules_;
};

}  // namespace hindsight::report
