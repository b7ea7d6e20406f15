/* Hindsight's C API: the public C++ API (runtime/engine/hindsight.h) by opaque handles.
 *
 *   hindsight_engine* engine = NULL;
 *   hindsight_error* error = hindsight_engine_new(NULL, &engine);
 *   if (error) { fprintf(stderr, "%s\n", hindsight_error_text(error)); hindsight_error_delete(error); }
 *
 * Errors: a function that can fail returns NULL for success, else an error that the caller owns and deletes.
 * Where there is no memory, *_new and functions that return text give NULL. What a function without a result
 * was to do then fails when its handle is used next. On failure, what the function writes through its last
 * parameters is left as it was.
 *
 * Ownership: every *_new and every handle written through `out` belongs to the caller, who passes it to the
 * *_delete of its kind. Handles may be deleted in any order, also by a host function that they led to. What
 * they need stays alive. *_delete accepts NULL. A `char*` result is a string that the caller passes to
 * hindsight_string_delete. A `const char*` result lives as long as its handle.
 *
 * Text is UTF-8 and ends with a zero byte. Precondition: pointers are not NULL unless said. Words (messages,
 * texts, lines of the log) have names of modules in them made printable. Names by themselves
 * (hindsight_frame) are the module's bytes.
 *
 * Threads: as the C++ API says. Engine and module: any thread. An instance and all linked with it: one thread
 * at a time, but hindsight_instance_interrupt and hindsight_engine_feedback_json may be called from any.
 *
 * Stability: functions, enumerators and struct layouts of this header only ever get additions. */
#ifndef HINDSIGHT_C_H
#define HINDSIGHT_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(HINDSIGHT_C_BUILDING)
#define HINDSIGHT_C_API __attribute__((visibility("default")))
#else
#define HINDSIGHT_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hindsight_error hindsight_error;
typedef struct hindsight_config hindsight_config;
typedef struct hindsight_engine hindsight_engine;
typedef struct hindsight_module hindsight_module;
typedef struct hindsight_wasi hindsight_wasi;
typedef struct hindsight_linker hindsight_linker;
typedef struct hindsight_instance hindsight_instance;
typedef struct hindsight_caller hindsight_caller; /* lives during one host call */

/* The version of the library, such as "0.1.0". */
HINDSIGHT_C_API const char* hindsight_version(void);
HINDSIGHT_C_API void hindsight_string_delete(char* text);

/* ---- errors ---- */

typedef enum hindsight_error_kind {
  HINDSIGHT_BAD_MODULE = 0,  /* not a valid module */
  HINDSIGHT_UNSUPPORTED = 1, /* valid, but a feature that this build does not implement */
  HINDSIGHT_LINK = 2,        /* an import is missing or has another type */
  HINDSIGHT_TRAP = 3,        /* guest code trapped */
  HINDSIGHT_EXIT = 4,        /* guest code called proc_exit; see hindsight_instance_exit_code */
  HINDSIGHT_RESOURCE = 5,    /* memory, address space, descriptors, permissions */
  HINDSIGHT_USAGE = 6,       /* an argument that cannot be used */
  HINDSIGHT_INTERNAL = 7     /* a bug of the library */
} hindsight_error_kind;

/* For host functions to return: becomes a trap of the guest with this message. One of kind HINDSIGHT_EXIT,
 * with a decimal number as message, ends the guest as proc_exit does. */
HINDSIGHT_C_API hindsight_error* hindsight_error_new(hindsight_error_kind kind, const char* message);
HINDSIGHT_C_API hindsight_error_kind hindsight_error_get_kind(const hindsight_error* error);
HINDSIGHT_C_API const char* hindsight_error_message(const hindsight_error* error);
/* Place, offset, kind and message in one line. */
HINDSIGHT_C_API const char* hindsight_error_text(const hindsight_error* error);
HINDSIGHT_C_API void hindsight_error_delete(hindsight_error* error);

/* ---- configuration ---- */

typedef enum hindsight_tier {
  HINDSIGHT_TIER_AUTO = 0,
  HINDSIGHT_TIER_BASELINE = 1,
  HINDSIGHT_TIER_OPTIMIZED = 2
} hindsight_tier;
typedef enum hindsight_log_level {
  HINDSIGHT_LOG_DEBUG = 0,
  HINDSIGHT_LOG_INFO = 1,
  HINDSIGHT_LOG_WARNING = 2
} hindsight_log_level;

/* One event. May be called from several threads at the same time; the texts live during the call. */
typedef void (*hindsight_log_callback)(void* user, hindsight_log_level level, const char* topic,
                                       const char* line);

/* The defaults are those of EngineConfig. */
HINDSIGHT_C_API hindsight_config* hindsight_config_new(void);
HINDSIGHT_C_API void hindsight_config_delete(hindsight_config* config);
HINDSIGHT_C_API void hindsight_config_set_tier(hindsight_config* config, hindsight_tier tier);
HINDSIGHT_C_API void hindsight_config_set_feedback(hindsight_config* config, bool on);
HINDSIGHT_C_API void hindsight_config_set_profiling(hindsight_config* config, bool on);
HINDSIGHT_C_API void hindsight_config_set_unit(hindsight_config* config, const char* unit);
/* Guests that import module hindsight_lwp get its functions (samples/include/hindsight_lwp.h). */
HINDSIGHT_C_API void hindsight_config_set_guest_lwp(hindsight_config* config, bool on);
HINDSIGHT_C_API void hindsight_config_set_guard_pages(hindsight_config* config, bool on);
HINDSIGHT_C_API void hindsight_config_set_compile_threads(hindsight_config* config, uint32_t threads);
HINDSIGHT_C_API void hindsight_config_set_max_stack_bytes(hindsight_config* config, size_t bytes);
HINDSIGHT_C_API void hindsight_config_set_max_memory_bytes(hindsight_config* config, uint64_t bytes);
/* What the guests of a linker may make the host hold (base/store_limits.h, in its order). Where a limit is met,
 * instantiating fails with HINDSIGHT_RESOURCE, memory.grow and table.grow give -1. */
typedef enum hindsight_limit {
  HINDSIGHT_LIMIT_MEMORY_BYTES = 0,   /* of all linear memories together */
  HINDSIGHT_LIMIT_TABLE_BYTES = 1,    /* of all tables together, 8 an element */
  HINDSIGHT_LIMIT_TABLE_ELEMENTS = 2, /* of each table */
  HINDSIGHT_LIMIT_TYPES = 3,          /* of all modules */
  HINDSIGHT_LIMIT_THREADS = 4,        /* that guests spawn */
  HINDSIGHT_LIMIT_DESCRIPTORS = 5,    /* of WASI */
  HINDSIGHT_LIMIT_EXCEPTION_BYTES = 6,
  HINDSIGHT_LIMIT_CODE_BYTES = 7 /* of generated code of the modules that have instances */
} hindsight_limit;
/* For the linkers of the engine. Ignored: a limit that this version does not know. */
HINDSIGHT_C_API void hindsight_config_set_limit(hindsight_config* config, hindsight_limit limit,
                                                uint64_t value);
HINDSIGHT_C_API void hindsight_config_set_profile_in(hindsight_config* config, const char* path);
HINDSIGHT_C_API void hindsight_config_set_profile_out(hindsight_config* config, const char* path);
/* Keeps optimized code in this folder, of at most so many bytes, for later engines and processes; "" or NULL: keeps none, the default.
   Only files that the process's user owns, that nobody else can write and that are sealed with the user's key are used. No folder
   around it can be given to a guest. */
HINDSIGHT_C_API void hindsight_config_set_code_cache(hindsight_config* config, const char* directory,
                                                     uint64_t most_bytes);
/* Where the key of these seals is: a folder for its owner alone. "" or NULL: ~/.local/state/hindsight, unless the environment says otherwise. */
HINDSIGHT_C_API void hindsight_config_set_key_directory(hindsight_config* config, const char* directory);
/* `user` must stay valid as long as the engine. */
HINDSIGHT_C_API void hindsight_config_set_log(hindsight_config* config, hindsight_log_level least,
                                              hindsight_log_callback callback, void* user);

/* ---- engine ---- */

/* `config` is copied; NULL: defaults. */
HINDSIGHT_C_API hindsight_error* hindsight_engine_new(const hindsight_config* config, hindsight_engine** out);
HINDSIGHT_C_API void hindsight_engine_delete(hindsight_engine* engine);
/* What profiling counted and feedback decided, as a JSON object. */
HINDSIGHT_C_API char* hindsight_engine_feedback_json(const hindsight_engine* engine);
HINDSIGHT_C_API hindsight_error* hindsight_engine_save_profile(const hindsight_engine* engine,
                                                               const char* path);
/* Waits until the optimizer has nothing queued or running. */
HINDSIGHT_C_API void hindsight_engine_wait_for_compiles(hindsight_engine* engine);
/* What this machine offers for profiling and which unit is used, as a JSON object or as text. */
HINDSIGHT_C_API char* hindsight_lwp_info(bool json);

/* ---- modules ---- */

/* Binary or text format, told apart by content. `name` is for messages. */
HINDSIGHT_C_API hindsight_error* hindsight_module_new(hindsight_engine* engine, const void* bytes,
                                                      size_t size, const char* name, hindsight_module** out);
HINDSIGHT_C_API hindsight_error* hindsight_module_new_from_file(hindsight_engine* engine, const char* path,
                                                                hindsight_module** out);
HINDSIGHT_C_API void hindsight_module_delete(hindsight_module* module);
/* {"name":..., "hash":..., "imports":[{"module","name","kind","params"?,"results"?}],
 * "exports":[{"name","kind",...}]} */
HINDSIGHT_C_API char* hindsight_module_describe_json(const hindsight_module* module);

/* ---- values ---- */

typedef enum hindsight_value_kind {
  HINDSIGHT_I32 = 0,
  HINDSIGHT_I64 = 1,
  HINDSIGHT_F32 = 2,
  HINDSIGHT_F64 = 3,
  HINDSIGHT_FUNCREF = 4,
  HINDSIGHT_EXTERNREF = 5,
  HINDSIGHT_V128 = 6,
  HINDSIGHT_EXNREF = 7
} hindsight_value_kind;

typedef struct hindsight_value {
  hindsight_value_kind kind;
  union {
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    uint64_t ref;     /* funcref: opaque; externref: the host's handle + 1; exnref: only null; 0: null */
    uint8_t v128[16]; /* lane 0 first */
  } of;
} hindsight_value;

/* ---- WASI ---- */

/* Receives what the guest writes; the bytes live during the call. */
typedef void (*hindsight_write_callback)(void* user, const char* bytes, size_t size);

/* No arguments, no environment, no directories, the process's own standard streams. */
HINDSIGHT_C_API hindsight_wasi* hindsight_wasi_new(void);
HINDSIGHT_C_API void hindsight_wasi_delete(hindsight_wasi* wasi);
/* The first argument is the program's name. */
HINDSIGHT_C_API void hindsight_wasi_add_argument(hindsight_wasi* wasi, const char* argument);
HINDSIGHT_C_API void hindsight_wasi_add_variable(hindsight_wasi* wasi, const char* key, const char* value);
HINDSIGHT_C_API void hindsight_wasi_add_directory(hindsight_wasi* wasi, const char* host_path,
                                                  const char* guest_path);
HINDSIGHT_C_API void hindsight_wasi_set_stdin(hindsight_wasi* wasi, const void* bytes, size_t size);
/* `user` must stay valid as long as an instance may write. */
HINDSIGHT_C_API void hindsight_wasi_set_stdout(hindsight_wasi* wasi, hindsight_write_callback callback,
                                               void* user);
HINDSIGHT_C_API void hindsight_wasi_set_stderr(hindsight_wasi* wasi, hindsight_write_callback callback,
                                               void* user);

/* ---- linking ---- */

/* Reads `args`, fills `results`, whose kinds are set and whose values are zero. NULL: success; an error,
 * which passes to the library, traps the guest. */
typedef hindsight_error* (*hindsight_host_callback)(void* user, hindsight_caller* caller,
                                                    const hindsight_value* args, size_t arg_count,
                                                    hindsight_value* results, size_t result_count);

/* The calling instance's memory 0 (NULL and size 0 without one); valid until the guest runs again. */
HINDSIGHT_C_API void* hindsight_caller_memory(hindsight_caller* caller, size_t* size);

HINDSIGHT_C_API hindsight_linker* hindsight_linker_new(hindsight_engine* engine);
/* With the limits of `limits`; all else in there is of no account. */
HINDSIGHT_C_API hindsight_linker* hindsight_linker_new_limited(hindsight_engine* engine,
                                                               const hindsight_config* limits);
HINDSIGHT_C_API void hindsight_linker_delete(hindsight_linker* linker);
/* `finalize` may be NULL. Else it is called once with `user`, when no instance can call the function any
 * more. Where there is no memory for the function, it is called at once. */
HINDSIGHT_C_API void hindsight_linker_define_function(hindsight_linker* linker, const char* module,
                                                      const char* name, const hindsight_value_kind* params,
                                                      size_t param_count, const hindsight_value_kind* results,
                                                      size_t result_count, hindsight_host_callback callback,
                                                      void* user, void (*finalize)(void* user));
/* Every export of `instance` under this module name. */
HINDSIGHT_C_API void hindsight_linker_define_instance(hindsight_linker* linker, const char* module,
                                                      const hindsight_instance* instance);
/* As hindsight_instance_set_timeout_ms, for all instances of the linker, start functions included. */
HINDSIGHT_C_API void hindsight_linker_set_timeout_ms(hindsight_linker* linker, uint64_t milliseconds);
/* A shared memory that `owner` exports, whichever linker made it: its guests and this linker's may run at the
 * same time, on threads of yours. */
HINDSIGHT_C_API hindsight_error* hindsight_linker_define_shared_memory(hindsight_linker* linker,
                                                                       const char* module, const char* name,
                                                                       const hindsight_instance* owner,
                                                                       const char* export_name);
/* `wasi` is copied. */
HINDSIGHT_C_API hindsight_error* hindsight_linker_define_wasi(hindsight_linker* linker,
                                                              const hindsight_wasi* wasi);
/* Links, initializes and runs the start function. */
HINDSIGHT_C_API hindsight_error* hindsight_linker_instantiate(hindsight_linker* linker,
                                                              const hindsight_module* module,
                                                              hindsight_instance** out);
/* As hindsight_instance_trap_text, where instantiating failed with HINDSIGHT_TRAP and left no instance. */
HINDSIGHT_C_API char* hindsight_linker_trap_text(const hindsight_linker* linker);

/* ---- instances ---- */

HINDSIGHT_C_API void hindsight_instance_delete(hindsight_instance* instance);
/* Parameters and results of an exported function. Each array receives at most its capacity; the counts are
 * complete. Arrays may be NULL with capacity 0. */
HINDSIGHT_C_API hindsight_error* hindsight_instance_function_type(
    const hindsight_instance* instance, const char* name, hindsight_value_kind* params, size_t param_capacity,
    size_t* param_count, hindsight_value_kind* results, size_t result_capacity, size_t* result_count);
/* `result_count` must be the function's. */
HINDSIGHT_C_API hindsight_error* hindsight_instance_call(hindsight_instance* instance, const char* name,
                                                         const hindsight_value* args, size_t arg_count,
                                                         hindsight_value* results, size_t result_count);
/* An exported memory; `name` NULL: memory 0. Valid until the guest runs again. */
HINDSIGHT_C_API hindsight_error* hindsight_instance_memory(hindsight_instance* instance, const char* name,
                                                           void** data, size_t* size);
HINDSIGHT_C_API hindsight_error* hindsight_instance_global(const hindsight_instance* instance,
                                                           const char* name, hindsight_value* out);
HINDSIGHT_C_API hindsight_error* hindsight_instance_set_global(hindsight_instance* instance, const char* name,
                                                               const hindsight_value* value);
/* Ends one call with the trap "interrupted", the running one or else the next. It stays until a call has ended
 * so or hindsight_instance_clear_interrupt takes it back. Any thread. Threads that run guests must not block
 * SIGSEGV, SIGBUS and SIGURG, nor replace their handlers by some that do not hand on. What is done about
 * those that do is said at Instance::interrupt in hindsight.h. */
HINDSIGHT_C_API void hindsight_instance_interrupt(hindsight_instance* instance);
HINDSIGHT_C_API void hindsight_instance_clear_interrupt(hindsight_instance* instance);
/* Each call that begins from now on, and from now on the one that is running, may take so long. Then it ends
 * with the trap "timed out". 0: no limit. */
HINDSIGHT_C_API void hindsight_instance_set_timeout_ms(hindsight_instance* instance, uint64_t milliseconds);
/* False: the last call did not end through proc_exit. */
HINDSIGHT_C_API bool hindsight_instance_exit_code(const hindsight_instance* instance, uint32_t* code);

/* One frame of a trap's backtrace; `function` lives until the instance is entered again. */
typedef struct hindsight_frame {
  const char* function;
  uint32_t function_index;
  bool has_wasm_offset;
  uint32_t wasm_offset; /* from the start of the module's file */
  bool inlined;
} hindsight_frame;

/* Name, detail and backtrace of the last call's trap, several lines; NULL if it did not trap. */
HINDSIGHT_C_API char* hindsight_instance_trap_text(const hindsight_instance* instance);
/* Frames of that backtrace, innermost first; 0 without a trap. */
HINDSIGHT_C_API size_t hindsight_instance_trap_frame_count(const hindsight_instance* instance);
/* False: no such frame. */
HINDSIGHT_C_API bool hindsight_instance_trap_frame(const hindsight_instance* instance, size_t index,
                                                   hindsight_frame* out);

#ifdef __cplusplus
}
#endif
#endif
