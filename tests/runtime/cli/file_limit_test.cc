// Where files may have one kibibyte (ulimit -f): the program runs and answers, and each file that cannot be written is an error in
// words. Nothing ends by SIGXFSZ.
#include <gmock/gmock.h>

#include "tests/runtime/cli/command.h"

namespace {

using testing::HasSubstr;

class FileLimit : public Command {
 protected:
  Outcome limited(std::vector<std::string> words) const {
    std::vector<std::string> all = {HINDSIGHT_LIMITED, "file-size=1", "--", HINDSIGHT_COMMAND};
    all.insert(all.end(), words.begin(), words.end());
    return program(std::move(all));
  }
  // A function whose code is more than a kibibyte.
  std::string large() const {
    std::string text =
        "(module (memory (export \"memory\") 1) (func (export \"mix\") (param i64 i64) (result i64)\n";
    for (int i = 1; i <= 200; ++i)
      text += "(local.set 0 (i64.xor (i64.mul (local.get 0) (i64.const " +
              std::to_string(0x9e3779b97f4a7c15 + 2ull * i) + ")) (i64.rotl (local.get 1) (local.get 0))))\n";
    return file("large.wat", text + "(local.get 0)))");
  }
};

TEST_F(FileLimit, KeepsNoCodeAndSaysWhy) {
  const std::string module = large();
  const Outcome free = hindsight({"run", "--invoke", "mix", module, "3", "4"});
  const Outcome outcome = limited(
      {"run", "--tier", "optimized", "--code-cache", path("code"), "--invoke", "mix", module, "3", "4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, free.out);
  EXPECT_THAT(outcome.err, HasSubstr("nothing is kept"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot be written: File too large"));
  for (const auto& entry : std::filesystem::directory_iterator(path("code")))
    EXPECT_NE(entry.path().extension(), ".code");
}

TEST_F(FileLimit, SaysThatAReportOrATraceCannotBeWritten) {
  const std::string module = large();
  for (const std::string option : {"--report", "--trace"}) {
    const Outcome outcome = limited({"run", option, path(option == "--report" ? "page.html" : "records.json"),
                                     "--invoke", "mix", module, "3", "4"});
    EXPECT_LT(outcome.status, 1000) << option << outcome.err;
    EXPECT_NE(outcome.out, "") << option;
    if (option == "--report") {
      EXPECT_EQ(outcome.status, 1);
      EXPECT_THAT(outcome.err, HasSubstr("the report could not be written: File too large"));
    }
  }
  const Outcome saved =
      limited({"run", "--profile-out", path("none.profile"), "--invoke", "mix", module, "3", "4"});
  EXPECT_LT(saved.status, 1000) << saved.err;
}

TEST_F(FileLimit, SaysThatTheOutputIsNotAllThere) {
  std::string text = "(module (func (export \"f\") (result";
  for (int i = 0; i < 200; ++i) text += " i64";
  text += ")";
  for (int i = 0; i < 200; ++i) text += " (i64.const 123456789012)";
  const Outcome outcome = limited({"run", "--invoke", "f", file("many.wat", text + "))")});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out.size(), 1024u);
  EXPECT_THAT(outcome.err, HasSubstr("the output could not be written"));
}

TEST_F(FileLimit, GivesAGuestTheErrorOfItsWrite) {
  // Writes 64 KiB twice: the first time up to the limit.
  const std::string module = file("writes.wat", R"((module
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_allocate" (func $allocate (param i32 i64 i64) (result i32)))
    (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $set_size (param i32 i64) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (data (i32.const 0) "large")
    (data (i32.const 16) "\00\00\01\00\00\00\01\00")
    (func $expect (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then (call $exit (i32.add (i32.const 100) (local.get 0))))))
    (func (export "_start") (local i32)
      (call $expect (i32.const 0) (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 1)
                                              (i64.const 0x1fffffff) (i64.const 0) (i32.const 0) (i32.const 32)))
      (local.set 0 (i32.load (i32.const 32)))
      (call $expect (i32.const 0) (call $write (local.get 0) (i32.const 16) (i32.const 1) (i32.const 40)))
      (call $expect (i32.const 1024) (i32.load (i32.const 40)))
      (call $expect (i32.const 22) (call $write (local.get 0) (i32.const 16) (i32.const 1) (i32.const 40)))
      (call $expect (i32.const 22) (call $allocate (local.get 0) (i64.const 0) (i64.const 100000)))
      (call $expect (i32.const 22) (call $set_size (local.get 0) (i64.const 100000)))
      (call $exit (i32.const 7)))))");
  std::filesystem::create_directory(path("given"));
  const Outcome outcome = limited({"run", "--dir", path("given"), module});
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_EQ(std::filesystem::file_size(path("given/large")), 1024u);
}

}  // namespace
