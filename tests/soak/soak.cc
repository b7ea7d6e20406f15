// A soak: several instances compute for as long as they are told, every answer compared with that of another
// engine. Meanwhile one thread publishes new code for their functions every few milliseconds, takes it back
// or watches for calls, at random. Another one has code optimized with random hints, as fast as it comes.
// That is on top of what tier auto does by itself.
//
//   soak [--seconds N] [--instances N] [--period-ms N] [--seed N]      (5, 8, 10, 1)
//
// Ends with status 1 and a line that says why if an answer is wrong or if a thread makes no progress for a
// minute. It also does if retired code is not freed in the end. So it does if memory keeps growing: the
// second half of the run may add a tenth and 64 MiB to the first.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jit/baseline/baseline_compiler.h"
#include "jit/wasm/instr_reader.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {
namespace {

using Clock = std::chrono::steady_clock;

// Loads that may be prefetched, branches that go either way, calls through a table, recursion, and loops in
// loops.
constexpr std::string_view kGuest = R"((module
  (type $op (func (param i32 i32) (result i32)))
  (memory 16)
  (table funcref (elem $add $xor $scale $turn))
  (func $add (type $op) (i32.add (local.get 0) (local.get 1)))
  (func $xor (type $op) (i32.xor (local.get 0) (i32.rotl (local.get 1) (i32.const 5))))
  (func $scale (type $op) (i32.mul (local.get 0) (i32.or (local.get 1) (i32.const 1))))
  (func $turn (type $op) (i32.sub (i32.rotr (local.get 0) (i32.const 7)) (local.get 1)))
  (func $fill (local $i i32)
    (loop $next
      (i32.store (i32.shl (local.get $i) (i32.const 2))
        (i32.xor (i32.mul (local.get $i) (i32.const -1640531535)) (i32.shr_u (local.get $i) (i32.const 3))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 262144)))))
  (start $fill)
  (func (export "gather") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $next
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (i32.load (i32.and (i32.load (i32.shl (i32.and (local.get $i) (i32.const 262143)) (i32.const 2))) (i32.const 1048572)))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "chase") (param $n i32) (result i32) (local $at i32)
    (loop $next
      (local.set $at (i32.and (i32.add (i32.load (local.get $at)) (local.get $n)) (i32.const 1048572)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $at))
  (func (export "collatz") (param $n i32) (result i32) (local $v i32) (local $steps i32)
    (loop $number
      (local.set $v (local.get $n))
      (loop $step
        (local.set $v (if (result i32) (i32.and (local.get $v) (i32.const 1))
          (then (i32.add (i32.mul (local.get $v) (i32.const 3)) (i32.const 1)))
          (else (i32.shr_u (local.get $v) (i32.const 1)))))
        (local.set $steps (i32.add (local.get $steps) (i32.const 1)))
        (br_if $step (i32.gt_u (local.get $v) (i32.const 1))))
      (br_if $number (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $steps))
  (func (export "dispatch") (param $n i32) (result i32) (local $state i32)
    (loop $next
      (local.set $state (call_indirect (type $op) (local.get $state) (local.get $n)
        (i32.and (i32.load8_u (i32.and (local.get $n) (i32.const 1048575))) (i32.const 3))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $state))
  (func $fib (export "fib") (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2)) (then (local.get $n))
      (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
  (func (export "sum_of_squares") (param $n i32) (result i32) (local $i i32) (local $f f64)
    (loop $next
      (local.set $f (f64.add (local.get $f) (f64.sqrt (f64.convert_i32_u (i32.load16_u (i32.shl (local.get $i) (i32.const 1)))))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.trunc_sat_f64_u (local.get $f)))))";

struct Question {
  const char* function;
  int32_t argument;
  int32_t answer = 0;
};

struct Options {
  uint32_t seconds = 5, instances = 8, period_ms = 10, seed = 1;
};

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "soak: FAILED: {}\n", why);
  std::fflush(stderr);
  std::_Exit(1);  // threads may be stuck
}

template <typename T>
T must(Result<T> result, const char* what) {
  if (!result) fail(fmt::format("{}: {}", what, result.error().describe()));
  return std::move(*result);
}

std::shared_ptr<Engine> make_engine(TierMode tier) {
  EngineConfig config;
  config.tier = tier;
  config.profiling = tier == TierMode::kAuto;
  return must(Engine::create(config), "engine");
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

// New code for a function that is chosen at random, with hints that are, too. Of one thread.
class Churn {
 public:
  Churn(ModuleCode& code, uint32_t seed) : code_(code), random_(seed) {
    const wasm::Module& module = *code.module();
    for (uint32_t f = module.imported_functions; f < module.function_count(); ++f) {
      Places& its = places_.emplace_back();
      const wasm::FunctionBody& body = module.body(FuncIndex(f));
      wasm::InstrReader reader(module, body);
      wasm::Instr instr;
      while (!reader.at_end()) {
        reader.next(instr);
        if (instr.opcode == wasm::Opcode::kI32Load) its.loads.push_back(instr.offset);
        if (instr.opcode == wasm::Opcode::kCallIndirect) its.calls.push_back(instr.offset);
      }
    }
  }

  // What takes no time: back to baseline code, a watch, or code of the first tier in the optimizing tier's
  // place.
  void step() {
    const FuncIndex function = any_function();
    const uint32_t choice = below(4);
    if (choice == 0) {
      withdrawn += code_.withdraw(function) ? 1 : 0;
    } else if (choice == 1) {
      watched += code_.watch_entry(function) ? 1 : 0;
    } else {
      CodeServices& services = code_.services();
      auto options = services.options();
      options.lwp_counting = below(2) == 0;
      options.osr_polls = false;
      auto made = jit::compile_baseline(*code_.module(), function, options, services.arena());
      if (!made) fail(fmt::format("first tier: {}", made.error().describe()));
      (*made)->tier = jit::Tier::kOptimized;
      code_.publish(std::move(*made));
      published++;
    }
  }

  void optimize() {
    const FuncIndex function = any_function();
    jit::OptimizeRequest request;
    request.function = function;
    const Places& its = places_[function.value - code_.module()->imported_functions];
    for (const WasmOffset load : its.loads)
      if (below(2) == 0)
        request.changes.push_back({.site = {jit::ChangeKind::kPrefetch, load},
                                   .weight = 0.5,
                                   .setting = 1 + below(64),
                                   .enabled = below(2) == 0});
    for (const WasmOffset call : its.calls)
      if (below(2) == 0) {
        jit::CallTargets targets;
        for (uint32_t target = 0; target < 4; ++target)
          if (below(2) == 0) targets.targets.push_back({.element = target, .share = 0.25});
        request.changes.push_back(
            {.site = {jit::ChangeKind::kInlineCalls, call}, .what = std::move(targets)});
      }
    const auto loops = static_cast<uint32_t>(code_.module()->body(function).loops.size());
    for (uint32_t loop = 0; loop < loops; ++loop)
      if (below(2) == 0) request.osr_loops.push_back(LoopIndex(loop));
    auto made = code_.optimize(std::move(request));
    if (!made) {
      refused++;
      return;
    }
    code_.publish(std::shared_ptr<jit::CodeVersion>(std::move(made->version)));
    published++;
  }

  uint64_t published = 0, withdrawn = 0, watched = 0, refused = 0;

 private:
  struct Places {
    std::vector<WasmOffset> loads, calls;
  };
  FuncIndex any_function() {
    return FuncIndex(code_.module()->imported_functions + below(static_cast<uint32_t>(places_.size())));
  }
  uint32_t below(uint32_t bound) { return std::uniform_int_distribution<uint32_t>(0, bound - 1)(random_); }

  ModuleCode& code_;
  std::mt19937 random_;
  std::vector<Places> places_;  // by function
};

int soak(const Options& options) {
  // Sizes around a millisecond in optimized code.
  std::vector<Question> questions;
  for (const int32_t n : {1, 1000, 100'000, 300'000}) {
    questions.push_back({"gather", n});
    questions.push_back({"chase", n});
    questions.push_back({"dispatch", n});
    questions.push_back({"sum_of_squares", n});
  }
  for (const int32_t n : {1, 500, 5000}) questions.push_back({"collatz", n});
  for (const int32_t n : {1, 10, 22}) questions.push_back({"fib", n});

  const auto guest = std::as_bytes(std::span(kGuest));
  {
    auto engine = make_engine(TierMode::kBaseline);
    Linker linker(*engine);
    auto instance = must(linker.instantiate(must(engine->load(guest, "guest"), "module")), "instance");
    for (Question& question : questions)
      question.answer =
          must(instance->call(question.function, std::vector{Value::i32(question.argument)}), "call")[0]
              .as_i32();
  }

  auto engine = make_engine(TierMode::kAuto);
  const auto module = must(engine->load(guest, "guest"), "module");
  CodeServices& services = std::static_pointer_cast<EngineHandle>(engine)->code();
  ModuleCode& code = *static_cast<const ModuleHandle&>(*module).code();

  // Relaxed: a wish to end, and counts that are read for the watch alone.
  std::atomic<bool> done{false};
  std::vector<std::atomic<uint64_t>> calls(options.instances);
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < options.instances; ++i) {
    workers.emplace_back([&, i] {
      Linker linker(*engine);
      auto instance = must(linker.instantiate(module), "instance");
      std::mt19937 random(options.seed * 1000 + i);
      while (!done.load(std::memory_order_relaxed)) {
        const Question& question = questions[random() % questions.size()];
        const auto result =
            must(instance->call(question.function, std::vector{Value::i32(question.argument)}), "call");
        if (result[0].as_i32() != question.answer)
          fail(fmt::format("{}({}) is {}, and was {} this time, after {} calls", question.function,
                           question.argument, question.answer, result[0].as_i32(),
                           calls[i].load(std::memory_order_relaxed)));
        calls[i].fetch_add(1, std::memory_order_relaxed);
      }
    });
  }

  Churn churn(code, options.seed), optimizing(code, options.seed + 1);
  std::thread optimizer([&] {
    while (!done.load(std::memory_order_relaxed)) optimizing.optimize();
  });
  const auto start = Clock::now();
  const auto end = start + std::chrono::seconds(options.seconds);
  uint64_t resident_half = 0;
  std::vector<uint64_t> seen(options.instances);
  std::vector<Clock::time_point> moved(options.instances, start);
  std::mutex mutex;
  std::condition_variable never;
  for (auto next = start; Clock::now() < end; next += std::chrono::milliseconds(options.period_ms)) {
    churn.step();
    const auto now = Clock::now();
    for (uint32_t i = 0; i < options.instances; ++i) {
      const uint64_t count = calls[i].load(std::memory_order_relaxed);
      if (std::exchange(seen[i], count) != count) moved[i] = now;
      if (now - moved[i] > std::chrono::minutes(1))
        fail(fmt::format("instance {} is stuck after {} calls", i, count));
    }
    if (resident_half == 0 && now - start > (end - start) / 2) resident_half = resident_bytes();
    next = std::max(next, now - std::chrono::milliseconds(options.period_ms));
    std::unique_lock lock(mutex);
    never.wait_until(lock, std::min(next + std::chrono::milliseconds(options.period_ms), end));
  }
  const uint64_t resident_end = resident_bytes();
  done = true;
  for (std::thread& worker : workers) worker.join();
  optimizer.join();
  engine->wait_for_compiles();
  services.collect_retired();
  const size_t pending = services.retired().pending();
  uint64_t all_calls = 0;
  for (const auto& count : calls) all_calls += count.load(std::memory_order_relaxed);
  const ModuleCodeCounts counts = code.counts();
  fmt::print(
      "soak: {} s, {} instances, {} calls, every answer right; {} versions published ({} optimized by the "
      "soak, {} "
      "more by it), {} retired, {} withdrawals, {} watches, {} refused; {} not freed; resident {:.0f} MiB at "
      "half "
      "time, {:.0f} MiB at the end\n",
      options.seconds, options.instances, all_calls, counts.published, optimizing.published, churn.published,
      counts.retired, churn.withdrawn, churn.watched, optimizing.refused, pending,
      static_cast<double>(resident_half) / (1 << 20), static_cast<double>(resident_end) / (1 << 20));
  if (pending != 0) fail(fmt::format("{} retired versions are not freed although no guest runs", pending));
  if (optimizing.published == 0) fail("nothing was optimized: is there an optimizing tier?");
  if (resident_end > resident_half + resident_half / 10 + (uint64_t{64} << 20)) fail("memory grows");
  return 0;
}

}  // namespace
}  // namespace hindsight::rt

int main(int argc, char** argv) {
  hindsight::rt::Options options;
  struct {
    const char* name;
    uint32_t* value;
  } const known[] = {{"--seconds", &options.seconds},
                     {"--instances", &options.instances},
                     {"--period-ms", &options.period_ms},
                     {"--seed", &options.seed}};
  for (int i = 1; i < argc; i += 2) {
    const auto* const option = std::find_if(std::begin(known), std::end(known),
                                            [&](const auto& k) { return std::strcmp(k.name, argv[i]) == 0; });
    const char* const text = i + 1 < argc ? argv[i + 1] : "";
    if (option == std::end(known) ||
        std::from_chars(text, text + std::strlen(text), *option->value).ptr != text + std::strlen(text) ||
        *text == '\0' || *option->value == 0) {
      fmt::print(
          stderr,
          "soak: '{} {}' is no option with a positive number; usage: soak [--seconds N] [--instances N] "
          "[--period-ms N] [--seed N]\n",
          argv[i], text);
      return 2;
    }
  }
  return hindsight::rt::soak(options);
}
