// Two archives over JSON, for the descriptions in describe.h. One writes what is described. The other reads it into what
// is described. It keeps the place and the words of the first defect, so that one check at the end suffices.
//
// Private to the room.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "feedback/profile/describe.h"

namespace hindsight::feedback {

class JsonWriter {
 public:
  using Json = nlohmann::json;
  static constexpr bool kReads = false;
  explicit JsonWriter(Json& object) : object_(object) { object_ = Json::object(); }

  bool has(const char*, bool present) { return present; }
  void number(const char* name, double value) { object_[name] = value; }
  void amount(const char* name, double value) { object_[name] = value; }
  void count(const char* name, std::integral auto value, uint64_t = 0) { object_[name] = value; }
  template <typename Id>
  void id(const char* name, Id value) {
    object_[name] = value.value;
  }
  // Or -1: none.
  void index(const char* name, int32_t value) { object_[name] = value; }
  void flag(const char* name, bool value) { object_[name] = value; }
  void text(const char* name, const std::string& value) { object_[name] = value; }
  template <typename Enum>
  void word(const char* name, Enum value, Enum) {
    object_[name] = to_string(value);
  }
  template <typename Part>
  void part(const char* name, Part& part) {
    JsonWriter writer(object_[name]);
    describe(writer, part);
  }
  template <typename Element>
  void list(const char* name, std::vector<Element>& elements, size_t = 0) {
    Json& all = object_[name] = Json::array();
    for (Element& element : elements) {
      Json& json = all.emplace_back();
      if constexpr (requires { element.value; } && sizeof(Element) == sizeof(uint32_t)) {
        json = element.value;
      } else if constexpr (std::is_integral_v<Element> || std::is_same_v<Element, std::string>) {
        json = element;
      } else {
        JsonWriter writer(json);
        describe(writer, element);
      }
    }
  }
  // In place of an object: the values by their order alone.
  void row(const char*, auto&... values) {
    object_ = Json::array();
    (object_.push_back(plain(values)), ...);
  }
  void require(bool, const char*) {}
  void require(const char*, bool, const char*) {}

 private:
  template <typename Value>
  static auto plain(const Value& value) {
    if constexpr (requires { value.value; })
      return value.value;
    else
      return value;
  }
  Json& object_;
};

class JsonReader {
 public:
  using Json = nlohmann::json;
  static constexpr bool kReads = true;
  static constexpr size_t kMaxListLength = 1'000'000;

  // `defect` and `json` outlive it.
  JsonReader(const Json& json, const char* name, std::string& defect)
      : json_(json), name_(name), defect_(defect) {}

  bool failed() const { return !defect_.empty(); }
  bool has(const char* name, bool) const { return json_.is_object() && json_.contains(name); }
  void number(const char* name, double& value);
  void amount(const char* name, double& value);
  template <std::unsigned_integral Number>
  void count(const char* name, Number& value, uint64_t most = std::numeric_limits<Number>::max()) {
    value = static_cast<Number>(integer(name, most));
  }
  void index(const char* name, int32_t& value);
  template <typename Id>
  void id(const char* name, Id& value) {
    count(name, value.value);
  }
  void flag(const char* name, bool& value);
  void text(const char* name, std::string& value);
  template <typename Enum>
  void word(const char* name, Enum& value, Enum last) {
    std::string word;
    text(name, word);
    for (size_t i = 0; i <= static_cast<size_t>(last); ++i) {
      value = static_cast<Enum>(i);
      if (word == std::string_view(to_string(value))) return;
    }
    value = Enum{};
    fail(name, fmt::format("'{}' is no word that is known there", word));
  }
  template <typename Part>
  void part(const char* name, Part& part) {
    const Json* const json = field(name);
    if (json == nullptr) return;
    JsonReader reader(*json, name, *this);
    describe(reader, part);
  }
  template <typename Element>
  void list(const char* name, std::vector<Element>& elements, size_t most = kMaxListLength) {
    elements.clear();
    const Json* const json = list_field(name, most);
    if (json == nullptr) return;
    for (size_t i = 0; i < json->size() && !failed(); ++i) {
      JsonReader reader((*json)[i], name, *this, i);
      Element& element = elements.emplace_back();
      if constexpr (requires { element.value; } && sizeof(Element) == sizeof(uint32_t)) {
        reader.plain(element.value, "is not a 32-bit integer");
      } else if constexpr (std::is_integral_v<Element>) {
        reader.plain(element, "is not a 32-bit integer");
      } else if constexpr (std::is_same_v<Element, std::string>) {
        reader.plain(element, "is not a string");
      } else {
        describe(reader, element);
      }
    }
  }
  void row(const char* what, auto&... values) {
    if (!json_.is_array() || json_.size() != sizeof...(values)) return fail(what);
    size_t i = 0;
    (JsonReader(json_[i++], nullptr, *this).plain(values, what), ...);
  }
  // The whole of it, or one field: `what` is wrong unless it holds.
  void require(bool holds, const char* what) {
    if (!holds) fail(what);
  }
  void require(const char* name, bool holds, const char* what) {
    if (!holds) fail(name, what);
  }

  void fail(const std::string& what);
  void fail(const char* name, const std::string& what);
  const Json* field(const char* name);

 private:
  static constexpr size_t kNoIndex = ~size_t{0};
  JsonReader(const Json& json, const char* name, const JsonReader& parent, size_t index = kNoIndex)
      : json_(json), name_(name), index_(index), parent_(&parent), defect_(parent.defect_) {}
  std::string place() const;
  uint64_t integer(const char* name, uint64_t most);
  const Json* list_field(const char* name, size_t most);
  void plain(bool& value, const char* what);
  void plain(double& value, const char* what);  // of at least zero
  void plain(uint32_t& value, const char* what);
  void plain(uint64_t& value, const char* what);
  void plain(std::string& value, const char* what);
  template <typename Tag, typename Int>
  void plain(Strong<Tag, Int>& value, const char* what) {
    plain(value.value, what);
  }

  const Json& json_;
  const char* name_;  // null: an element of a row, which is named as a whole
  size_t index_ = kNoIndex;
  const JsonReader* parent_ = nullptr;
  std::string& defect_;
};

}  // namespace hindsight::feedback
