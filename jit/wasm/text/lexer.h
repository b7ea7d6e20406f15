// Tokens of the WebAssembly text format (specification 3.0, "Lexical Format"), one after the other. White space,
// comments and annotations that nobody here knows are passed over. Each byte is looked at once, in a loop, so that
// neither nesting nor length costs more than itself. Everything that the lexical grammar forbids is an error here
// already. That is control characters, malformed UTF-8, bad escapes, things that are not closed, and tokens without
// space between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hindsight::wasm::text {

enum class TokenKind : uint8_t {
  kEnd,
  kOpen,        // (
  kClose,       // )
  kWord,        // keywords and numbers: whether it is one, the reader decides
  kId,          // $name or $"name"
  kString,      // with its quotes; escapes are well-formed
  kAnnotation,  // "(@id" of one of kKnownAnnotations, whose contents follow as tokens up to a kClose
  kReserved,    // characters that stand together and are no token
  kError,       // see Lexer::error(); no token follows
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;  // of its first character in the source
  std::string_view text;
};

inline constexpr std::string_view kCustomAnnotation = "custom";
inline constexpr std::string_view kNameAnnotation = "name";
inline constexpr std::string_view kBranchHintAnnotation = "metadata.code.branch_hint";

class Lexer {
 public:
  // Reads source[begin, end). `source` must outlive the lexer and its tokens.
  Lexer(std::string_view source, size_t begin, size_t end) : source_(source), pos_(begin), end_(end) {}

  // The next token; after a kEnd or kError the same again. kAnnotation: `text` is the annotation's id.
  Token next();
  const std::string& error() const { return error_; }
  // Bytes looked at and tokens made so far: the deterministic measure of the work.
  uint64_t steps() const { return pos_ + tokens_; }

 private:
  // What stands together without space: a token, or a kReserved.
  struct Run {
    bool words = false;   // has characters of names
    bool others = false;  // has one of , ; [ ] { }
    uint32_t strings = 0;
  };

  bool at_end() const { return pos_ >= end_; }
  bool at(char c, size_t ahead = 0) const { return pos_ + ahead < end_ && source_[pos_ + ahead] == c; }
  Token fail(size_t at, std::string message);
  Token token(TokenKind kind, size_t begin) const {
    return {kind, begin, source_.substr(begin, pos_ - begin)};
  }

  // False: an error was recorded.
  bool skip_blanks();
  bool skip_line_comment();
  bool skip_block_comment();
  bool skip_string();
  bool skip_escape();
  bool skip_run(Run& run);
  bool skip_annotation_body(size_t begin);
  bool check_utf8(size_t begin, size_t end);
  bool refuse(size_t at, std::string message);

  // After "(@": true if the annotation is known (then `out` is its token) or could be skipped.
  bool annotation(size_t begin, Token& out);
  Token run_token(size_t begin, const Run& run);

  std::string_view source_;
  size_t pos_;
  size_t end_;
  uint64_t tokens_ = 0;
  std::string error_;
  size_t error_at_ = 0;
};

}  // namespace hindsight::wasm::text
