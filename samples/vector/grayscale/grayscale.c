// The brightness of the pixels of an RGBA image, again and again: strided bytes in, bytes out.
//
// Arguments: pixels, repetitions.
#include "../../common/sample.h"

KERNEL static void brightness(const uint8_t* rgba, uint8_t* grey, uint32_t pixels) {
  for (uint32_t i = 0; i < pixels; ++i) {
    const uint32_t weighted = 77 * rgba[4 * i] + 150 * rgba[4 * i + 1] + 29 * rgba[4 * i + 2];
    grey[i] = (uint8_t)((weighted + 128) >> 8);
  }
}

int main(int argc, char** argv) {
  const uint32_t pixels = argument(argc, argv, 1, 65536);
  const uint32_t repetitions = argument(argc, argv, 2, 60000);

  uint8_t* rgba = allocate(pixels, 4);
  uint8_t* grey = allocate(pixels, 1);
  uint64_t seed = 52;
  for (uint32_t i = 0; i < 4 * pixels; ++i) rgba[i] = (uint8_t)next_random(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    brightness(rgba, grey, pixels);
    const uint32_t place = r * 7919 % pixels;
    checksum = mix(checksum, grey[place]);
    rgba[4 * place + r % 3] ^= 0x55;
  }
  for (uint32_t i = 0; i < pixels; ++i) checksum = mix(checksum, grey[i]);
  return report("grayscale", checksum);
}
