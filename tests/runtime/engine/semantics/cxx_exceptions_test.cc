// A C++ program that throws, as clang compiles it.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

std::string file(const std::string& name) {
  std::ifstream in(std::string(HINDSIGHT_SAMPLES) + "/exceptions/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CxxExceptions : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Everywhere, CxxExceptions, kEveryMode, mode_name);

TEST_P(CxxExceptions, RunAsTheNativeProgramDoes) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  std::string output;
  WasiConfig wasi;
  wasi.args = {"throwing"};
  wasi.stdout_sink = [&](std::string_view text) { output += text; };
  ASSERT_TRUE(linker.define_wasi(std::move(wasi)));
  auto instance = linker.instantiate(load(*engine, file("throwing.wasm"), "throwing"));
  ASSERT_TRUE(instance) << instance.error().describe();
  const auto result = (*instance)->call("_start", {});
  EXPECT_TRUE(result || (*instance)->exit_code() == 0u) << result.error().describe();
  EXPECT_EQ(output, file("throwing.expected"));
}

}  // namespace
}  // namespace hindsight
