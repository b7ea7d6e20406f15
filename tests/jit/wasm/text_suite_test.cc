// The official suites as far as they concern reading, decoding and validation. Every module that a script instantiates
// must be accepted, and every one that it calls malformed or invalid must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "jit/wasm/text/script.h"
#include "tests/spec/overridden.h"

namespace hindsight::wasm {
namespace {

namespace fs = std::filesystem;
using Kind = text::ScriptCommand::Kind;
using Form = text::ModuleSource::Form;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Counts {
  int accepted = 0;
  int refused = 0;
  int malformed_texts = 0;
  int unsupported = 0;
};

// Both compilers walk code with InstrReader: it must arrive exactly at the end of each body.
void expect_readable(const Module& module, const std::string& where) {
  uint64_t instructions = 0;
  for (const FunctionBody& body : module.bodies) {
    InstrReader reader(module, body);
    Instr instr;
    while (!reader.at_end()) {
      reader.next(instr);
      ++instructions;
      ASSERT_NE(find_opcode(static_cast<uint16_t>(instr.opcode)), nullptr) << where;
    }
    EXPECT_EQ(reader.position(), body.end) << where;
    EXPECT_EQ(instr.opcode, Opcode::kEnd) << where;
  }
  EXPECT_EQ(instructions, module.decode_stats.instructions) << where;
}

void judge(const text::ScriptCommand& command, std::string_view source, const std::string& where,
           Counts& counts) {
  const auto assembled = text::assemble(source, *command.module, where);
  const bool is_text = command.module->form != Form::kBinary;
  const bool malformed =
      command.kind == Kind::kAssertMalformed || command.kind == Kind::kAssertMalformedCustom;
  const bool invalid = command.kind == Kind::kAssertInvalid || command.kind == Kind::kAssertInvalidCustom;
  if (!assembled) {
    // The reader judges syntax alone: what is only invalid it must not refuse. (Of a hint it knows the instruction.)
    if (malformed && is_text) ++counts.malformed_texts;
    EXPECT_TRUE(malformed || command.kind == Kind::kAssertInvalidCustom) << assembled.error().describe();
    EXPECT_EQ(assembled.error().kind, ErrorKind::kBadModule) << where;
    return;
  }
  const auto module = decode_module(assembled->bytes, where);
  if (malformed || invalid) {
    ++counts.refused;
    if (malformed && is_text) ++counts.malformed_texts;
    if (spec::overridden_because(command.text) == nullptr) {
      EXPECT_FALSE(module.has_value()) << where << ": accepted, but " << command.text;
    }
    return;
  }
  if (!module && module.error().kind == ErrorKind::kUnsupported) {
    ++counts.unsupported;
    EXPECT_NE(spec::unsupported_because(module.error().message), nullptr)
        << where << ": " << module.error().describe();
    return;
  }
  ++counts.accepted;
  EXPECT_TRUE(module.has_value()) << where << ": " << module.error().describe();
  if (module.has_value()) expect_readable(**module, where);
}

std::vector<fs::path> scripts_of(const fs::path& suite) {
  std::vector<fs::path> scripts;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(suite, ignored))
    if (entry.path().extension() == ".wast" &&
        spec::unreadable_because(entry.path().filename().string()) == nullptr)
      scripts.push_back(entry.path());
  std::ranges::sort(scripts);
  return scripts;
}

Counts judge_suite(const fs::path& suite) {
  Counts counts;
  for (const fs::path& path : scripts_of(suite)) {
    const std::string source = read_file(path);
    const auto script = text::read_script(source, path.string());
    if (!script) {
      ADD_FAILURE() << script.error().describe();
      continue;
    }
    for (const text::ScriptCommand& command : script->commands)
      if (command.module)
        judge(command, source, path.filename().string() + ":" + std::to_string(command.line), counts);
  }
  testing::Test::RecordProperty("accepted", counts.accepted);
  testing::Test::RecordProperty("refused", counts.refused);
  testing::Test::RecordProperty("malformed_texts", counts.malformed_texts);
  testing::Test::RecordProperty("unsupported", counts.unsupported);
  return counts;
}

TEST(TextSuite, EveryModuleOfVersion2AndItsProposalsIsAcceptedOrRefusedAsTheSuiteSays) {
  const fs::path suite = HINDSIGHT_SPEC_TESTSUITE;
  if (suite.empty()) GTEST_SKIP() << "HINDSIGHT_SPEC_TESTSUITE names no folder with the official tests";
  const Counts counts = judge_suite(suite);
  EXPECT_GT(counts.accepted, 1000);
  EXPECT_GT(counts.refused, 1000);
  EXPECT_GT(counts.malformed_texts, 1200);
}

TEST(TextSuite, EveryModuleOfVersion3IsAcceptedOrRefusedAsTheSuiteSays) {
  const fs::path suite = HINDSIGHT_SPEC_TESTSUITE_3;
  if (suite.empty()) GTEST_SKIP() << "HINDSIGHT_SPEC_TESTSUITE_3 names no folder with the official tests";
  const Counts counts = judge_suite(suite);
  EXPECT_GT(counts.accepted, 2000);
  EXPECT_GT(counts.refused, 2000);
  EXPECT_GT(counts.malformed_texts, 1240);
}

// Damage as people and fuzzers make it: characters changed, pieces taken out, doubled, or put elsewhere.
std::string mutate(std::string text, std::mt19937_64& random) {
  static constexpr std::string_view kPieces[] = {
      "(",      ")",          "\"",       "(;",      ";)",        "(@",       "(@custom \"",
      "$",      "$\"",        "end",      "(module", "(rec ",     "(type 0)", "0x1p",
      "nan:0x", "4294967296", "-",        "\\",      "\\u{",      "(then",    "(else",
      "try",    "(do",        "delegate", "catch",   "i32.const", "\n",       "\x80"};
  for (uint64_t edits = 1 + random() % 4; edits != 0; --edits) {
    if (text.empty()) break;
    const size_t at = random() % text.size();
    const size_t length = std::min(text.size() - at, static_cast<size_t>(1 + random() % 30));
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(random() % text.size(), text.substr(at, length));
        break;
      case 3:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      case 4:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST(TextSuite, NoMutantOfItsTextsCrashesTheReaderOrTheDecoder) {
  std::vector<std::string> originals;
  for (const char* suite : {HINDSIGHT_SPEC_TESTSUITE, HINDSIGHT_SPEC_TESTSUITE_3}) {
    if (*suite == '\0') continue;
    for (const fs::path& path : scripts_of(suite)) {
      const std::string source = read_file(path);
      const auto script = text::read_script(source, path.string());
      if (!script) continue;
      constexpr size_t kMostBytes = 4000;  // of a text, so that many are tried
      for (const text::ScriptCommand& command : script->commands)
        if (command.module && command.module->form == Form::kText &&
            command.module->end - command.module->begin < kMostBytes)
          originals.push_back(
              source.substr(command.module->begin, command.module->end - command.module->begin));
    }
  }
  if (originals.empty())
    GTEST_SKIP() << "no official tests: HINDSIGHT_SPEC_TESTSUITE, HINDSIGHT_SPEC_TESTSUITE_3";
  std::mt19937_64 random(20261123);
  int read = 0;
  int refused = 0;
  constexpr int kMutants = 20'000;
  for (int i = 0; i < kMutants; ++i) {
    const std::string text = mutate(originals[random() % originals.size()], random);
    (void)text::read_script(text, "mutant");
    const auto module = text::assemble(text, "mutant");
    if (!module) {
      ++refused;
      ASSERT_EQ(module.error().kind, ErrorKind::kBadModule);
      ASSERT_FALSE(module.error().message.empty());
      continue;
    }
    ++read;
    (void)decode_module(module->bytes, "mutant");
  }
  EXPECT_GT(read, kMutants / 50);
  EXPECT_GT(refused, kMutants / 50);
}

}  // namespace
}  // namespace hindsight::wasm
