// Dense matrix product in the order i, k, j. The inner loop streams two rows and can use vectors of any width
// without changing a bit of the result.
//
// Arguments: the matrices' order, repetitions.
#include "../../common/sample.h"

KERNEL static void multiply(const double* a, const double* b, double* c, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t k = 0; k < n; ++k) {
      const double factor = a[i * n + k];
      for (uint32_t j = 0; j < n; ++j) c[i * n + j] += factor * b[k * n + j];
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t n = argument(argc, argv, 1, 320);
  const uint32_t repetitions = argument(argc, argv, 2, 300);

  double* a = allocate((size_t)n * n, sizeof *a);
  double* b = allocate((size_t)n * n, sizeof *b);
  double* c = allocate((size_t)n * n, sizeof *c);
  uint64_t seed = 21;
  for (uint32_t i = 0; i < n * n; ++i) {
    a[i] = random_unit(&seed) - 0.5;
    b[i] = random_unit(&seed) - 0.5;
    c[i] = 0;
  }

  for (uint32_t r = 0; r < repetitions; ++r) multiply(a, b, c, n);

  uint64_t checksum = 0;
  for (uint32_t i = 0; i < n * n; ++i) checksum = mix(checksum, bits_of(c[i]));
  return report("matmul", checksum);
}
