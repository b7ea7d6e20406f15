// A host that ends by exit() while Hindsight works: exiting_host SITUATION. Its status is 7, whatever was going on.
// exit_test.cc says what the situations are.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/engine/hindsight.h"

namespace {

using namespace hindsight;

constexpr int kStatus = 7;
constexpr int kCalledBack = 9;  // a callback was called with what it uses gone

void raise_flag(std::atomic<bool>& flag) {
  flag = true;
  flag.notify_all();
}

// The optimizing tier as it is opened.
std::atomic<bool> g_opening{false}, g_opened{false};
// Static objects that were made meanwhile, to be destroyed by exit(). After many the next one may have to wait.
std::atomic<int> g_made{0};
std::atomic<bool> g_many_made{false}, g_go_on{false};
constexpr int kMany = 1000;
bool g_stops_amid = false;

// What the host's callbacks use. Made before anything of Hindsight's, and so destroyed after it.
struct Used {
  ~Used() {
    gone = true;
    raise_flag(g_go_on);
    if (at_the_end) at_the_end();
  }
  std::atomic<bool> gone{false};
  std::function<void()> at_the_end;
};
Used g_used;

// Global ones. The first is destroyed last.
std::shared_ptr<Engine> g_engine;
std::unique_ptr<Linker> g_linker;
std::shared_ptr<Instance> g_instance;

std::shared_ptr<Engine> make_engine(TierMode tier) {
  EngineConfig config;
  config.tier = tier;
  config.profiling = tier == TierMode::kAuto;
  config.log_level = LogLevel::kDebug;
  config.log = [](LogLevel, std::string_view, std::string_view) {
    if (g_used.gone) _exit(kCalledBack);
  };
  return Engine::create(std::move(config)).value();
}

std::shared_ptr<Instance> instantiate(Engine& engine, Linker& linker, const std::string& text) {
  const auto module = engine.load(std::as_bytes(std::span(text)), "exiting.wat");
  auto instance = module ? linker.instantiate(*module) : std::unexpected(module.error());
  if (!instance) {
    std::fprintf(stderr, "%s\n", instance.error().describe().c_str());
    _exit(2);
  }
  return *instance;
}

// Function "small", and "large", which takes seconds to optimize.
std::string small_and_large() {
  std::string text = R"((module (import "host" "end" (func $end)) (memory 1)
    (func (export "end") (call $end))
    (func (export "small") (result i32) (i32.const 1))
    (func (export "large") (param $a i32) (result i32) (local $i i32) (loop $l )";
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i * 8);
    text += "(if (i32.and (local.get $a) (i32.const " + std::to_string(1 << i % 17) +
            ")) (then (i32.store offset=" + n +
            " (i32.const 0) (i32.add (local.get $a) (i32.load offset=" + n +
            " (i32.const 4))))) (else (local.set $a (i32.mul (local.get $a) (i32.const " +
            std::to_string(i * 2 + 3) + ")))))";
  }
  return text + R"( (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2))))
    (local.get $a))))";
}

// What the process has used of its processors, in seconds.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
void await_work(double seconds) {
  for (const double begin = cpu_seconds(); cpu_seconds() - begin < seconds;) std::this_thread::yield();
}

// A thread that has a large function compiled, which has begun when this returns.
class Compiling {
 public:
  Compiling() : engine_(make_engine(TierMode::kOptimized)), linker_(*engine_) {
    linker_.define_function("host", "end", [] {});
    instance_ = instantiate(*engine_, linker_, small_and_large());
    caller_ = std::thread([this] {
      (void)instance_->call("small", {});
      raise_flag(begins_);
      (void)instance_->call("large", std::array{Value::i32(12345)});
      raise_flag(ended_);
    });
    begins_.wait(false);
    await_work(0.1);
  }
  // Until the call has ended one way or the other.
  void await_end() { ended_.wait(false); }
  bool has_ended() const { return ended_; }

 private:
  std::shared_ptr<Engine> engine_;
  Linker linker_;
  std::shared_ptr<Instance> instance_;
  std::thread caller_;
  std::atomic<bool> begins_{false}, ended_{false};
};

// Never destroyed: the process ends in their midst.
template <typename T>
T& forever(T made) {
  return *new T(std::move(made));
}
Compiling& compile_for_ever() {
  return *new Compiling;
}

void open_in_background() {
  auto& engine = forever(make_engine(TierMode::kOptimized));
  Linker linker(*engine);
  linker.define_function("host", "end", [] {});
  auto& instance = forever(instantiate(*engine, linker, small_and_large()));
  std::thread([&instance] { (void)instance->call("small", {}); }).detach();
}

void exit_as_it_opens() {
  open_in_background();
  g_opening.wait(false);
  std::exit(kStatus);
}

void exit_amid_constructors() {
  g_stops_amid = true;
  open_in_background();
  g_many_made.wait(false);
  std::exit(kStatus);
}

void exit_as_it_compiles() {
  auto& compiling = compile_for_ever();
  // Whoever goes on compiling without what was destroyed has the time for it.
  g_used.at_the_end = [&] { compiling.await_end(); };
  std::exit(kStatus);
}

void exit_with_a_global_engine() {
  g_engine = make_engine(TierMode::kAuto);
  g_linker = std::make_unique<Linker>(*g_engine);
  g_linker->define_function("host", "end", [] {});
  g_instance = instantiate(*g_engine, *g_linker, small_and_large());
  // Until it is hot enough: then it is compiled while nobody is in it.
  while (!g_opened) (void)g_instance->call("large", std::array{Value::i32(12345)});
  await_work(0.02);
  std::exit(kStatus);
}

void exit_on_another_thread() {
  auto& compiling = compile_for_ever();
  g_used.at_the_end = [&] { compiling.await_end(); };
  std::thread([] { std::exit(kStatus); }).join();
}

void exit_in_a_handler() {
  auto& compiling = compile_for_ever();
  g_used.at_the_end = [&] { compiling.await_end(); };
  std::atexit([] { std::exit(kStatus); });
  std::exit(1);
}

void exit_in_a_host_function() {
  auto& compiling = compile_for_ever();
  g_used.at_the_end = [&] { compiling.await_end(); };
  // Another engine's guest, which does not wait for that compile.
  const auto engine = make_engine(TierMode::kBaseline);
  Linker linker(*engine);
  linker.define_function("host", "end", [] { std::exit(kStatus); });
  (void)instantiate(*engine, linker, small_and_large())->call("end", {});
}

void quick_exit_as_it_compiles() {
  (void)compile_for_ever();
  std::quick_exit(kStatus);
}

void exit_in_a_child() {
  auto& compiling = compile_for_ever();
  const pid_t child = fork();
  if (child == 0) std::exit(kStatus);
  int status = 0;
  waitpid(child, &status, 0);
  // Nor has it waited for the parent's compile.
  const bool waited = compiling.has_ended();
  std::exit(WIFEXITED(status) && !waited ? WEXITSTATUS(status) : 1);
}

void exit_with_several_engines() {
  auto& first = compile_for_ever();
  auto& second = compile_for_ever();
  g_used.at_the_end = [&] {
    first.await_end();
    second.await_end();
  };
  std::exit(kStatus);
}

// A thread goes on having things logged.
void exit_as_it_logs() {
  static std::atomic<int> loads{0};
  auto& engine = forever(make_engine(TierMode::kBaseline));
  std::thread([&engine] {
    // With a malformed branch hint, which is said.
    constexpr auto kModule = std::to_array<uint8_t>(
        {0,   'a', 's', 'm', 1,   0,   0,   0,   1,   4,   1,   0x60, 0,   0,   3,   2,   1,   0,   0,
         29,  25,  'm', 'e', 't', 'a', 'd', 'a', 't', 'a', '.', 'c',  'o', 'd', 'e', '.', 'b', 'r', 'a',
         'n', 'c', 'h', '_', 'h', 'i', 'n', 't', 9,   9,   9,   10,   4,   1,   2,   0,   0x0b});
    for (;;) {
      (void)engine->load(std::as_bytes(std::span(kModule)), "hints").value();
      loads++;
      loads.notify_all();
    }
  }).detach();
  const auto await_more = [] {
    for (int now = loads, enough = now + 3; now < enough; now = loads) loads.wait(now);
  };
  await_more();
  g_used.at_the_end = await_more;
  std::exit(kStatus);
}

}  // namespace

// In place of libc's, which they call.
extern "C" int __cxa_atexit(void (*destructor)(void*), void* object, void* library) {
  static const auto libcs = reinterpret_cast<decltype(&__cxa_atexit)>(dlsym(RTLD_NEXT, "__cxa_atexit"));
  if (g_stops_amid && g_opening && !g_opened && ++g_made == kMany) {
    raise_flag(g_many_made);
    g_go_on.wait(false);
  }
  return libcs(destructor, object, library);
}
extern "C" void* dlopen(const char* file, int mode) {
  static const auto libcs = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  const bool is_it = file != nullptr && std::string_view(file).ends_with("libhindsight-optimizing.so");
  if (is_it) raise_flag(g_opening);
  void* const library = libcs(file, mode);
  if (is_it && library != nullptr) {
    raise_flag(g_opened);
    raise_flag(g_many_made);  // nobody has to wait for what does not come
  }
  return library;
}

int main(int count, char** words) {
  const std::map<std::string_view, void (*)()> situations{{"as-it-opens", exit_as_it_opens},
                                                          {"amid-constructors", exit_amid_constructors},
                                                          {"as-it-compiles", exit_as_it_compiles},
                                                          {"with-a-global-engine", exit_with_a_global_engine},
                                                          {"on-another-thread", exit_on_another_thread},
                                                          {"in-a-handler", exit_in_a_handler},
                                                          {"in-a-host-function", exit_in_a_host_function},
                                                          {"quickly", quick_exit_as_it_compiles},
                                                          {"in-a-child", exit_in_a_child},
                                                          {"with-several-engines", exit_with_several_engines},
                                                          {"as-it-logs", exit_as_it_logs}};
  const auto found = count == 2 ? situations.find(words[1]) : situations.end();
  if (found == situations.end()) return 2;
  found->second();
  return 1;
}
