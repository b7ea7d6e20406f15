// Transcripts of the built command: transcripts/*.txt has command lines, each with its exit status and all that it wrote.
// Commands run in a folder with transcripts/files and those made here. In the words of a command, \x1b is an escape character.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/runtime/cli/command.h"
#include "tests/text_cases.h"

namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

// What differs between machines and runs. Nothing else is left out of a transcript.
std::string normalized(std::string text, const fs::path& folder) {
  const std::pair<std::string, const char*> same[] = {
      {HINDSIGHT_THREADED_PROGRAM, "THREADED"},
      {folder.string(), "FOLDER"},
  };
  for (const auto& [what, name] : same)
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.replace(at, what.size(), name);
  const std::pair<std::regex, const char*> alike[] = {
      {std::regex("^hindsight [0-9]+\\.[0-9]+.*"), "hindsight VERSION"},
      {std::regex("\x1b"), "\\x1b"},
      {std::regex("would take [0-9]+ "), "would take N "},  // bytes of code
      // Of files of the cache: the key of the options, how large they are, and when they were used.
      {std::regex("[0-9a-f]{32}-[0-9a-f]{16}\\.code  [0-9]+ bytes, used [0-9]+ s ago"),
       "KEY.code  N bytes, used N s ago"},
      {std::regex("1 files, [0-9]+ bytes"), "1 files, N bytes"},
      {std::regex("tuning [0-9]+"), "tuning N"},
  };
  for (const auto& [what, name] : alike) text = std::regex_replace(text, what, name);
  return text;
}

std::string lines_of(const std::string& text, const char* before) {
  std::string lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines += before + line + "\n";
  if (!text.empty() && !text.ends_with('\n')) lines += "(the last line has no end)\n";
  return lines;
}

class Transcripts : public Command, public testing::WithParamInterface<fs::path> {
 protected:
  void SetUp() override {
    Command::SetUp();
    fs::copy(fs::path(HINDSIGHT_TRANSCRIPTS) / "files", folder_);
    make_modules();
    make_dumps();
    make_profiles();
    fs::create_directories(path("mine/sub"));
    fs::create_directories(path("home/narrower"));
    file("mine/notes.code", "text");
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  void TearDown() override {
    EXPECT_TRUE(fs::exists("mine/notes.code")) << "what others keep in a folder stays there";
    fs::current_path(before_);
    Command::TearDown();
  }

  std::string outcome_of(const std::string& input) const {
    std::vector<std::string> words;
    std::istringstream in(input);
    std::string word;
    in >> word >> word;  // "$ hindsight"
    while (in >> word) {
      if (word == "THREADED") word = HINDSIGHT_THREADED_PROGRAM;
      if (word.starts_with("\\x1b")) word.replace(0, 4, "\x1b");
      words.push_back(word);
    }
    const Outcome outcome = hindsight(words);
    return normalized(lines_of(outcome.out, "") + lines_of(outcome.err, "(stderr) "), folder_) +
           fmt::format("exit {}\n", outcome.status);
  }

 private:
  // Recorded ones, whose decisions tests of the policy replay.
  void make_profiles() const {
    for (const char* name : {"linked_list.json", "gather_w28.json", "gather_w28_2.json", "token_bucket.json",
                             "small_products.json"})
      fs::copy(fs::path(HINDSIGHT_REPLAYS) / name, folder_);
    file("bad.profile", "nonsense");
    file("later_version.json", R"({"format":"hindsight-profile","version":8})");
  }

  void make_modules() const {
    const auto custom = [](const std::string& name, const std::string& contents) {
      const std::string all = static_cast<char>(name.size()) + name + contents;
      return "\0"s + static_cast<char>(all.size()) + all;
    };
    // The section of types has length 5 where 1 byte is left.
    file("broken.wasm", "\0asm\1\0\0\0\1\5\0"s);
    file("empty.wasm", "");
    file("made.wasm",
         "\0asm\1\0\0\0"s +
             custom("producers", "\2\x08language\1\3C11\0\x0cprocessed-by\1\5cl\033ng\00419.1"s) +
             custom("target_features", "\1+\7simd128"s) + custom("target_features", "\7?"s));
  }

  void make_dumps() const {
    // Event 4 in the final numbering: flags 0x6000 | 0x1000, latency 250, address, data address. It was event 3 in 2007.
    std::string record(32, '\0');
    record[0] = 4;
    record[3] = 0x70;
    record[4] = static_cast<char>(250);
    record[8] = 0x10;
    record[16] = 0x40;
    file("two_misses", record + record);
    file("one", record);
    record[0] = 3;
    file("old_miss", record);
    file("short", record.substr(0, 20));
    file("tail", record + record.substr(0, 7));
    file("garbage", std::string(100, 'x'));
    file("later", record + std::string(32, 'y'));
    file("json", "{\"a\":1}\n");
    file("notjson", "{oops\n");
    file("chrome", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    const std::string head = "{\"hindsight_trace\":1,\"program\":\"p\",\"start_ns\":1}\n";
    file("cut", head + "{\"ns\":1,\"id\":255}\n{\"ns\":2,\"i");
    file("noend", head + "{\"ns\":1,\"id\":255}\n");
    file("noid", head + "{\"ns\":1}\n");
    file("longline", head + std::string(200'000, '{'));
    file("types", head + "[1]\n");
    file("hostile",
         head +
             "{\"ns\":-5,\"id\":\"0xzz\",\"function\":\"\\u001b[31m\",\"flags\":1e99,\"thread\":null}\n"
             "{\"end\":true}\n");
  }

  fs::path before_;
};

TEST_P(Transcripts, AreWhatTheCommandDoes) {
  hindsight::testing::expect_outcomes(GetParam(),
                                      [&](const std::string& input) { return outcome_of(input); });
}

INSTANTIATE_TEST_SUITE_P(Files, Transcripts,
                         testing::ValuesIn(hindsight::testing::files_of(HINDSIGHT_TRANSCRIPTS, ".txt")),
                         hindsight::testing::test_name_of);

}  // namespace
