// Programs as text, and beside each what the optimizing tier makes of it under the changes that its head asks for: the
// answers, the shape of the code, and what calls return. shapes/FOLDER/NAME.wat and NAME.shape beside it. Whoever changes code on purpose
// writes the shapes anew (HINDSIGHT_BLESS=1) and reads the difference.
//
// What calls return is taken from baseline code. Code without the changes has to return the same and to leave the same memory,
// and so has code with them, whichever version of its loops begins.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tests/jit/optimizing/optimized.h"
#include "tests/jit/optimizing/shape_program.h"
#include "tests/text_cases.h"

namespace hindsight::jit::testing {
namespace {

namespace fs = std::filesystem;

// "prefetch/refused_streams"
std::vector<std::string> names(std::string_view extension = ".wat") {
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(HINDSIGHT_SHAPES))
    if (entry.path().extension() == extension)
      all.push_back(entry.path().lexically_relative(HINDSIGHT_SHAPES).replace_extension().string());
  std::sort(all.begin(), all.end());
  return all;
}

// As tests may be named.
std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

fs::path path_of(const std::string& name, std::string_view extension) {
  return fs::path(HINDSIGHT_SHAPES) / (name + std::string(extension));
}

// Imported functions return their first argument.
TestInstance::Options with_imports(const wasm::Module& module) {
  TestInstance::Options options;
  for (const wasm::Import& import : module.imports)
    if (import.kind == wasm::ExternKind::kFunc)
      options.host[import.module + "." + import.name] = [](TestInstance&, uint64_t*) { return true; };
  return options;
}

// The other version's turn, every time.
void take_turns(VmContext*, LoopCell* cell) {
  cell->enabled ^= 1;
  cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
}

// The program in code of one kind.
class Guest {
 public:
  enum class Code : uint8_t { kBaseline, kWithout, kWith };

  Guest(const ShapeProgram& program, Code code, uint32_t first_version = 1)
      : program_(program),
        code_(code),
        first_version_(first_version),
        arena_(std::move(*CodeArena::create())) {
    instance_ = std::make_unique<TestInstance>(
        program.module, *arena_,
        [this](const wasm::Module&, FuncIndex function) -> const void* {
          const CodeVersion* const version = compile(function).first;
          return version != nullptr ? version->entry : nullptr;
        },
        with_imports(*program.module));
    instance_->builtins().strip_ended = take_turns;
    for (const Fill& fill : program.fills) fill.make(instance_->memory());
  }

  // And what the optimizing tier shows of it. Null after a test failure.
  std::pair<const CodeVersion*, std::string> compile(FuncIndex function) {
    std::string dump;
    auto version = code_ == Code::kBaseline
                       ? compile_baseline(*program_.module, function, {.bounds = program_.bounds}, *arena_)
                       : optimize(function, dump);
    if (!version) {
      ADD_FAILURE() << version.error().describe();
      return {};
    }
    for (const auto& cell : (*version)->loop_cells) {
      cell->enabled = first_version_;
      cell->strip_length = 64;
      cell->countdown = 63;
    }
    versions_.push_back(std::move(*version));
    return {versions_.back().get(), dump};
  }

  Outcome call(const ShapeProgram::Call& call) {
    const wasm::Export* const found = program_.module->find_export(call.function);
    if (found == nullptr) {
      ADD_FAILURE() << "no exported function " << call.function;
      return {};
    }
    const wasm::FuncType& type = program_.module->type_of(FuncIndex(found->index));
    std::vector<Value> arguments;
    for (size_t i = 0; i < std::min(type.params.size(), call.arguments.size()); ++i)
      arguments.push_back(value_of(type.params[i], call.arguments[i]));
    return instance_->call(call.function, std::move(arguments));
  }

  std::vector<uint8_t> memory() const {
    const uint8_t* const begin = instance_->memory();
    if (begin == nullptr) return {};
    return {begin, begin + instance_->memory_record().byte_length.load()};
  }

 private:
  static Value value_of(wasm::ValType type, const std::string& text) {
    switch (type) {
      case wasm::ValType::kI32:
        return i32(static_cast<uint32_t>(std::stoll(text, nullptr, 0)));
      case wasm::ValType::kF32:
        return f32(std::stof(text));
      case wasm::ValType::kF64:
        return f64(std::stod(text));
      default:
        return i64(static_cast<uint64_t>(std::stoll(text, nullptr, 0)));
    }
  }

  Result<std::unique_ptr<CodeVersion>> optimize(FuncIndex function, std::string& dump) {
    OptimizeRequest request;
    request.module = program_.module;
    request.function = function;
    request.options.bounds = program_.bounds;
    request.tuning.use_host_features = false;  // the same code on every machine
    request.verify = true;
    request.dump_ir = true;
    for (const auto& [in, loop] : program_.entered)
      if (in == function) request.osr_loops.push_back(loop);
    for (const auto& [in, change] : program_.changes) {
      if (in != function || code_ != Code::kWith) continue;
      request.changes.push_back(change);
      request.split_cold |= change.site.kind == ChangeKind::kSplitCold;
    }
    auto result = optimizer().compile(request, *arena_);
    if (!result) return std::unexpected(result.error());
    dump = std::move(result->dump);
    return std::move(result->version);
  }

  const ShapeProgram& program_;
  const Code code_;
  const uint32_t first_version_;
  std::unique_ptr<CodeArena> arena_;
  std::vector<std::unique_ptr<CodeVersion>> versions_;
  std::unique_ptr<TestInstance> instance_;
};

std::string text_of(const wasm::Module& module, const Answer& answer) {
  std::string text =
      "  " + std::string(to_string(answer.site.kind)) + " " + place_name(module, answer.site.at) + ": ";
  switch (answer.state) {
    case Answer::State::kRefused:
      text += "refused";
      break;
    case Answer::State::kWaits:
      text += "waits";
      break;
    case Answer::State::kApplied:
    case Answer::State::kFollows:
      text += answer.follows() ? "follows" : "applied";
      text += " in " + place_name(module, answer.loop) + ", cell " + std::to_string(answer.cell);
      if (answer.timed) text += ", timed";
      break;
  }
  return text + ": " + answer.why + "\n";
}

std::string text_of(const Outcome& outcome) {
  std::string text = ::testing::PrintToString(outcome);
  while (text.ends_with(' ')) text.pop_back();
  return text.empty() ? "nothing" : text;
}

// With names for its wasm offsets, which are written as "@57". Those in the function itself say no function.
std::string with_place_names(const wasm::Module& module, FuncIndex function, const std::string& line) {
  const std::string here = " of " + module.function_name(function);
  std::string text;
  for (size_t at = 0; at < line.size();) {
    if (line[at] != '@') {
      text += line[at++];
      continue;
    }
    size_t digits = 0;
    const auto offset = static_cast<uint32_t>(std::stoul(line.substr(at + 1), &digits));
    std::string name = place_name(module, WasmOffset(offset));
    if (name.ends_with(here)) name.resize(name.size() - here.size());
    text += name;
    at += 1 + digits;
  }
  return text;
}

// The lines at a dump's beginning: what is fetched ahead, and the shape.
std::string shape_in(const ShapeProgram& program, FuncIndex function, const std::string& dump) {
  constexpr std::string_view kFetch = ";fetch ", kShape = ";shape ";
  std::string text;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kFetch)) {
      text += "  " + with_place_names(*program.module, function, line.substr(kFetch.size())) + "\n";
      continue;
    }
    if (!line.starts_with(kShape)) break;
    const std::string rest = line.substr(kShape.size());
    const size_t begin = rest.find_first_not_of(' ');
    const bool is_weights = rest.compare(begin, 8, "weights ") == 0;
    if (program.shows_weights || !is_weights) text += "  " + rest + "\n";
  }
  return text;
}

std::string shapes_of(const ShapeProgram& program) {
  std::string text;
  Guest guest(program, Guest::Code::kWith);
  for (const FuncIndex function : program.compiled) {
    const auto [version, dump] = guest.compile(function);
    if (version == nullptr) continue;
    text += program.module->function_name(function) + "\n";
    for (const Answer& answer : version->answers) text += text_of(*program.module, answer);
    text += shape_in(program, function, dump);
  }
  return text;
}

// Compares all kinds of code on the way.
std::string outcomes_of(const ShapeProgram& program) {
  Guest baseline(program, Guest::Code::kBaseline), without(program, Guest::Code::kWithout);
  Guest with(program, Guest::Code::kWith, 1), with_later(program, Guest::Code::kWith, 0);
  const std::pair<Guest*, const char*> others[] = {{&without, "without the changes"},
                                                   {&with, "with the changes"},
                                                   {&with_later, "with the changes, switched on later"}};
  std::string text;
  for (const ShapeProgram::Call& call : program.calls) {
    const Outcome expected = baseline.call(call);
    const std::vector<uint8_t> memory = baseline.memory();
    text += call.function;
    for (const std::string& argument : call.arguments) text += " " + argument;
    text += " = " + text_of(expected) + "\n";
    for (const auto& [guest, what] : others) {
      EXPECT_EQ(guest->call(call), expected) << what << ": call of " << call.function;
      EXPECT_EQ(guest->memory() == memory, true) << what << ": memory after the call of " << call.function;
    }
  }
  return text;
}

class Shapes : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, Shapes, ::testing::ValuesIn(names()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Shapes, AreThoseOfTheFileBesideTheProgram) {
  const ShapeProgram program =
      read_shape_program(::hindsight::testing::contents_of(path_of(GetParam(), ".wat")));
  ASSERT_NE(program.module, nullptr);
  ASSERT_FALSE(program.compiled.empty()) << "neither a change nor a function to compile";
  ASSERT_FALSE(program.calls.empty()) << "no call shows that the code computes the same";
  ::hindsight::testing::expect_text(path_of(GetParam(), ".shape"), shapes_of(program) + outcomes_of(program));
}

TEST(ShapeFiles, HaveAProgramEach) {
  const std::vector<std::string> programs = names();
  for (const std::string& shape : names(".shape"))
    EXPECT_TRUE(std::ranges::binary_search(programs, shape)) << shape << ".shape lies beside no program";
}

}  // namespace
}  // namespace hindsight::jit::testing
