#include "tests/spec/s_expression.h"

#include <cctype>
#include <stdexcept>

namespace hindsight::spec {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Node list(bool whole) {
    Node node{.kind = Node::Kind::kList, .text = {}, .items = {}, .line = line_};
    for (;;) {
      skip_blanks();
      if (at_end()) {
        if (whole) return node;
        fail("a list without end");
      }
      const char c = text_[at_];
      if (c == ')') {
        if (whole) fail("a bracket too many");
        ++at_;
        return node;
      }
      if (c == '(') {
        ++at_;
        node.items.push_back(list(false));
      } else {
        node.items.push_back(c == '"' ? string() : word());
      }
    }
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error("line " + std::to_string(line_) + ": " + what);
  }

  void skip_blanks() {
    while (!at_end()) {
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.substr(at_).starts_with(";;")) {
        while (!at_end() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  Node word() {
    const size_t begin = at_;
    while (!at_end() && !std::isspace(static_cast<unsigned char>(text_[at_])) && text_[at_] != '(' &&
           text_[at_] != ')')
      ++at_;
    return {.kind = Node::Kind::kWord,
            .text = std::string(text_.substr(begin, at_ - begin)),
            .items = {},
            .line = line_};
  }

  Node string() {
    Node node{.kind = Node::Kind::kString, .text = {}, .items = {}, .line = line_};
    for (++at_; !at_end() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      node.text += text_[at_];
    }
    if (at_end()) fail("a string without end");
    ++at_;
    return node;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Node parse_expressions(std::string_view text) {
  return Parser(text).list(true);
}

}  // namespace hindsight::spec
