// Numbers, texts and lists as bytes, and back from bytes that nobody vouches for. Little-endian, as the only
// machines that this runs on; nothing is aligned.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hindsight::jit {

class ImageWriter {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void number(Number value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  // A length of 4 bytes, then the contents.
  void block(std::span<const std::byte> contents) {
    number(static_cast<uint32_t>(contents.size()));
    bytes_.insert(bytes_.end(), contents.begin(), contents.end());
  }
  void text(std::string_view text) { block(std::as_bytes(std::span(text))); }
  template <typename List, typename Each>
  void list(const List& elements, Each each) {
    number(static_cast<uint32_t>(elements.size()));
    for (const auto& element : elements) each(element);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Once something was missing or wrong, everything reads as zero or empty, and one check at the end suffices.
class ImageReader {
 public:
  explicit ImageReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  requires std::is_arithmetic_v<Number> Number number() {
    Number value{};
    if (remaining() < sizeof value) {
      fail("ends too early");
    } else {
      std::memcpy(&value, bytes_.data() + at_, sizeof value);
      at_ += sizeof value;
    }
    return value;
  }
  // A view into the bytes.
  std::span<const std::byte> block() {
    const auto size = number<uint32_t>();
    if (size > remaining()) fail("ends too early");
    if (failed()) return {};
    const auto contents = bytes_.subspan(at_, size);
    at_ += size;
    return contents;
  }
  std::string text() {
    const auto contents = block();
    return std::string(reinterpret_cast<const char*>(contents.data()), contents.size());
  }
  // Calls each(index) for every element; `least_bytes`: of an element, so that a list is no longer than its
  // bytes.
  template <typename Each>
  void list(size_t least_bytes, Each each) {
    const auto count = number<uint32_t>();
    if (count > remaining() / least_bytes) fail("has a list that is longer than its bytes");
    for (uint32_t i = 0; i < count && !failed(); ++i) each(i);
  }
  void check(bool holds, const char* otherwise) {
    if (!holds) fail(otherwise);
  }
  void fail(const char* what) {
    if (defect_ != nullptr) return;
    defect_ = what;
    defect_at_ = at_;
    bytes_ = {};
    at_ = 0;
  }

  bool failed() const { return defect_ != nullptr; }
  const char* defect() const { return defect_; }  // null: none
  size_t defect_at() const { return defect_at_; }
  size_t remaining() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  const char* defect_ = nullptr;
  size_t defect_at_ = 0;
};

}  // namespace hindsight::jit
