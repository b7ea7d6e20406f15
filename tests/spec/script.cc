#include "tests/spec/script.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "jit/wasm/text/script.h"
#include "tests/spec/overridden.h"

namespace hindsight::spec {
namespace {

using Command = wasm::text::ScriptCommand;
using Kind = Command::Kind;
using wasm::text::ScriptAction;
using wasm::text::ScriptValue;

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

// What a reference of this kind is to an embedder.
ValueKind kind_of_reference(const std::string& heap) {
  if (heap == "extern" || heap == "noextern" || heap == "host") return ValueKind::kExternRef;
  return heap == "exn" || heap == "noexn" ? ValueKind::kExnRef : ValueKind::kFuncRef;
}

Value make_value(const ScriptValue& value) {
  if (value.kind == ScriptValue::Kind::kNull) return {kind_of_reference(value.reference), 0};
  if (value.kind == ScriptValue::Kind::kReference)
    return {kind_of_reference(value.reference), uint64_t{value.host.value_or(0)} + 1};
  if (value.type == wasm::ValType::kV128) {
    V128 vector;
    size_t at = 0;
    for (const ScriptValue::Lane& lane : value.lanes) {
      std::memcpy(&vector.bytes[at], &lane.bits, value.lane_bits / 8);
      at += value.lane_bits / 8;
    }
    return Value::v128(vector);
  }
  const uint64_t bits = value.lanes[0].bits;
  switch (value.type) {
    case wasm::ValType::kI32:
      return {ValueKind::kI32, bits};
    case wasm::ValType::kI64:
      return {ValueKind::kI64, bits};
    case wasm::ValType::kF32:
      return {ValueKind::kF32, bits};
    default:
      return {ValueKind::kF64, bits};
  }
}

bool lane_matches(uint64_t bits, const ScriptValue::Lane& wanted, unsigned width) {
  if (wanted.nan == ScriptValue::Nan::kNone) return bits == wanted.bits;
  const unsigned mantissa = width == 32 ? 23 : 52;
  const uint64_t exponent = width == 32 ? 0x7f80'0000 : 0x7ff0'0000'0000'0000;
  const uint64_t quiet = uint64_t{1} << (mantissa - 1);
  if ((bits & exponent) != exponent) return false;
  const uint64_t payload = bits & ((uint64_t{1} << mantissa) - 1);
  return wanted.nan == ScriptValue::Nan::kCanonical ? payload == quiet : (payload & quiet) != 0;
}

bool matches(const Value& value, const ScriptValue& wanted) {
  switch (wanted.kind) {
    case ScriptValue::Kind::kEither:
      return std::ranges::any_of(wanted.choices,
                                 [&](const ScriptValue& choice) { return matches(value, choice); });
    case ScriptValue::Kind::kNull:
      return value.bits == 0 &&
             (wanted.reference.empty() || value.kind == kind_of_reference(wanted.reference));
    case ScriptValue::Kind::kReference:
      if (value.kind != kind_of_reference(wanted.reference) || value.bits == 0) return false;
      return !wanted.host || value.bits == uint64_t{*wanted.host} + 1;
    case ScriptValue::Kind::kNumber:
      break;
  }
  if (value.kind != make_value(wanted).kind) return false;
  const V128 vector = value.as_v128();
  size_t at = 0;
  for (const ScriptValue::Lane& lane : wanted.lanes) {
    uint64_t bits = value.bits;
    if (value.kind == ValueKind::kV128) {
      bits = 0;
      std::memcpy(&bits, &vector.bytes[at], wanted.lane_bits / 8);
      at += wanted.lane_bits / 8;
    }
    if (!lane_matches(bits, lane, wanted.lane_bits)) return false;
  }
  return true;
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
  Script(Engine& engine, const std::filesystem::path& wast, Edition edition)
      : engine_(engine),
        name_(wast.filename().string()),
        text_(read_file(wast)),
        linker_(engine),
        edition_(edition) {
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

  Outcome run() {
    const auto script = wasm::text::read_script(text_, name_);
    if (!script) {
      fail(script.error().describe());
      return std::move(outcome_);
    }
    for (const Command& command : script->commands) {
      where_ = name_ + ":" + std::to_string(command.line);
      const size_t before = outcome_.failures.size() + outcome_.skipped.size();
      run_command(command);
      if (outcome_.failures.size() + outcome_.skipped.size() == before) outcome_.passed++;
    }
    return std::move(outcome_);
  }

 private:
  void fail(const std::string& where, const std::string& what) {
    outcome_.failures.push_back(where + ": " + what);
  }
  void fail(const std::string& what) { fail(where_, what); }
  void skip(const std::string& why) { outcome_.skipped.push_back(where_ + ": " + why); }

  Result<std::shared_ptr<const Module>> load(const wasm::text::ModuleSource& source) {
    HINDSIGHT_ASSIGN(const wasm::text::Assembly assembly, wasm::text::assemble(text_, source, where_));
    return engine_.load(std::as_bytes(std::span(assembly.bytes)), where_);
  }

  Result<std::shared_ptr<Instance>> instantiate(const wasm::text::ModuleSource& source) {
    HINDSIGHT_ASSIGN(const auto module, load(source));
    return linker_.instantiate(module);
  }

  // Null, and said, where there is none.
  std::shared_ptr<Instance> instance_of(const std::string& id) {
    const auto found = instances_.find(id);
    if (found == instances_.end() || found->second == nullptr) {
      if (refused_.contains(id))
        skip("of a module that is refused, or that imports from one");
      else
        fail("no such instance");
      return nullptr;
    }
    return found->second;
  }

  Result<std::vector<Value>> perform(Instance& instance, const ScriptAction& action) {
    if (action.get) {
      HINDSIGHT_ASSIGN(Value value, instance.global(action.name));
      return std::vector<Value>{value};
    }
    std::vector<Value> args;
    for (const ScriptValue& argument : action.arguments) args.push_back(make_value(argument));
    return instance.call(action.name, args);
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

  // True if a module was not made because of a feature that is not supported, or of one before it that was not.
  bool is_excused(const Error& error) {
    if (error.kind == ErrorKind::kUnsupported) {
      if (const char* reason = unsupported_because(error.message)) {
        skip(reason);
        return true;
      }
      return false;
    }
    if (error.kind != ErrorKind::kLink) return false;
    for (const std::string& module : refused_registrations_) {
      if (error.message.find("\"" + module + "\"") == std::string::npos &&
          error.message.find(module + ".") == std::string::npos &&
          error.describe().find(module) == std::string::npos)
        continue;
      skip("it imports from a module that is refused");
      return true;
    }
    return false;
  }

  void define(const std::string& id, const Result<std::shared_ptr<Instance>>& instance) {
    instances_[""] = instance ? *instance : nullptr;
    refused_.erase("");
    if (!id.empty()) instances_[id] = instances_[""];
    if (!id.empty()) refused_.erase(id);
    if (instance) return;
    if (!is_excused(instance.error())) return fail(instance.error().describe());
    refused_.insert("");
    refused_.insert(id);
  }

  // assert_trap and its kin, of an action or of instantiating a module.
  void expect_failure(const Command& command, ErrorKind kind, const std::string& text) {
    if (command.module) {
      const Status status = status_of(instantiate(*command.module));
      if (!status && is_excused(status.error())) return;
      return expect_error(status, kind, text);
    }
    const auto instance = instance_of(command.action->instance);
    if (instance != nullptr) expect_error(status_of(perform(*instance, *command.action)), kind, text);
  }

  void expect_refusal(const Command& command) {
    const auto module = load(*command.module);
    const char* overridden = edition_ != Edition::kThird ? overridden_because(command.text) : nullptr;
    if (module && overridden != nullptr) return skip("\"" + command.text + "\": " + overridden);
    if (module) return fail("was accepted, expected \"" + command.text + "\"");
    if (module.error().kind != ErrorKind::kBadModule && module.error().kind != ErrorKind::kUnsupported)
      fail("refused for another reason: " + module.error().describe());
  }

  void run_command(const Command& command) {
    switch (command.kind) {
      case Kind::kModule:
        if (!command.module->definition) return define(command.module->id, instantiate(*command.module));
        return define_module(command.module->id, load(*command.module));
      case Kind::kInstance: {
        const auto found = modules_.find(command.source);
        if (found == modules_.end()) return fail("no such module");
        return define(command.id, linker_.instantiate(found->second));
      }
      case Kind::kRegister: {
        if (refused_.contains(command.id)) refused_registrations_.insert(command.text);
        if (const auto instance = instance_of(command.id)) linker_.define_instance(command.text, instance);
        return;
      }
      case Kind::kAction:
        if (const auto instance = instance_of(command.action->instance)) {
          const auto result = perform(*instance, *command.action);
          if (!result) fail(result.error().describe());
        }
        return;
      case Kind::kAssertReturn:
        return expect_results(command);
      case Kind::kAssertTrap:
      case Kind::kAssertExhaustion:
        return expect_failure(command, ErrorKind::kTrap, command.text);
      case Kind::kAssertException:
        return expect_failure(command, ErrorKind::kTrap, "uncaught exception");
      case Kind::kAssertUnlinkable:
        return expect_failure(command, ErrorKind::kLink, command.text);
      case Kind::kAssertMalformed:
      case Kind::kAssertMalformedCustom:
      case Kind::kAssertInvalid:
      case Kind::kAssertInvalidCustom:
        return expect_refusal(command);
      case Kind::kThread:
      case Kind::kWait:
        return skip("threads of a script are not run");
    }
  }

  void define_module(const std::string& id, const Result<std::shared_ptr<const Module>>& module) {
    if (module) {
      modules_[id] = modules_[""] = *module;
    } else if (!is_excused(module.error())) {
      fail(module.error().describe());
    }
  }

  void expect_results(const Command& command) {
    const auto instance = instance_of(command.action->instance);
    if (instance == nullptr) return;
    const auto results = perform(*instance, *command.action);
    if (!results) return fail(results.error().describe());
    bool equal = results->size() == command.results.size();
    for (size_t i = 0; equal && i < command.results.size(); i++)
      equal = matches((*results)[i], command.results[i]);
    if (equal) return;
    const char* changed = edition_ == Edition::kDraft ? changed_because(command.action->name) : nullptr;
    if (changed != nullptr) return skip(command.action->name + ": " + changed);
    fail(command.action->name + " gave " + show(*results) + ", which is not what the script expects");
  }

  Engine& engine_;
  const std::string name_;
  const std::string text_;
  Linker linker_;
  const Edition edition_;
  Outcome outcome_;
  std::string where_;
  std::map<std::string, std::shared_ptr<Instance>> instances_;  // by id, the latest one by ""
  std::map<std::string, std::shared_ptr<const Module>> modules_;
  std::set<std::string> refused_;  // ids whose module is not supported
  std::set<std::string> refused_registrations_;
};

}  // namespace

Outcome run_script(Engine& engine, const std::filesystem::path& wast, Edition edition) {
  return Script(engine, wast, edition).run();
}

}  // namespace hindsight::spec
