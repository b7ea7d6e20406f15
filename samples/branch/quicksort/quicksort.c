// Quicksort of random numbers with a median-of-three pivot and insertion sort for short ranges: every
// comparison in the partition loop is a coin toss.
//
// Arguments: thousands of numbers, repetitions.
#include "../../common/sample.h"

KERNEL static void sort(uint32_t* low, uint32_t* high) {  // [low, high]
  while (high - low > 24) {
    uint32_t* middle = low + (high - low) / 2;
    uint32_t a = *low, b = *middle, c = *high;
    const uint32_t pivot = a < b ? (b < c ? b : (a < c ? c : a)) : (a < c ? a : (b < c ? c : b));
    uint32_t *i = low, *j = high;
    while (i <= j) {
      while (*i < pivot) ++i;
      while (*j > pivot) --j;
      if (i <= j) {
        const uint32_t swap = *i;
        *i++ = *j;
        *j-- = swap;
      }
    }
    // The smaller part by recursion, the larger one by the loop: the stack stays logarithmic.
    if (j - low < high - i) {
      if (low < j) sort(low, j);
      low = i;
    } else {
      if (i < high) sort(i, high);
      high = j;
    }
  }
  for (uint32_t* i = low + 1; i <= high; ++i) {
    const uint32_t value = *i;
    uint32_t* at = i;
    while (at > low && at[-1] > value) {
      *at = at[-1];
      --at;
    }
    *at = value;
  }
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 1000);
  const uint32_t repetitions = argument(argc, argv, 2, 50);

  uint32_t* numbers = allocate(count, sizeof *numbers);
  uint64_t seed = 31;
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    for (uint32_t i = 0; i < count; ++i) numbers[i] = (uint32_t)next_random(&seed);
    sort(numbers, numbers + count - 1);
    uint32_t disorder = 0;
    for (uint32_t i = 1; i < count; ++i) disorder += numbers[i - 1] > numbers[i];
    checksum = mix(mix(checksum, disorder), numbers[count / 3]);
  }
  return report("quicksort", checksum);
}
