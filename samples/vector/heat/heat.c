// Heat spreading over a plate: a five-point stencil in single precision, step by step between two grids.
//
// Arguments: the grid's width and height, steps.
#include "../../common/sample.h"

KERNEL static void step(const float* from, float* to, uint32_t size) {
  for (uint32_t y = 1; y + 1 < size; ++y) {
    const float* above = from + (y - 1) * size;
    const float* row = from + y * size;
    const float* below = from + (y + 1) * size;
    float* out = to + y * size;
    for (uint32_t x = 1; x + 1 < size; ++x) {
      out[x] = row[x] + 0.2f * (above[x] + below[x] + row[x - 1] + row[x + 1] - 4.0f * row[x]);
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t size = argument(argc, argv, 1, 256);
  const uint32_t steps = argument(argc, argv, 2, 40000);

  float* one = allocate((size_t)size * size, sizeof *one);
  float* other = allocate((size_t)size * size, sizeof *other);
  uint64_t seed = 54;
  for (uint32_t i = 0; i < size * size; ++i) one[i] = other[i] = (float)random_unit(&seed);

  for (uint32_t s = 0; s < steps; s += 2) {
    step(one, other, size);
    step(other, one, size);
  }
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < size * size; ++i) checksum = mix(checksum, bits_of(one[i]));
  return report("heat", checksum);
}
