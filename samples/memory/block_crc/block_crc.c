// CRC-32 of 64-byte blocks fetched by number, with the classic table of 256 entries. A byte-by-byte chain of
// cached look-ups follows each miss, as in archives, network stacks and log recovery.
//
// Arguments: log2 of the number of blocks, log2 of the number of requests, repetitions.
#include "../../common/sample.h"

enum { kBlockSize = 64 };

static uint32_t table[256];

static void make_table(void) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (uint32_t bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
    table[i] = crc;
  }
}

KERNEL static uint64_t check_blocks(const uint8_t* blocks, const uint32_t* requests, uint32_t count,
                                    uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* block = blocks + (size_t)requests[i] * kBlockSize;
    uint32_t crc = 0xffffffffu;
    for (uint32_t b = 0; b < kBlockSize; ++b) crc = (crc >> 8) ^ table[(crc ^ block[b]) & 0xff];
    sum += ~crc;
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t block_count = 1u << argument(argc, argv, 1, 22);
  const uint32_t request_count = 1u << argument(argc, argv, 2, 21);
  const uint32_t repetitions = argument(argc, argv, 3, 5);

  make_table();
  uint8_t* blocks = allocate(block_count, kBlockSize);
  uint64_t seed = 16;
  for (uint32_t i = 0; i < block_count * (kBlockSize / 8); ++i) {
    const uint64_t random = next_random(&seed);
    memcpy(blocks + (size_t)i * 8, &random, 8);
  }
  uint32_t* requests = allocate(request_count, sizeof *requests);
  for (uint32_t i = 0; i < request_count; ++i) requests[i] = random_below(&seed, block_count);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r)
    checksum = mix(r, check_blocks(blocks, requests, request_count, checksum));
  return report("block_crc", checksum);
}
