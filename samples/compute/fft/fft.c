// Complex fast Fourier transform, in place, radix 2, forth and back: butterflies with strides from one
// element to half the array, and a bit-reversal permutation.
//
// Arguments: log2 of the length, repetitions.
#include <math.h>

#include "../../common/sample.h"

typedef struct {
  double re;
  double im;
} Complex;

// Twiddle factors by halving the angle from a quarter turn: only square roots, which every system rounds
// alike.
static void make_twiddles(Complex* twiddles, uint32_t bits) {
  const uint32_t half = 1u << (bits - 1);
  Complex step[32];
  step[0] = (Complex){-1, 0};
  for (uint32_t level = 1; level < 32; ++level) {
    const double c = level == 1 ? 0 : sqrt((1 + step[level - 1].re) / 2);
    step[level] = (Complex){c, level == 1 ? -1 : step[level - 1].im / (2 * c)};
  }
  for (uint32_t k = 0; k < half; ++k) {
    // The product of the steps for k's set bits.
    Complex w = {1, 0};
    for (uint32_t bit = 0; bit + 1 < bits; ++bit) {
      if ((k >> bit & 1) == 0) continue;
      const Complex s = step[bits - 1 - bit];
      w = (Complex){w.re * s.re - w.im * s.im, w.re * s.im + w.im * s.re};
    }
    twiddles[k] = w;
  }
}

KERNEL static void transform(Complex* data, const Complex* twiddles, uint32_t bits) {
  const uint32_t length = 1u << bits;
  for (uint32_t i = 1, j = 0; i < length; ++i) {
    uint32_t bit = length >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      const Complex swap = data[i];
      data[i] = data[j];
      data[j] = swap;
    }
  }
  for (uint32_t half = 1; half < length; half *= 2) {
    const uint32_t stride = length / (2 * half);
    for (uint32_t block = 0; block < length; block += 2 * half) {
      for (uint32_t k = 0; k < half; ++k) {
        const Complex w = twiddles[k * stride];
        const Complex low = data[block + k];
        const Complex high = data[block + k + half];
        const Complex turned = {high.re * w.re - high.im * w.im, high.re * w.im + high.im * w.re};
        data[block + k] = (Complex){low.re + turned.re, low.im + turned.im};
        data[block + k + half] = (Complex){low.re - turned.re, low.im - turned.im};
      }
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t bits = argument(argc, argv, 1, 14);
  const uint32_t repetitions = argument(argc, argv, 2, 10000);

  const uint32_t length = 1u << bits;
  Complex* data = allocate(length, sizeof *data);
  Complex* twiddles = allocate(length / 2, sizeof *twiddles);
  make_twiddles(twiddles, bits);
  uint64_t seed = 23;
  for (uint32_t i = 0; i < length; ++i)
    data[i] = (Complex){random_unit(&seed) - 0.5, random_unit(&seed) - 0.5};

  // Two transforms in a row give the reversed data times the length; scaling keeps the numbers in range.
  const double scale = 1.0 / length;
  for (uint32_t r = 0; r < repetitions; ++r) {
    transform(data, twiddles, bits);
    if (r % 2 == 1) {
      for (uint32_t i = 0; i < length; ++i) data[i] = (Complex){data[i].re * scale, data[i].im * scale};
    }
  }
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < length; ++i)
    checksum = mix(mix(checksum, bits_of(data[i].re)), bits_of(data[i].im));
  return report("fft", checksum);
}
