// Blends an image into another by a mask of bytes, again and again: products of bytes, rounded back to bytes.
//
// Arguments: bytes, repetitions.
#include "../../common/sample.h"

KERNEL static void blend(uint8_t* to, const uint8_t* from, const uint8_t* mask, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint32_t mixed = to[i] * (255u - mask[i]) + from[i] * mask[i] + 128;
    to[i] = (uint8_t)((mixed + (mixed >> 8)) >> 8);
  }
}

int main(int argc, char** argv) {
  const uint32_t bytes = argument(argc, argv, 1, 131072);
  const uint32_t repetitions = argument(argc, argv, 2, 40000);

  uint8_t* to = allocate(bytes, 1);
  uint8_t* from = allocate(bytes, 1);
  uint8_t* mask = allocate(bytes, 1);
  uint64_t seed = 53;
  for (uint32_t i = 0; i < bytes; ++i) {
    to[i] = (uint8_t)next_random(&seed);
    from[i] = (uint8_t)next_random(&seed);
    mask[i] = (uint8_t)next_random(&seed);
  }

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    blend(to, from, mask, bytes);
    const uint32_t place = r * 7919 % bytes;
    checksum = mix(checksum, to[place]);
    from[place] ^= 0xff;
  }
  for (uint32_t i = 0; i < bytes; ++i) checksum = mix(checksum, to[i]);
  return report("alpha_blend", checksum);
}
