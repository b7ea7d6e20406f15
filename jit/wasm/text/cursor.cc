#include "jit/wasm/text/cursor.h"

#include <fmt/format.h>

#include "jit/wasm/byte_reader.h"
#include "jit/wasm/text/literals.h"

namespace hindsight::wasm::text {

namespace {

// What was found, as a message says it: a token's characters, but not all of a long one.
std::string describe(const Token& token) {
  constexpr size_t kMost = 40;
  switch (token.kind) {
    case TokenKind::kEnd:
    case TokenKind::kError:  // says itself what is wrong
      return "the end of the text";
    case TokenKind::kAnnotation:
      return fmt::format("the annotation (@{}", token.text);
    default:
      break;
  }
  std::string_view text = token.text;
  const bool cut = text.size() > kMost;
  if (cut) {
    text = text.substr(0, kMost);
    while (!is_utf8(text)) text.remove_suffix(1);
  }
  return token.kind == TokenKind::kString ? fmt::format("the string {}{}", text, cut ? "..." : "")
                                          : fmt::format("'{}{}'", text, cut ? "..." : "");
}

}  // namespace

Position position_of(std::string_view source, size_t offset) {
  Position position;
  for (size_t i = 0; i < offset && i < source.size(); ++i) {
    const bool crlf = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (source[i] == '\n' || (source[i] == '\r' && !crlf)) {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(source[i]) & 0xc0) != 0x80) {
      ++position.column;
    }
  }
  return position;
}

Cursor::Cursor(std::string_view source, size_t begin, size_t end)
    : source_(source), end_(end), lexer_(source, begin, end), lexer_began_at_(begin) {}

const Token& Cursor::ahead(unsigned n) {
  while (count_ <= n) {
    tokens_[(first_ + count_) % kLookahead] = lexer_.next();
    ++count_;
  }
  return tokens_[(first_ + n) % kLookahead];
}

Token Cursor::take() {
  const Token token = ahead(0);
  taken_end_ = token.begin + token.text.size();
  first_ = (first_ + 1) % kLookahead;
  --count_;
  return token;
}

void Cursor::seek(size_t begin) {
  steps_before_ = steps();
  lexer_began_at_ = begin;
  lexer_ = Lexer(source_, begin, end_);
  first_ = count_ = 0;
}

bool Cursor::at_open(std::string_view word) {
  return at(TokenKind::kOpen) && peek_second().kind == TokenKind::kWord && peek_second().text == word;
}

bool Cursor::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  take();
  return true;
}

bool Cursor::accept_open(std::string_view word) {
  if (!at_open(word)) return false;
  take();
  take();
  return true;
}

bool Cursor::open(std::string_view word) {
  return accept_open(word) || fail_expected(fmt::format("'({}'", word));
}

bool Cursor::close() {
  if (!at(TokenKind::kClose)) return fail_expected("')'");
  take();
  return true;
}

bool Cursor::string(std::string& out) {
  if (!at(TokenKind::kString)) return fail_expected("a string");
  out = decode_string(take().text);
  return true;
}

bool Cursor::name(std::string& out) {
  const size_t begin = peek().begin;
  return string(out) && (is_utf8(out) || fail(begin, "malformed UTF-8 encoding of a name"));
}

bool Cursor::unsigned_number(uint64_t most, std::string_view what, uint64_t& out) {
  const NumberStatus status =
      at(TokenKind::kWord) ? parse_unsigned(peek().text, most, out) : NumberStatus::kNotANumber;
  if (status == NumberStatus::kNotANumber) return fail_expected(what);
  if (status == NumberStatus::kOutOfRange)
    return fail(peek().begin, fmt::format("constant out of range: {} is at most {}, found {}", what, most,
                                          describe(peek())));
  take();
  return true;
}

std::string_view Cursor::optional_id() {
  return at(TokenKind::kId) ? id_name(take()) : std::string_view();
}

std::string_view Cursor::id_name(const Token& token) {
  if (!token.text.starts_with("$\"")) return token.text.substr(1);
  if (token.text.find('\\') == std::string_view::npos) return token.text.substr(2, token.text.size() - 3);
  return decoded_.emplace_back(decode_string(token.text.substr(1)));
}

bool Cursor::skip_list() {
  for (uint64_t depth = 1; depth != 0;) {
    switch (peek().kind) {
      case TokenKind::kOpen:
      case TokenKind::kAnnotation:
        ++depth;
        break;
      case TokenKind::kClose:
        --depth;
        break;
      case TokenKind::kEnd:
      case TokenKind::kError:
        return fail_expected("')'");
      default:
        break;
    }
    take();
  }
  return true;
}

bool Cursor::fail_expected(std::string_view expected) {
  const Token& found = peek();
  return fail(found.begin, fmt::format("expected {}, found {}", expected, describe(found)));
}

bool Cursor::fail(size_t at, std::string message) {
  if (failed_) return false;
  failed_ = true;
  error_at_ = at;
  error_ = std::move(message);
  // What the lexer refuses comes first: the message about what follows would only repeat it.
  if (!lexer_.error().empty() && peek().kind == TokenKind::kError) {
    error_at_ = peek().begin;
    error_ = lexer_.error();
  }
  return false;
}

Error Cursor::error(std::string_view name) const {
  const Position position = position_of(source_, error_at_);
  return make_error(ErrorKind::kBadModule, fmt::format("{}:{}: {}", position.line, position.column, error_),
                    std::string(name))
      .error();
}

}  // namespace hindsight::wasm::text
