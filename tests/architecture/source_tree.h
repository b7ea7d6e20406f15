// The files of the project, as these tests read them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace hindsight::source_tree {

inline std::filesystem::path root() {
  return HINDSIGHT_SOURCE_ROOT;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Paths from the root, sorted; of all folders that hold something of ours.
inline std::vector<std::string> files() {
  std::vector<std::string> out;
  const auto add = [&](const std::filesystem::path& path) {
    out.push_back(std::filesystem::relative(path, root()).generic_string());
  };
  for (const auto& entry : std::filesystem::directory_iterator(root()))
    if (entry.is_regular_file()) add(entry.path());
  for (const char* top :
       {"base", "cmake", "docs", "jit", "feedback", "runtime", "samples", "scripts", "tests"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / top))
      if (entry.is_regular_file()) add(entry.path());
  std::ranges::sort(out);
  return out;
}

// What is compiled, of the rooms and the samples.
inline std::vector<std::string> sources() {
  std::vector<std::string> out = files();
  std::erase_if(out, [](const std::string& file) {
    const std::string extension = std::filesystem::path(file).extension().string();
    return file.starts_with("tests/") || (extension != ".h" && extension != ".cc" && extension != ".c" &&
                                          extension != ".inc" && extension != ".S");
  });
  return out;
}

}  // namespace hindsight::source_tree
