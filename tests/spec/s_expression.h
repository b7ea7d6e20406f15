// The outer form of the text format: lists of words and strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hindsight::spec {

struct Node {
  enum class Kind : unsigned char { kWord, kString, kList };
  Kind kind = Kind::kList;
  std::string text;  // of a string without quotes, its escapes resolved
  std::vector<Node> items;
  int line = 0;

  bool is_list() const { return kind == Kind::kList; }
  bool is_word() const { return kind == Kind::kWord; }
  // A list that begins with this word.
  bool is(std::string_view head) const { return is_list() && !items.empty() && items[0].text == head; }
  bool is_name() const { return is_word() && text.starts_with('$'); }
};

// The lists of a whole file, in a list. Throws std::runtime_error where brackets or quotes do not match.
Node parse_expressions(std::string_view text);

}  // namespace hindsight::spec
