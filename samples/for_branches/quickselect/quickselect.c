// Finds percentiles of random numbers by quickselect with Lomuto's partition. It swaps an element to the front or
// leaves it where it is: a coin toss an element.
//
// Arguments: thousands of numbers, repetitions.
#include "../../common/sample.h"

// The numbers under the pivot, which is numbers[0], come first. Returns how many.
KERNEL static uint32_t partition(uint32_t* numbers, uint32_t count) {
  const uint32_t pivot = numbers[0];
  uint32_t under = 0;
  for (uint32_t i = 1; i < count; ++i) {
    const uint32_t value = numbers[i];
    if (value < pivot) {
      ++under;
      numbers[i] = numbers[under];
      numbers[under] = value;
    }
  }
  numbers[0] = numbers[under];
  numbers[under] = pivot;
  return under;
}

static uint32_t select_rank(uint32_t* numbers, uint32_t count, uint32_t rank) {
  for (;;) {
    const uint32_t under = partition(numbers, count);
    if (rank == under) return numbers[under];
    if (rank < under) {
      count = under;
    } else {
      numbers += under + 1;
      count -= under + 1;
      rank -= under + 1;
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 100);
  const uint32_t repetitions = argument(argc, argv, 2, 4000);

  uint32_t* numbers = allocate(count, sizeof *numbers);
  uint64_t seed = 35;
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    for (uint32_t i = 0; i < count; ++i) numbers[i] = (uint32_t)next_random(&seed);
    checksum = mix(checksum, select_rank(numbers, count, random_below(&seed, count)));
  }
  return report("quickselect", checksum);
}
