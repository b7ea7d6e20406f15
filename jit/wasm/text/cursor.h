// The reader's place in a text: tokens with a little lookahead, and the first error. Parsers return false once something
// failed; the first failure wins, and says line, column, what was expected and what was found.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jit/wasm/text/lexer.h"

namespace hindsight::wasm::text {

// Both from 1; columns count characters.
struct Position {
  uint64_t line = 1;
  uint64_t column = 1;
};
// Linear in `offset`.
Position position_of(std::string_view source, size_t offset);

class Cursor {
 public:
  Cursor(std::string_view source, size_t begin, size_t end);

  const Token& peek() { return ahead(0); }
  const Token& peek_second() { return ahead(1); }
  Token take();
  size_t taken_end() const { return taken_end_; }  // after the last token that was taken
  // Goes on reading at source[begin]: where a token begins that was seen before.
  void seek(size_t begin);

  bool at(TokenKind kind) { return peek().kind == kind; }
  bool at_word(std::string_view word) { return at(TokenKind::kWord) && peek().text == word; }
  // "(" followed by this word
  bool at_open(std::string_view word);
  bool at_annotation(std::string_view id) { return at(TokenKind::kAnnotation) && peek().text == id; }
  bool accept_word(std::string_view word);
  bool accept_open(std::string_view word);

  // Each takes what it names, or fails.
  bool open(std::string_view word);
  bool close();
  bool string(std::string& out);
  bool name(std::string& out);  // a string that is well-formed UTF-8
  bool unsigned_number(uint64_t most, std::string_view what, uint64_t& out);
  // An identifier if there is one, without its dollar and quotes; empty otherwise. Lives as long as the cursor.
  std::string_view optional_id();
  std::string_view id_name(const Token& token);

  // After an opening parenthesis that was taken: goes on after the one that closes it.
  bool skip_list();

  // "expected X, found Y" at the next token. Always false.
  bool fail_expected(std::string_view expected);
  bool fail(size_t at, std::string message);
  bool failed() const { return failed_; }
  Error error(std::string_view name) const;

  std::string_view source() const { return source_; }
  // See Lexer::steps.
  uint64_t steps() const { return steps_before_ + lexer_.steps() - lexer_began_at_; }

 private:
  static constexpr unsigned kLookahead = 2;
  const Token& ahead(unsigned n);

  std::string_view source_;
  size_t end_;
  Lexer lexer_;
  std::array<Token, kLookahead> tokens_;
  size_t taken_end_ = 0;
  unsigned first_ = 0;
  unsigned count_ = 0;
  std::deque<std::string> decoded_;  // names of quoted identifiers that have escapes
  bool failed_ = false;
  size_t error_at_ = 0;
  std::string error_;
  uint64_t steps_before_ = 0;
  uint64_t lexer_began_at_ = 0;
};

}  // namespace hindsight::wasm::text
