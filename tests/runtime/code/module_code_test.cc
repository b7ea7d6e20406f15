// Publishing, withdrawing and freeing code, below the public API.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "jit/abi/nest_exits.h"
#include "jit/baseline/baseline_compiler.h"
#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/handles.h"
#include "runtime/exec/enter.h"
#include "runtime/exec/quiescence.h"
#include "tests/runtime/engine/guest.h"
#include "tests/runtime/engine/guest_frames.h"

namespace hindsight::rt {
namespace {

constexpr std::string_view kGuest = R"((module
  (import "host" "inside" (func $inside))
  (func $f (export "f") (result i32) i32.const 1)
  (func (export "call_f") (result i32) call $f)
  (func (export "park") call $inside)))";

class Codes : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = std::static_pointer_cast<EngineHandle>(make_engine());
    module_ = load(*engine_, kGuest);
    linker_ = std::make_unique<Linker>(*engine_);
    linker_->define_function("host", "inside", [this] {
      if (inside_) inside_();
    });
    guest_ = linker_->instantiate(module_).value();
  }
  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  // As the optimizer would make it, from the baseline compiler.
  std::shared_ptr<jit::CodeVersion> make_version(FuncIndex f) {
    auto made =
        jit::compile_baseline(*code().module(), f, engine_->code().options(), engine_->code().arena());
    EXPECT_TRUE(made);
    (*made)->tier = jit::Tier::kOptimized;
    (*made)->osr_slots = nullptr;
    return std::move(*made);
  }
  int32_t result(hindsight::Instance& instance, const char* function) {
    return instance.call(function, {}).value()[0].as_i32();
  }
  // Does `change` while another thread calls the guest, a thousand times at least.
  void while_called(const std::function<void()>& change) {
    std::atomic<bool> done{false};
    std::atomic<uint64_t> calls{0};
    std::thread guest([&] {
      while (!done || calls < 1000) {
        ASSERT_EQ(result(*guest_, "call_f"), 1);
        calls++;
      }
    });
    change();
    done = true;
    guest.join();
  }
  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::unique_ptr<Linker> linker_;
  std::shared_ptr<hindsight::Instance> guest_;
  std::function<void()> inside_;
};

constexpr FuncIndex kF{1};
constexpr FuncIndex kPark{3};

TEST_F(Codes, ArePublishedToAllInstancesAndToTheCopiesInTheirImporters) {
  linker_->define_instance("lib", guest_);
  auto importer = instantiate(*linker_, *engine_, R"((module (import "lib" "f" (func $f (result i32)))
    (export "again" (func $f)) (func (export "g") (result i32) call $f)))");
  linker_->define_instance("again", importer);
  auto second = instantiate(*linker_, *engine_, R"((module (import "again" "again" (func $f (result i32)))
    (func (export "g") (result i32) call $f)))");
  auto other_store = Linker(*engine_);
  other_store.define_function("host", "inside", [] {});
  auto other = other_store.instantiate(module_).value();
  EXPECT_EQ(result(*second, "g"), 1);
  EXPECT_EQ(code().instance_count(), 2u);

  auto version = make_version(kF);
  code().publish(version);
  auto inside = [](hindsight::Instance& i) -> Instance& { return static_cast<InstanceHandle&>(i).inside(); };
  EXPECT_EQ(inside(*guest_).func_ref(kF)->code.load(), version->entry);
  EXPECT_EQ(inside(*other).func_ref(kF)->code.load(), version->entry);
  EXPECT_EQ(inside(*importer).func_ref(FuncIndex(0))->code.load(), version->entry);
  EXPECT_EQ(inside(*second).func_ref(FuncIndex(0))->code.load(), version->entry);
  EXPECT_EQ(result(*guest_, "call_f") + result(*second, "g"), 2);
  auto late = other_store.instantiate(module_).value();
  EXPECT_EQ(inside(*late).func_ref(kF)->code.load(), version->entry);

  EXPECT_TRUE(code().withdraw(kF));
  EXPECT_FALSE(code().withdraw(kF));
  EXPECT_NE(inside(*second).func_ref(FuncIndex(0))->code.load(), version->entry);
  EXPECT_EQ(result(*guest_, "call_f") + result(*second, "g"), 2);
}

TEST_F(Codes, KnowTheMemoriesOfAllTheirInstancesEachOnceAndAsLongAsTheyAreThere) {
  const auto own = load(*engine_, R"((module (memory (export "m") 2 10)
    (func (export "grow") (result i32) (memory.grow (i32.const 1)))))");
  const auto importing =
      load(*engine_, R"((module (import "lib" "m" (memory 1)) (import "lib" "m" (memory 1))))");
  const auto code_of = [](const std::shared_ptr<const hindsight::Module>& module) -> ModuleCode& {
    return *static_cast<const ModuleHandle&>(*module).code();
  };
  const auto bases = [](const ModuleCode& code) {
    std::vector<uint64_t> bases;
    for (const ModuleCode::MemorySpan& span : code.memories()) bases.push_back(span.base);
    return bases;
  };
  EXPECT_THAT(bases(code_of(own)), testing::IsEmpty());
  auto exporter = linker_->instantiate(own).value();
  const auto base = reinterpret_cast<uint64_t>(exporter->memory("m")->data());
  EXPECT_THAT(bases(code_of(own)), testing::ElementsAre(base));
  linker_->define_instance("lib", exporter);
  {
    Linker elsewhere(*engine_);
    auto other = elsewhere.instantiate(own).value();
    elsewhere.define_instance("lib", other);
    const auto other_base = reinterpret_cast<uint64_t>(other->memory("m")->data());
    auto first = linker_->instantiate(importing).value();
    auto second = linker_->instantiate(importing).value();
    EXPECT_THAT(bases(code_of(importing)), testing::ElementsAre(base))
        << "though under two indexes, of two instances";
    auto third = elsewhere.instantiate(importing).value();
    for (const auto* module : {&own, &importing})
      EXPECT_THAT(bases(code_of(*module)), testing::UnorderedElementsAre(base, other_base));
  }
  for (const auto* module : {&own, &importing})
    EXPECT_THAT(bases(code_of(*module)), testing::ElementsAre(base)) << "the other store is gone";
  using Place = ModuleCode::MemoryPlace;
  EXPECT_THAT(code_of(importing).places_of(base + 100, base + 200),
              testing::UnorderedElementsAre(Place{.memory = 0, .begin = 100, .end = 200},
                                            Place{.memory = 1, .begin = 100, .end = 200}));
  EXPECT_EQ(result(*exporter, "grow"), 2);
  EXPECT_EQ(code_of(own).memories()[0].bytes, 3 * wasm::kPageBytes);
}

TEST_F(Codes, AreCompiledOnceHoweverManyThreadsCallFirst) {
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<jit::CodeVersion>> versions(8);
  for (auto& version : versions)
    threads.emplace_back([&] { version = code().baseline(kF, StoreBudget()).value(); });
  for (auto& thread : threads) thread.join();
  for (auto& version : versions) EXPECT_EQ(version, versions[0]);
  EXPECT_EQ(code().counts().baseline_functions, 1u);
}

TEST_F(Codes, AreFreedWhenReplacedAndNobodyIsInThem) {
  std::weak_ptr<jit::CodeVersion> first;
  const size_t registered = engine_->code().registry().size();
  {
    auto version = make_version(kF);
    first = version;
    code().publish(version);
  }
  EXPECT_EQ(result(*guest_, "f"), 1);
  code().publish(make_version(kF));
  EXPECT_EQ(engine_->code().retired().pending(), 1u);
  EXPECT_EQ(engine_->code().collect_retired(), 1u);
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(engine_->code().registry().size(), registered + 1);
}

TEST_F(Codes, StayWhileAThreadIsInThem) {
  std::atomic<int> stage{0};
  inside_ = [&] {
    stage = 1;
    stage.notify_all();
    stage.wait(1);
  };
  code().publish(make_version(kPark));
  std::thread thread([&] { EXPECT_TRUE(guest_->call("park", {})); });
  stage.wait(0);
  code().publish(make_version(kPark));
  EXPECT_EQ(engine_->code().collect_retired(), 0u);
  EXPECT_EQ(engine_->code().retired().pending(), 1u);
  stage = 2;
  stage.notify_all();
  thread.join();
  EXPECT_EQ(engine_->code().collect_retired(), 1u);
}

TEST_F(Codes, AreFoundOnTheScanningThreadsOwnStack) {
  size_t freed = 99;
  inside_ = [&] {
    code().publish(make_version(kPark));
    freed = engine_->code().collect_retired();
  };
  code().publish(make_version(kPark));
  EXPECT_TRUE(guest_->call("park", {}));
  EXPECT_EQ(freed, 0u);
  EXPECT_EQ(engine_->code().collect_retired(), 1u);
}

TEST_F(Codes, CanBeReplacedWhileTheyRun) {
  size_t freed = 0;
  while_called([&] {
    for (int i = 0; i < 200; i++) {
      code().publish(make_version(kF));
      if (i % 3 == 0) freed += engine_->code().collect_retired();
    }
  });
  freed += engine_->code().collect_retired();
  EXPECT_EQ(freed, 199u);
}

TEST_F(Codes, SayWhetherAFunctionIsEnteredOnceItIsWatched) {
  EXPECT_FALSE(code().watch_entry(kF)) << "there is no code to be entered yet";
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  const auto slot = [&] { return static_cast<InstanceHandle&>(*guest_).inside().func_ref(kF)->code.load(); };
  const void* const entry = slot();
  ASSERT_TRUE(code().watch_entry(kF));
  EXPECT_NE(slot(), entry);
  EXPECT_FALSE(code().entered(kF));
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  EXPECT_TRUE(code().entered(kF));
  EXPECT_EQ(slot(), entry);
}

TEST_F(Codes, PublishedWhileAFunctionIsWatchedAreWhatItsNextCallRuns) {
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  ASSERT_TRUE(code().watch_entry(kF));
  auto version = make_version(kF);
  code().publish(version);
  EXPECT_EQ(static_cast<InstanceHandle&>(*guest_).inside().func_ref(kF)->code.load(), version->entry);
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  EXPECT_FALSE(code().entered(kF));
}

// Versions for running loops alone.
TEST_F(Codes, WithoutAnEntryLeaveCallsAndTheirWatchAsTheyAre) {
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  const auto slot = [&] { return static_cast<InstanceHandle&>(*guest_).inside().func_ref(kF)->code.load(); };
  const void* const baseline = slot();
  ASSERT_TRUE(code().watch_entry(kF));
  auto version = make_version(kF);
  version->entry = nullptr;
  code().publish(version);
  EXPECT_EQ(code().current(kF), version);
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  EXPECT_TRUE(code().entered(kF));
  EXPECT_EQ(slot(), baseline);
  // As out of a cache, before the function has any code; and taking the place of a whole function.
  auto of_park = make_version(kPark);
  of_park->entry = nullptr;
  code().publish(of_park);
  EXPECT_TRUE(guest_->call("park", {}));
  code().publish(make_version(kF));
  auto again = make_version(kF);
  again->entry = nullptr;
  code().publish(again);
  EXPECT_EQ(slot(), baseline);
  EXPECT_TRUE(code().withdraw(kF));
  EXPECT_EQ(slot(), baseline);
}

TEST_F(Codes, CanBeWatchedWhileTheyRun) {
  while_called([&] {
    for (int i = 0; i < 2000; i++) {
      code().watch_entry(kF);
      if (i % 7 == 0) code().publish(make_version(kF));
      if (i % 11 == 0) code().withdraw(kF);
    }
  });
  engine_->code().collect_retired();
  // Whether the guest called once more after it was last watched is its own affair.
  EXPECT_EQ(result(*guest_, "call_f"), 1);
  EXPECT_TRUE(code().entered(kF));
}

// Loops that leave one version for the next, whose code is there for running loops alone.
class LoopsOf : public testing::Test {
 protected:
  void SetUp() override {
    EngineConfig config;
    // Baseline code that is left at loops, and nothing but what the test compiles.
    config.tier = TierMode::kOptimized;
    config.profiling = false;
    config.first_optimized = config.last_optimized = ~uint32_t{0};
    engine_ = std::static_pointer_cast<EngineHandle>(
        create_engine_for_tests(config, {.enter_at_loops = true}).value());
    if (!engine_->code().optimizer()) GTEST_SKIP() << "the optimizing tier is not there";
    module_ = load(*engine_, R"((module (import "host" "inside" (func $inside (param i32)))
      (func (export "spin") (param $n i32) (result i32) (local $k i32) (local $r i32)
        (loop $rounds
          (call $inside (local.get $n))
          (local.set $k (i32.const 50))
          (loop $inner
            (local.set $r (i32.add (i32.mul (local.get $r) (i32.const 31)) (i32.xor (local.get $k) (local.get $n))))
            (local.set $r (i32.rotl (i32.mul (local.get $r) (local.get $r)) (local.get $k)))
            (br_if $inner (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
          (br_if $rounds (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $r))))");
    linker_ = std::make_unique<Linker>(*engine_);
    linker_->define_function("host", "inside", [this](int32_t round) {
      if (inside_) inside_(round);
    });
    guest_ = linker_->instantiate(module_).value();
  }
  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  std::weak_ptr<jit::CodeVersion> publish_for_loops() {
    jit::OptimizeRequest request;
    request.function = FuncIndex(1);
    request.osr_loops = {LoopIndex(0)};
    request.loop_entries_only = request.loop_exits = true;
    auto made = code().optimize(std::move(request));
    EXPECT_TRUE(made);
    std::shared_ptr<jit::CodeVersion> version = std::move(made->version);
    EXPECT_EQ(version->osr_exits.size(), 1u);
    code().publish(version);
    return version;
  }
  int32_t spin(int32_t rounds) {
    return guest_->call("spin", std::array{Value::i32(rounds)}).value()[0].as_i32();
  }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::unique_ptr<Linker> linker_;
  std::shared_ptr<hindsight::Instance> guest_;
  std::function<void(int32_t)> inside_;
};

TEST_F(LoopsOf, AFunctionThatIsNeverLeftGoOnInItsNewestCode) {
  const int32_t answer = spin(40);
  const std::weak_ptr<jit::CodeVersion> first = publish_for_loops();
  bool left = false;
  inside_ = [&](int32_t round) {
    if (round % 8 == 0) {
      publish_for_loops();
    } else if (round % 8 == 6) {
      // The code that the loop was in is on no stack: not only was it replaced, nobody runs it. The scan of
      // the stack may take leftovers for it once.
      engine_->code().collect_retired();
      left = first.expired();
    }
  };
  EXPECT_EQ(spin(40), answer);
  EXPECT_TRUE(left);
}

TEST_F(LoopsOf, AFunctionGoBackToBaselineCodeToBeSeenAgainAndOnInTheNextOptimizedCode) {
  const int32_t answer = spin(40);
  publish_for_loops();
  std::vector<jit::Tier> tiers;  // of the loop's code, by round
  inside_ = [&](int32_t round) {
    tiers.push_back(caller_of_the_host(*engine_).value().version->tier);
    if (round == 30) {
      EXPECT_TRUE(code().observe(FuncIndex(1)));
      EXPECT_EQ(code().current(FuncIndex(1))->tier, jit::Tier::kBaseline);
      EXPECT_FALSE(code().observe(FuncIndex(1))) << "it is there already";
    }
    if (round == 20) publish_for_loops();
    if (round == 10) {
      EXPECT_TRUE(code().observe(FuncIndex(1)));
    }
    if (round == 5) publish_for_loops();
  };
  EXPECT_EQ(spin(40), answer);
  constexpr auto kBaseline = jit::Tier::kBaseline, kOptimized = jit::Tier::kOptimized;
  ASSERT_EQ(tiers.size(), 40u);
  const auto of_round = [&](int32_t round) { return tiers[static_cast<size_t>(40 - round)]; };
  for (int32_t round = 40; round >= 1; --round)
    EXPECT_EQ(of_round(round), round >= 30   ? kOptimized
                               : round >= 20 ? kBaseline
                               : round >= 10 ? kOptimized
                               : round >= 5  ? kBaseline
                                             : kOptimized)
        << round;
  engine_->code().collect_retired();
  EXPECT_EQ(engine_->code().retired().pending(), 0u);
  EXPECT_EQ(spin(40), answer);
}

TEST_F(LoopsOf, AFunctionStayWhereTheyAreWhenCodeIsWithdrawn) {
  const int32_t answer = spin(40);
  publish_for_loops();
  inside_ = [&](int32_t round) {
    if (round == 30) publish_for_loops();
    if (round == 20) {
      EXPECT_TRUE(code().withdraw(FuncIndex(1)));
    }
    if (round == 10) publish_for_loops();
  };
  EXPECT_EQ(spin(40), answer);
  EXPECT_GE(engine_->code().collect_retired(), 2u);
}

TEST_F(LoopsOf, AFunctionTrapInTheCodeThatTheyWentOnIn) {
  publish_for_loops();
  inside_ = [&](int32_t round) {
    if (round == 30) publish_for_loops();
    if (round == 20) guest_->interrupt();
  };
  const auto result = guest_->call("spin", std::array{Value::i32(40)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kTrap);
  // The version before left no frame; that of baseline code, which the loop was entered from, is the same activation.
  EXPECT_THAT(functions_of(guest_->last_trap()), testing::ElementsAre("spin"));
  inside_ = {};
  EXPECT_EQ(spin(3), spin(3));
}

// Code of single loops beside each other. It is made by hand: it sets a local, and says that its loop has ended.
class Nests : public testing::Test {
 protected:
  void SetUp() override {
    EngineConfig config;
    config.tier = TierMode::kOptimized;
    config.profiling = false;
    config.first_optimized = config.last_optimized = ~uint32_t{0};
    engine_ = std::static_pointer_cast<EngineHandle>(
        create_engine_for_tests(config, {.enter_at_nests = true}).value());
    module_ =
        load(*engine_, R"((module (func (export "f") (param $n i32) (result i32) (local $a i32) (local $b i32)
      (loop $x (local.set $a (i32.add (local.get $a) (i32.const 1)))
               (br_if $x (i32.lt_u (local.get $a) (local.get $n))))
      (loop $y (local.set $b (i32.add (local.get $b) (i32.const 1)))
               (br_if $y (i32.lt_u (local.get $b) (local.get $n))))
      (i32.add (i32.mul (local.get $a) (i32.const 1000)) (local.get $b)))))");
    guest_ = Linker(*engine_).instantiate(module_).value();
  }
  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  int32_t f() { return guest_->call("f", std::array{Value::i32(5)}).value()[0].as_i32(); }

  std::shared_ptr<jit::CodeVersion> version_of(std::span<const uint8_t> bytes) {
    auto version = std::make_shared<jit::CodeVersion>();
    version->id = jit::CodeRegistry::next_version_id();
    version->tier = jit::Tier::kOptimized;
    version->memory = engine_->code().arena().allocate(64).value();
    version->code_size = CodeOffset(static_cast<uint32_t>(bytes.size()));
    std::ranges::copy(bytes, reinterpret_cast<uint8_t*>(version->memory.write().bytes().data()));
    return version;
  }
  // Of loop 0 or 1, which leaves `value` in its counter.
  std::shared_ptr<jit::CodeVersion> nest(uint32_t loop, uint8_t value) {
    const uint8_t bytes[] = {0xc7,
                             0x86,
                             static_cast<uint8_t>(8 * (loop + 1)),
                             0,
                             0,
                             0,
                             value,
                             0,
                             0,
                             0,  // mov dword [rsi + ...], value
                             0xb8,
                             jit::kNestEnded,
                             0,
                             0,
                             0,      // mov eax, ...
                             0xc3};  // ret
    auto version = version_of(bytes);
    version->nest = LoopIndex(loop);
    version->osr_entries = {{LoopIndex(loop), version->begin(), jit::OsrEntry::Kind::kNest}};
    return version;
  }
  // What runs the function to its end from loop 0 on, and returns `result`.
  std::shared_ptr<jit::CodeVersion> remainder(uint8_t result) {
    const uint8_t bytes[] = {0xb8, result, 0, 0, 0, 0xc3};
    auto version = version_of(bytes);
    version->osr_entries = {{LoopIndex(0), version->begin()}};
    return version;
  }
  const void* slot(uint32_t loop) {
    return code().version(FuncIndex(0), jit::Tier::kBaseline)->osr_slots[loop].load();
  }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::shared_ptr<hindsight::Instance> guest_;
};

TEST_F(Nests, LiveBesideEachOther) {
  // The first comes before there is any code, as out of a cache.
  code().publish(nest(0, 7));
  EXPECT_EQ(f(), 7005);
  EXPECT_EQ(code().current(FuncIndex(0))->tier, jit::Tier::kBaseline) << "calls go where they went";
  code().publish(nest(1, 9));
  EXPECT_EQ(f(), 7009);
  EXPECT_EQ(code().nests(FuncIndex(0)).size(), 2u);
  EXPECT_EQ(code().all_nests().size(), 2u);
  EXPECT_TRUE(code().optimized_versions().empty());
  EXPECT_TRUE(code().withdraw_nest(FuncIndex(0), LoopIndex(0)));
  EXPECT_FALSE(code().withdraw_nest(FuncIndex(0), LoopIndex(0)));
  EXPECT_EQ(f(), 5009);
  EXPECT_TRUE(code().withdraw(FuncIndex(0)));
  EXPECT_FALSE(code().withdraw(FuncIndex(0)));
  EXPECT_EQ(f(), 5005);
  EXPECT_EQ(engine_->code().collect_retired(), 2u);
}

TEST_F(Nests, AreFreedWhenReplaced) {
  EXPECT_EQ(f(), 5005);
  const size_t registered = engine_->code().registry().size();
  std::shared_ptr<jit::CodeVersion> first = nest(0, 7);
  const std::weak_ptr<jit::CodeVersion> watched = first;
  code().publish(first);
  first.reset();
  code().publish(nest(0, 8));
  EXPECT_EQ(f(), 8005);
  EXPECT_EQ(engine_->code().collect_retired(), 1u);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(engine_->code().registry().size(), registered + 1);
  EXPECT_EQ(code().counts().retired, 1u);
}

TEST_F(Nests, GiveWayToTheNewestCodeOfTheirLoop) {
  EXPECT_EQ(f(), 5005);
  code().publish(nest(0, 7));
  code().publish(nest(1, 9));
  code().publish(remainder(42));
  EXPECT_EQ(f(), 42) << "it is newer";
  code().publish(nest(0, 8));
  EXPECT_EQ(f(), 8009);
  EXPECT_TRUE(code().withdraw_nest(FuncIndex(0), LoopIndex(0)));
  EXPECT_EQ(f(), 42);
  EXPECT_TRUE(code().observe(FuncIndex(0)));
  EXPECT_EQ(f(), 5005) << "all of it is seen again";
  EXPECT_TRUE(code().all_nests().empty());
}

TEST_F(Nests, AreNotWhereARemainderLeavesItsLoopFor) {
  EXPECT_EQ(f(), 5005);
  const std::shared_ptr<jit::CodeVersion> left = remainder(42);
  for (const uint32_t loop : {0u, 1u}) left->add_exit(LoopIndex(loop), CodeOffset(16 + 8 * loop));
  code().publish(left);
  code().publish(nest(0, 7));
  code().publish(nest(1, 7));
  const std::shared_ptr<jit::CodeVersion> next = remainder(43);
  code().publish(next);
  EXPECT_EQ(left->osr_exits[0].slot->load(), next->begin());
  EXPECT_EQ(left->osr_exits[1].slot->load(), nullptr) << "only a nest has the loop";
  code().publish(nest(0, 8));
  EXPECT_EQ(left->osr_exits[0].slot->load(), next->begin());
  EXPECT_NE(slot(0), next->begin());
  EXPECT_EQ(f(), 8007);
}

TEST_F(Nests, TakeTurns) {
  EXPECT_EQ(f(), 5005);
  const auto with_exit = [&](uint8_t value) {
    const std::shared_ptr<jit::CodeVersion> made = nest(0, value);
    made->add_exit(LoopIndex(0), CodeOffset(32));
    return made;
  };
  const std::shared_ptr<jit::CodeVersion> first = with_exit(7), second = with_exit(8);
  const auto stays = [](const jit::CodeVersion& version) {
    return version.osr_exits[0].slot->load() == nullptr;
  };
  code().publish(first);
  code().register_copy(second);
  const ModuleCode::Exchange there{first, second}, back{second, first};
  EXPECT_THAT(code().exchange({&back, 1}), testing::ElementsAre(false)) << "it is not current";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(), 7005);
    EXPECT_TRUE(stays(*first));
    ASSERT_THAT(code().exchange({&there, 1}), testing::ElementsAre(true));
    EXPECT_EQ(f(), 8005);
    EXPECT_TRUE(stays(*second));
    EXPECT_EQ(first->osr_exits[0].slot->load(), jit::nest_leave_word(jit::kNestLeft))
        << "who runs it comes to the other";
    ASSERT_THAT(code().exchange({&back, 1}), testing::ElementsAre(true));
  }
  EXPECT_EQ(engine_->code().retired().pending(), 0u) << "both may come again";
  code().publish(nest(0, 9));
  EXPECT_THAT(code().exchange({&there, 1}), testing::ElementsAre(false));
  EXPECT_EQ(f(), 9005);
  code().retire_copy(second);
  EXPECT_EQ(engine_->code().retired().pending(), 2u);
}

TEST_F(Nests, ArePublishedAndWithdrawnWhileEightThreadsAreInThem) {
  EXPECT_EQ(f(), 5005);
  std::atomic<bool> done{false};
  std::atomic<uint64_t> calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++)
    threads.emplace_back([&] {
      const auto own = Linker(*engine_).instantiate(module_).value();
      while (!done || calls < 1000) {
        const int32_t result = own->call("f", std::array{Value::i32(5)}).value()[0].as_i32();
        ASSERT_THAT(result / 1000, testing::AnyOf(5, 7)) << result;
        ASSERT_THAT(result % 1000, testing::AnyOf(5, 9)) << result;
        calls++;
      }
    });
  size_t freed = 0;
  uint64_t published = 0;
  for (int i = 0; i < 600; i++) {
    code().publish(nest(0, 7));
    code().publish(nest(1, 9));
    published += 2;
    if (i % 3 == 0) code().withdraw_nest(FuncIndex(0), LoopIndex(1));
    if (i % 7 == 0) code().withdraw(FuncIndex(0));
    if (i % 5 == 0) freed += engine_->code().collect_retired();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  code().withdraw(FuncIndex(0));
  freed += engine_->code().collect_retired();
  EXPECT_EQ(freed, published);
  EXPECT_EQ(f(), 5005);
}

TEST_F(Codes, SayWhereTheOptimizerWasLookedForWhenItIsNotThere) {
  auto optimizer = engine_->code().optimizer();
  if (optimizer) GTEST_SKIP() << "the optimizing tier is there: " << (*optimizer)->description();
  EXPECT_EQ(optimizer.error().kind, ErrorKind::kResource);
  EXPECT_THAT(optimizer.error().message, testing::HasSubstr("libhindsight-optimizing.so"));
}

}  // namespace
}  // namespace hindsight::rt
