// JSON that is put together to be written: objects keep their members' order. The JSON library has this too, but its
// values need memory to be destroyed, and end the process where there is none. An embedder may ask for a report just
// then.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hindsight::report {

class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json();  // null
  Json(std::initializer_list<Member> members) : kind_(Kind::kObject), parts_(members) {}
  Json(std::string_view text);
  Json(const char* text) : Json(std::string_view(text)) {}
  Json(const std::string& text) : Json(std::string_view(text)) {}
  Json(const std::vector<std::string>& texts);
  template <std::integral T>
  Json(T value) {
    if constexpr (std::is_same_v<T, bool>)
      text_ = value ? "true" : "false";
    else
      text_ = std::to_string(value);
  }
  Json(double value);  // null where it is no number
  static Json array();

  // Precondition: an array.
  void push_back(Json value);
  Json& back();
  // Precondition: an object. A new member.
  Json& operator[](const char* name);

  // Several lines. Bytes that are not UTF-8 are replaced.
  std::string text() const;

 private:
  enum class Kind { kScalar, kArray, kObject };
  void write(std::string& out, size_t indent) const;

  Kind kind_ = Kind::kScalar;
  std::string text_;           // of a scalar, as it is written
  std::vector<Member> parts_;  // elements have no names
};

}  // namespace hindsight::report
