// One layer of a quantized neural network, again and again: a matrix of signed bytes times a vector of signed
// bytes, summed in 32 bits.
//
// Arguments: rows, columns, repetitions.
#include "../../common/sample.h"

KERNEL static void layer(const int8_t* weights, const int8_t* in, int32_t* out, uint32_t rows, uint32_t columns) {
  for (uint32_t r = 0; r < rows; ++r) {
    const int8_t* row = weights + r * columns;
    int32_t sum = 0;
    for (uint32_t c = 0; c < columns; ++c) sum += row[c] * in[c];
    out[r] = sum;
  }
}

int main(int argc, char** argv) {
  const uint32_t rows = argument(argc, argv, 1, 512);
  const uint32_t columns = argument(argc, argv, 2, 512);
  const uint32_t repetitions = argument(argc, argv, 3, 30000);

  int8_t* weights = allocate((size_t)rows * columns, 1);
  int8_t* in = allocate(columns, 1);
  int32_t* out = allocate(rows, sizeof *out);
  uint64_t seed = 51;
  for (uint32_t i = 0; i < rows * columns; ++i) weights[i] = (int8_t)next_random(&seed);
  for (uint32_t i = 0; i < columns; ++i) in[i] = (int8_t)next_random(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    layer(weights, in, out, rows, columns);
    for (uint32_t i = 0; i < columns && i < rows; i += 16) in[i] = (int8_t)(out[i] >> 8);
    checksum = mix(checksum, (uint32_t)out[r % rows]);
  }
  return report("dot_i8", checksum);
}
