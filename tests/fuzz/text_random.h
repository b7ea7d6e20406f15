// What generators of module text draw with, and how they write it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

namespace hindsight::fuzz {

class TextRandom {
 protected:
  explicit TextRandom(uint32_t seed) : random_(seed) {}

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t of) { return below(of) == 0; }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }
  const char* pick(std::initializer_list<const char*> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }

  static std::string i32(int64_t value) {
    return "(i32.const " + std::to_string(static_cast<int32_t>(value)) + ")";
  }
  static std::string i64(int64_t value) { return "(i64.const " + std::to_string(value) + ")"; }
  static std::string get(const char* local) { return std::string("(local.get ") + local + ")"; }
  static std::string call(const std::string& operation, const std::string& a) {
    return "(" + operation + " " + a + ")";
  }
  static std::string call(const std::string& operation, const std::string& a, const std::string& b) {
    return "(" + operation + " " + a + " " + b + ")";
  }

  // A segment of random bytes.
  std::string data(uint32_t at, uint32_t bytes) {
    std::string text = "(data (i32.const " + std::to_string(at) + ") \"";
    for (uint32_t i = 0; i < bytes; ++i) text += byte(below(256));
    return text + "\")\n";
  }
  static std::string byte(uint32_t value) {
    static constexpr char kDigits[] = "0123456789abcdef";
    return {'\\', kDigits[value >> 4 & 15], kDigits[value & 15]};
  }

  std::mt19937 random_;
};

}  // namespace hindsight::fuzz
