// Estimates an eigenvalue of a random sparse matrix by inverse power iteration, each step by conjugate gradients. It is
// after kernel CG of the NAS Parallel Benchmarks (Bailey et al., RNR-94-007). Making the matrix,
// the untimed first step, the iterations and the norms are phases of one main. The matrix is symmetric and diagonally
// dominant, in compressed rows, and columns are random.
//
// Arguments: thousands of rows, entries drawn a row, outer iterations, inner iterations.
#include <math.h>

#include "../../common/sample.h"

#define SHIFT 20.0

typedef struct {
  int n;
  int nnz;
  int *rowstr;
  int *colidx;
  double *a;
} matrix_t;

// The draws of row `i`, the same whenever they are asked for.
static inline int draw(uint64_t *seed, int n, double *value) {
  int column = (int)random_below(seed, (uint32_t)n);
  *value = random_unit(seed) - 0.5;
  return column;
}

int main(int argc, char **argv) {
  const int na = (int)argument(argc, argv, 1, 1000) * 1000;
  const int nonzer = (int)argument(argc, argv, 2, 4);
  const int niter = (int)argument(argc, argv, 3, 2);
  const int cgitmax = (int)argument(argc, argv, 4, 10);
  uint64_t checksum = 0;
  double zeta = 0.0, rnorm = 0.0;
  matrix_t m;

  // makea: the draws are gone through twice, first to count, then to fill. Each goes to its place and to the mirrored one.
  m.n = na;
  m.rowstr = allocate((size_t)na + 1, sizeof(int));
  memset(m.rowstr, 0, ((size_t)na + 1) * sizeof(int));
  {
    uint64_t seed = 314159265;
    double value;
    for (int i = 0; i < na; i++) {
      m.rowstr[i + 1]++;
      for (int k = 0; k < nonzer; k++) {
        int j = draw(&seed, na, &value);
        if (j == i) continue;
        m.rowstr[i + 1]++;
        m.rowstr[j + 1]++;
      }
    }
    for (int i = 0; i < na; i++) m.rowstr[i + 1] += m.rowstr[i];
    m.nnz = m.rowstr[na];
    m.colidx = allocate((size_t)m.nnz, sizeof(int));
    m.a = allocate((size_t)m.nnz, sizeof(double));
    int *fill = allocate((size_t)na, sizeof(int));
    for (int i = 0; i < na; i++) {
      fill[i] = m.rowstr[i] + 1;
      m.colidx[m.rowstr[i]] = i;
      m.a[m.rowstr[i]] = SHIFT;
    }
    seed = 314159265;
    for (int i = 0; i < na; i++) {
      for (int k = 0; k < nonzer; k++) {
        int j = draw(&seed, na, &value);
        if (j == i) continue;
        m.colidx[fill[i]] = j;
        m.a[fill[i]++] = value;
        m.colidx[fill[j]] = i;
        m.a[fill[j]++] = value;
      }
    }
    free(fill);
  }

  double *x = allocate((size_t)na, sizeof(double));
  double *z = allocate((size_t)na, sizeof(double));
  double *p = allocate((size_t)na, sizeof(double));
  double *q = allocate((size_t)na, sizeof(double));
  double *r = allocate((size_t)na, sizeof(double));
  const int *rowstr = m.rowstr, *colidx = m.colidx;
  const double *a = m.a;

  for (int i = 0; i < na; i++) x[i] = 1.0;

  // Iteration 0 is the untimed one: the start vector is set again after it.
  for (int it = 0; it <= niter; it++) {
    double rho = 0.0, rho0, d, alpha, beta, sum;

    // conj_grad: z such that A z is nearly x
    for (int j = 0; j < na; j++) {
      q[j] = 0.0;
      z[j] = 0.0;
      r[j] = x[j];
      p[j] = r[j];
    }
    for (int j = 0; j < na; j++) rho += r[j] * r[j];

    const int steps = it == 0 ? 1 : cgitmax;
    for (int cgit = 1; cgit <= steps; cgit++) {
      for (int j = 0; j < na; j++) {
        sum = 0.0;
        for (int k = rowstr[j]; k < rowstr[j + 1]; k++) sum += a[k] * p[colidx[k]];
        q[j] = sum;
      }
      d = 0.0;
      for (int j = 0; j < na; j++) d += p[j] * q[j];
      alpha = rho / d;
      rho0 = rho;
      rho = 0.0;
      for (int j = 0; j < na; j++) {
        z[j] += alpha * p[j];
        r[j] -= alpha * q[j];
        rho += r[j] * r[j];
      }
      beta = rho / rho0;
      for (int j = 0; j < na; j++) p[j] = r[j] + beta * p[j];
    }

    // the residual, from the matrix again
    sum = 0.0;
    for (int j = 0; j < na; j++) {
      d = 0.0;
      for (int k = rowstr[j]; k < rowstr[j + 1]; k++) d += a[k] * z[colidx[k]];
      d = x[j] - d;
      sum += d * d;
    }
    rnorm = sqrt(sum);

    if (it == 0) {
      for (int i = 0; i < na; i++) x[i] = 1.0;
      continue;
    }

    double norm_temp1 = 0.0, norm_temp2 = 0.0;
    for (int j = 0; j < na; j++) {
      norm_temp1 += x[j] * z[j];
      norm_temp2 += z[j] * z[j];
    }
    norm_temp2 = 1.0 / sqrt(norm_temp2);
    zeta = SHIFT + 1.0 / norm_temp1;
    for (int j = 0; j < na; j++) x[j] = norm_temp2 * z[j];

    checksum = mix(mix(checksum, bits_of(zeta)), bits_of(rnorm));
    if (!(rnorm < 1e3)) {
      fprintf(stderr, "iteration %d: the residual is %g\n", it, rnorm);
      return 1;
    }
  }

  for (int j = 0; j < na; j += 1009) checksum = mix(checksum, bits_of(x[j]));
  return report("nas_cg", checksum);
}
