// A separable 5 x 5 blur of a grey image, bytes in and bytes out, again and again: small integers that
// vectors like.
//
// Arguments: the image's width and height, repetitions.
#include "../../common/sample.h"

KERNEL static void blur_rows(const uint8_t* in, uint8_t* out, uint32_t size) {
  for (uint32_t y = 0; y < size; ++y) {
    const uint8_t* row = in + y * size;
    uint8_t* to = out + y * size;
    for (uint32_t x = 2; x + 2 < size; ++x) {
      const uint32_t sum = row[x - 2] + 4 * row[x - 1] + 6 * row[x] + 4 * row[x + 1] + row[x + 2];
      to[x] = (uint8_t)((sum + 8) >> 4);
    }
    to[0] = row[0];
    to[1] = row[1];
    to[size - 2] = row[size - 2];
    to[size - 1] = row[size - 1];
  }
}

KERNEL static void blur_columns(const uint8_t* in, uint8_t* out, uint32_t size) {
  for (uint32_t y = 0; y < size; ++y) {
    if (y < 2 || y + 2 >= size) {
      memcpy(out + y * size, in + y * size, size);
      continue;
    }
    const uint8_t* rows[5];
    for (uint32_t k = 0; k < 5; ++k) rows[k] = in + (y + k - 2) * size;
    uint8_t* to = out + y * size;
    for (uint32_t x = 0; x < size; ++x) {
      const uint32_t sum = rows[0][x] + 4 * rows[1][x] + 6 * rows[2][x] + 4 * rows[3][x] + rows[4][x];
      to[x] = (uint8_t)((sum + 8) >> 4);
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t size = argument(argc, argv, 1, 1024);
  const uint32_t repetitions = argument(argc, argv, 2, 1500);

  uint8_t* image = allocate((size_t)size * size, 1);
  uint8_t* scratch = allocate((size_t)size * size, 1);
  uint64_t seed = 24;
  for (uint32_t i = 0; i < size * size; ++i) image[i] = (uint8_t)next_random(&seed);

  for (uint32_t r = 0; r < repetitions; ++r) {
    blur_rows(image, scratch, size);
    blur_columns(scratch, image, size);
    image[scatter(r, 20) % (size * size)] ^=
        0xff;  // a speck of dust, so that the picture never comes to rest
  }
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < size * size; ++i) checksum = mix(checksum, image[i]);
  return report("blur", checksum);
}
