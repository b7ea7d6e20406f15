// Text cases: a file of inputs, each with what came of it in lines that begin with "=> " below it. The file as it should be is
// compared whole, so that nothing of a message goes unchecked. Who changes words on purpose runs the test with
// HINDSIGHT_BLESS=1, which writes the file anew, and reads the difference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hindsight::testing {

inline std::string contents_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Compares a text with that in a file, or writes it there. GoogleTest prints the difference.
inline void expect_text(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("HINDSIGHT_BLESS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  EXPECT_EQ(text, contents_of(path)) << path << ": if this is meant, HINDSIGHT_BLESS=1 with --gtest_filter="
                                     << test->test_suite_name() << '.' << test->name() << " writes it anew";
}

// The file with what comes of each input in place of what it says. An input is the lines before its "=> " lines; those that
// begin with "# " are notes, and empty ones are no part of it either.
inline std::string with_outcomes(const std::string& file,
                                 const std::function<std::string(const std::string& input)>& outcome_of) {
  std::string text, input;
  bool in_outcome = false;
  const auto answer = [&] {
    if (input.empty()) return;
    input.pop_back();  // the end of its last line
    std::istringstream outcome(outcome_of(input));
    for (std::string line; std::getline(outcome, line);) text += line.empty() ? "=>\n" : "=> " + line + "\n";
    input.clear();
  };
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("=> ") || line == "=>") {
      if (!in_outcome) answer();
      in_outcome = true;
      continue;
    }
    // An input that nobody has answered yet ends at an empty line.
    if (line.empty()) answer();
    in_outcome = false;
    text += line + "\n";
    if (!line.empty() && !line.starts_with("# ")) input += line + "\n";
  }
  answer();
  return text;
}

inline void expect_outcomes(const std::filesystem::path& path,
                            const std::function<std::string(const std::string& input)>& outcome_of) {
  expect_text(path, with_outcomes(contents_of(path), outcome_of));
}

// The files of a folder with this extension, by name: one test each, if it is parameterized by them.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder,
                                                   std::string_view extension) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

// The name of such a test.
inline std::string test_name_of(const ::testing::TestParamInfo<std::filesystem::path>& info) {
  return info.param.stem().string();
}

}  // namespace hindsight::testing
