// The look-up layer of a recommendation model. Each sample adds up the rows of an embedding table that its 20
// features name, then squashes the sum into a score. A row is 32 floats, two cache lines.
//
// Arguments: log2 of the number of rows, thousands of samples, repetitions.
#include "../../common/sample.h"

enum { kWidth = 32, kFeatures = 20 };

KERNEL static float score(const float* table, const uint32_t* features, uint32_t samples,
                          const float* weights) {
  float total = 0;
  for (uint32_t s = 0; s < samples; ++s) {
    float sum[kWidth] = {0};
    for (uint32_t f = 0; f < kFeatures; ++f) {
      const float* row = table + (size_t)features[s * kFeatures + f] * kWidth;
      for (uint32_t d = 0; d < kWidth; ++d) sum[d] += row[d];
    }
    float dot = 0;
    for (uint32_t d = 0; d < kWidth; ++d) dot += sum[d] * weights[d];
    total += dot / (1.0f + (dot < 0 ? -dot : dot));
  }
  return total;
}

int main(int argc, char** argv) {
  const uint32_t rows = 1u << argument(argc, argv, 1, 21);
  const uint32_t samples = 1000 * argument(argc, argv, 2, 200);
  const uint32_t repetitions = argument(argc, argv, 3, 14);

  float* table = allocate((size_t)rows * kWidth, sizeof *table);
  for (uint32_t i = 0; i < rows * kWidth; ++i) table[i] = (float)(int32_t)(i * 2654435761u) * 0x1p-31f;
  uint32_t* features = allocate(samples * kFeatures, sizeof *features);
  uint64_t seed = 14;
  for (uint32_t i = 0; i < samples * kFeatures; ++i) features[i] = random_below(&seed, rows);
  float weights[kWidth];
  for (uint32_t d = 0; d < kWidth; ++d) weights[d] = (float)random_unit(&seed) - 0.5f;

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    weights[r % kWidth] += 0.125f;
    checksum = mix(checksum, bits_of(score(table, features, samples, weights)));
  }
  return report("embedding_bag", checksum);
}
