#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "jit/wasm/module.h"
#include "tests/jit/wasm/sample_modules.h"

namespace hindsight::wasm {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto result = assemble_text(text, "m.wat");
  if (result.has_value()) return "ok";
  EXPECT_EQ(result.error().kind, ErrorKind::kBadModule);
  EXPECT_EQ(result.error().place, "m.wat");
  return result.error().message;
}

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(TextAssembler, MakesAModuleThatTheDecoderAccepts) {
  const auto bytes = assemble_text(testing::kEverythingText, "m.wat");
  ASSERT_TRUE(bytes.has_value()) << bytes.error().describe();
  const auto module = decode_module(*bytes, "m.wat");
  ASSERT_TRUE(module.has_value()) << module.error().describe();
  EXPECT_EQ((*module)->function_name(FuncIndex(2)), "swap");
  EXPECT_EQ((*module)->function_name(FuncIndex(1)), "main") << "names survive for backtraces";
}

TEST(TextAssembler, SaysLineAndColumnOfAnError) {
  EXPECT_THAT(error_of("(module\n  (func (i32.bogus)))"), HasSubstr("2:10"));
  EXPECT_NE(error_of("(module"), "ok");
  EXPECT_NE(error_of(std::string_view("\0\0\0\0", 4)), "ok");
}

TEST(TextAssembler, KnowsVectorsAndTheirRelaxedOperators) {
  for (const char* text :
       {"(module (func (drop (v128.const i32x4 0 0 0 0))))",
        "(module (func (param v128 v128 v128) (result v128) local.get 0 local.get 1 local.get 2 "
        "f32x4.relaxed_madd))"}) {
    const auto bytes = assemble_text(text, "m.wat");
    ASSERT_TRUE(bytes.has_value()) << bytes.error().describe();
    const auto module = decode_module(*bytes, "m.wat");
    EXPECT_TRUE(module.has_value()) << module.error().describe();
  }
}

TEST(TextAssembler, SurvivesTextsThatAreKnownToConfuseParsers) {
  const char* texts[] = {
      "(module (func (block $a (br $b))))",
      "(module (table 1 (ref null func)) (elem (i32.const 0) (ref null 0)))",
      "(module (type (func (param (ref 0)))) (func (type 0) unreachable))",
      "(module (rec (type (struct (field i32)))))",
      "(module (func (try_table (catch_all 0))))",
      "(module (memory 1) (data (offset i32.const 0 i32.const 1) \"a\"))",
      "(module (global i32 (ref.func 99999999999999999999)))",
      "(module (func (export \"\\ff\\fe\")))",
      "(module (func (i32.const 99999999999999999999999) drop))",
      "(module (func (f64.const 0x1p99999999999999999999) drop))",
      "(module binary \"\\00asm\")",
      "(module quote \"(func\")",
      "(assert_invalid (module) \"x\")",
      "(module (import \"a\" \"b\" (tag (param i32))))",
      "(module (func (select (result i32 i32) (i32.const 0))))",
      "(module (func (call_indirect (type 5) (i32.const 0))))",
      "(module (start 7))",
      "(module (export \"a\" (func 9)))",
      "(module (elem (table 3) (i32.const 0) func 0))",
      "(module (func (param $a i32) (param $a i32)))",
      "\"unterminated",
      "(; unterminated",
  };
  for (const char* text : texts) {
    const auto bytes = assemble_text(text, "m.wat");
    if (!bytes.has_value()) {
      EXPECT_EQ(bytes.error().kind, ErrorKind::kBadModule) << text;
      continue;
    }
    (void)decode_module(*bytes, "m.wat");
  }
}

TEST(TextAssembler, LeavesNoProcessAndNoDescriptorBehind) {
  const int before = open_descriptors();
  for (int i = 0; i < 8; ++i) (void)assemble_text(i % 2 == 0 ? "(module)" : "(modul", "m.wat");
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(TextAssembler, ServesSeveralThreadsAtOnce) {
  std::vector<int> ok(4);
  std::vector<std::thread> threads;
  for (int& slot : ok)
    threads.emplace_back(
        [&slot] { slot = assemble_text("(module (func (export \"f\")))", "m.wat").has_value(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace hindsight::wasm
