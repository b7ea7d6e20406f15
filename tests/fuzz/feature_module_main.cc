// Writes a random module for tests/fuzz/fuzz.mjs: `feature_module SEED FILE`.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/fuzz/feature_module.h"

int main(int argc, char** argv) {
  uint32_t seed = 0;
  if (argc != 3 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seed).ec != std::errc()) {
    std::fprintf(stderr, "usage: feature_module SEED FILE\n");
    return 2;
  }
  const auto bytes = hindsight::fuzz::FeatureModule(seed).make();
  std::ofstream file(argv[2], std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.flush() ? 0 : 1;
}
