// Test scripts in the official suites' form (.wast): modules, and what is asserted of them. Reading one makes values of its commands.
// Modules in it are assembled one by one (assembler.h) when somebody asks, since many are there to be refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jit/wasm/text/assembler.h"
#include "jit/wasm/types.h"

namespace hindsight::wasm::text {

// A constant, or what a result must be like.
struct ScriptValue {
  enum class Kind : uint8_t {
    kNumber,     // `type` of `lanes`
    kNull,       // a null reference
    kReference,  // a reference that is not null
    kEither,     // one of `choices`
  };
  enum class Nan : uint8_t { kNone, kCanonical, kArithmetic };
  struct Lane {
    uint64_t bits = 0;
    Nan nan = Nan::kNone;  // in place of bits: any NaN of this kind
  };

  Kind kind = Kind::kNumber;
  ValType type = ValType::kI32;
  unsigned lane_bits = 32;
  bool float_lanes = false;
  std::vector<Lane> lanes;  // of a scalar one
  std::string reference;    // kNull, kReference: "extern", "func", "host" ... as after "ref."; may be empty
  std::optional<uint32_t> host;  // kReference: the number that tells references of the host apart
  std::vector<ScriptValue> choices;
};

struct ScriptAction {
  bool get = false;      // a global; otherwise a call
  std::string instance;  // its id, without the dollar; empty: the latest one
  std::string name;      // of the export
  std::vector<ScriptValue> arguments;
};

struct ScriptCommand {
  enum class Kind : uint8_t {
    kModule,
    kInstance,  // (module instance $id $module)
    kRegister,
    kAction,
    kAssertReturn,
    kAssertTrap,  // of the action, or of instantiating the module
    kAssertExhaustion,
    kAssertException,
    kAssertUnlinkable,
    kAssertInvalid,
    kAssertMalformed,
    kAssertInvalidCustom,
    kAssertMalformedCustom,
    kThread,
    kWait,
  };
  Kind kind = Kind::kModule;
  uint64_t line = 0;
  std::optional<ModuleSource> module;
  std::optional<ScriptAction> action;
  std::vector<ScriptValue> results;
  std::string text;    // what an assertion expects the error to say; the name that kRegister gives
  std::string id;      // kInstance, kRegister, kThread, kWait
  std::string source;  // kInstance: the id of the module; kThread: of the instance that it shares
  std::vector<ScriptCommand> commands;  // kThread
};

struct Script {
  std::vector<ScriptCommand> commands;
};

// Linear in the text. Errors: kBadModule with line:column where something is no command. A script that begins with a field of
// a module is that one module.
Result<Script> read_script(std::string_view source, std::string_view name);

}  // namespace hindsight::wasm::text
