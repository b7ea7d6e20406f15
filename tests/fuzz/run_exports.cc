// Calls every exported function of modules with arguments that depend on nothing but its place, and prints what came of
// it, one line a call: for tests/fuzz/fuzz.mjs, which compares the lines of several engines. run_exports.mjs says the
// same in a JavaScript engine.
//
//   run_exports MODE FILE...     MODE: baseline|optimized|auto, with "-explicit" behind it for explicit bounds checks, "-hints" for
//                                code made with hints that are drawn by lot, "-loops" for
//                                functions that enter optimized code at loops only, and "@12-40" for functions of other indices to stay
//                                in baseline code
//
// A module's lines stand between "module FILE" and "end". Behind a trap for memory or the stack nothing more is called:
// what a loop stored before such a trap may differ, and so may the depth of stacks.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "runtime/engine/hindsight.h"

namespace {

using hindsight::FunctionType;
using hindsight::Value;
using hindsight::ValueKind;

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  uint32_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }

 private:
  uint32_t state_;
};

constexpr std::array<int64_t, 8> kIntegers = {0, 1, -1, 2, INT32_MAX, INT32_MIN, 255, 1000};
constexpr std::array<double, 8> kNumbers = {0, 1, -1, 0.5, -1e10, 3.25e15, 1e-30, 100};

Value argument(ValueKind kind, Random& random) {
  const uint32_t which = random.next() % 8;
  switch (kind) {
    case ValueKind::kI32:
      return Value::i32(static_cast<int32_t>(kIntegers[which]));
    case ValueKind::kI64:
      return Value::i64(kIntegers[which] * 3);
    case ValueKind::kF32:
      return Value::f32(static_cast<float>(kNumbers[which]));
    case ValueKind::kF64:
      return Value::f64(kNumbers[which]);
    default:
      return {.kind = kind};
  }
}

std::string text_of(const Value& value) {
  char text[64];
  switch (value.kind) {
    case ValueKind::kI32:
      std::snprintf(text, sizeof text, "i32:%x", static_cast<uint32_t>(value.bits));
      break;
    case ValueKind::kI64:
      std::snprintf(text, sizeof text, "i64:%llx", static_cast<unsigned long long>(value.bits));
      break;
    case ValueKind::kF32:
      if (std::isnan(value.as_f32())) return "f32:nan";
      std::snprintf(text, sizeof text, "f32:%x", static_cast<uint32_t>(value.bits));
      break;
    case ValueKind::kF64:
      if (std::isnan(value.as_f64())) return "f64:nan";
      std::snprintf(text, sizeof text, "f64:%llx", static_cast<unsigned long long>(value.bits));
      break;
    default:
      return "ref";
  }
  return text;
}

std::string trap_class(const std::string& name) {
  static const std::map<std::string, std::string> kClasses = {
      {"unreachable", "unreachable"},
      {"integer divide by zero", "zero"},
      {"integer overflow", "overflow"},
      {"invalid conversion to integer", "overflow"},
      {"out of bounds memory access", "memory"},
      {"undefined element", "table"},
      {"out of bounds table access", "table"},
      {"uninitialized element", "callee"},
      {"indirect call type mismatch", "callee"},
      {"call stack exhausted", "stack"},
  };
  const auto found = kClasses.find(name);
  return found == kClasses.end() ? name : found->second;
}

bool callable(const FunctionType& type) {
  const auto plain = [](ValueKind kind) { return kind != ValueKind::kV128; };
  for (const ValueKind kind : type.params)
    if (!plain(kind)) return false;
  for (const ValueKind kind : type.results)
    if (!plain(kind)) return false;
  return true;
}

void run(hindsight::Engine& engine, const std::string& file) {
  std::printf("module %s\n", file.c_str());
  const auto finish = [](const std::string& line) { std::printf("%s\nend\n", line.c_str()); };
  auto module = engine.load_file(file);
  if (!module) return finish("refused " + module.error().describe());
  hindsight::Linker linker(engine);
  const auto log = [](hindsight::Caller&, std::span<const Value> args, std::span<Value>) -> hindsight::Status {
    std::string line = "log";
    for (const Value& value : args) line += " " + text_of(value);
    std::printf("%s\n", line.c_str());
    return {};
  };
  for (const auto& [name, kind] : {std::pair{"log-i32", ValueKind::kI32}, {"log-f32", ValueKind::kF32},
                                   {"log-f64", ValueKind::kF64}})
    linker.define_host("fuzzing-support", name, {{kind}, {}}, log);
  // In JavaScript's binaryen an i64 is passed in halves; what imports it says how.
  for (const auto& import : (*module)->imports())
    if (import.name == "log-i64" && import.function)
      linker.define_host("fuzzing-support", "log-i64", *import.function, log);
  auto instance = linker.instantiate(*module);
  if (!instance) return finish("not instantiated");
  uint32_t place = 0;
  for (const auto& exported : (*module)->exports()) {
    ++place;
    if (exported.kind != "func" || !exported.function || !callable(*exported.function)) continue;
    Random random(place);
    for (int round = 0; round < 2; ++round) {
      std::vector<Value> args;
      for (const ValueKind kind : exported.function->params) args.push_back(argument(kind, random));
      auto results = (*instance)->call(exported.name, args);
      std::string line = "call " + exported.name;
      if (results) {
        for (const Value& value : *results) line += " " + text_of(value);
      } else {
        const hindsight::Trap* trap = (*instance)->last_trap();
        const std::string kind = trap ? trap_class(trap->name) : "error";
        line += " trap " + kind;
        if (kind == "memory" || kind == "stack") return finish(line);
      }
      std::printf("%s\n", line.c_str());
    }
  }
  auto memory = (*instance)->memory("memory");
  uint32_t hash = 2166136261u;
  if (memory)
    for (const std::byte byte : *memory) hash = (hash ^ static_cast<uint32_t>(byte)) * 16777619u;
  char text[32];
  std::snprintf(text, sizeof text, "memory %x", memory ? hash : 0);
  finish(text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: run_exports MODE FILE...\n");
    return 2;
  }
  const std::string mode = argv[1];
  const std::string tier = mode.substr(0, mode.find_first_of("-@"));
  hindsight::EngineConfig config;
  config.tier = tier == "baseline"    ? hindsight::TierMode::kBaseline
                : tier == "optimized" ? hindsight::TierMode::kOptimized
                                      : hindsight::TierMode::kAuto;
  // "optimized@12-40": other functions stay in baseline code.
  if (std::sscanf(mode.c_str() + std::min(mode.size(), mode.find('@')), "@%u-%u", &config.first_optimized,
                  &config.last_optimized) != 2) {
    config.first_optimized = 0;
    config.last_optimized = ~uint32_t{0};
  }
  config.guard_pages = mode.find("-explicit") == std::string::npos;
  config.profiling = tier == "auto";
  config.enter_at_loops = mode.find("-loops") != std::string::npos;
  config.leave_for_baseline = mode.find("-back") != std::string::npos;
  config.leave_at_loops = config.leave_for_baseline || mode.find("-exits") != std::string::npos;
  config.random_hints = mode.find("-hints") == std::string::npos ? 0 : 1;
  for (int i = 2; i < argc; ++i) {
    auto engine = hindsight::Engine::create(config);
    if (!engine) {
      std::fprintf(stderr, "run_exports: %s\n", engine.error().describe().c_str());
      return 1;
    }
    run(**engine, argv[i]);
    std::fflush(stdout);
  }
}
