// A finite impulse response filter over single-precision samples, one coefficient after the other over the whole
// block. Filters on blocks are written so where the order of a sum must not change.
//
// Arguments: samples, coefficients, repetitions.
#include "../../common/sample.h"

KERNEL static void filter(const float* in, float* out, const float* taps, uint32_t samples, uint32_t count) {
  for (uint32_t i = 0; i < samples; ++i) out[i] = 0;
  for (uint32_t t = 0; t < count; ++t) {
    const float factor = taps[t];
    for (uint32_t i = 0; i < samples; ++i) out[i] += factor * in[i + t];
  }
}

int main(int argc, char** argv) {
  const uint32_t samples = argument(argc, argv, 1, 4096);
  const uint32_t count = argument(argc, argv, 2, 32);
  const uint32_t repetitions = argument(argc, argv, 3, 30000);

  float* in = allocate(samples + count, sizeof *in);
  float* out = allocate(samples, sizeof *out);
  float* taps = allocate(count, sizeof *taps);
  uint64_t seed = 56;
  for (uint32_t i = 0; i < samples + count; ++i) in[i] = (float)(random_unit(&seed) - 0.5);
  for (uint32_t t = 0; t < count; ++t) taps[t] = (float)(random_unit(&seed) - 0.5) / (float)count;

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    filter(in, out, taps, samples, count);
    in[r % samples] += 0.25f * out[(r * 7919) % samples];
    checksum = mix(checksum, bits_of(out[(r * 104729) % samples]));
  }
  return report("fir", checksum);
}
