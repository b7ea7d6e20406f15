// Escape times over a grid of the complex plane: a loop-carried chain of floating-point operations with an
// exit that depends on the data.
//
// Arguments: the grid's width and height, the limit of iterations.
#include "../../common/sample.h"

KERNEL static uint64_t render_row(uint32_t row, uint32_t size, uint32_t limit, uint64_t checksum) {
  for (uint32_t column = 0; column < size; ++column) {
    const double cr = 3.0 * column / size - 2.0;
    const double ci = 2.5 * row / size - 1.25;
    double zr = 0, zi = 0, rr = 0, ii = 0;
    uint32_t iteration = 0;
    while (iteration < limit && rr + ii <= 4.0) {
      zi = 2 * zr * zi + ci;
      zr = rr - ii + cr;
      rr = zr * zr;
      ii = zi * zi;
      ++iteration;
    }
    checksum = mix(checksum, iteration);
  }
  return checksum;
}

int main(int argc, char** argv) {
  const uint32_t size = argument(argc, argv, 1, 2000);
  const uint32_t limit = argument(argc, argv, 2, 1000);
  uint64_t checksum = 0;
  for (uint32_t row = 0; row < size; ++row) checksum = render_row(row, size, limit, checksum);
  return report("mandelbrot", checksum);
}
