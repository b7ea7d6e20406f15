// The C API where the host's memory runs out at every place there is: each function fails as its header says, or works. None ends the
// process. The test binary's operator new fails when it is told to, on the thread that says so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hindsight/hindsight_c.h"
#include "tests/failing_new.h"

namespace {

constexpr const char kGuest[] = R"((module $guest
  (import "host" "f" (func $f (param i32) (result i32)))
  (memory (export "memory") 1)
  (global (export "g") (mut i64) (i64.const 7))
  (func (export "add") (param i32 i32) (result i32) (i32.add (call $f (local.get 0)) (local.get 1)))
  (func $inner unreachable)
  (func (export "crash") (call $inner)))
)";
constexpr const char kThreads[] = R"((module (memory (export "shared") 1 1 shared)))";
constexpr const char kStart[] = R"((module (func $begin unreachable) (start $begin)))";

// Words that are too long for a string's own room.
constexpr const char kLong[] = "a name that is longer than what fits into a string without memory of its own";

hindsight_error* host_function(void*, hindsight_caller* caller, const hindsight_value* args, size_t,
                               hindsight_value* results, size_t) {
  size_t size = 0;
  (void)hindsight_caller_memory(caller, &size);
  results[0].of.i32 = args[0].of.i32 + 1;
  return nullptr;
}
void count_up(void* count) {
  ++*static_cast<int*>(count);
}

// What a call came to: an error that can be asked, which it then deletes; or none.
bool is_error(hindsight_error* error) {
  if (error == nullptr) return false;
  EXPECT_NE(std::strlen(hindsight_error_message(error)), 0u);
  EXPECT_NE(std::strlen(hindsight_error_text(error)), 0u);
  hindsight_error_delete(error);
  return true;
}
void must_work(hindsight_error* error) {
  if (error != nullptr) ADD_FAILURE() << hindsight_error_text(error);
  hindsight_error_delete(error);
}
bool is_text(char* text) {
  hindsight_string_delete(text);
  return text != nullptr;
}

// Everything that there is to call something with.
struct World {
  World() {
    config = hindsight_config_new();
    hindsight_config_set_tier(config, HINDSIGHT_TIER_BASELINE);
    hindsight_config_set_profiling(config, false);
    must_work(hindsight_engine_new(config, &engine));
    linker = hindsight_linker_new(engine);
    define(linker);
    wasi = hindsight_wasi_new();
    must_work(hindsight_module_new(engine, kGuest, std::strlen(kGuest), "guest", &module));
    must_work(hindsight_module_new(engine, kThreads, std::strlen(kThreads), "threads", &threads_module));
    must_work(hindsight_module_new(engine, kStart, std::strlen(kStart), "start", &start_module));
    must_work(hindsight_linker_instantiate(linker, module, &instance));
    must_work(hindsight_linker_instantiate(linker, threads_module, &threads));
  }
  ~World() {
    t_left = -1;
    hindsight_instance_delete(instance);
    hindsight_instance_delete(threads);
    hindsight_instance_delete(more);
    hindsight_linker_delete(linker);
    hindsight_linker_delete(more_linker);
    for (hindsight_module* each : {module, threads_module, start_module, more_module})
      hindsight_module_delete(each);
    hindsight_wasi_delete(wasi);
    hindsight_engine_delete(engine);
    hindsight_engine_delete(more_engine);
    hindsight_config_delete(config);
    EXPECT_EQ(finalized, defined);
  }
  void define(hindsight_linker* to) {
    const hindsight_value_kind kind = HINDSIGHT_I32;
    ++defined;
    hindsight_linker_define_function(to, "host", "f", &kind, 1, &kind, 1, host_function, &finalized,
                                     count_up);
  }

  hindsight_config* config = nullptr;
  hindsight_engine *engine = nullptr, *more_engine = nullptr;
  hindsight_linker *linker = nullptr, *more_linker = nullptr;
  hindsight_wasi* wasi = nullptr;
  hindsight_module *module = nullptr, *threads_module = nullptr, *start_module = nullptr,
                   *more_module = nullptr;
  hindsight_instance *instance = nullptr, *threads = nullptr, *more = nullptr;
  int defined = 0, finalized = 0;
};

struct Function {
  const char* name;
  std::function<bool(World&)> call;              // false: it failed, as the header says
  std::function<void(World&)> before = nullptr;  // with memory
  std::function<void(World&)> after = nullptr;   // the same
};
void PrintTo(const Function& function, std::ostream* out) {
  *out << function.name;
}

Function setter(const char* name, std::function<void(hindsight_config*)> set) {
  return {name,
          [set = std::move(set)](World& w) {
            set(w.config);
            return true;
          },
          nullptr,
          // It is used, or says that it has forgotten something.
          [](World& w) {
            hindsight_config_set_profile_in(w.config, "");
            hindsight_config_set_unit(w.config, "auto");
            (void)is_error(hindsight_engine_new(w.config, &w.more_engine));
          }};
}

std::vector<Function> functions() {
  std::vector<Function> all = {
      {"error_new",
       [](World&) {
         hindsight_error* error = hindsight_error_new(HINDSIGHT_USAGE, kLong);
         const bool made = error != nullptr && std::string_view(hindsight_error_message(error)) == kLong;
         (void)is_error(error);
         return made;
       }},
      {"config_new",
       [](World&) {
         hindsight_config* config = hindsight_config_new();
         hindsight_config_delete(config);
         return config != nullptr;
       }},
      {"engine_new", [](World& w) { return !is_error(hindsight_engine_new(w.config, &w.more_engine)); }},
      {"engine_new_with_profiling",
       [](World& w) { return !is_error(hindsight_engine_new(nullptr, &w.more_engine)); }},
      {"engine_delete",
       [](World& w) {
         hindsight_engine_delete(std::exchange(w.more_engine, nullptr));
         return true;
       },
       [](World& w) { must_work(hindsight_engine_new(nullptr, &w.more_engine)); }},
      {"engine_feedback_json", [](World& w) { return is_text(hindsight_engine_feedback_json(w.engine)); }},
      {"engine_save_profile",
       [](World& w) { return !is_error(hindsight_engine_save_profile(w.engine, kLong)); }},
      {"engine_wait_for_compiles",
       [](World& w) {
         hindsight_engine_wait_for_compiles(w.engine);
         return true;
       }},
      {"module_new",
       [](World& w) {
         return !is_error(hindsight_module_new(w.engine, kGuest, std::strlen(kGuest), kLong, &w.more_module));
       }},
      {"module_new_of_nonsense",
       [](World& w) {
         return !is_error(hindsight_module_new(w.engine, "(module (nothing))", 18, kLong, &w.more_module));
       }},
      {"module_new_from_file",
       [](World& w) {
         return !is_error(hindsight_module_new_from_file(
             w.engine, "/a file that is not there and has a long name", &w.more_module));
       }},
      {"module_delete",
       [](World& w) {
         hindsight_module_delete(std::exchange(w.more_module, nullptr));
         return true;
       },
       [](World& w) {
         must_work(hindsight_module_new(w.engine, kGuest, std::strlen(kGuest), kLong, &w.more_module));
       }},
      {"module_describe_json", [](World& w) { return is_text(hindsight_module_describe_json(w.module)); }},
      {"wasi_new",
       [](World&) {
         hindsight_wasi* wasi = hindsight_wasi_new();
         hindsight_wasi_delete(wasi);
         return wasi != nullptr;
       }},
      {"wasi",
       [](World& w) {
         hindsight_wasi_add_argument(w.wasi, kLong);
         hindsight_wasi_add_variable(w.wasi, kLong, kLong);
         hindsight_wasi_add_directory(w.wasi, "/tmp", kLong);
         hindsight_wasi_set_stdin(w.wasi, kLong, sizeof kLong);
         hindsight_wasi_set_stdout(
             w.wasi, [](void*, const char*, size_t) {}, nullptr);
         hindsight_wasi_set_stderr(
             w.wasi, [](void*, const char*, size_t) {}, nullptr);
         return true;
       },
       nullptr, [](World& w) { (void)is_error(hindsight_linker_define_wasi(w.linker, w.wasi)); }},
      {"linker_define_wasi",
       [](World& w) { return !is_error(hindsight_linker_define_wasi(w.linker, w.wasi)); },
       [](World& w) { hindsight_wasi_add_directory(w.wasi, "/tmp", kLong); }},
      {"linker_new", [](World& w) { return (w.more_linker = hindsight_linker_new(w.engine)) != nullptr; }},
      {"linker_new_limited",
       [](World& w) {
         return (w.more_linker = hindsight_linker_new_limited(w.engine, w.config)) != nullptr;
       }},
      {"linker_delete",
       [](World& w) {
         hindsight_linker_delete(std::exchange(w.more_linker, nullptr));
         return true;
       },
       [](World& w) {
         w.more_linker = hindsight_linker_new(w.engine);
         w.define(w.more_linker);
         must_work(hindsight_linker_instantiate(w.more_linker, w.module, &w.more));
         hindsight_instance_delete(std::exchange(w.more, nullptr));
       }},
      {"linker_define_function",
       [](World& w) {
         w.define(w.more_linker);
         return true;
       },
       [](World& w) { w.more_linker = hindsight_linker_new(w.engine); },
       [](World& w) {
         if (is_error(hindsight_linker_instantiate(w.more_linker, w.module, &w.more))) return;
         hindsight_value args[2] = {{HINDSIGHT_I32, {.i32 = 1}}, {HINDSIGHT_I32, {.i32 = 2}}}, result;
         must_work(hindsight_instance_call(w.more, "add", args, 2, &result, 1));
       }},
      {"linker_define_instance",
       [](World& w) {
         hindsight_linker_define_instance(w.linker, kLong, w.instance);
         return true;
       }},
      {"linker_set_timeout_ms",
       [](World& w) {
         hindsight_linker_set_timeout_ms(w.more_linker, 100'000);
         return true;
       },
       [](World& w) { w.more_linker = hindsight_linker_new(w.engine); },
       [](World& w) {
         w.define(w.more_linker);
         (void)is_error(hindsight_linker_instantiate(w.more_linker, w.module, &w.more));
       }},
      {"linker_define_shared_memory",
       [](World& w) {
         return !is_error(hindsight_linker_define_shared_memory(w.linker, kLong, kLong, w.threads, "shared"));
       }},
      {"linker_instantiate",
       [](World& w) { return !is_error(hindsight_linker_instantiate(w.linker, w.module, &w.more)); }, nullptr,
       [](World& w) {
         if (w.more == nullptr) must_work(hindsight_linker_instantiate(w.linker, w.module, &w.more));
       }},
      {"linker_instantiate_and_trap",
       [](World& w) { return !is_error(hindsight_linker_instantiate(w.linker, w.start_module, &w.more)); }},
      {"linker_trap_text", [](World& w) { return is_text(hindsight_linker_trap_text(w.linker)); },
       [](World& w) {
         EXPECT_TRUE(is_error(hindsight_linker_instantiate(w.linker, w.start_module, &w.more)));
       }},
      {"instance_delete",
       [](World& w) {
         hindsight_instance_delete(std::exchange(w.more, nullptr));
         return true;
       },
       [](World& w) { must_work(hindsight_linker_instantiate(w.linker, w.module, &w.more)); }},
      {"instance_function_type",
       [](World& w) {
         size_t params = 0, results = 0;
         return !is_error(
             hindsight_instance_function_type(w.instance, "add", nullptr, 0, &params, nullptr, 0, &results));
       }},
      {"instance_call",
       [](World& w) {
         hindsight_value args[2] = {{HINDSIGHT_I32, {.i32 = 1}}, {HINDSIGHT_I32, {.i32 = 2}}}, result;
         const bool worked = !is_error(hindsight_instance_call(w.instance, "add", args, 2, &result, 1));
         if (worked) {
           EXPECT_EQ(result.of.i32, 4);
         }
         return worked;
       },
       nullptr,
       [](World& w) {
         hindsight_value args[2] = {{HINDSIGHT_I32, {.i32 = 1}}, {HINDSIGHT_I32, {.i32 = 2}}}, result;
         must_work(hindsight_instance_call(w.instance, "add", args, 2, &result, 1));
       }},
      {"instance_call_and_trap",
       [](World& w) {
         return !is_error(hindsight_instance_call(w.instance, "crash", nullptr, 0, nullptr, 0));
       }},
      {"instance_call_of_nothing",
       [](World& w) {
         return !is_error(hindsight_instance_call(w.instance, kLong, nullptr, 0, nullptr, 0));
       }},
      {"instance_trap_text",
       [](World& w) {
         hindsight_frame frame;
         EXPECT_EQ(hindsight_instance_trap_frame_count(w.instance), 2u);
         EXPECT_TRUE(hindsight_instance_trap_frame(w.instance, 1, &frame));
         return is_text(hindsight_instance_trap_text(w.instance));
       },
       [](World& w) {
         EXPECT_TRUE(is_error(hindsight_instance_call(w.instance, "crash", nullptr, 0, nullptr, 0)));
       }},
      {"instance_memory",
       [](World& w) {
         void* data = nullptr;
         size_t size = 0;
         return !is_error(hindsight_instance_memory(w.instance, "memory", &data, &size));
       }},
      {"instance_memory_of_nothing",
       [](World& w) {
         void* data = nullptr;
         size_t size = 0;
         return !is_error(hindsight_instance_memory(w.instance, kLong, &data, &size));
       }},
      {"instance_global",
       [](World& w) {
         hindsight_value value;
         return !is_error(hindsight_instance_global(w.instance, "g", &value));
       }},
      {"instance_set_global",
       [](World& w) {
         const hindsight_value value = {HINDSIGHT_I64, {.i32 = 5}}, wrong = {HINDSIGHT_I32, {.i32 = 5}};
         (void)is_error(hindsight_instance_set_global(w.instance, "g", &wrong));
         return !is_error(hindsight_instance_set_global(w.instance, "g", &value));
       }},
      {"instance_interrupt",
       [](World& w) {
         hindsight_instance_interrupt(w.instance);
         hindsight_instance_clear_interrupt(w.instance);
         hindsight_instance_set_timeout_ms(w.instance, 100'000);
         return true;
       },
       nullptr,
       [](World& w) {
         hindsight_instance_clear_interrupt(w.instance);
         uint32_t code = 0;
         EXPECT_FALSE(hindsight_instance_exit_code(w.instance, &code));
         (void)is_error(hindsight_instance_call(w.instance, "crash", nullptr, 0, nullptr, 0));
       }},
      setter("config_set_unit", [](hindsight_config* c) { hindsight_config_set_unit(c, kLong); }),
      setter("config_set_profile_in", [](hindsight_config* c) { hindsight_config_set_profile_in(c, kLong); }),
      setter("config_set_profile_out",
             [](hindsight_config* c) { hindsight_config_set_profile_out(c, kLong); }),
      setter("config_set_code_cache",
             [](hindsight_config* c) { hindsight_config_set_code_cache(c, kLong, 1); }),
      setter("config_set_key_directory",
             [](hindsight_config* c) { hindsight_config_set_key_directory(c, kLong); }),
      setter("config_set_log",
             [](hindsight_config* c) {
               hindsight_config_set_log(
                   c, HINDSIGHT_LOG_DEBUG, [](void*, hindsight_log_level, const char*, const char*) {},
                   nullptr);
             }),
      setter("config_set_numbers",
             [](hindsight_config* c) {
               hindsight_config_set_tier(c, HINDSIGHT_TIER_BASELINE);
               hindsight_config_set_feedback(c, true);
               hindsight_config_set_guest_lwp(c, true);
               hindsight_config_set_guard_pages(c, true);
               hindsight_config_set_compile_threads(c, 1);
               hindsight_config_set_max_stack_bytes(c, 1 << 20);
               hindsight_config_set_max_memory_bytes(c, 1 << 20);
               for (int limit = 0; limit <= HINDSIGHT_LIMIT_CODE_BYTES + 1; ++limit)
                 hindsight_config_set_limit(c, static_cast<hindsight_limit>(limit), 1'000'000);
             }),
  };
  return all;
}

class CApiWithoutMemory : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(Functions, CApiWithoutMemory, testing::ValuesIn(functions()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CApiWithoutMemory, AFunctionFailsOrWorks) {
  const Function& function = GetParam();
  for (long allocations = 0;; ++allocations) {
    ASSERT_LT(allocations, 20'000) << "never has enough";
    World world;
    if (function.before) function.before(world);
    t_left = allocations;
    (void)function.call(world);
    const bool had_enough = t_left > 0;
    t_left = -1;
    if (function.after) function.after(world);
    if (had_enough) break;
  }
}

TEST(CApi, RefusesCodeBeyondItsLimit) {
  hindsight_config* config = hindsight_config_new();
  hindsight_config_set_tier(config, HINDSIGHT_TIER_BASELINE);
  hindsight_config_set_profiling(config, false);
  hindsight_config_set_limit(config, HINDSIGHT_LIMIT_CODE_BYTES, 16);
  hindsight_engine* engine = nullptr;
  must_work(hindsight_engine_new(config, &engine));
  hindsight_module* module = nullptr;
  constexpr char kText[] = R"((module (func (export "f"))))";
  must_work(hindsight_module_new(engine, kText, std::strlen(kText), "m", &module));
  hindsight_linker* linker = hindsight_linker_new(engine);
  hindsight_instance* instance = nullptr;
  must_work(hindsight_linker_instantiate(linker, module, &instance));
  hindsight_error* error = hindsight_instance_call(instance, "f", nullptr, 0, nullptr, 0);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(hindsight_error_get_kind(error), HINDSIGHT_TRAP);
  EXPECT_NE(std::string(hindsight_error_message(error)).find("the limit code-bytes allows 16"),
            std::string::npos);
  hindsight_error_delete(error);
  hindsight_instance_delete(instance);
  hindsight_linker_delete(linker);
  hindsight_module_delete(module);
  hindsight_engine_delete(engine);
  hindsight_config_delete(config);
}

}  // namespace
