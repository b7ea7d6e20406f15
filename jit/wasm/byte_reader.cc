#include "jit/wasm/byte_reader.h"

#include <fmt/format.h>

#include <cstring>

namespace hindsight::wasm {

bool ByteReader::fail(uint32_t offset, std::string message, ErrorKind kind) {
  if (!failure_) failure_ = DecodeFailure{kind, std::move(message), offset};
  return false;
}

bool ByteReader::unsupported(uint32_t offset, std::string_view feature) {
  return fail(offset, fmt::format("the module uses {}, which is not supported", feature),
              ErrorKind::kUnsupported);
}

bool ByteReader::too_many(uint32_t offset, uint64_t count, const char* what, uint64_t limit) {
  return fail(offset, fmt::format("too many {}: {}, the implementation limit is {}", what, count, limit),
              ErrorKind::kUnsupported);
}

bool ByteReader::unexpected_end() {
  return fail(offset(), "unexpected end of section or function");
}

bool ByteReader::leb_slow(unsigned bits, bool is_signed, uint64_t& out) {
  const uint32_t start = offset();
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (pos_ == end_) return unexpected_end();
    const uint8_t byte = *pos_++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    const unsigned left = bits - shift;  // value bits that this byte may still carry
    if (left > 7) {
      if (byte & 0x80) continue;
      if (is_signed && (byte & 0x40)) value |= ~uint64_t{0} << (shift + 7);
      break;
    }
    // The last byte the width allows: the bits beyond it must be zero or copies of the sign.
    if (byte & 0x80) return fail(start, "integer representation too long");
    const uint8_t beyond = static_cast<uint8_t>(0x7f & (0x7f << (is_signed ? left - 1 : left)));
    const uint8_t rest = byte & beyond;
    if (rest != 0 && !(is_signed && rest == beyond)) return fail(start, "integer too large");
    if (is_signed && rest != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
    break;
  }
  out = value;
  return true;
}

bool ByteReader::f32(uint32_t& bits) {
  if (remaining() < sizeof(bits)) return unexpected_end();
  std::memcpy(&bits, pos_, sizeof(bits));
  pos_ += sizeof(bits);
  return true;
}

bool ByteReader::f64(uint64_t& bits) {
  if (remaining() < sizeof(bits)) return unexpected_end();
  std::memcpy(&bits, pos_, sizeof(bits));
  pos_ += sizeof(bits);
  return true;
}

bool ByteReader::name(std::string_view& out) {
  const uint32_t start = offset();
  uint32_t length = 0;
  if (!u32(length)) return false;
  if (length > remaining()) return fail(start, "unexpected end: length of a name out of bounds");
  out = {reinterpret_cast<const char*>(pos_), length};
  if (!is_utf8(out)) return fail(offset(), "malformed UTF-8 encoding");
  pos_ += length;
  return true;
}

bool ByteReader::count(uint32_t& out, uint32_t limit, const char* what, uint32_t bytes_per_item) {
  const uint32_t start = offset();
  if (!u32(out)) return false;
  if (out > remaining() / bytes_per_item)
    return fail(start, fmt::format("unexpected end: {} {} do not fit into the section", out, what));
  if (out > limit) return too_many(start, out, what, limit);
  return true;
}

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const auto* end = p + text.size();
  while (p != end) {
    const uint8_t lead = *p++;
    if (lead < 0x80) continue;
    // The second byte's range excludes overlong forms, surrogates and code points above U+10FFFF
    // (Unicode standard, table 3-7).
    unsigned tail = 0;
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
      tail = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      tail = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      tail = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (static_cast<size_t>(end - p) < tail) return false;
    if (*p < low || *p > high) return false;
    for (unsigned i = 1; i < tail; ++i)
      if ((p[i] & 0xc0) != 0x80) return false;
    p += tail;
  }
  return true;
}

}  // namespace hindsight::wasm
