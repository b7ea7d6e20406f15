// Feature hashing: each token is hashed to a slot of a large table of weights, and the weight is turned into
// a score. The address comes from arithmetic on a streamed value (no index array to read), the work waits for
// the weight.
//
// Arguments: log2 of the table's length, log2 of the number of tokens, repetitions.
#include "../../common/sample.h"

static inline uint32_t slot_of(uint32_t token, uint32_t mask) {
  token ^= token >> 16;
  token *= 0x85ebca6bu;
  token ^= token >> 13;
  token *= 0xc2b2ae35u;
  token ^= token >> 16;
  return token & mask;
}

// A fixed-point logistic curve: a cubic in the weight, clamped on both sides.
static inline int32_t score_of(int32_t weight) {
  const int32_t x = weight >> 16;
  const int32_t square = (x * x) >> 15;
  int32_t y = 16384 + ((x * (24576 - (square >> 2))) >> 16);
  y -= (square * x) >> 18;
  if (y < 0) y = 0;
  if (y > 32767) y = 32767;
  return (y * (32768 - y)) >> 13;
}

KERNEL static uint64_t score_tokens(const int32_t* weights, uint32_t mask, const uint32_t* tokens,
                                    uint32_t count, uint32_t salt) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += (uint32_t)score_of(weights[slot_of(tokens[i] ^ salt, mask)]);
  return total;
}

int main(int argc, char** argv) {
  const uint32_t length = 1u << argument(argc, argv, 1, 26);
  const uint32_t token_count = 1u << argument(argc, argv, 2, 23);
  const uint32_t repetitions = argument(argc, argv, 3, 8);

  int32_t* weights = allocate(length, sizeof *weights);
  uint32_t* tokens = allocate(token_count, sizeof *tokens);
  for (uint32_t i = 0; i < length; ++i) weights[i] = (int32_t)(i * 2654435761u);
  uint64_t seed = 3;
  for (uint32_t i = 0; i < token_count; ++i) tokens[i] = (uint32_t)next_random(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    checksum = mix(checksum, score_tokens(weights, length - 1, tokens, token_count, r * 0x3c6ef372u));
  }
  return report("gather_hash", checksum);
}
