// Prints what both tiers make of modules: digest_files FILE...
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/jit/determinism/code_digest.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s\n%s", argv[i],
                hindsight::jit::testing::to_text(hindsight::jit::testing::digest_of(bytes, 6)).c_str());
  }
}
