// Filters a series by a few weights, whose number only the arguments know. An inner loop has so many iterations for each
// place, the same number every time.
//
// Arguments: weights, places, repetitions.
#include "../../common/sample.h"

KERNEL static void filter(float* out, const float* in, const float* weights, uint32_t places, uint32_t taps) {
  for (uint32_t i = 0; i < places; ++i) {
    float sum = 0;
    for (uint32_t k = 0; k < taps; ++k) sum += weights[k] * in[i + k];
    out[i] = sum;
  }
}

int main(int argc, char** argv) {
  const uint32_t taps = argument(argc, argv, 1, 7);
  const uint32_t places = argument(argc, argv, 2, 8000);
  const uint32_t repetitions = argument(argc, argv, 3, 100000);

  float* in = allocate(places + taps, sizeof *in);
  float* out = allocate(places, sizeof *out);
  float* weights = allocate(taps, sizeof *weights);
  uint64_t seed = 34;
  for (uint32_t i = 0; i < places + taps; ++i) in[i] = (float)random_unit(&seed);
  for (uint32_t i = 0; i < taps; ++i) weights[i] = (float)random_unit(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    filter(out, in, weights, places, taps);
    checksum = mix(checksum, bits_of(out[r % places]));
    in[r % places] = (float)random_unit(&seed);
  }
  return report("short_filter", checksum);
}
