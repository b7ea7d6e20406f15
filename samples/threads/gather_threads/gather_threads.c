// A column read through lists of row numbers, as samples/memory/gather_w28 does, by several threads at once. Each has a
// list of its own, and all read the same column. So there is one loop, one code version and one set of decisions for all
// threads.
//
// Arguments: threads (2), log2 of the column's length (25), log2 of each list's length (20), repetitions (100). Prints a digest.
#include "../threads.h"

enum { kMostThreads = 16, kStackBytes = 16 * 1024 };

static Thread g_threads[kMostThreads];
static _Alignas(16) char g_stacks[kMostThreads][kStackBytes];
static uint64_t g_digests[kMostThreads];

extern unsigned char __heap_base;
static uint32_t* g_column;
static uint32_t g_column_length, g_row_count, g_repetitions;

static uint32_t* rows_of(int32_t thread) { return g_column + g_column_length + (uint32_t)thread * g_row_count; }

// 28 operations that wait for the loaded value.
static inline uint32_t work_on(uint32_t value) {
#pragma clang loop unroll(full)
  for (uint32_t group = 0; group < 7; ++group) value = (value ^ (value >> 15)) * (0x2c1b3c6du + 2 * group) + 0x297a2d39u;
  return value;
}

__attribute__((noinline)) static uint64_t gather(const uint32_t* column, const uint32_t* rows, uint32_t count, uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) sum = (sum ^ work_on(column[rows[i]])) * 0x9e3779b97f4a7c15u;
  return sum;
}

static void work(Thread* thread) {
  uint32_t* const rows = rows_of(thread->number);
  uint64_t seed = 88172645463325252u + (uint64_t)thread->number;
  for (uint32_t i = 0; i < g_row_count; ++i) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    rows[i] = (uint32_t)(seed >> 20) & (g_column_length - 1);
  }
  uint64_t digest = (uint64_t)thread->number;
  for (uint32_t r = 0; r < g_repetitions; ++r) digest = gather(g_column, rows, g_row_count, digest + r);
  g_digests[thread->number] = digest;
}

static uint32_t power_of_two(uint32_t log2) { return 1u << (log2 < 27 ? log2 : 27); }

WASM_EXPORT("_start") void start(void) {
  uint32_t threads = argument(1, 2);
  if (threads < 1) threads = 1;
  if (threads > kMostThreads) threads = kMostThreads;
  g_column_length = power_of_two(argument(2, 25));
  g_row_count = power_of_two(argument(3, 20));
  g_repetitions = argument(4, 100);
  g_column = (uint32_t*)(((uintptr_t)&__heap_base + 63) & ~(uintptr_t)63);
  const uint64_t wanted =
      (uintptr_t)g_column + 4 * ((uint64_t)g_column_length + (uint64_t)threads * g_row_count);
  const uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
  if (wanted > have && __builtin_wasm_memory_grow(0, (uint32_t)((wanted - have + 65535) >> 16)) == ~(__SIZE_TYPE__)0) {
    print("no memory left\n");
    wasi_proc_exit(1);
  }
  for (uint32_t i = 0; i < g_column_length; ++i) g_column[i] = i * 2654435761u;
  for (uint32_t i = 0; i < threads; ++i) {
    g_threads[i].body = work;
    g_threads[i].number = (int32_t)i;
    if (spawn(&g_threads[i], g_stacks[i], kStackBytes)) {
      print("no thread left\n");
      wasi_proc_exit(1);
    }
  }
  for (uint32_t i = 0; i < threads; ++i) join(&g_threads[i]);
  uint64_t digest = 0;
  for (uint32_t i = 0; i < threads; ++i) digest = (digest ^ g_digests[i]) * 0x9e3779b97f4a7c15u;
  char text[24];
  print("gather_threads ");
  print(digits(digest, text));
  print("\n");
}
