// Conway's game of life on a torus-free board of bytes: eight neighbours a cell, counted and compared.
//
// Arguments: the board's width and height, generations.
#include "../../common/sample.h"

KERNEL static void generation(const uint8_t* from, uint8_t* to, uint32_t size) {
  for (uint32_t y = 1; y + 1 < size; ++y) {
    const uint8_t* above = from + (y - 1) * size;
    const uint8_t* row = from + y * size;
    const uint8_t* below = from + (y + 1) * size;
    uint8_t* out = to + y * size;
    for (uint32_t x = 1; x + 1 < size; ++x) {
      const uint8_t count = (uint8_t)(above[x - 1] + above[x] + above[x + 1] + row[x - 1] + row[x + 1] + below[x - 1] +
                                      below[x] + below[x + 1]);
      out[x] = (uint8_t)((count == 3) | ((count == 2) & row[x]));
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t size = argument(argc, argv, 1, 512);
  const uint32_t generations = argument(argc, argv, 2, 10000);

  uint8_t* one = allocate((size_t)size * size, 1);
  uint8_t* other = allocate((size_t)size * size, 1);
  memset(one, 0, (size_t)size * size);
  memset(other, 0, (size_t)size * size);
  uint64_t seed = 55;
  for (uint32_t y = 1; y + 1 < size; ++y)
    for (uint32_t x = 1; x + 1 < size; ++x) one[y * size + x] = next_random(&seed) % 3 == 0;

  uint64_t checksum = 0;
  for (uint32_t g = 0; g < generations; g += 2) {
    generation(one, other, size);
    generation(other, one, size);
    one[(1 + g % (size - 2)) * size + size / 2] ^= 1;  // so that the board never comes to rest
  }
  for (uint32_t i = 0; i < size * size; ++i) checksum = mix(checksum, one[i]);
  return report("life", checksum);
}
