#include "jit/wasm/text/lexer.h"

#include <fmt/format.h>

#include <array>

#include "jit/wasm/byte_reader.h"
#include "jit/wasm/text/literals.h"

namespace hindsight::wasm::text {

namespace {

enum CharClass : uint8_t { kIllegal, kNameChar, kOther, kBlank, kQuote, kParenthesis };

constexpr std::array<CharClass, 256> make_classes() {
  std::array<CharClass, 256> classes{};
  for (unsigned c = '!'; c <= '~'; ++c) classes[c] = kNameChar;
  for (unsigned char c : {',', ';', '[', ']', '{', '}'}) classes[c] = kOther;
  for (unsigned char c : {' ', '\t', '\n', '\r'}) classes[c] = kBlank;
  for (unsigned char c : {'(', ')'}) classes[c] = kParenthesis;
  classes[static_cast<unsigned char>('"')] = kQuote;
  return classes;
}

constexpr std::array<CharClass, 256> kClasses = make_classes();

CharClass class_of(char c) {
  return kClasses[static_cast<unsigned char>(c)];
}

bool is_known(std::string_view id) {
  return id == kCustomAnnotation || id == kNameAnnotation || id == kBranchHintAnnotation;
}

}  // namespace

bool Lexer::refuse(size_t at, std::string message) {
  if (error_.empty()) {
    error_ = std::move(message);
    error_at_ = at;
  }
  pos_ = end_;
  return false;
}

Token Lexer::fail(size_t at, std::string message) {
  refuse(at, std::move(message));
  return {TokenKind::kError, error_at_, {}};
}

bool Lexer::check_utf8(size_t begin, size_t end) {
  return is_utf8(source_.substr(begin, end - begin)) || refuse(begin, "malformed UTF-8 encoding");
}

bool Lexer::skip_line_comment() {
  const size_t begin = pos_;
  bool ascii = true;
  while (!at_end() && source_[pos_] != '\n' && source_[pos_] != '\r')
    ascii &= static_cast<unsigned char>(source_[pos_++]) < 0x80;
  return ascii || check_utf8(begin, pos_);
}

bool Lexer::skip_block_comment() {
  const size_t begin = pos_;
  pos_ += 2;
  bool ascii = true;
  for (size_t depth = 1; depth != 0;) {
    if (at_end()) return refuse(begin, "unclosed comment");
    if (at('(') && at(';', 1)) {
      ++depth;
      pos_ += 2;
    } else if (at(';') && at(')', 1)) {
      --depth;
      pos_ += 2;
    } else {
      ascii &= static_cast<unsigned char>(source_[pos_++]) < 0x80;
    }
  }
  return ascii || check_utf8(begin, pos_);
}

bool Lexer::skip_blanks() {
  for (;;) {
    while (!at_end() && class_of(source_[pos_]) == kBlank) ++pos_;
    if (at(';') && at(';', 1)) {
      if (!skip_line_comment()) return false;
    } else if (at('(') && at(';', 1)) {
      if (!skip_block_comment()) return false;
    } else {
      return true;
    }
  }
}

// After the backslash.
bool Lexer::skip_escape() {
  const size_t begin = pos_ - 1;
  const char c = at_end() ? '\0' : source_[pos_++];
  switch (c) {
    case 't':
    case 'n':
    case 'r':
    case '"':
    case '\'':
    case '\\':
      return true;
    case 'u': {
      const size_t close = at('{') ? source_.substr(0, end_).find('}', pos_) : std::string_view::npos;
      // No code point needs more digits than this; without a limit the search would be repeated for each escape.
      constexpr size_t kMostDigits = 64;
      uint64_t point = 0;
      if (close == std::string_view::npos || close - pos_ > kMostDigits ||
          parse_hex(source_.substr(pos_ + 1, close - pos_ - 1), point) != NumberStatus::kOk ||
          point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return refuse(begin, "malformed escape \\u: it takes a code point as \\u{hexadecimal digits}");
      pos_ = close + 1;
      return true;
    }
    default:
      if (hex_digit(c) < 0 || at_end() || hex_digit(source_[pos_]) < 0)
        return refuse(begin, "malformed escape in a string");
      ++pos_;
      return true;
  }
}

bool Lexer::skip_string() {
  const size_t begin = pos_++;
  bool ascii = true;
  for (;;) {
    if (at_end()) return refuse(begin, "unclosed string");
    const char c = source_[pos_++];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"') break;
    if (c == '\\') {
      if (!skip_escape()) return false;
    } else if (byte < 0x20 || byte == 0x7f) {
      return refuse(pos_ - 1, fmt::format("illegal character 0x{:02x} in a string", byte));
    } else {
      ascii &= byte < 0x80;
    }
  }
  return ascii || check_utf8(begin, pos_);
}

bool Lexer::skip_run(Run& run) {
  for (; !at_end(); ++pos_) {
    switch (class_of(source_[pos_])) {
      case kNameChar:
        run.words = true;
        break;
      case kOther:
        if (at(';') && at(';', 1)) return true;  // a comment ends a token like space does
        run.others = true;
        break;
      case kQuote:
        ++run.strings;
        if (!skip_string()) return false;
        --pos_;
        break;
      case kBlank:
      case kParenthesis:
        return true;
      case kIllegal:
        return refuse(pos_,
                      fmt::format("illegal character 0x{:02x}", static_cast<unsigned char>(source_[pos_])));
    }
  }
  return true;
}

bool Lexer::skip_annotation_body(size_t begin) {
  for (size_t depth = 1; depth != 0; ++tokens_) {
    if (!skip_blanks()) return false;
    if (at_end()) return refuse(begin, "unclosed annotation");
    if (at('(')) {
      ++depth;
      ++pos_;
    } else if (at(')')) {
      --depth;
      ++pos_;
    } else {
      Run run;
      if (!skip_run(run)) return false;
    }
  }
  return true;
}

bool Lexer::annotation(size_t begin, Token& out) {
  std::string id;
  if (at('"')) {
    const size_t quote = pos_;
    if (!skip_string()) return false;
    id = decode_string(source_.substr(quote, pos_ - quote));
    if (!is_utf8(id)) return refuse(quote, "malformed UTF-8 encoding");
  } else {
    const size_t first = pos_;
    while (!at_end() && class_of(source_[pos_]) == kNameChar) ++pos_;
    id = source_.substr(first, pos_ - first);
  }
  if (id.empty()) return refuse(begin, "empty annotation id");
  if (!is_known(id)) return skip_annotation_body(begin);
  out.kind = TokenKind::kAnnotation;
  out.begin = begin;
  out.text = id == kCustomAnnotation ? kCustomAnnotation
             : id == kNameAnnotation ? kNameAnnotation
                                     : kBranchHintAnnotation;
  return true;
}

Token Lexer::run_token(size_t begin, const Run& run) {
  const Token whole = token(TokenKind::kReserved, begin);
  if (run.others) return whole;
  if (run.strings == 0) {
    if (whole.text[0] != '$') return token(TokenKind::kWord, begin);
    if (whole.text.size() == 1) return fail(begin, "empty identifier");
    return token(TokenKind::kId, begin);
  }
  if (run.strings > 1) return whole;
  if (!run.words) return token(TokenKind::kString, begin);
  // $"..." and nothing before the dollar, between or after: the string's end is the token's.
  if (!whole.text.starts_with("$\"") || !whole.text.ends_with('"')) return whole;
  const std::string name = decode_string(whole.text.substr(1));
  if (name.empty()) return fail(begin, "empty identifier");
  if (!is_utf8(name)) return fail(begin, "malformed UTF-8 encoding of an identifier");
  return token(TokenKind::kId, begin);
}

Token Lexer::next() {
  for (;;) {
    if (!error_.empty() || !skip_blanks()) return {TokenKind::kError, error_at_, {}};
    const size_t begin = pos_;
    if (at_end()) return {TokenKind::kEnd, begin, {}};
    ++tokens_;
    if (at(')')) {
      ++pos_;
      return token(TokenKind::kClose, begin);
    }
    if (at('(')) {
      ++pos_;
      if (!at('@')) return token(TokenKind::kOpen, begin);
      ++pos_;
      Token known;
      if (!annotation(begin, known)) return {TokenKind::kError, error_at_, {}};
      if (known.kind == TokenKind::kAnnotation) return known;
      continue;
    }
    Run run;
    if (!skip_run(run)) return {TokenKind::kError, error_at_, {}};
    return run_token(begin, run);
  }
}

}  // namespace hindsight::wasm::text
