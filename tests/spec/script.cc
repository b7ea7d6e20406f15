#include "tests/spec/script.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/spec/overridden.h"

namespace hindsight::spec {
namespace {

using Json = nlohmann::json;

// What the scripts import under "spectest".
constexpr const char* kSpectest = R"((module
  (global (export "global_i32") i32 (i32.const 666))
  (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6))
  (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref)
  (memory (export "memory") 1 2)
  (memory (export "shared_memory") 1 2 shared)
  (func (export "print"))
  (func (export "print_i32") (param i32))
  (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32))
  (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32))
  (func (export "print_f64_f64") (param f64 f64))))";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

uint32_t lane_bytes(const std::string& lane_type) {
  if (lane_type == "i8") return 1;
  if (lane_type == "i16") return 2;
  return lane_type.ends_with("32") ? 4 : 8;
}

Value parse_value(const Json& json) {
  const std::string type = json.at("type");
  if (type == "v128") {
    V128 vector;
    const uint32_t bytes = lane_bytes(json.at("lane_type"));
    size_t at = 0;
    for (const Json& element : json.at("value")) {
      const std::string lane = element;
      const uint64_t bits = lane.starts_with("nan:") ? 0 : std::stoull(lane);
      std::memcpy(&vector.bytes[at], &bits, bytes);
      at += bytes;
    }
    return Value::v128(vector);
  }
  const std::string text = json.at("value");
  if (type == "externref") return {ValueKind::kExternRef, text == "null" ? 0 : std::stoull(text) + 1};
  if (type == "funcref") return {ValueKind::kFuncRef, 0};
  const uint64_t bits = std::stoull(text);
  if (type == "i32") return {ValueKind::kI32, bits};
  if (type == "i64") return {ValueKind::kI64, bits};
  if (type == "f32") return {ValueKind::kF32, bits};
  return {ValueKind::kF64, bits};
}

template <typename Bits>
bool is_nan(Bits bits, int mantissa, bool canonical) {
  const Bits exponent = static_cast<Bits>(~Bits{0} << mantissa) & static_cast<Bits>(~Bits{0} >> 1);
  const Bits quiet = Bits{1} << (mantissa - 1);
  if ((bits & exponent) != exponent) return false;
  const Bits payload = bits & ((Bits{1} << mantissa) - 1);
  return canonical ? payload == quiet : (payload & quiet) != 0;
}

bool lane_matches(uint64_t lane, uint32_t bytes, const std::string& wanted) {
  if (!wanted.starts_with("nan:")) return lane == std::stoull(wanted);
  const bool canonical = wanted == "nan:canonical";
  return bytes == 4 ? is_nan<uint32_t>(static_cast<uint32_t>(lane), 23, canonical)
                    : is_nan<uint64_t>(lane, 52, canonical);
}

bool matches(const Value& value, const Json& expected) {
  const std::string type = expected.at("type");
  if (type == "v128") {
    if (value.kind != ValueKind::kV128) return false;
    const V128 vector = value.as_v128();
    const uint32_t bytes = lane_bytes(expected.at("lane_type"));
    size_t at = 0;
    for (const Json& wanted : expected.at("value")) {
      uint64_t lane = 0;
      std::memcpy(&lane, &vector.bytes[at], bytes);
      if (!lane_matches(lane, bytes, wanted.get<std::string>())) return false;
      at += bytes;
    }
    return at == 16;
  }
  if (!expected.contains("value")) return value.bits != 0;  // some reference that is not null
  const std::string text = expected.at("value");
  if (text.starts_with("nan:")) {
    const bool canonical = text == "nan:canonical";
    return type == "f32" ? is_nan<uint32_t>(static_cast<uint32_t>(value.bits), 23, canonical)
                         : is_nan<uint64_t>(value.bits, 52, canonical);
  }
  const Value wanted = parse_value(expected);
  return value.kind == wanted.kind && value.bits == wanted.bits;
}

std::string show(const std::vector<Value>& values) {
  std::string text = "[";
  for (const Value& v : values)
    text += " " + std::to_string(static_cast<int>(v.kind)) + ":" + std::to_string(v.bits) +
            (v.high != 0 ? "+" + std::to_string(v.high) : "");
  return text + " ]";
}

class Script {
 public:
  Script(Engine& engine, const std::filesystem::path& json_file)
      : engine_(engine), folder_(json_file.parent_path()), linker_(engine) {
    const std::string text = kSpectest;
    auto module = engine_.load(std::as_bytes(std::span(text)), "spectest");
    if (!module) {
      fail("spectest", module.error().describe());
      return;
    }
    auto instance = linker_.instantiate(*module);
    if (!instance) {
      fail("spectest", instance.error().describe());
      return;
    }
    linker_.define_instance("spectest", *instance);
  }

  Outcome run(const Json& script) {
    const std::string source = script.at("source_filename");
    for (const Json& command : script.at("commands")) {
      const std::string type = command.at("type");
      where_ = std::filesystem::path(source).filename().string() + ":" +
               std::to_string(command.at("line").get<int>()) + ": " + type;
      const size_t before = outcome_.failures.size() + outcome_.skipped.size();
      run_command(type, command);
      if (outcome_.failures.size() + outcome_.skipped.size() == before) outcome_.passed++;
    }
    return std::move(outcome_);
  }

 private:
  void fail(const std::string& where, const std::string& what) {
    outcome_.failures.push_back(where + ": " + what);
  }
  void fail(const std::string& what) { fail(where_, what); }

  Result<std::shared_ptr<const Module>> load(const Json& command) {
    const std::string name = command.at("filename");
    const std::string bytes = read_file(folder_ / name);
    return engine_.load(std::as_bytes(std::span(bytes)), name);
  }

  Result<std::shared_ptr<Instance>> instantiate(const Json& command) {
    auto module = load(command);
    if (!module) return std::unexpected(module.error());
    return linker_.instantiate(*module);
  }

  std::shared_ptr<Instance> instance_of(const Json& json, const char* key) {
    if (!json.contains(key)) return last_;
    const auto it = named_.find(json.at(key).get<std::string>());
    return it == named_.end() ? nullptr : it->second;
  }

  Result<std::vector<Value>> perform(const Json& action) {
    const auto instance = instance_of(action, "module");
    if (instance == nullptr) return make_error(ErrorKind::kInternal, "no such instance");
    const std::string field = action.at("field");
    if (action.at("type") == "get") {
      auto value = instance->global(field);
      if (!value) return std::unexpected(value.error());
      return std::vector<Value>{*value};
    }
    std::vector<Value> args;
    for (const Json& arg : action.at("args")) args.push_back(parse_value(arg));
    return instance->call(field, args);
  }

  void expect_error(const Status& status, ErrorKind kind, const std::string& text) {
    if (status) return fail("succeeded, expected \"" + text + "\"");
    if (status.error().kind != kind) return fail(status.error().describe() + ", expected \"" + text + "\"");
    // The suite's words may go on where ours end ("uninitialized element 2"), and the other way round.
    const std::string& got = status.error().message;
    if (!got.starts_with(text) && !text.starts_with(got)) fail("\"" + got + "\", expected \"" + text + "\"");
  }

  template <typename T>
  static Status status_of(const Result<T>& result) {
    if (result) return {};
    return std::unexpected(result.error());
  }

  void run_command(const std::string& type, const Json& command) {
    if (type == "module") {
      auto instance = instantiate(command);
      last_ = instance ? *instance : nullptr;
      if (!instance) return fail(instance.error().describe());
      if (command.contains("name")) named_[command.at("name")] = *instance;
    } else if (type == "register") {
      const auto instance = instance_of(command, "name");
      if (instance == nullptr) return fail("no such instance");
      linker_.define_instance(command.at("as").get<std::string>(), instance);
    } else if (type == "action") {
      const auto result = perform(command.at("action"));
      if (!result) fail(result.error().describe());
    } else if (type == "assert_return") {
      expect_results(command);
    } else if (type == "assert_trap" || type == "assert_exhaustion") {
      const Status status = command.contains("action") ? status_of(perform(command.at("action")))
                                                       : status_of(instantiate(command));
      expect_error(status, ErrorKind::kTrap, command.at("text"));
    } else if (type == "assert_exception") {
      expect_error(status_of(perform(command.at("action"))), ErrorKind::kTrap, "uncaught exception");
    } else if (type == "assert_uninstantiable") {
      expect_error(status_of(instantiate(command)), ErrorKind::kTrap, command.at("text"));
    } else if (type == "assert_unlinkable") {
      expect_error(status_of(instantiate(command)), ErrorKind::kLink, command.at("text"));
    } else if (type == "assert_malformed" || type == "assert_invalid") {
      const auto module = load(command);
      const std::string text = command.at("text");
      const char* overridden = overridden_because(text);
      if (module && overridden != nullptr)
        outcome_.skipped.push_back(where_ + ": \"" + text + "\": " + overridden);
      else if (module)
        fail("was accepted, expected \"" + text + "\"");
      else if (module.error().kind != ErrorKind::kBadModule && module.error().kind != ErrorKind::kUnsupported)
        fail("refused for another reason: " + module.error().describe());
    } else {
      outcome_.skipped.push_back(where_ + ": a command that the runner does not know");
    }
  }

  void expect_results(const Json& command) {
    const auto results = perform(command.at("action"));
    if (!results) return fail(results.error().describe());
    const std::string function = command.at("action").at("field");
    if (command.contains("either")) {  // of relaxed operators, any of several results
      if (const char* reason = changed_because(function)) {
        outcome_.skipped.push_back(where_ + ": " + function + ": " + reason);
        return;
      }
      const Json& choices = command.at("either");
      const bool one = std::any_of(choices.begin(), choices.end(), [&](const Json& choice) {
        return results->size() == 1 && matches((*results)[0], choice);
      });
      if (!one) fail(function + " gave " + show(*results) + ", expected one of " + choices.dump());
      return;
    }
    const Json& expected = command.at("expected");
    bool equal = results->size() == expected.size();
    for (size_t i = 0; equal && i < expected.size(); i++) equal = matches((*results)[i], expected[i]);
    if (!equal) fail(function + " gave " + show(*results) + ", expected " + expected.dump());
  }

  Engine& engine_;
  const std::filesystem::path folder_;
  Linker linker_;
  Outcome outcome_;
  std::string where_;
  std::shared_ptr<Instance> last_;
  std::map<std::string, std::shared_ptr<Instance>> named_;
};

}  // namespace

Outcome run_script(Engine& engine, const std::filesystem::path& json_file) {
  const Json script = Json::parse(read_file(json_file), nullptr, false);
  if (script.is_discarded())
    return {.passed = 0, .failures = {json_file.string() + ": not JSON"}, .skipped = {}};
  return Script(engine, json_file).run(script);
}

}  // namespace hindsight::spec
