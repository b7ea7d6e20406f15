// The same function, compiled twice, has the same instructions and the same pc map. That is so in one
// process, on several threads at once, and in processes whose addresses differ.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/jit/determinism/code_digest.h"

namespace hindsight::jit::testing {
namespace {

constexpr std::array kSamples = {"compute/fft/fft", "exceptions/throwing",
                                 "vector/alpha_blend/alpha_blend_simd"};
constexpr uint32_t kStride = 6;

std::string path_of(const char* sample) {
  return std::string(HINDSIGHT_SAMPLES "/") + sample + ".wasm";
}

std::vector<uint8_t> bytes_of(const char* sample) {
  std::ifstream file(path_of(sample), std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << path_of(sample);
  return bytes;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (!pipe) return text;
  std::array<char, 4096> chunk{};
  while (const size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(Compiling, TwiceGivesTheSameBytes) {
  for (const char* sample : kSamples) {
    const std::vector<uint8_t> bytes = bytes_of(sample);
    EXPECT_EQ(digest_of(bytes, kStride), digest_of(bytes, kStride)) << sample;
  }
  for (const std::vector<uint8_t>& bytes : random_loops(1, 8))
    EXPECT_EQ(digest_of(bytes, 1), digest_of(bytes, 1));
}

TEST(Compiling, OnSeveralThreadsAtOnceGivesTheSameBytes) {
  std::vector<std::vector<uint8_t>> modules = random_loops(101, 4);
  modules.push_back(bytes_of(kSamples[0]));
  std::array<std::vector<Digest>, 3> digests;
  std::vector<std::thread> threads;
  for (std::vector<Digest>& own : digests)
    threads.emplace_back([&] {
      for (const std::vector<uint8_t>& bytes : modules) own.push_back(digest_of(bytes, kStride));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Digest>& other : digests) EXPECT_EQ(other, digests[0]);
}

TEST(Compiling, InTwoProcessesGivesTheSameBytes) {
  std::string command = HINDSIGHT_DIGEST_FILES;
  for (const char* sample : {kSamples[0], kSamples[2]}) command += " '" + path_of(sample) + "'";
  const std::string one = output_of(command), other = output_of(command);
  EXPECT_EQ(one, other);
  EXPECT_NE(one.find("optimized: "), std::string::npos);
  // What this process makes is the same too.
  const std::string here = to_text(digest_of(bytes_of(kSamples[0]), kStride));
  EXPECT_NE(one.find(here), std::string::npos);
}

}  // namespace
}  // namespace hindsight::jit::testing
