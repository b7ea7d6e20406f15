// Calls every exported function of modules with arguments that depend on nothing but its place, and prints what came of
// it, one line a call. It is for tests/fuzz/fuzz.mjs, which compares the lines of several engines. run_exports.mjs says
// the same in a JavaScript engine.
//
//     run_exports MODE FILE...
//
// MODE is baseline, optimized or auto, and these may follow:
//   - "-explicit": explicit bounds checks.
//   - "-hints": code made with hints that are drawn by lot, of a seed that depends on the module ("-hints=7": of that one).
//   - "-loops": functions that enter optimized code at loops only.
//   - "@12-40": functions of other indices stay in baseline code.
//
// A module's lines stand between "module FILE" and "end". After a trap for memory there is a line "after" with the memory
// and the globals as they were left. Where the stack ended depends on the engine. What comes next is called in a new
// instance. Where our own error keeps the optimizing tier from compiling a function, which then stays in baseline code, a line
// "compile failed" says so: no other engine prints that.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "runtime/engine/engine_for_tests.h"
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

uint32_t hash_of(std::string_view bytes) {
  uint32_t hash = 2166136261u;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  return hash;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The module that travels in section "other"; empty: none.
std::string other_of(const std::string& module) {
  size_t at = 8;
  const auto leb = [&] {
    size_t value = 0;
    for (unsigned shift = 0; at < module.size() && shift < 35; shift += 7) {
      const auto byte = static_cast<uint8_t>(module[at++]);
      value |= size_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < module.size()) {
    const char id = module[at++];
    const size_t size = leb(), end = at + size;
    if (id == 0 && module.compare(at, 6, std::string("\5other")) == 0)
      return module.substr(at + 6, end - at - 6);
    at = end;
  }
  return {};
}

// One instance, with what it imports.
class Guest {
 public:
  // `other`, if there is one, exports what the module imports from "other".
  Guest(hindsight::Engine& engine, const std::shared_ptr<const hindsight::Module>& module,
        const std::shared_ptr<const hindsight::Module>& other)
      : module_(module), linker_(engine) {
    const auto log = [](hindsight::Caller&, std::span<const Value> args,
                        std::span<Value>) -> hindsight::Status {
      std::string line = "log";
      for (const Value& value : args) line += " " + text_of(value);
      std::printf("%s\n", line.c_str());
      return {};
    };
    for (const auto& [name, kind] :
         {std::pair{"log-i32", ValueKind::kI32}, {"log-f32", ValueKind::kF32}, {"log-f64", ValueKind::kF64}})
      linker_.define_host("fuzzing-support", name, {{kind}, {}}, log);
    // In JavaScript's binaryen an i64 is passed in halves; what imports it says how.
    for (const auto& import : module->imports())
      if (import.name == "log-i64" && import.function)
        linker_.define_host("fuzzing-support", "log-i64", *import.function, log);
    if (other) {
      auto made = linker_.instantiate(other);
      if (!made) return;
      linker_.define_instance("other", *made);
    }
    if (auto made = linker_.instantiate(module)) instance_ = std::move(*made);
  }

  hindsight::Instance* instance() { return instance_.get(); }

  // The state of what it exports: the memory called so, and every global.
  std::string state() {
    auto memory = instance_->memory("memory");
    const uint32_t hash =
        memory ? hash_of({reinterpret_cast<const char*>(memory->data()), memory->size()}) : 0;
    char text[32];
    std::snprintf(text, sizeof text, "memory %x", hash);
    std::string all = text;
    for (const auto& exported : module_->exports()) {
      if (exported.kind != "global") continue;
      if (auto value = instance_->global(exported.name); value && value->kind != ValueKind::kV128)
        all += " " + exported.name + "=" + text_of(*value);
    }
    return all;
  }

 private:
  std::shared_ptr<const hindsight::Module> module_;
  hindsight::Linker linker_;
  std::shared_ptr<hindsight::Instance> instance_;
};

// A sink for the log.
void print_own_errors(hindsight::LogLevel, std::string_view topic, std::string_view line) {
  static const std::string kKind(hindsight::to_string(hindsight::ErrorKind::kInternal));
  if (topic == "compile" && line.find(": " + kKind + ": ") != std::string_view::npos)
    std::printf("compile failed: %.*s\n", static_cast<int>(line.size()), line.data());
}

void run(hindsight::Engine& engine, const std::string& file) {
  std::printf("module %s\n", file.c_str());
  const auto finish = [](const std::string& line) { std::printf("%s\nend\n", line.c_str()); };
  auto module = engine.load_file(file);
  if (!module) return finish("refused " + module.error().describe());
  std::shared_ptr<const hindsight::Module> other;
  if (const std::string bytes = other_of(bytes_of(file)); !bytes.empty()) {
    auto loaded = engine.load(std::as_bytes(std::span(bytes)), "other");
    if (!loaded) return finish("refused " + loaded.error().describe());
    other = *loaded;
  }
  auto guest = std::make_unique<Guest>(engine, *module, other);
  if (!guest->instance()) return finish("not instantiated");
  uint32_t place = 0;
  for (const auto& exported : (*module)->exports()) {
    ++place;
    if (exported.kind != "func" || !exported.function || !callable(*exported.function)) continue;
    Random random(place);
    for (int round = 0; round < 2; ++round) {
      std::vector<Value> args;
      for (const ValueKind kind : exported.function->params) args.push_back(argument(kind, random));
      auto results = guest->instance()->call(exported.name, args);
      std::string line = "call " + exported.name;
      std::string kind;
      if (results) {
        for (const Value& value : *results) line += " " + text_of(value);
      } else {
        const hindsight::Trap* trap = guest->instance()->last_trap();
        kind = trap ? trap_class(trap->name) : "error";
        // The function has no code, as its compile came to its limit: that says nothing of code (jit/optimizing/budget.h).
        if (trap && trap->detail.find("of CPU time, the limit") != std::string::npos) kind = "compile time";
        line += " trap " + kind;
      }
      std::printf("%s\n", line.c_str());
      if (kind != "memory" && kind != "stack") continue;
      if (kind == "memory") std::printf("after %s\n", guest->state().c_str());
      guest = std::make_unique<Guest>(engine, *module, other);
      if (!guest->instance()) return finish("not instantiated again");
    }
  }
  finish(guest->state());
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
  config.log = print_own_errors;
  config.log_level = hindsight::LogLevel::kWarning;
  hindsight::TestKnobs knobs;
  knobs.enter_at_loops = mode.find("-loops") != std::string::npos;
  knobs.inner_nests = mode.find("-inner-nests") != std::string::npos;
  knobs.enter_at_nests = mode.find("-nests") != std::string::npos;
  knobs.leave_for_baseline = mode.find("-back") != std::string::npos;
  knobs.leave_at_loops = knobs.leave_for_baseline || mode.find("-exits") != std::string::npos;
  const size_t hints = mode.find("-hints");
  uint32_t hint_seed = 0;
  if (hints != std::string::npos) std::sscanf(mode.c_str() + hints, "-hints=%u", &hint_seed);
  for (int i = 2; i < argc; ++i) {
    knobs.random_hints = hints == std::string::npos ? 0
                         : hint_seed != 0           ? hint_seed
                                                    : 1 + hash_of(bytes_of(argv[i])) % 1000;
    auto engine = hindsight::create_engine_for_tests(config, knobs);
    if (!engine) {
      std::fprintf(stderr, "run_exports: %s\n", engine.error().describe().c_str());
      return 1;
    }
    run(**engine, argv[i]);
    std::fflush(stdout);
  }
}
