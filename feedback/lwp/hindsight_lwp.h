/* Lightweight Profiling for C: the layouts of the final specification, a reader for its ring, and the four
 * instructions as functions. Needs nothing else of Hindsight at run time than libhindsight_lwp. The layouts
 * and the reader do not even need that: they are this header alone. They read what any unit wrote: a
 * processor, the emulation, or the functions below.
 *
 * The functions act on the calling thread, as the instructions do; each thread has its own LWP state, which
 * ends with it (unflushed). Only a thread's first call may allocate. Later ones may be made in signal
 * handlers, but not in one that interrupts another of them on the same thread. Needs GCC or Clang (__atomic
 * builtins). docs/LWP.md explains all of it. Stability: only ever gets additions. */
#ifndef HINDSIGHT_LWP_H
#define HINDSIGHT_LWP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(HINDSIGHT_LWP_BUILDING)
#define HINDSIGHT_LWP_API __attribute__((visibility("default")))
#else
#define HINDSIGHT_LWP_API
#endif

#ifdef __cplusplus
#define HINDSIGHT_LWP_ASSERT(condition) static_assert(condition, #condition)
extern "C" {
#else
#define HINDSIGHT_LWP_ASSERT(condition) _Static_assert(condition, #condition)
#endif

enum {
  HINDSIGHT_LWP_VALUE = 1,            /* LWPVAL */
  HINDSIGHT_LWP_INSTRUCTIONS = 2,     /* instructions retired */
  HINDSIGHT_LWP_BRANCHES = 3,         /* branches retired */
  HINDSIGHT_LWP_DCACHE_MISS = 4,      /* DCache misses */
  HINDSIGHT_LWP_CORE_CLOCKS = 5,      /* core clocks not halted */
  HINDSIGHT_LWP_REFERENCE_CLOCKS = 6, /* reference clocks not halted */
  HINDSIGHT_LWP_PROGRAMMED = 255      /* LWPINS; needs no flag */
};

/* Control block Flags: bit n asks for EventId n; beside them these modes. */
#define HINDSIGHT_LWP_FLAG(event_id) (UINT32_C(1) << (event_id))
#define HINDSIGHT_LWP_CONTINUOUS (UINT32_C(1) << 29)
#define HINDSIGHT_LWP_TIMESTAMPS (UINT32_C(1) << 30)
#define HINDSIGHT_LWP_INTERRUPT (UINT32_C(1) << 31)

/* Flags of a branch record. */
#define HINDSIGHT_LWP_TAKEN (UINT16_C(1) << 15)
#define HINDSIGHT_LWP_PREDICTED (UINT16_C(1) << 14) /* rightly; means something if the next bit is set */
#define HINDSIGHT_LWP_PREDICTION_VALID (UINT16_C(1) << 13)

#define HINDSIGHT_LWP_MAX_EVENTS 6
#define HINDSIGHT_LWP_RECORD_SIZE 32

typedef struct hindsight_lwp_record {
  uint8_t event_id;
  uint8_t core_id;
  uint16_t flags;
  uint32_t data1;
  uint64_t address; /* of the instruction */
  uint64_t data2;   /* first operand, branch target or data address */
  uint64_t timestamp;
} hindsight_lwp_record;

typedef struct hindsight_lwp_event {
  uint32_t interval; /* 26 bits: k - 1 records every k-th event */
  uint32_t counter;  /* 26 bits, signed: events until the first record */
} hindsight_lwp_event;

typedef struct hindsight_lwp_control_block {
  uint32_t flags;
  uint32_t size_and_random; /* buffer size in bytes [27:0]; random low bits of a reload [31:28] */
  uint64_t buffer_base;
  uint32_t head; /* byte offset of the next record to come; only the unit writes it */
  uint32_t reserved1;
  uint64_t missed_events; /* only the unit writes it */
  uint32_t threshold;
  uint32_t filters;
  uint64_t base_ip;
  uint64_t limit_ip;
  uint64_t reserved2;
  uint32_t tail; /* byte offset of the oldest record; only the reader writes it */
  uint32_t reserved3;
  uint64_t software[2]; /* yours */
  uint64_t reserved4[5];
  hindsight_lwp_event events[HINDSIGHT_LWP_MAX_EVENTS]; /* [n - 1] of EventId n */
} hindsight_lwp_control_block;

HINDSIGHT_LWP_ASSERT(sizeof(hindsight_lwp_record) == HINDSIGHT_LWP_RECORD_SIZE);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, event_id) == 0);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, core_id) == 1);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, flags) == 2);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, data1) == 4);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, address) == 8);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, data2) == 16);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_record, timestamp) == 24);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, flags) == 0);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, size_and_random) == 4);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, buffer_base) == 8);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, head) == 16);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, missed_events) == 24);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, threshold) == 32);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, filters) == 36);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, base_ip) == 40);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, limit_ip) == 48);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, tail) == 64);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, software) == 72);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_control_block, events) == 128);
HINDSIGHT_LWP_ASSERT(sizeof(hindsight_lwp_control_block) == 176);
HINDSIGHT_LWP_ASSERT(sizeof(hindsight_lwp_event) == 8);
HINDSIGHT_LWP_ASSERT(offsetof(hindsight_lwp_event, counter) == 4);

/* Makes `block` describe an empty ring of `records` slots (at least 2; one stays free) at `buffer`, with no
 * event asked for. Not while LWP uses it. */
static inline void hindsight_lwp_init(hindsight_lwp_control_block* block, void* buffer, uint32_t records) {
  memset(block, 0, sizeof *block);
  block->size_and_random = records * HINDSIGHT_LWP_RECORD_SIZE;
  block->buffer_base = (uint64_t)(uintptr_t)buffer;
}

/* Copies up to `max` of the oldest unread records into `out`, frees their slots and returns how many. One
 * reader at a time, on any thread, while the unit writes. Not for continuous mode, where the unit does not
 * wait for the tail: read such a ring when the unit rests. A head or tail that is no record of the ring reads
 * as empty. */
static inline uint32_t hindsight_lwp_read(hindsight_lwp_control_block* block, hindsight_lwp_record* out,
                                          uint32_t max) {
  const uint32_t size = (block->size_and_random & 0x0FFFFFFF) / HINDSIGHT_LWP_RECORD_SIZE;
  const hindsight_lwp_record* ring = (const hindsight_lwp_record*)(uintptr_t)block->buffer_base;
  /* Acquire: the unit wrote the records before the head that shows them. */
  const uint32_t head = __atomic_load_n(&block->head, __ATOMIC_ACQUIRE) / HINDSIGHT_LWP_RECORD_SIZE;
  uint32_t at = block->tail / HINDSIGHT_LWP_RECORD_SIZE;
  uint32_t copied = 0;
  if (head >= size || at >= size) return 0;
  while (at != head && copied < max) {
    out[copied++] = ring[at];
    at = at + 1 == size ? 0 : at + 1;
  }
  /* Release: the copies above are complete before the unit may write into these slots again. */
  __atomic_store_n(&block->tail, at * HINDSIGHT_LWP_RECORD_SIZE, __ATOMIC_RELEASE);
  return copied;
}

/* Records that found the ring full, so far. */
static inline uint64_t hindsight_lwp_missed(hindsight_lwp_control_block* block) {
  return __atomic_load_n(&block->missed_events, __ATOMIC_RELAXED);
}

/* What an instruction would raise; nothing has happened then. */
typedef enum hindsight_lwp_fault {
  HINDSIGHT_LWP_OK = 0,
  HINDSIGHT_LWP_INVALID_OPCODE = 1,     /* #UD; the functions never give it */
  HINDSIGHT_LWP_GENERAL_PROTECTION = 2, /* #GP: a block or buffer that cannot be */
  HINDSIGHT_LWP_PAGE_FAULT = 3          /* #PF; the functions never give it: they access memory directly */
} hindsight_lwp_fault;

/* LLWPCB: uses `block` from now on, NULL to switch off. Flushes the block used before. The block and its
 * buffer must stay until another is loaded or the thread ends. Writes back the Flags that are on. */
HINDSIGHT_LWP_API hindsight_lwp_fault hindsight_llwpcb(hindsight_lwp_control_block* block);

/* SLWPCB: flushes the counters and returns the block in use, NULL while off. */
HINDSIGHT_LWP_API hindsight_lwp_control_block* hindsight_slwpcb(void);

/* LWPINS: stores a record with EventId 255. Returns the carry flag: true if the ring was full. False while
 * off. The record's instruction address is that after the call. */
HINDSIGHT_LWP_API bool hindsight_lwpins(uint64_t data2, uint32_t data1, uint16_t flags);

/* LWPVAL: counts one value sample; every interval + 1-th makes a record with EventId 1. */
HINDSIGHT_LWP_API void hindsight_lwpval(uint64_t data2, uint32_t data1, uint16_t flags);

/* What CPUID says on a processor that does what the functions do: eax, ebx, ecx, edx. Answers leaves
 * 0x80000001 (the LWP bit of ECX only) and 0x8000001C. Zeros for any other. */
HINDSIGHT_LWP_API void hindsight_lwp_cpuid(uint32_t leaf, uint32_t registers[4]);

#ifdef __cplusplus
}
#endif

#endif
