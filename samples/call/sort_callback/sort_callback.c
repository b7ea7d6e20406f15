// A generic heap sort of records that compares and swaps through function pointers, as C libraries' sorts do.
// The same code sorts by four different orders, so no compiler can inline the comparison.
//
// Arguments: thousands of records, repetitions.
#include "../../common/sample.h"

typedef int (*Compare)(const void* a, const void* b);
typedef void (*Swap)(void* a, void* b);

typedef struct {
  uint32_t id;
  int32_t score;
  char name[8];
} Record;

static int by_id(const void* a, const void* b) {
  const uint32_t x = ((const Record*)a)->id, y = ((const Record*)b)->id;
  return (x > y) - (x < y);
}

static int by_score(const void* a, const void* b) {
  const int32_t x = ((const Record*)a)->score, y = ((const Record*)b)->score;
  return x != y ? (x > y) - (x < y) : by_id(a, b);
}

static int by_falling_score(const void* a, const void* b) {
  return by_score(b, a);
}

static int by_name(const void* a, const void* b) {
  const char *x = ((const Record*)a)->name, *y = ((const Record*)b)->name;
  for (uint32_t i = 0; i < 8; ++i) {
    if (x[i] != y[i]) return (uint8_t)x[i] < (uint8_t)y[i] ? -1 : 1;
  }
  return by_id(a, b);
}

static void swap_records(void* a, void* b) {
  const Record swap = *(Record*)a;
  *(Record*)a = *(Record*)b;
  *(Record*)b = swap;
}

KERNEL static void sort(void* base, uint32_t count, uint32_t size, Compare compare, Swap swap) {
  char* items = base;
  for (uint32_t heap = count, start = count / 2; heap > 1;) {
    if (start > 0) {
      --start;
    } else {
      --heap;
      swap(items, items + (size_t)heap * size);
    }
    uint32_t parent = start;
    for (uint32_t child; (child = 2 * parent + 1) < heap; parent = child) {
      if (child + 1 < heap && compare(items + (size_t)child * size, items + (size_t)(child + 1) * size) < 0)
        ++child;
      if (compare(items + (size_t)parent * size, items + (size_t)child * size) >= 0) break;
      swap(items + (size_t)parent * size, items + (size_t)child * size);
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 100);
  const uint32_t repetitions = argument(argc, argv, 2, 160);

  Record* records = allocate(count, sizeof *records);
  uint64_t seed = 42;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t random = next_random(&seed);
    records[i].id = i;
    records[i].score = (int32_t)(random % 100000);
    for (uint32_t c = 0; c < 8; ++c) records[i].name[c] = (char)('a' + (random >> (20 + 5 * c)) % 26);
  }

  static const Compare orders[] = {by_score, by_name, by_falling_score, by_id};
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    sort(records, count, sizeof *records, orders[r % 4], swap_records);
    checksum = mix(checksum, records[count / 7].id);
    checksum = mix(checksum, records[count / 2].id);
  }
  return report("sort_callback", checksum);
}
