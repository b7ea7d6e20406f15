// y += A x for a sparse matrix in compressed rows with a vector x larger than any cache. It is the kernel of
// conjugate gradients and of every iterative solver. The inner loop is short (8 entries on average, 1 to 15),
// so a prefetch has to look past the end of the row.
//
// Arguments: log2 of x's length, log2 of the number of rows, repetitions.
#include "../../common/sample.h"

KERNEL static void multiply(const uint32_t* row_begin, const uint32_t* column, const double* value,
                            const double* x, double* y, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r) {
    double sum = y[r] * 0.5;
    for (uint32_t k = row_begin[r]; k < row_begin[r + 1]; ++k) sum += value[k] * x[column[k]];
    y[r] = sum;
  }
}

int main(int argc, char** argv) {
  const uint32_t columns = 1u << argument(argc, argv, 1, 25);
  const uint32_t rows = 1u << argument(argc, argv, 2, 21);
  const uint32_t repetitions = argument(argc, argv, 3, 15);

  uint64_t seed = 5;
  uint32_t* row_begin = allocate(rows + 1, sizeof *row_begin);
  row_begin[0] = 0;
  for (uint32_t r = 0; r < rows; ++r) row_begin[r + 1] = row_begin[r] + 1 + random_below(&seed, 15);
  const uint32_t entries = row_begin[rows];
  uint32_t* column = allocate(entries, sizeof *column);
  double* value = allocate(entries, sizeof *value);
  for (uint32_t k = 0; k < entries; ++k) {
    const uint64_t random = next_random(&seed);
    column[k] = (uint32_t)random & (columns - 1);
    value[k] = (double)(random >> 40) * 0x1p-24;
  }
  double* x = allocate(columns, sizeof *x);
  double* y = allocate(rows, sizeof *y);
  for (uint32_t i = 0; i < columns; ++i) x[i] = (double)(i & 0xffff) * 0x1p-16;
  for (uint32_t i = 0; i < rows; ++i) y[i] = 0;

  for (uint32_t r = 0; r < repetitions; ++r) multiply(row_begin, column, value, x, y, rows);

  uint64_t checksum = 0;
  for (uint32_t i = 0; i < rows; ++i) checksum = mix(checksum, bits_of(y[i]));
  return report("spmv", checksum);
}
