/* A host in plain C: every group of the C API once, each expectation with its line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hindsight/hindsight_c.h"

static int failures = 0;

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* Deletes the error; 1 if there was none. */
static int succeeded(hindsight_error* error) {
  if (error == NULL) return 1;
  fprintf(stderr, "error: %s\n", hindsight_error_text(error));
  hindsight_error_delete(error);
  return 0;
}

/* Deletes the error; 1 if it was there and of this kind. */
static int failed_as(hindsight_error* error, hindsight_error_kind kind) {
  if (error == NULL) return 0;
  const int right = hindsight_error_get_kind(error) == kind && hindsight_error_message(error)[0] != '\0';
  if (!right) fprintf(stderr, "another error: %s\n", hindsight_error_text(error));
  hindsight_error_delete(error);
  return right;
}

static const char kModule[] =
    "(module $c_host\n"
    "  (import \"host\" \"add\" (func $add (param i32 i32) (result i32)))\n"
    "  (import \"host\" \"refuse\" (func $refuse))\n"
    "  (memory (export \"memory\") 1)\n"
    "  (global (export \"counter\") (mut i64) (i64.const 7))\n"
    "  (data (i32.const 8) \"hello\")\n"
    "  (func (export \"sum\") (param i32 i32) (result i32) (call $add (local.get 0) (local.get 1)))\n"
    "  (func (export \"refuse\") (call $refuse))\n"
    "  (func (export \"swap\") (param f32 f64) (result f64 f32) (local.get 1) (local.get 0))\n"
    "  (func (export \"add_bytes\") (param v128 v128) (result v128) (i8x16.add (local.get 0) (local.get "
    "1)))\n"
    "  (func $inner unreachable)\n"
    "  (func $outer (export \"crash\") (call $inner))\n"
    "  (func (export \"forever\") (loop $l (br $l))))\n";

static const char kWasi[] =
    "(module\n"
    "  (import \"wasi_snapshot_preview1\" \"fd_write\" (func $fd_write (param i32 i32 i32 i32) (result "
    "i32)))\n"
    "  (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $proc_exit (param i32)))\n"
    "  (memory (export \"memory\") 1)\n"
    "  (data (i32.const 16) \"from the guest\\n\")\n"
    "  (func (export \"_start\")\n"
    "    (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 15))\n"
    "    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))\n"
    "    (call $proc_exit (i32.const 42))))\n";

static hindsight_error* add(void* user, hindsight_caller* caller, const hindsight_value* args,
                            size_t arg_count, hindsight_value* results, size_t result_count) {
  size_t size = 0;
  const char* memory = hindsight_caller_memory(caller, &size);
  EXPECT(size == 65536 && memory != NULL && memcmp(memory + 8, "hello", 5) == 0);
  EXPECT(arg_count == 2 && result_count == 1);
  EXPECT(results[0].kind == HINDSIGHT_I32 && results[0].of.i32 == 0);
  ++*(int*)user;
  results[0].of.i32 = args[0].of.i32 + args[1].of.i32;
  return NULL;
}

static hindsight_error* refuse(void* user, hindsight_caller* caller, const hindsight_value* args,
                               size_t arg_count, hindsight_value* results, size_t result_count) {
  (void)user, (void)caller, (void)args, (void)arg_count, (void)results, (void)result_count;
  return hindsight_error_new(HINDSIGHT_TRAP, "the host says no");
}

static int finalized = 0;
static void finalize(void* user) {
  (void)user;
  ++finalized;
}

static char written[64];
static size_t written_bytes = 0;
static void take_output(void* user, const char* bytes, size_t size) {
  (void)user;
  if (size > sizeof written - written_bytes) size = sizeof written - written_bytes;
  memcpy(written + written_bytes, bytes, size);
  written_bytes += size;
}

static void test_calls(hindsight_engine* engine) {
  hindsight_module* module = NULL;
  if (!succeeded(hindsight_module_new(engine, kModule, strlen(kModule), "c_host.wat", &module))) {
    ++failures;
    return;
  }
  char* description = hindsight_module_describe_json(module);
  EXPECT(description != NULL && strstr(description, "\"crash\"") != NULL &&
         strstr(description, "\"host\"") != NULL);
  EXPECT(description != NULL && strstr(description, "\"v128\"") != NULL);
  hindsight_string_delete(description);

  hindsight_linker* linker = hindsight_linker_new(engine);
  hindsight_instance* instance = NULL;
  EXPECT(failed_as(hindsight_linker_instantiate(linker, module, &instance), HINDSIGHT_LINK));
  EXPECT(instance == NULL);

  int calls = 0;
  const hindsight_value_kind two_ints[] = {HINDSIGHT_I32, HINDSIGHT_I32};
  hindsight_linker_define_function(linker, "host", "add", two_ints, 2, two_ints, 1, add, &calls, finalize);
  hindsight_linker_define_function(linker, "host", "refuse", NULL, 0, NULL, 0, refuse, NULL, NULL);
  EXPECT(succeeded(hindsight_linker_instantiate(linker, module, &instance)));
  if (instance == NULL) return;

  const hindsight_value sum_args[] = {{HINDSIGHT_I32, {.i32 = 40}}, {HINDSIGHT_I32, {.i32 = 2}}};
  hindsight_value result = {HINDSIGHT_I32, {.i32 = 0}};
  EXPECT(succeeded(hindsight_instance_call(instance, "sum", sum_args, 2, &result, 1)));
  EXPECT(result.kind == HINDSIGHT_I32 && result.of.i32 == 42 && calls == 1);
  EXPECT(failed_as(hindsight_instance_call(instance, "sum", sum_args, 1, &result, 1), HINDSIGHT_USAGE));
  EXPECT(failed_as(hindsight_instance_call(instance, "sum", sum_args, 2, &result, 0), HINDSIGHT_USAGE));
  EXPECT(failed_as(hindsight_instance_call(instance, "none", NULL, 0, NULL, 0), HINDSIGHT_USAGE));
  EXPECT(calls == 1);

  const hindsight_value swap_args[] = {{HINDSIGHT_F32, {.f32 = 1.5f}}, {HINDSIGHT_F64, {.f64 = -0.0}}};
  hindsight_value swapped[2];
  memset(swapped, 0, sizeof swapped);
  EXPECT(succeeded(hindsight_instance_call(instance, "swap", swap_args, 2, swapped, 2)));
  EXPECT(swapped[0].kind == HINDSIGHT_F64 && swapped[0].of.f64 == 0 && signbit(swapped[0].of.f64));
  EXPECT(swapped[1].kind == HINDSIGHT_F32 && swapped[1].of.f32 == 1.5f);

  hindsight_value bytes[2] = {{HINDSIGHT_V128, {.i64 = 0}}, {HINDSIGHT_V128, {.i64 = 0}}};
  for (int i = 0; i < 16; ++i) bytes[0].of.v128[i] = (uint8_t)i, bytes[1].of.v128[i] = 100;
  hindsight_value byte_sums = {HINDSIGHT_I32, {.i32 = 0}};
  EXPECT(succeeded(hindsight_instance_call(instance, "add_bytes", bytes, 2, &byte_sums, 1)));
  EXPECT(byte_sums.kind == HINDSIGHT_V128 && byte_sums.of.v128[0] == 100 && byte_sums.of.v128[15] == 115);

  hindsight_value_kind params[1];
  size_t param_count = 0, result_count = 0;
  EXPECT(succeeded(
      hindsight_instance_function_type(instance, "swap", params, 1, &param_count, NULL, 0, &result_count)));
  EXPECT(param_count == 2 && result_count == 2 && params[0] == HINDSIGHT_F32);

  void* memory = NULL;
  size_t size = 0;
  EXPECT(succeeded(hindsight_instance_memory(instance, NULL, &memory, &size)));
  EXPECT(size == 65536 && memcmp((char*)memory + 8, "hello", 5) == 0);
  hindsight_value counter = {HINDSIGHT_I64, {.i64 = 0}};
  EXPECT(succeeded(hindsight_instance_global(instance, "counter", &counter)) && counter.of.i64 == 7);
  counter.of.i64 = 8;
  EXPECT(succeeded(hindsight_instance_set_global(instance, "counter", &counter)));
  counter.of.i64 = 0;
  EXPECT(succeeded(hindsight_instance_global(instance, "counter", &counter)) && counter.of.i64 == 8);

  EXPECT(hindsight_instance_trap_text(instance) == NULL);
  EXPECT(failed_as(hindsight_instance_call(instance, "crash", NULL, 0, NULL, 0), HINDSIGHT_TRAP));
  char* trap = hindsight_instance_trap_text(instance);
  EXPECT(trap != NULL && strstr(trap, "unreachable") != NULL);
  hindsight_string_delete(trap);
  EXPECT(hindsight_instance_trap_frame_count(instance) == 2);
  hindsight_frame frame;
  memset(&frame, 0, sizeof frame);
  EXPECT(hindsight_instance_trap_frame(instance, 0, &frame) && strcmp(frame.function, "inner") == 0);
  EXPECT(hindsight_instance_trap_frame(instance, 1, &frame) && strcmp(frame.function, "outer") == 0);
  EXPECT(!hindsight_instance_trap_frame(instance, 2, &frame));

  hindsight_error* refused = hindsight_instance_call(instance, "refuse", NULL, 0, NULL, 0);
  EXPECT(refused != NULL && strstr(hindsight_error_text(refused), "the host says no") != NULL);
  EXPECT(failed_as(refused, HINDSIGHT_TRAP));

#ifndef __SANITIZE_THREAD__ /* it delays signals: nothing would end the loop (tests/README.md) */
  hindsight_instance_set_timeout_ms(instance, 20);
  hindsight_error* late = hindsight_instance_call(instance, "forever", NULL, 0, NULL, 0);
  EXPECT(late != NULL && strstr(hindsight_error_text(late), "timed out") != NULL);
  EXPECT(failed_as(late, HINDSIGHT_TRAP));
#endif
  hindsight_linker_set_timeout_ms(linker, 0);
  hindsight_instance_interrupt(instance);
  hindsight_instance_clear_interrupt(instance);
  EXPECT(succeeded(hindsight_instance_call(instance, "sum", sum_args, 2, &result, 1)));
  hindsight_instance_interrupt(instance);
  EXPECT(failed_as(hindsight_instance_call(instance, "sum", sum_args, 2, &result, 1), HINDSIGHT_TRAP));

  /* Any order of deletion will do. */
  hindsight_linker_delete(linker);
  hindsight_module_delete(module);
  EXPECT(succeeded(hindsight_instance_call(instance, "sum", sum_args, 2, &result, 1)) && result.of.i32 == 42);
  hindsight_instance_delete(instance);
  EXPECT(finalized == 1);
}

static void test_wasi(hindsight_engine* engine) {
  hindsight_module* module = NULL;
  EXPECT(succeeded(hindsight_module_new(engine, kWasi, strlen(kWasi), "wasi.wat", &module)));
  if (module == NULL) return;
  hindsight_wasi* wasi = hindsight_wasi_new();
  hindsight_wasi_add_argument(wasi, "wasi.wat");
  hindsight_wasi_add_variable(wasi, "KEY", "value");
  hindsight_wasi_set_stdin(wasi, "", 0);
  hindsight_wasi_set_stdout(wasi, take_output, NULL);
  hindsight_linker* linker = hindsight_linker_new(engine);
  EXPECT(succeeded(hindsight_linker_define_wasi(linker, wasi)));
  hindsight_wasi_delete(wasi);
  hindsight_instance* instance = NULL;
  EXPECT(succeeded(hindsight_linker_instantiate(linker, module, &instance)));
  if (instance != NULL) {
    uint32_t code = 0;
    EXPECT(failed_as(hindsight_instance_call(instance, "_start", NULL, 0, NULL, 0), HINDSIGHT_EXIT));
    EXPECT(hindsight_instance_exit_code(instance, &code) && code == 42);
    EXPECT(written_bytes == 15 && memcmp(written, "from the guest\n", 15) == 0);
  }
  hindsight_instance_delete(instance);
  hindsight_linker_delete(linker);
  hindsight_module_delete(module);
}

static hindsight_instance* instantiate_text(hindsight_engine* engine, hindsight_linker* linker,
                                            const char* text) {
  hindsight_module* module = NULL;
  hindsight_instance* instance = NULL;
  EXPECT(succeeded(hindsight_module_new(engine, text, strlen(text), "text.wat", &module)));
  if (module != NULL) EXPECT(succeeded(hindsight_linker_instantiate(linker, module, &instance)));
  hindsight_module_delete(module);
  return instance;
}

static void test_shared_memory(hindsight_engine* engine) {
  hindsight_linker* one = hindsight_linker_new(engine);
  hindsight_linker* two = hindsight_linker_new(engine);
  hindsight_instance* owner =
      instantiate_text(engine, one,
                       "(module (memory (export \"m\") 1 1 shared)"
                       " (func (export \"get\") (result i32) (i32.atomic.load (i32.const 8))))");
  EXPECT(failed_as(hindsight_linker_define_shared_memory(two, "owner", "m", owner, "get"), HINDSIGHT_USAGE));
  EXPECT(succeeded(hindsight_linker_define_shared_memory(two, "owner", "m", owner, "m")));
  hindsight_instance* user =
      instantiate_text(engine, two,
                       "(module (import \"owner\" \"m\" (memory 1 1 shared))"
                       " (func (export \"put\") (i32.atomic.store (i32.const 8) (i32.const 41))))");
  if (owner == NULL || user == NULL) return;
  hindsight_value result = {HINDSIGHT_I32, {.i32 = 0}};
  EXPECT(succeeded(hindsight_instance_call(user, "put", NULL, 0, NULL, 0)));
  EXPECT(succeeded(hindsight_instance_call(owner, "get", NULL, 0, &result, 1)));
  EXPECT(result.of.i32 == 41);
  hindsight_instance_delete(owner);
  hindsight_instance_delete(user);
  hindsight_linker_delete(one);
  hindsight_linker_delete(two);
}

static void test_errors(hindsight_engine* engine) {
  hindsight_module* module = NULL;
  EXPECT(failed_as(hindsight_module_new(engine, "(module", 7, "bad.wat", &module), HINDSIGHT_BAD_MODULE));
  EXPECT(
      failed_as(hindsight_module_new(engine, "\0asm\2\0\0\0", 8, "bad.wasm", &module), HINDSIGHT_BAD_MODULE));
  EXPECT(module == NULL);
  hindsight_error* missing = hindsight_module_new_from_file(engine, "/nonexistent/module.wasm", &module);
  EXPECT(missing != NULL && strstr(hindsight_error_text(missing), "/nonexistent/module.wasm") != NULL);
  hindsight_error_delete(missing);

  hindsight_config* config = hindsight_config_new();
  hindsight_config_set_code_cache(config, "", 1 << 20);
  hindsight_config_set_code_cache(config, NULL, 1 << 20);
  hindsight_config_set_unit(config, "psychic");
  hindsight_engine* none = NULL;
  EXPECT(failed_as(hindsight_engine_new(config, &none), HINDSIGHT_USAGE));
  EXPECT(none == NULL);
  hindsight_config_delete(config);
}

int main(void) {
  EXPECT(hindsight_version()[0] != '\0');
  hindsight_engine* engine = NULL;
  if (!succeeded(hindsight_engine_new(NULL, &engine))) return 1;
  test_calls(engine);
  test_wasi(engine);
  test_shared_memory(engine);
  test_errors(engine);
  char* feedback = hindsight_engine_feedback_json(engine);
  EXPECT(feedback != NULL && strstr(feedback, "\"counts\"") != NULL);
  hindsight_string_delete(feedback);
  char* info = hindsight_lwp_info(true);
  EXPECT(info != NULL && info[0] == '{');
  hindsight_string_delete(info);
  hindsight_engine_delete(engine);
  hindsight_engine_delete(NULL);
  if (failures == 0) printf("all expectations met\n");
  return failures == 0 ? 0 : 1;
}
