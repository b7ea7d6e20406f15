// Bytes of the binary format in the making.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hindsight::wasm::text {

class Encoder {
 public:
  void u8(unsigned byte) { bytes_.push_back(static_cast<uint8_t>(byte)); }
  void unsigned_leb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8((value & 0x7f) | 0x80);
    u8(static_cast<unsigned>(value));
  }
  void signed_leb(int64_t value) {
    for (;; value >>= 7) {
      const unsigned low = value & 0x7f;
      if ((value >> 6) == 0 || (value >> 6) == -1) return u8(low);
      u8(low | 0x80);
    }
  }
  // The lowest `count` bytes, the least significant first.
  void little_endian(uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) u8((value >> (8 * i)) & 0xff);
  }
  void raw(std::span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void raw(std::string_view bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // A length and that many bytes.
  void counted(std::string_view bytes) {
    unsigned_leb(bytes.size());
    raw(bytes);
  }
  void counted(const Encoder& contents) {
    unsigned_leb(contents.size());
    raw(contents.bytes());
  }

  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }
  void cut(size_t size) { bytes_.resize(size); }
  std::span<const uint8_t> bytes() const { return bytes_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace hindsight::wasm::text
