// Three functions that do little but call themselves: Fibonacci, Takeuchi and Ackermann. The cost of a direct
// call, its frame and its checks.
//
// Arguments: Fibonacci's argument, Takeuchi's first argument, Ackermann's second argument, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t fibonacci(uint32_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KERNEL static int32_t takeuchi(int32_t x, int32_t y, int32_t z) {
  return y < x ? takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y)) : z;
}

KERNEL static uint32_t ackermann(uint32_t m, uint32_t n) {
  if (m == 0) return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

int main(int argc, char** argv) {
  const uint32_t n = argument(argc, argv, 1, 36);
  const uint32_t x = argument(argc, argv, 2, 20);
  const uint32_t a = argument(argc, argv, 3, 9);
  const uint32_t repetitions = argument(argc, argv, 4, 25);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    checksum = mix(checksum, fibonacci(n + r % 2));
    checksum = mix(checksum, (uint32_t)takeuchi((int32_t)x, (int32_t)x / 2, (int32_t)(r % 2)));
    checksum = mix(checksum, ackermann(3, a - r % 2));
  }
  return report("recursion", checksum);
}
