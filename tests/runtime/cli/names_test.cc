// A module's names, and those of files and arguments, are a stranger's words. Whatever the command prints of them, no
// line is theirs and no terminal obeys them.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/runtime/cli/command.h"

namespace {

using testing::HasSubstr;
using testing::Not;

// A line's end followed by a frame of a backtrace, and commands to a terminal in both forms. Then DEL, a change of
// the text's direction, a separator of lines.
const std::string kName = "\n#0 fake\x1b[2J\xc2\x9b\x7f\xe2\x80\xae\xe2\x80\xa8<q>\t";
constexpr const char* kBegin = "\\n#0 fake\\u{1b}[2J";
constexpr const char* kShown = "\\n#0 fake\\u{1b}[2J\\u{9b}\\u{7f}\\u{202e}\\u{2028}";
// The same in a string of the text format.
const std::string kEscaped = R"(\0a#0 fake\1b[2J\c2\9b\7f\e2\80\ae\e2\80\a8<q>\09)";
// And one that no module can have.
const std::string kFileName = "\n#0 fake\x1b[2J\xff\xc2\x9b.wat";

// What would get at a terminal; empty: nothing.
std::string harm_in(const std::string& text) {
  if (text.find("\n#0 fake") != std::string::npos || text.find("\n  #0   fake") != std::string::npos)
    return "a line of its own";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return "control byte " + std::to_string(byte);
    if (byte == 0xff) return "a byte that is not UTF-8";
    if (byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80)
      return "a control character of C1";
    if (text.compare(i, 3, "\xe2\x80\xae") == 0 || text.compare(i, 3, "\xe2\x80\xa8") == 0)
      return "a hidden character";
  }
  return {};
}

class HostileNames : public Command {
 protected:
  // The text of a module, with the name wherever a ~ stands.
  std::string named(const std::string& name, std::string text) const {
    for (size_t at = 0; (at = text.find('~', at)) != std::string::npos; at += kEscaped.size())
      text.replace(at, 1, kEscaped);
    return file(name, text);
  }
  // All that it printed is harmless, and the name is in there.
  void expect_harmless(const Outcome& outcome, const char* shown = kShown) {
    EXPECT_EQ(harm_in(outcome.out), "") << outcome.out;
    EXPECT_EQ(harm_in(outcome.err), "") << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(shown));
    EXPECT_LT(outcome.status, 1000);
  }
};

TEST_F(HostileNames, StayOnTheirLinesOfABacktrace) {
  const Outcome run = hindsight({"run", named("f.wat", R"((module $"~"
    (func $"~" unreachable) (func $"2~" (export "_start") (call $"~"))))")});
  EXPECT_EQ(run.status, 134);
  expect_harmless(run);
  EXPECT_THAT(run.err, HasSubstr("#0   \\n#0 fake"));
  EXPECT_THAT(run.err, HasSubstr("#1   2\\n#0 fake"));
}

TEST_F(HostileNames, StayInTheWordsForAnException) {
  const Outcome run = hindsight({"run", named("f.wat", R"((module
    (tag $"~" (param i32)) (func (export "_start") (throw $"~" (i32.const 5)))))")});
  EXPECT_EQ(run.status, 134);
  expect_harmless(run);
}

TEST_F(HostileNames, StayInTheLog) {
  expect_harmless(hindsight({"run", "-vv", "--tier", "optimized", named("f.wat", R"((module
    (func $"~" (export "_start") (local i32)
      (loop (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 100)))))))")}));
}

TEST_F(HostileNames, StayInErrorsOfLinkingAndLookingUp) {
  expect_harmless(hindsight(
      {"run", named("missing.wat", R"((module (import "~" "~" (func)) (func (export "_start"))))")}));
  expect_harmless(
      hindsight({"run", named("type.wat",
                              R"((module (import "wasi_snapshot_preview1" "proc_exit" (func $"~" (param i64)))
    (func (export "_start"))))")}),
      "incompatible import type");
  expect_harmless(hindsight({"run", named("none.wat", R"((module (func (export "~"))))")}));
  expect_harmless(hindsight({"run", "--invoke", kName, file("none.wat", "(module)")}));
  expect_harmless(hindsight({"run", "--invoke", "f",
                             named("arguments.wat", R"((module (func (export "f") (param i32))))"), kName}));
}

TEST_F(HostileNames, StayInErrorsAboutModules) {
  expect_harmless(
      hindsight({"run", named("twice.wat", R"((module (func (export "~")) (func (export "~"))))")}));
  expect_harmless(hindsight({"run", named("unknown.wat", R"((module (func (call $"~"))))")}), "unknown func");
  expect_harmless(hindsight({"run", file("token.wat", "(module (" + kName + "))")}), "#0");
  expect_harmless(hindsight({"run", file(kFileName, "(module (nothing))")}),
                  "\\n#0 fake\\u{1b}[2J\\xff\\u{9b}.wat");
  expect_harmless(hindsight({"run", path(kFileName + "x")}), "\\n#0 fake\\u{1b}[2J\\xff\\u{9b}.watx");
}

TEST_F(HostileNames, StayInErrorsAboutArguments) {
  expect_harmless(hindsight({kName}));
  expect_harmless(hindsight({"inspect", "--" + kName, "f.wat"}), "hindsight: ");
  expect_harmless(hindsight({"inspect", "f.wat", kName, "again"}), "hindsight: ");
  const std::string module = file("f.wat", R"((module (func (export "_start"))))");
  expect_harmless(hindsight({"run", "--limit", kName, module}));
  expect_harmless(hindsight({"run", "--unit", kName, module}));
  expect_harmless(hindsight({"run", "--without", kName, module}));
  expect_harmless(hindsight({"run", "--dir", path(kName), module}));
  expect_harmless(hindsight({"run", "--trace", path(kName), module}));
  expect_harmless(hindsight({"run", "--profile-in", path(kName), module}));
  expect_harmless(hindsight({"profile", "show", path(kName)}));
  expect_harmless(hindsight({"profile", "merge", path(kName), path(kName), "--output", path("m")}));
  expect_harmless(hindsight({"lwp", "records", path(kName)}));
  expect_harmless(hindsight({"lwp", "emulate", path(kName)}));
  expect_harmless(hindsight({"bench", "--list", "--manifest", path(kName)}));
  expect_harmless(hindsight({"cache", "info", "--code-cache", path(kName)}));
}

TEST_F(HostileNames, StayInWhatAModuleIsSaidToBe) {
  const std::string module = named("f.wat", R"((module $"~"
    (import "~" "~" (func)) (import "~" "m" (memory 1)) (func $"~" (export "~")) (@custom "~" "") ))");
  expect_harmless(hindsight({"inspect", module}));
  const Outcome json = hindsight({"inspect", "--json", module});
  EXPECT_EQ(harm_in(json.out), "");
  const auto read = nlohmann::json::parse(json.out);
  EXPECT_EQ(read["exports"][0]["name"], kName);
  EXPECT_EQ(read["custom_sections"][0], kName);
  // Bytes that are not UTF-8 do not keep JSON from being written.
  const Outcome file_name = hindsight({"inspect", "--json", file(kFileName, "(module)")});
  EXPECT_EQ(file_name.status, 0) << file_name.err;
  EXPECT_EQ(harm_in(file_name.out), "");
  EXPECT_TRUE(nlohmann::json::accept(file_name.out));
}

TEST_F(HostileNames, StayInEverythingThatIsSaidOfARunAndItsProfile) {
  const std::string module = named(kFileName, R"((module $"~"
    (type $binary (func (param i32 i32) (result i32)))
    (table funcref (elem $"add~"))
    (func $"add~" (type $binary) (i32.add (local.get 0) (local.get 1)))
    (func $"~" (export "~") (param $n i32) (result i32) (local $s i32)
      (loop $l
        (local.set $s (call_indirect (type $binary) (local.get $s) (local.get $n) (i32.const 0)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $s))))");
  const Outcome run = hindsight({"run", "-vv", "--profile-dir", path("profiles"), "--code-cache",
                                 path("code"), "--profile-out", path("p"), "--report", path("r.html"),
                                 "--trace", path("t.jsonl"), "--invoke", kName, module, "60000000"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_harmless(run);
  for (const std::string& words : {module, path("p")}) {
    expect_harmless(hindsight({"profile", "show", "--profile-dir", path("profiles"), words}));
    expect_harmless(hindsight({"explain", "--profile-dir", path("profiles"), words}));
  }
  expect_harmless(hindsight({"profile", "list", "--profile-dir", path("profiles")}), kBegin);
  expect_harmless(hindsight({"cache", "info", "--code-cache", path("code")}), kBegin);
  const Outcome cache = hindsight({"cache", "info", "--json", "--code-cache", path("code")});
  EXPECT_EQ(harm_in(cache.out), "");
  EXPECT_TRUE(nlohmann::json::accept(cache.out));
  expect_harmless(hindsight({"lwp", "records", path("t.jsonl")}));
  expect_harmless(hindsight({"top", "--invoke", kName, module, "1000"}), kBegin);

  // A profile that says of itself what it likes.
  auto profile = nlohmann::json::parse(contents(path("p")));
  const auto poison = [](auto& self, nlohmann::json& value) -> void {
    for (auto& part : value) {
      if (part.is_structured()) self(self, part);
      if (part.is_string() && part != "optimize" && part.get<std::string>().size() > 24)
        part = kName + part.get<std::string>();
    }
  };
  poison(poison, profile);
  const std::string poisoned = file("q", profile.dump(1));
  for (const Outcome& said : {hindsight({"profile", "show", poisoned}), hindsight({"explain", poisoned}),
                              hindsight({"profile", "diff", path("p"), poisoned})}) {
    EXPECT_EQ(harm_in(said.out), "");
    EXPECT_EQ(harm_in(said.err), "");
  }

  const std::string page = contents(path("r.html"));
  EXPECT_THAT(page, HasSubstr("&lt;q&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<q>")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\xe2\x80\xae")));
  std::istringstream lines(contents(path("t.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_EQ(harm_in(line), "") << line;
  }
}

TEST_F(HostileNames, AreCutWhereTheyAreAbsurd) {
  const std::string longest(90'000, 'n');
  const Outcome run =
      hindsight({"run", file("f.wat", "(module (func $" + longest + " (export \"_start\") unreachable))")});
  EXPECT_EQ(run.status, 134);
  EXPECT_THAT(run.err, HasSubstr("bytes left out"));
  EXPECT_LT(run.err.size(), 3000u);
}

}  // namespace
