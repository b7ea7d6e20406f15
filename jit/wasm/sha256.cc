#include "jit/wasm/sha256.h"

#include <bit>
#include <cstring>

#include "jit/wasm/sha256_compress.h"

namespace hindsight::wasm {

namespace {

constexpr size_t kBlockBytes = 64;

void compress_block(std::array<uint32_t, 8>& state, const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    uint32_t word;
    std::memcpy(&word, block + 4 * i, sizeof(word));
    w[i] = __builtin_bswap32(word);
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256RoundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

void compress_portable(std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) compress_block(state, blocks + i * kBlockBytes);
}

std::array<uint8_t, 32> sha256(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto compress = has_sha_instructions() ? compress_with_sha_instructions : compress_portable;
  const size_t done = bytes.size() / kBlockBytes * kBlockBytes;
  if (done != 0) compress(state, bytes.data(), done / kBlockBytes);

  // The rest, a one bit, zeros, and the length in bits as a big-endian 64-bit number.
  uint8_t tail[2 * kBlockBytes] = {};
  const size_t rest = bytes.size() - done;
  if (rest != 0) std::memcpy(tail, bytes.data() + done, rest);
  tail[rest] = 0x80;
  const size_t tail_bytes = rest + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const uint64_t bits = __builtin_bswap64(static_cast<uint64_t>(bytes.size()) * 8);
  std::memcpy(tail + tail_bytes - sizeof(bits), &bits, sizeof(bits));
  compress(state, tail, tail_bytes / kBlockBytes);

  std::array<uint8_t, 32> out;
  for (int i = 0; i < 8; ++i) {
    const uint32_t word = __builtin_bswap32(state[i]);
    std::memcpy(out.data() + 4 * i, &word, sizeof(word));
  }
  return out;
}

}  // namespace hindsight::wasm
