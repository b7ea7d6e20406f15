/* Updates of random words of a table, after RandomAccess of the HPC Challenge benchmark (Luszczek, Dongarra et al.,
 * 2005; rules by Koester and Lucas). The addresses come from the stream of a shift register of 64 bits. Its 128 parts
 * are gone through side by side, and each starts where the part before it ends. The verification goes through the
 * stream once more from its beginning, one update after the other, which undoes all of them.
 *
 * Arguments: log2 of the words of the table, updates a word.
 */
#include "../../common/sample.h"

#define POLY 0x0000000000000007ULL
#define STREAMS 128
#define NEXT(r) (((r) << 1) ^ ((s64Int)(r) < 0 ? POLY : 0))

typedef uint64_t u64Int;
typedef int64_t s64Int;

u64Int *Table;

/* a * b in GF(2)[x] modulo the polynomial of the register */
static u64Int times(u64Int a, u64Int b) {
  u64Int product = 0;
  while (b != 0) {
    if (b & 1) product ^= a;
    a = NEXT(a);
    b >>= 1;
  }
  return product;
}

/* The n-th number of the stream is x^n. */
static u64Int stream_at(u64Int n) {
  u64Int result = 1, square = 2;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = times(result, square);
    square = times(square, square);
  }
  return result;
}

int main(int argc, char **argv) {
  const uint32_t logTableSize = argument(argc, argv, 1, 24);
  const uint32_t perWord = argument(argc, argv, 2, 4);
  const u64Int TableSize = (u64Int)1 << logTableSize;
  const u64Int Updates = perWord * TableSize;
  u64Int ran[STREAMS];
  u64Int i, one, errors;
  u64Int checksum = 0;
  int j;

  Table = (u64Int *)allocate((size_t)TableSize, sizeof(u64Int));
  for (i = 0; i < TableSize; i++) Table[i] = i;

  /* the updates */
  for (j = 0; j < STREAMS; j++) ran[j] = stream_at(Updates / STREAMS * (u64Int)j);
  for (i = 0; i < Updates / STREAMS; i++) {
    for (j = 0; j < STREAMS; j++) {
      ran[j] = NEXT(ran[j]);
      Table[ran[j] & (TableSize - 1)] ^= ran[j];
    }
  }

  for (i = 0; i < TableSize; i++) checksum = (checksum << 1 | checksum >> 63) + Table[i];

  /* the verification: all of them again, in order */
  one = 1;
  for (i = 0; i < Updates; i++) {
    one = NEXT(one);
    Table[one & (TableSize - 1)] ^= one;
  }
  errors = 0;
  for (i = 0; i < TableSize; i++)
    if (Table[i] != i) errors++;
  if (errors * 100 > TableSize) {
    fprintf(stderr, "%llu words are wrong\n", (unsigned long long)errors);
    return 1;
  }
  free(Table);
  return report("hpcc_gups", mix(mix(0, checksum), errors));
}
