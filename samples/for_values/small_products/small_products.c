// Multiplies many small matrices whose size only the arguments know: three loops of a few iterations each, the same number
// every time.
//
// Arguments: rows and columns of a matrix, matrices a batch, repetitions.
#include "../../common/sample.h"

KERNEL static void multiply(double* products, const double* left, const double* right, uint32_t count, uint32_t n) {
  for (uint32_t m = 0; m < count; ++m) {
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        double sum = 0;
        for (uint32_t k = 0; k < n; ++k) sum += left[i * n + k] * right[k * n + j];
        products[i * n + j] = sum;
      }
    }
    left += n * n;
    right += n * n;
    products += n * n;
  }
}

int main(int argc, char** argv) {
  const uint32_t n = argument(argc, argv, 1, 4);
  const uint32_t count = argument(argc, argv, 2, 500);
  const uint32_t repetitions = argument(argc, argv, 3, 100000);

  const uint32_t size = count * n * n;
  double* left = allocate(size, sizeof *left);
  double* right = allocate(size, sizeof *right);
  double* products = allocate(size, sizeof *products);
  uint64_t seed = 33;
  for (uint32_t i = 0; i < size; ++i) {
    left[i] = random_unit(&seed);
    right[i] = random_unit(&seed);
  }

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    multiply(products, left, right, count, n);
    checksum = mix(checksum, bits_of(products[r % size]));
    left[r % size] = random_unit(&seed);
  }
  return report("small_products", checksum);
}
