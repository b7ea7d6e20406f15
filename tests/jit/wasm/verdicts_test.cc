// What the decoder, the validator and the text reader say of modules: verdicts/*.txt. An input is the text of a module; or its
// sections after the header, as "bytes: 01 04 ..."; or the bytes of a body in module_bytes.h's module_around(), as
// "code: i32 i64 -> i32 : 20 00 1a".
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "jit/wasm/module.h"
#include "tests/jit/wasm/module_bytes.h"
#include "tests/text_cases.h"

namespace hindsight::wasm {
namespace {

namespace fs = std::filesystem;
using testing::Bytes;

uint8_t type_of(const std::string& word) {
  if (word == "i32") return testing::kI32;
  if (word == "i64") return testing::kI64;
  if (word == "f32") return testing::kF32;
  if (word == "f64") return testing::kF64;
  if (word == "v128") return 0x7b;
  if (word == "funcref") return testing::kFuncRef;
  EXPECT_EQ(word, "externref") << "no type that this test knows";
  return testing::kExternRef;
}

Bytes bytes_of(std::istream& words) {
  Bytes bytes;
  for (std::string word; words >> word;) bytes.push_back(static_cast<uint8_t>(std::stoul(word, nullptr, 16)));
  return bytes;
}

Bytes module_of_sections(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  return testing::module({bytes_of(words)});
}

Bytes module_of_code(const std::string& line) {
  std::istringstream words(line);
  Bytes params, results;
  std::string word;
  words >> word;
  Bytes* types = &params;
  while (words >> word && word != ":") {
    if (word == "->")
      types = &results;
    else
      types->push_back(type_of(word));
  }
  return testing::module_around(params, results, bytes_of(words));
}

std::string verdict_on(const std::string& input) {
  const Bytes bytes = input.starts_with("code: ")    ? module_of_code(input)
                      : input.starts_with("bytes: ") ? module_of_sections(input)
                                                     : Bytes(input.begin(), input.end());
  const auto module = read_module(bytes, "m");
  return module ? "ok" : module.error().describe();
}

class Verdicts : public ::testing::TestWithParam<fs::path> {};

TEST_P(Verdicts, AreGivenWithTheReasonAndThePlace) {
  hindsight::testing::expect_outcomes(GetParam(), verdict_on);
}

INSTANTIATE_TEST_SUITE_P(Files, Verdicts,
                         ::testing::ValuesIn(hindsight::testing::files_of(HINDSIGHT_VERDICTS, ".txt")),
                         hindsight::testing::test_name_of);

}  // namespace
}  // namespace hindsight::wasm
