// SHA-256 (FIPS 180-4) over a buffer that stays in the cache: rotations, additions and a long dependent
// chain. The constants are computed from the roots of the first primes, as the standard defines them.
//
// Arguments: the buffer's length in KiB, repetitions.
#include "../../common/sample.h"

static uint32_t round_constants[64];
static uint32_t initial_state[8];

// The first 32 bits of the fractional part of the square (power 2) or cube (power 3) root of a prime below
// 512. It is the largest root with `root^power <= prime * 2^(32 * power)`, by bisection on 128-bit
// products.
static uint32_t root_fraction(uint32_t prime, int power) {
  uint64_t low = 0, high = (uint64_t)32 << 32;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    // middle has 5 + 32 bits; its cube needs 111, which two steps of 64-bit arithmetic keep exactly.
    unsigned __int128 product = (unsigned __int128)middle * middle;
    unsigned __int128 bound = (unsigned __int128)prime << 64;
    if (power == 3) {
      product *= middle;
      bound = (unsigned __int128)prime << 96;
    }
    if (product <= bound) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (uint32_t)low;
}

static void make_constants(void) {
  uint32_t count = 0;
  for (uint32_t candidate = 2; count < 64; ++candidate) {
    uint32_t divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor != 0) ++divisor;
    if (divisor * divisor <= candidate) continue;
    if (count < 8) initial_state[count] = root_fraction(candidate, 2);
    round_constants[count++] = root_fraction(candidate, 3);
  }
}

static inline uint32_t rotate(uint32_t value, uint32_t by) {
  return (value >> by) | (value << (32 - by));
}

KERNEL static void compress(uint32_t* state, const uint8_t* block) {
  uint32_t w[64];
  for (uint32_t i = 0; i < 16; ++i) {
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
           block[4 * i + 3];
  }
  for (uint32_t i = 16; i < 64; ++i) {
    const uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t t1 =
        h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

// Hashes whole blocks; the caller's message is padded already.
static void hash(const uint8_t* message, uint32_t blocks, uint32_t* state) {
  memcpy(state, initial_state, sizeof initial_state);
  for (uint32_t b = 0; b < blocks; ++b) compress(state, message + 64 * b);
}

int main(int argc, char** argv) {
  const uint32_t bytes = 1024 * argument(argc, argv, 1, 256);
  const uint32_t repetitions = argument(argc, argv, 2, 2500);

  make_constants();
  uint8_t* message = allocate(bytes + 64, 1);
  uint64_t seed = 22;
  for (uint32_t i = 0; i < bytes; ++i) message[i] = (uint8_t)next_random(&seed);
  memset(message + bytes, 0, 64);
  message[bytes] = 0x80;
  const uint64_t bit_length = (uint64_t)bytes * 8;
  for (uint32_t i = 0; i < 8; ++i) message[bytes + 56 + i] = (uint8_t)(bit_length >> (56 - 8 * i));

  uint32_t state[8];
  for (uint32_t r = 0; r < repetitions; ++r) {
    hash(message, bytes / 64 + 1, state);
    memcpy(message + (r * 64) % bytes, state, sizeof state);  // the next message contains this digest
  }
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < 8; ++i) checksum = mix(checksum, state[i]);
  return report("sha256", checksum);
}
