// Prints a random module of a kind, as text, for tests/fuzz/fuzz.mjs: `program_module KIND SEED`.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/fuzz/condition_text.h"
#include "tests/fuzz/edge_text.h"
#include "tests/fuzz/mixed_text.h"
#include "tests/fuzz/row_text.h"
#include "tests/fuzz/step_text.h"

namespace {

// Empty: no such kind.
std::string text_of(const std::string& kind, uint32_t seed) {
  if (kind == "end") return hindsight::fuzz::EdgeText(seed, /*loops=*/false).make();
  if (kind == "end-loops") return hindsight::fuzz::EdgeText(seed, /*loops=*/true).make();
  if (kind == "conditions") return hindsight::fuzz::ConditionText(seed).make();
  if (kind == "rows") return hindsight::fuzz::RowText(seed).make();
  if (kind == "steps") return hindsight::fuzz::StepText(seed).make();
  if (kind == "mixed") return hindsight::fuzz::MixedText(seed).make();
  if (kind == "linked") return hindsight::fuzz::MixedText(seed).make_linked();
  if (kind == "straight") return hindsight::fuzz::MixedText(seed).make_straight();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t seed = 0;
  std::string text;
  if (argc == 3 && std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), seed).ec == std::errc())
    text = text_of(argv[1], seed);
  if (text.empty()) {
    std::fprintf(stderr,
                 "usage: program_module end|end-loops|steps|mixed|linked|straight|conditions|rows SEED\n");
    return 2;
  }
  std::fputs(text.c_str(), stdout);
}
