// ByteReader: a bounds-checked cursor over the bytes of a module that is not trusted yet.
//
// Every read returns false on malformed input and leaves the first failure (kind, message, offset) in
// failure(); callers pass the false up. A Result per LEB128 byte would cost more than the decoding itself.
// The messages keep the wording of the official test suite where it has one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace hindsight::wasm {

struct DecodeFailure {
  ErrorKind kind = ErrorKind::kBadModule;
  std::string message;
  uint32_t offset = 0;
};

class ByteReader {
 public:
  // The bytes [begin, end); offsets count from `base`. The bytes must outlive the reader.
  ByteReader(const uint8_t* base, const uint8_t* begin, const uint8_t* end)
      : base_(base), pos_(begin), end_(end) {}

  bool at_end() const { return pos_ == end_; }
  uint32_t remaining() const { return static_cast<uint32_t>(end_ - pos_); }
  uint32_t offset() const { return static_cast<uint32_t>(pos_ - base_); }
  uint32_t end_offset() const { return static_cast<uint32_t>(end_ - base_); }
  // Narrows or widens the readable range. `offset` counts from the base and is at least offset().
  void set_end(uint32_t offset) { end_ = base_ + offset; }
  // Precondition: bytes <= remaining().
  void skip(uint32_t bytes) { pos_ += bytes; }

  [[nodiscard]] bool u8(uint8_t& out) {
    if (pos_ == end_) [[unlikely]]
      return unexpected_end();
    out = *pos_++;
    return true;
  }
  // Precondition: !at_end().
  uint8_t peek() const { return *pos_; }
  // The next byte of remaining() ones.
  const uint8_t* position() const { return pos_; }

  [[nodiscard]] bool u32(uint32_t& out) {
    if (pos_ != end_ && *pos_ < 0x80) [[likely]] {
      out = *pos_++;
      return true;
    }
    uint64_t value = 0;
    if (!leb_slow(32, false, value)) return false;
    out = static_cast<uint32_t>(value);
    return true;
  }
  [[nodiscard]] bool u64(uint64_t& out) {
    if (pos_ != end_ && *pos_ < 0x80) [[likely]] {
      out = *pos_++;
      return true;
    }
    return leb_slow(64, false, out);
  }
  [[nodiscard]] bool s32(int32_t& out) {
    int64_t value = 0;
    if (!signed_leb(32, value)) return false;
    out = static_cast<int32_t>(value);
    return true;
  }
  [[nodiscard]] bool s33(int64_t& out) { return signed_leb(33, out); }
  [[nodiscard]] bool s64(int64_t& out) { return signed_leb(64, out); }
  [[nodiscard]] bool f32(uint32_t& bits);
  [[nodiscard]] bool f64(uint64_t& bits);

  // A length-prefixed UTF-8 name; the view points into the bytes.
  [[nodiscard]] bool name(std::string_view& out);
  // A vector length. Fails where even `bytes_per_item` (at least 1) bytes an item would not fit into the rest
  // of the range, or where `limit` is exceeded. `what` is a plural noun for messages.
  [[nodiscard]] bool count(uint32_t& out, uint32_t limit, const char* what, uint32_t bytes_per_item = 1);

  // Records a failure, unless there is one already, and returns false.
  bool fail(uint32_t offset, std::string message, ErrorKind kind = ErrorKind::kBadModule);
  // A feature of a later version of the language.
  bool unsupported(uint32_t offset, std::string_view feature);
  // A bound of limits.h.
  bool too_many(uint32_t offset, uint64_t count, const char* what, uint64_t limit);
  const std::optional<DecodeFailure>& failure() const { return failure_; }

 private:
  bool signed_leb(unsigned bits, int64_t& out) {
    if (pos_ != end_ && *pos_ < 0x80) [[likely]] {
      out = static_cast<int64_t>(static_cast<uint64_t>(*pos_++) << 57) >> 57;
      return true;
    }
    uint64_t value = 0;
    if (!leb_slow(bits, true, value)) return false;
    out = static_cast<int64_t>(value);
    return true;
  }
  bool leb_slow(unsigned bits, bool is_signed, uint64_t& out);
  bool unexpected_end();

  const uint8_t* base_;
  const uint8_t* pos_;
  const uint8_t* end_;
  std::optional<DecodeFailure> failure_;
};

// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

}  // namespace hindsight::wasm
