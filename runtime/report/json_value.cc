#include "runtime/report/json_value.h"

#include <nlohmann/json.hpp>

namespace hindsight::report {
namespace {

// The library's values are harmless as long as they have no parts.
std::string written(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr size_t kIndent = 2;

}  // namespace

Json::Json() : text_("null") {}
Json::Json(std::string_view text) : text_(written(text)) {}
Json::Json(double value) : text_(nlohmann::json(value).dump()) {}
Json::Json(const std::vector<std::string>& texts) : kind_(Kind::kArray) {
  for (const std::string& text : texts) push_back(text);
}

Json Json::array() {
  Json made;
  made.kind_ = Kind::kArray;
  return made;
}

void Json::push_back(Json value) {
  parts_.emplace_back(std::string(), std::move(value));
}

Json& Json::back() {
  return parts_.back().second;
}

Json& Json::operator[](const char* name) {
  for (Member& member : parts_)
    if (member.first == name) return member.second;
  kind_ = Kind::kObject;
  return parts_.emplace_back(name, Json()).second;
}

std::string Json::text() const {
  std::string out;
  write(out, 0);
  return out;
}

void Json::write(std::string& out, size_t indent) const {
  if (kind_ == Kind::kScalar) {
    out += text_;
    return;
  }
  const bool object = kind_ == Kind::kObject;
  out += object ? '{' : '[';
  const char* separator = "\n";
  for (const auto& [name, value] : parts_) {
    out += separator;
    out.append(indent + kIndent, ' ');
    if (object) out += written(name) + ": ";
    value.write(out, indent + kIndent);
    separator = ",\n";
  }
  if (!parts_.empty()) {
    out += '\n';
    out.append(indent, ' ');
  }
  out += object ? '}' : ']';
}

}  // namespace hindsight::report
