// The longest of many Collatz sequences: a short loop whose one branch follows the low bit of a number that
// looks random.
//
// Arguments: thousands of starting numbers.
#include "../../common/sample.h"

KERNEL static uint64_t longest(uint32_t first, uint32_t count) {
  uint64_t best_start = 0, best_length = 0, total = 0;
  for (uint32_t start = first; start < first + count; ++start) {
    uint64_t n = start;
    uint64_t length = 0, odd = 0;
    while (n != 1) {
      if (n & 1) {
        n = 3 * n + 1;
        ++odd;
      } else {
        n >>= 1;
      }
      ++length;
    }
    total += length * 3 + odd;
    if (length > best_length) {
      best_length = length;
      best_start = start;
    }
  }
  return mix(mix(best_start, best_length), total);
}

int main(int argc, char** argv) {
  const uint32_t thousands = argument(argc, argv, 1, 16000);
  uint64_t checksum = 0;
  for (uint32_t t = 0; t < thousands; ++t) checksum = mix(checksum, longest(1 + 1000 * t, 1000));
  return report("collatz", checksum);
}
