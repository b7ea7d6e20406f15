/* A complete LWP consumer: one thread is profiled, another empties its ring while it runs, and at the end
 * every record is accounted for. Uses nothing of Hindsight's but the C header hindsight_lwp.h.
 *
 * Built plainly it uses the library's functions; built with -mlwp it uses the processor's instructions
 * (or their emulation: `hindsight lwp emulate ./consumer`). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "hindsight/hindsight_lwp.h"

#ifdef __LWP__
#include <x86intrin.h>
static bool begin(hindsight_lwp_control_block* block) {
  __llwpcb(block);
  return true; /* a block that cannot be is SIGSEGV */
}
static void end(void) {
  __slwpcb();
  __llwpcb(0);
}
/* The last operand is an immediate of the instruction. */
#define MARK(data2, data1) __lwpins64((data2), (data1), 0x4D)
#define SAMPLE(data2, data1) __lwpval64((data2), (data1), 0x53)
#else
static bool begin(hindsight_lwp_control_block* block) {
  return hindsight_llwpcb(block) == HINDSIGHT_LWP_OK;
}
static void end(void) {
  hindsight_slwpcb();
  hindsight_llwpcb(NULL);
}
#define MARK(data2, data1) hindsight_lwpins((data2), (data1), 0x4D)
#define SAMPLE(data2, data1) hindsight_lwpval((data2), (data1), 0x53)
#endif

enum { kSlots = 1024, kInterval = 9, kMarkEvery = 1000 };
#ifdef __LWP__
enum { kIterations = 20000 }; /* emulated, an instruction costs some microseconds */
#else
enum { kIterations = 2000000 };
#endif

static hindsight_lwp_record buffer[kSlots];
static _Alignas(64) hindsight_lwp_control_block block;
static atomic_bool finished;
static bool refused;

/* The profiled thread: every kMarkEvery-th iteration leaves a mark, and of the values of all of them every
 * (kInterval + 1)-th is sampled. */
static void* profiled(void* unused) {
  (void)unused;
  if (!begin(&block)) {
    refused = true;
  } else {
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (i % kMarkEvery == 0) (void)MARK(i, i); /* true if the ring was full: counted as missed */
      SAMPLE(~(uint64_t)i, i);
    }
    end(); /* after this the head in the block is final, whatever the unit buffered */
  }
  atomic_store(&finished, true);
  return NULL;
}

int main(void) {
  hindsight_lwp_init(&block, buffer, kSlots);
  block.flags = HINDSIGHT_LWP_FLAG(HINDSIGHT_LWP_VALUE);
  block.events[HINDSIGHT_LWP_VALUE - 1].interval = kInterval;
  block.events[HINDSIGHT_LWP_VALUE - 1].counter = kInterval; /* 0 would sample the first one */

  pthread_t thread;
  if (pthread_create(&thread, NULL, profiled, NULL) != 0) return 1;

  uint64_t values = 0, marks = 0, wrong = 0;
  for (bool last = false;;) {
    hindsight_lwp_record batch[64];
    const uint32_t n = hindsight_lwp_read(&block, batch, 64);
    for (uint32_t i = 0; i < n; ++i) {
      const hindsight_lwp_record* r = &batch[i];
      if (r->event_id == HINDSIGHT_LWP_VALUE && r->flags == 0x53 && r->data2 == ~(uint64_t)r->data1) {
        ++values;
      } else if (r->event_id == HINDSIGHT_LWP_PROGRAMMED && r->flags == 0x4D && r->data2 == r->data1) {
        ++marks;
      } else {
        ++wrong;
      }
    }
    if (n != 0) continue;
    if (last) break;
    last = atomic_load(&finished); /* read once more after the thread's last record */
  }
  pthread_join(thread, NULL);
  if (refused) {
    fprintf(stderr, "the control block was refused\n");
    return 1;
  }

  const uint64_t emitted = kIterations / (kInterval + 1) + kIterations / kMarkEvery;
  const uint64_t accounted = values + marks + hindsight_lwp_missed(&block);
  fprintf(stderr, "%llu values, %llu marks, %llu missed\n", (unsigned long long)values,
          (unsigned long long)marks, (unsigned long long)hindsight_lwp_missed(&block));
  printf("%llu records emitted, %llu accounted for, %llu wrong\n", (unsigned long long)emitted,
         (unsigned long long)accounted, (unsigned long long)wrong);
  return emitted == accounted && wrong == 0 ? 0 : 1;
}
