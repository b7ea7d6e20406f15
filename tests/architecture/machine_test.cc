// What knows x86-64 lies in one place a room, named for it (NAME_x86_64.cc, x86_64.h; base/ticks.h for the clock). Three
// rooms are about nothing else: the two that make machine code, and the one that plays it.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "tests/architecture/source_tree.h"

namespace hindsight {
namespace {

bool is_about_machine_code(const std::string& file) {
  for (const char* room : {"jit/baseline/", "jit/optimizing/", "feedback/lwp/emulation/", "samples/"})
    if (file.starts_with(room)) return true;
  return false;
}

bool is_named_for_it(const std::string& file) {
  return file.find("x86_64") != std::string::npos || file == "base/ticks.h";
}

// The word in this line that only one who knows the processor would write; empty: there is none. Comments may.
std::string_view machine_word(std::string_view line) {
  line = line.substr(0, line.find("//"));
  for (const std::string_view word :
       {"__rdtsc", "_mm_", "__m128", "__m256", "__builtin_ia32_", "__cpuid", "__get_cpuid", "<cpuid.h>",
        "__x86_", "platform/x86.h", "x86intrin.h", "immintrin.h", "gregs", "greg_t", "REG_R", "REG_E",
        "PERF_REG_X86_", "Zydis"})
    if (line.find(word) != std::string_view::npos) return word;
  // An assembler statement without instructions tells the compiler something and the processor nothing.
  for (const std::string_view word : {" asm volatile(", " asm("})
    if (const size_t at = line.find(word); at != std::string_view::npos)
      return line.substr(at + word.size()).starts_with("\"\"") ? std::string_view() : word;
  return {};
}

TEST(Machine, IsKnownWhereFilesAreNamedForIt) {
  std::string complaints;
  size_t known = 0;
  for (const std::string& file : source_tree::sources()) {
    if (is_about_machine_code(file)) continue;
    std::ifstream text(source_tree::root() / file);
    size_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      const std::string_view word = machine_word(line);
      if (word.empty()) continue;
      if (is_named_for_it(file))
        ++known;
      else
        complaints += file + ":" + std::to_string(number) + ": " + std::string(word) + "\n";
    }
  }
  EXPECT_GT(known, 50u);
  EXPECT_EQ(complaints, "");
}

TEST(Machine, IsKnownInOnePlaceARoom) {
  std::map<std::string, std::set<std::string>> places;  // by folder, without extensions
  for (const std::string& file : source_tree::sources()) {
    if (is_about_machine_code(file) || !is_named_for_it(file)) continue;
    const std::filesystem::path path(file);
    places[path.parent_path().string()].insert(path.stem().string());
  }
  EXPECT_GE(places.size(), 7u);
  for (const auto& [folder, names] : places) EXPECT_EQ(names.size(), 1u) << folder;
}

TEST(Machine, HasWordsThatTheseTestsKnow) {
  EXPECT_EQ(machine_word("  const auto now = __rdtsc();"), "__rdtsc");
  EXPECT_EQ(machine_word("#include <x86intrin.h>"), "x86intrin.h");
  EXPECT_EQ(machine_word("regs[REG_RIP] = 0;"), "REG_R");
  EXPECT_EQ(machine_word("  asm volatile(\"jmp *%0\")"), " asm volatile(");
  EXPECT_EQ(machine_word("  asm volatile(\"\" : \"+m\"(value));"), "");
  EXPECT_EQ(machine_word("// as __rdtsc() does"), "");
  EXPECT_EQ(machine_word("#include \"feedback/pmu/x86_64.h\""), "");
}

}  // namespace
}  // namespace hindsight
