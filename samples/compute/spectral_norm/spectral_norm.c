// The largest singular value of an infinite matrix whose entries are computed, not stored, by the power
// method: one division an entry.
//
// Arguments: the matrix's order, repetitions.
#include <math.h>

#include "../../common/sample.h"

static inline double entry(uint32_t i, uint32_t j) {
  return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1);
}

KERNEL static void apply(const double* v, double* to, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    double sum = 0;
    for (uint32_t j = 0; j < n; ++j) sum += entry(i, j) * v[j];
    to[i] = sum;
  }
}

KERNEL static void apply_transposed(const double* v, double* to, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    double sum = 0;
    for (uint32_t j = 0; j < n; ++j) sum += entry(j, i) * v[j];
    to[i] = sum;
  }
}

int main(int argc, char** argv) {
  const uint32_t n = argument(argc, argv, 1, 2000);
  const uint32_t repetitions = argument(argc, argv, 2, 120);

  double* u = allocate(n, sizeof *u);
  double* v = allocate(n, sizeof *v);
  double* t = allocate(n, sizeof *t);
  for (uint32_t i = 0; i < n; ++i) u[i] = 1;
  for (uint32_t r = 0; r < repetitions; ++r) {
    apply(u, t, n);
    apply_transposed(t, v, n);
    apply(v, t, n);
    apply_transposed(t, u, n);
  }
  double uv = 0, vv = 0;
  for (uint32_t i = 0; i < n; ++i) {
    uv += u[i] * v[i];
    vv += v[i] * v[i];
  }
  return report("spectral_norm", mix(bits_of(sqrt(uv / vv)), bits_of(uv)));
}
