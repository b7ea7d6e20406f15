#include "feedback/profile/json_archive.h"

#include <cmath>

namespace hindsight::feedback {
namespace {

constexpr double kMostNumber = 1e18;

}  // namespace

std::string JsonReader::place() const {
  if (name_ == nullptr) return parent_->place();
  std::string place = parent_ != nullptr ? parent_->place() + "." : std::string();
  place += name_;
  if (index_ != kNoIndex) place += fmt::format("[{}]", index_);
  return place;
}

void JsonReader::fail(const std::string& what) {
  if (defect_.empty()) defect_ = place() + ": " + what;
}

void JsonReader::fail(const char* name, const std::string& what) {
  if (defect_.empty()) defect_ = place() + "." + name + ": " + what;
}

const JsonReader::Json* JsonReader::field(const char* name) {
  if (!json_.is_object()) {
    fail("is not an object");
    return nullptr;
  }
  const auto found = json_.find(name);
  if (found != json_.end()) return &*found;
  fail(fmt::format("has no field '{}'", name));
  return nullptr;
}

void JsonReader::number(const char* name, double& value) {
  value = 0;
  const Json* const json = field(name);
  if (json == nullptr) return;
  if (!json->is_number()) return fail(name, "is not a number");
  const double number = json->get<double>();
  if (!std::isfinite(number) || std::abs(number) > kMostNumber) return fail(name, "is out of range");
  value = number;
}

void JsonReader::amount(const char* name, double& value) {
  number(name, value);
  if (value >= 0) return;
  value = 0;
  fail(name, "is negative");
}

uint64_t JsonReader::integer(const char* name, uint64_t most) {
  const Json* const json = field(name);
  if (json == nullptr) return 0;
  if (json->is_number_unsigned() && json->get<uint64_t>() <= most) return json->get<uint64_t>();
  fail(name, fmt::format("is not an integer of at most {}", most));
  return 0;
}

void JsonReader::index(const char* name, int32_t& value) {
  value = -1;
  const Json* const json = field(name);
  if (json == nullptr) return;
  const int64_t number = json->is_number_integer() ? json->get<int64_t>() : -2;
  if (number < -1 || number > std::numeric_limits<int32_t>::max()) return fail(name, "is not an index");
  value = static_cast<int32_t>(number);
}

void JsonReader::flag(const char* name, bool& value) {
  value = false;
  const Json* const json = field(name);
  if (json == nullptr) return;
  if (!json->is_boolean()) return fail(name, "is not true or false");
  value = json->get<bool>();
}

void JsonReader::text(const char* name, std::string& value) {
  value.clear();
  const Json* const json = field(name);
  if (json == nullptr) return;
  if (!json->is_string()) return fail(name, "is not a string");
  value = json->get<std::string>();
}

const JsonReader::Json* JsonReader::list_field(const char* name, size_t most) {
  const Json* const json = field(name);
  if (json == nullptr) return nullptr;
  if (json->is_array() && json->size() <= most) return json;
  fail(name, "is not a list of acceptable length");
  return nullptr;
}

void JsonReader::plain(bool& value, const char* what) {
  if (!json_.is_boolean()) return fail(what);
  value = json_.get<bool>();
}

void JsonReader::plain(double& value, const char* what) {
  if (!json_.is_number()) return fail(what);
  const double number = json_.get<double>();
  if (!(number >= 0 && number <= kMostNumber)) return fail(what);
  value = number;
}

void JsonReader::plain(uint32_t& value, const char* what) {
  if (!json_.is_number_unsigned() || json_.get<uint64_t>() > ~uint32_t{0}) return fail(what);
  value = json_.get<uint32_t>();
}

void JsonReader::plain(uint64_t& value, const char* what) {
  if (!json_.is_number_unsigned()) return fail(what);
  value = json_.get<uint64_t>();
}

void JsonReader::plain(std::string& value, const char* what) {
  if (!json_.is_string()) return fail(what);
  value = json_.get<std::string>();
}

}  // namespace hindsight::feedback
