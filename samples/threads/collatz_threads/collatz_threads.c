// Lengths of Collatz sequences of all numbers below a limit, on several threads. A thread takes its work from a
// common counter, a piece at a time, because pieces take different time. Results meet in atomic sums and under a
// lock.
//
// Arguments: threads (4), numbers (2,000,000). Prints the sum of all lengths, and the number with the longest.
#include "../threads.h"

enum { kMostThreads = 64, kStackBytes = 16 * 1024, kPiece = 4096 };

static Thread g_threads[kMostThreads];
static _Alignas(16) char g_stacks[kMostThreads][kStackBytes];

static uint32_t g_limit;
static _Atomic uint32_t g_next = 1;   // the next number that nobody has taken
static _Atomic uint64_t g_sum;        // of all lengths
static Lock g_longest_lock;           // protects what follows
static uint32_t g_longest, g_longest_at;

static uint32_t length_of(uint64_t n) {
  uint32_t length = 1;
  for (; n != 1; ++length) n = n & 1 ? 3 * n + 1 : n / 2;
  return length;
}

static void work(Thread* thread) {
  (void)thread;
  for (;;) {
    const uint32_t begin = __c11_atomic_fetch_add(&g_next, kPiece, __ATOMIC_SEQ_CST);
    if (begin >= g_limit) return;
    const uint32_t end = begin + kPiece < g_limit ? begin + kPiece : g_limit;
    uint64_t sum = 0;
    uint32_t longest = 0, longest_at = 0;
    for (uint32_t n = begin; n < end; ++n) {
      const uint32_t length = length_of(n);
      sum += length;
      if (length > longest) {
        longest = length;
        longest_at = n;
      }
    }
    __c11_atomic_fetch_add(&g_sum, sum, __ATOMIC_SEQ_CST);
    lock(&g_longest_lock);
    // The first of several counts, whoever comes first.
    if (longest > g_longest || (longest == g_longest && longest_at < g_longest_at)) {
      g_longest = longest;
      g_longest_at = longest_at;
    }
    unlock(&g_longest_lock);
  }
}

WASM_EXPORT("_start") void start(void) {
  uint32_t threads = argument(1, 4);
  if (threads < 1) threads = 1;
  if (threads > kMostThreads) threads = kMostThreads;
  g_limit = argument(2, 2000000);
  for (uint32_t i = 0; i < threads; ++i) {
    g_threads[i].body = work;
    g_threads[i].number = (int32_t)i;
    if (spawn(&g_threads[i], g_stacks[i], kStackBytes)) {
      print("no thread left\n");
      wasi_proc_exit(1);
    }
  }
  for (uint32_t i = 0; i < threads; ++i) join(&g_threads[i]);
  char text[24];
  print("collatz_threads ");
  print(digits(g_sum, text));
  print(" ");
  print(digits(g_longest_at, text));
  print("\n");
}
