// The official core test suite as far as it concerns decoding and validation: every module that a script
// instantiates must be accepted, and every one that it calls malformed or invalid must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "tests/spec/overridden.h"

namespace hindsight::wasm {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A folder that is removed with everything in it.
struct TempFolder {
  fs::path path;
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "hindsight-spec-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

struct Counts {
  int accepted = 0;
  int refused = 0;
  int text = 0;
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

void run_script(const fs::path& script, const fs::path& folder, Counts& counts) {
  const fs::path json_path = folder / "script.json";
  const std::string command =
      "wast2json '" + script.string() + "' -o '" + json_path.string() + "' >/dev/null 2>&1";
  ASSERT_EQ(system(command.c_str()), 0) << "wast2json fails on " << script;
  const auto json = nlohmann::json::parse(std::ifstream(json_path));
  for (const auto& step : json.at("commands")) {
    const std::string type = step.at("type");
    if (!step.contains("filename")) continue;
    const std::string where = script.filename().string() + ":" + std::to_string(step.at("line").get<int>());
    const bool must_fail = type == "assert_malformed" || type == "assert_invalid";
    std::vector<uint8_t> bytes = read_file(folder / step.at("filename").get<std::string>());
    if (step.value("module_type", "binary") == "text") {
      // The text parser is wabt's, and refusing these is its promise; ours is to survive them. Starting a
      // process for each of hundreds would be most of this test's time, so a sample is taken.
      if (++counts.text % 32 != 0) continue;
      const auto assembled =
          assemble_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
      EXPECT_FALSE(assembled.has_value() && decode_module(*assembled, where).has_value()) << where;
      continue;
    }
    const auto module = decode_module(bytes, where);
    if (must_fail) {
      const std::string text = step.value("text", "");
      if (spec::overridden_because(text) == nullptr) {
        EXPECT_FALSE(module.has_value()) << where << ": accepted, but " << text;
      }
      ++counts.refused;
      continue;
    }
    ++counts.accepted;
    EXPECT_TRUE(module.has_value()) << where << ": " << module.error().describe();
    if (module.has_value()) expect_readable(**module, where);
  }
}

TEST(SpecBinary, EveryModuleOfTheOfficialSuiteIsAcceptedOrRefusedAsItSays) {
  const fs::path suite = HINDSIGHT_SPEC_TESTSUITE;
  if (suite.empty()) GTEST_SKIP() << "HINDSIGHT_SPEC_TESTSUITE names no folder with the official tests";
  if (system("wast2json --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "wast2json is not installed";

  std::vector<fs::path> scripts;
  for (const auto& entry : fs::directory_iterator(suite)) {
    if (entry.path().extension() == ".wast") scripts.push_back(entry.path());
  }
  std::ranges::sort(scripts);
  ASSERT_GT(scripts.size(), 50u) << "no official tests in " << suite;

  const TempFolder folder;
  Counts counts;
  for (const fs::path& script : scripts) run_script(script, folder.path, counts);
  EXPECT_GT(counts.accepted, 1000);
  EXPECT_GT(counts.refused, 1000);
  RecordProperty("accepted", counts.accepted);
  RecordProperty("refused", counts.refused);
  RecordProperty("text", counts.text);
}

}  // namespace
}  // namespace hindsight::wasm
