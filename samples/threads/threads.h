// A small thread library for freestanding programs after wasi-threads: spawn, join, a lock, and text to stdout. It
// needs no C library, only what the host gives: "wasi" "thread-spawn" and two functions of WASI preview 1.
//
// Each thread is an instance of the module of its own, which shares the imported memory. What lies in memory is
// common. What the compiler keeps in WebAssembly globals, first of all the stack pointer, is the thread's, and
// starts as the module says. So wasi_thread_start must set it before any C runs. It is therefore a few lines of
// assembly.
//
// Build: clang --target=wasm32 -matomics -mbulk-memory -nostdlib, and wasm-ld --import-memory --shared-memory
// --max-memory=... (scripts/build_samples.sh has the line).
#pragma once

#include <stdint.h>

#define WASM_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define WASM_EXPORT(name) __attribute__((export_name(name), used))

WASM_IMPORT("wasi", "thread-spawn") int32_t wasi_thread_spawn(void* start);
WASM_IMPORT("wasi_snapshot_preview1", "fd_write")
int32_t wasi_fd_write(int32_t fd, const void* vectors, uint32_t count, uint32_t* written);
WASM_IMPORT("wasi_snapshot_preview1", "args_sizes_get")
int32_t wasi_args_sizes_get(uint32_t* count, uint32_t* bytes);
WASM_IMPORT("wasi_snapshot_preview1", "args_get") int32_t wasi_args_get(char** pointers, char* bytes);
WASM_IMPORT("wasi_snapshot_preview1", "proc_exit") [[noreturn]] void wasi_proc_exit(int32_t status);

// ---- waiting

// While *place is `value`; may return early.
static inline void wait_while(_Atomic int32_t* place, int32_t value) {
  __builtin_wasm_memory_atomic_wait32((int32_t*)place, value, -1);
}
static inline void wake_all(_Atomic int32_t* place) {
  __builtin_wasm_memory_atomic_notify((int32_t*)place, ~0u);
}

// ---- a lock: 0 free, 1 taken, 2 taken and somebody waits (Drepper, "Futexes Are Tricky", mutex 2)

typedef _Atomic int32_t Lock;

static inline void lock(Lock* lock) {
  int32_t seen = 0;
  if (__c11_atomic_compare_exchange_strong(lock, &seen, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  if (seen != 2) seen = __c11_atomic_exchange(lock, 2, __ATOMIC_SEQ_CST);
  while (seen != 0) {
    wait_while(lock, 2);
    seen = __c11_atomic_exchange(lock, 2, __ATOMIC_SEQ_CST);
  }
}
static inline void unlock(Lock* lock) {
  if (__c11_atomic_fetch_sub(lock, 1, __ATOMIC_SEQ_CST) == 1) return;
  __c11_atomic_store(lock, 0, __ATOMIC_SEQ_CST);
  __builtin_wasm_memory_atomic_notify((int32_t*)lock, 1);
}

// ---- threads

typedef struct Thread {
  char* stack_top;  // first: wasi_thread_start reads it
  void (*body)(struct Thread*);
  int32_t number;  // the program's own
  _Atomic int32_t done;
} Thread;

// The C part of wasi_thread_start, on the thread's own stack.
__attribute__((used)) static void thread_begin(int32_t id, Thread* thread) {
  (void)id;
  thread->body(thread);
  __c11_atomic_store(&thread->done, 1, __ATOMIC_SEQ_CST);
  wake_all(&thread->done);
}

__asm__(
    ".globaltype __stack_pointer, i32\n"
    ".functype thread_begin (i32, i32) -> ()\n"
    ".section .text.wasi_thread_start,\"\",@\n"
    ".globl wasi_thread_start\n"
    ".export_name wasi_thread_start, wasi_thread_start\n"
    ".no_dead_strip wasi_thread_start\n"
    ".type wasi_thread_start,@function\n"
    "wasi_thread_start:\n"
    ".functype wasi_thread_start (i32, i32) -> ()\n"
    "  local.get 1\n"
    "  i32.load 0\n"
    "  global.set __stack_pointer\n"
    "  local.get 0\n"
    "  local.get 1\n"
    "  call thread_begin\n"
    "  end_function\n");

// Not zero: the host has no thread left.
static inline int spawn(Thread* thread, char* stack, uint32_t stack_bytes) {
  thread->stack_top = stack + (stack_bytes & ~15u);
  thread->done = 0;
  return wasi_thread_spawn(thread) < 0;
}
static inline void join(Thread* thread) {
  while (__c11_atomic_load(&thread->done, __ATOMIC_SEQ_CST) == 0) wait_while(&thread->done, 0);
}

// ---- text

static Lock g_output;

static inline void print(const char* text) {
  uint32_t length = 0, written = 0;
  while (text[length]) ++length;
  const struct {
    const char* text;
    uint32_t length;
  } vector = {text, length};
  lock(&g_output);
  wasi_fd_write(1, &vector, 1, &written);
  unlock(&g_output);
}

// The digits of `value` and a zero, at the end of `text`.
static inline const char* digits(uint64_t value, char text[24]) {
  char* at = text + 23;
  *at = 0;
  do *--at = (char)('0' + value % 10);
  while (value /= 10);
  return at;
}

// The n-th argument as a number, or `otherwise`.
static inline uint32_t argument(uint32_t n, uint32_t otherwise) {
  static char* pointers[16];
  static char bytes[512];
  uint32_t count = 0, size = 0;
  if (wasi_args_sizes_get(&count, &size) || count > 16 || size > sizeof bytes || n >= count) return otherwise;
  if (wasi_args_get(pointers, bytes)) return otherwise;
  uint32_t value = 0;
  for (const char* at = pointers[n]; *at >= '0' && *at <= '9'; ++at)
    value = 10 * value + (uint32_t)(*at - '0');
  return value;
}
