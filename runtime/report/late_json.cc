#include "runtime/report/late_json.h"

namespace hindsight::report {

nlohmann::ordered_json late_json(const LateReport& place) {
  nlohmann::ordered_json json{{"function", place.function},
                              {"wasm_offset", place.wasm_offset},
                              {"in_loop", place.in_loop},
                              {"seconds", place.seconds}};
  for (const LatePart& part : kLateParts) json[part.name] = place.*part.seconds;
  if (!place.why.empty()) json["why"] = place.why;
  return json;
}

bool read_late_json(const nlohmann::json& json, LateReport& place) {
  const auto number = [&](const char* name) { return json.contains(name) && json[name].is_number(); };
  if (!json.is_object() || !json.contains("function") || !json["function"].is_string() ||
      !number("wasm_offset") || !json.contains("in_loop") || !json["in_loop"].is_boolean() ||
      !number("seconds"))
    return false;
  place.function = json["function"];
  place.wasm_offset = json["wasm_offset"];
  place.in_loop = json["in_loop"];
  place.seconds = json["seconds"];
  for (const LatePart& part : kLateParts) {
    if (!number(part.name)) return false;
    place.*part.seconds = json[part.name];
  }
  if (json.contains("why") && json["why"].is_string()) place.why = json["why"];
  return true;
}

}  // namespace hindsight::report
