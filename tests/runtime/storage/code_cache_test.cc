// Optimized code kept between engines: what is used, what is refused, and what it says.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "feedback/profile/profile_file.h"
#include "jit/code/code_image.h"
#include "runtime/engine/handles.h"
#include "runtime/storage/code_cache.h"
#include "runtime/storage/sealed_file.h"
#include "tests/log_lines.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

namespace fs = std::filesystem;
using rt::EngineHandle;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kGuest = R"((module $guest
  (memory (export "memory") 1)
  (tag $thrown (param i32))
  (func $inner (param i32) (result i32) (i32.div_u (i32.const 100) (local.get 0)))
  (func $middle (param i32) (result i32)
    (i32.add (call $inner (local.get 0)) (i32.load (i32.const 8))))
  (func (export "divide") (param i32) (result i32) (i32.add (call $middle (local.get 0)) (i32.const 1)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func $thrower (param i32)
    (if (i32.gt_u (local.get 0) (i32.const 5)) (then (throw $thrown (local.get 0)))))
  (func (export "catch") (param i32) (result i32)
    (try (result i32) (do (call $thrower (local.get 0)) (i32.const -1)) (catch $thrown)))
  (func (export "sum") (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s) (i32.mul (local.get $n) (local.get $n))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func (export "clear") (param $n i32) (result i32) (local $i i32)
    (loop $l
      (i32.store8 (local.get $i) (i32.const 0))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $i))))";
constexpr uint32_t kGuestFunctions = 8;
constexpr uint32_t kCompiled = 5;  // at their first calls; the others are in place of their calls

// One run of the guest with a cache: an engine from its beginning to its end.
struct Start {
  Start(const fs::path& folder, EngineConfig config, std::string_view guest = kGuest) {
    config.code_cache_directory = folder.string();
    config.key_directory = folder.string() + ".key";
    config.log = log.sink();
    auto made = Engine::create(std::move(config));
    EXPECT_TRUE(made) << made.error().describe();
    engine = std::static_pointer_cast<EngineHandle>(*made);
    module = load(*engine, guest);
    linker.emplace(*engine);
    auto instantiated = linker->instantiate(module);
    EXPECT_TRUE(instantiated) << instantiated.error().describe();
    instance = *instantiated;
  }
  int32_t call(const char* function, int32_t argument) {
    const Value value = Value::i32(argument);
    auto result = instance->call(function, std::span(&value, 1));
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result ? (*result)[0].as_i32() : -1;
  }
  void call_everything() {
    EXPECT_EQ(call("divide", 5), 21);
    EXPECT_EQ(call("load", 16), 0);
    EXPECT_EQ(call("catch", 3), -1);
    EXPECT_EQ(call("catch", 9), 9);
    EXPECT_EQ(call("sum", 100), 338350);
    EXPECT_EQ(call("clear", 3000), 3000);
  }
  // Its functions' names and offsets, innermost first.
  std::vector<std::string> backtrace_of(const char* function, int32_t argument) {
    std::vector<std::string> frames;
    const Value value = Value::i32(argument);
    EXPECT_FALSE(instance->call(function, std::span(&value, 1)));
    if (const Trap* trap = instance->last_trap()) {
      frames.push_back(trap->name);
      for (const Frame& frame : trap->backtrace)
        frames.push_back(frame.function + "@" + std::to_string(frame.wasm_offset.value_or(0)));
    }
    return frames;
  }
  FeedbackReport report() const { return engine->feedback_report(); }
  bool opened_the_optimizer() const { return engine->code().compiler_files().has_value(); }
  void end() {
    instance.reset();
    linker.reset();
    module.reset();
    engine.reset();
  }

  LogLines log;
  std::shared_ptr<EngineHandle> engine;
  std::shared_ptr<const Module> module;
  std::optional<Linker> linker;
  std::shared_ptr<Instance> instance;
};

class CodeCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-code-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ::setenv("HINDSIGHT_KEY_DIR", (pattern + ".key").c_str(), 1);  // of what needs no engine
    key_ = std::make_shared<const rt::UserKey>(pattern + ".key");
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    fs::remove_all(folder_.string() + ".key", ignored);
    ::unsetenv("HINDSIGHT_KEY_DIR");
  }
  static EngineConfig optimized() {
    EngineConfig config;
    config.tier = TierMode::kOptimized;
    config.profiling = false;
    return config;
  }
  // Runs everything once, so that it is kept.
  void fill() {
    Start run(folder_, optimized());
    run.call_everything();
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().extension() == ".code") return entry.path();
    ADD_FAILURE() << "nothing was kept";
    return {};
  }
  static std::vector<std::byte> contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  // As somebody with the user's rights would.
  static void write(const fs::path& path, std::span<const std::byte> bytes) {
    std::error_code ignored;
    fs::permissions(path, fs::perms::owner_write, fs::perm_options::add, ignored);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  // What follows the seal, and the like under a good seal: as this program would write it.
  rt::CacheDirectory directory() const { return {folder_.string(), key_}; }
  std::vector<std::byte> unsealed(const fs::path& path) const {
    return directory().read(path.filename().string()).value().value();
  }
  void write_sealed(const fs::path& path, std::span<const std::byte> bytes) const {
    ASSERT_TRUE(directory().update(path.filename().string(), [&](const auto&) {
      return rt::CacheDirectory::Bytes(bytes.begin(), bytes.end());
    }));
  }
  // A run that finds the file unusable: it says so once, computes the same, and keeps its code anew.
  void expect_ignored(const std::string& words) {
    {
      Start run(folder_, optimized());
      EXPECT_EQ(run.report().functions_cached, 0u) << words;
      EXPECT_THAT(run.log.warnings("cache"),
                  ElementsAre(AllOf(HasSubstr(folder_.string()), HasSubstr(words), HasSubstr("ignored"))));
      run.call_everything();
      EXPECT_EQ(run.report().functions_optimized, kCompiled);
    }
    Start again(folder_, optimized());
    EXPECT_EQ(again.report().functions_cached, kCompiled) << words;
    EXPECT_THAT(again.log.warnings("cache"), IsEmpty()) << words;
  }
  fs::path folder_;
  std::shared_ptr<const rt::UserKey> key_;
};

TEST_F(CodeCacheTest, ASecondStartRunsWhatTheFirstCompiledWithoutTheOptimizer) {
  {
    Start first(folder_, optimized());
    first.call_everything();
    EXPECT_EQ(first.report().functions_optimized, kCompiled);
    EXPECT_EQ(first.report().functions_cached, 0u);
    EXPECT_TRUE(first.opened_the_optimizer());
  }
  Start second(folder_, optimized());
  second.call_everything();
  EXPECT_EQ(second.report().functions_optimized, 0u);
  EXPECT_EQ(second.report().functions_baseline, 0u);
  EXPECT_EQ(second.report().functions_cached, kCompiled);
  EXPECT_FALSE(second.opened_the_optimizer());
  EXPECT_THAT(second.log.warnings("cache"), IsEmpty());
  EXPECT_THAT(second.log.lines(), Contains(HasSubstr("5 functions")));
}

TEST_F(CodeCacheTest, AnEngineOfItsOwnAccordKeepsNothing) {
  auto engine = make_engine({"optimized", TierMode::kOptimized});
  EXPECT_EQ(engine->config().code_cache_directory, "");
  EngineConfig config = optimized();
  config.tier = TierMode::kBaseline;
  Start baseline(folder_, config);
  baseline.call_everything();
  baseline.end();
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CodeCacheTest, WhatIsKeptAlreadyIsNotWrittenAgain) {
  fill();
  const auto before = contents(file());
  const auto inode = [&] {
    struct stat status {};
    ::stat(file().c_str(), &status);
    return status.st_ino;
  };
  const auto first = inode();
  fill();
  EXPECT_EQ(inode(), first);
  EXPECT_EQ(contents(file()), before);
}

TEST_F(CodeCacheTest, ALaterRunAddsItsFunctions) {
  {
    Start run(folder_, optimized());
    EXPECT_EQ(run.call("sum", 3), 14);
  }
  {
    Start run(folder_, optimized());
    EXPECT_EQ(run.report().functions_cached, 1u);
    EXPECT_EQ(run.call("load", 0), 0);
    EXPECT_EQ(run.report().functions_optimized, 1u);
  }
  Start run(folder_, optimized());
  EXPECT_EQ(run.report().functions_cached, 2u);
}

TEST_F(CodeCacheTest, TrapsAreTheSameInCodeOfAnEarlierRun) {
  std::vector<std::string> divided, loaded;
  {
    Start first(folder_, optimized());
    first.call_everything();
    divided = first.backtrace_of("divide", 0);
    loaded = first.backtrace_of("load", 1 << 20);
    EXPECT_EQ(divided.size(), 4u);  // the name, and three functions, be they inlined or not
    EXPECT_EQ(loaded.size(), 2u);
  }
  Start second(folder_, optimized());
  EXPECT_EQ(second.backtrace_of("divide", 0), divided);
  EXPECT_EQ(second.backtrace_of("load", 1 << 20), loaded);
  EXPECT_FALSE(second.opened_the_optimizer());
}

TEST_F(CodeCacheTest, ExplicitBoundsAndGuardPagesHaveCodeOfTheirOwn) {
  fill();
  EngineConfig explicit_bounds = optimized();
  explicit_bounds.guard_pages = false;
  {
    Start run(folder_, explicit_bounds);
    EXPECT_EQ(run.report().functions_cached, 0u);
    run.call_everything();
  }
  Start run(folder_, explicit_bounds);
  EXPECT_EQ(run.report().functions_cached, kCompiled);
  EXPECT_THAT(run.backtrace_of("load", 1 << 20), Contains("out of bounds memory access"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 4);  // two files, the lock and the mark
}

TEST_F(CodeCacheTest, AnotherModuleHasNothingOfIt) {
  fill();
  Start other(folder_, optimized(), "(module (func (export \"f\") (param i32) (result i32) (local.get 0)))");
  EXPECT_EQ(other.report().functions_cached, 0u);
  EXPECT_THAT(other.log.warnings("cache"), IsEmpty());
  EXPECT_EQ(other.call("f", 7), 7);
}

TEST_F(CodeCacheTest, FunctionsThatAreNotToBeOptimizedStayOut) {
  fill();
  EngineConfig config = optimized();
  config.first_optimized = 6;
  config.last_optimized = 7;
  Start run(folder_, config);
  EXPECT_EQ(run.report().functions_cached, 2u);
  run.call_everything();
  EXPECT_EQ(run.report().functions_optimized, 0u);
}

// ---------------------------------------------------------------- files that are not what they should be

TEST_F(CodeCacheTest, ATruncatedFileIsIgnoredAndWrittenAnew) {
  fill();
  const auto whole = contents(file());
  for (const size_t length : {size_t{0}, size_t{7}, size_t{17}, size_t{18}, size_t{84}, size_t{100},
                              whole.size() / 2, whole.size() - 1}) {
    write(file(), std::span(whole).first(length));
    expect_ignored("truncated");
  }
  auto longer = whole;
  longer = contents(file());
  longer.resize(longer.size() + 1);
  write(file(), longer);
  expect_ignored("has grown");
}

TEST_F(CodeCacheTest, AFlippedBitAnywhereIsNoticed) {
  fill();
  const auto whole = contents(file());
  auto changed = whole;
  changed[whole.size() - 10] ^= std::byte{1};
  write(file(), changed);
  expect_ignored("wrong seal");
  changed = whole;
  changed[0] ^= std::byte{1};
  write(file(), changed);
  expect_ignored("has no seal");
  // What this program itself wrote otherwise, in another version.
  changed = unsealed(file());
  changed[9] ^= std::byte{1};
  write_sealed(file(), changed);
  expect_ignored("format");
  changed = unsealed(file());
  changed[0] ^= std::byte{1};
  write_sealed(file(), changed);
  expect_ignored("no file of the code cache");
}

// With a checksum, as files had one, whoever could write the folder could have code of their own executed.
TEST_F(CodeCacheTest, CodeThatSomebodyElsePlantedIsNamedAndNeverRun) {
  fill();
  const auto path = file();
  auto planted = rt::parse_cache_file(unsealed(path));
  ASSERT_TRUE(planted);
  ASSERT_GT(planted->functions.size(), 1u);
  for (rt::CachedFunction& function : planted->functions)  // all of it other code, each byte a trap
    std::fill(function.image.end() - 64, function.image.end(), std::byte{0xcc});
  const auto bytes = rt::format_cache_file(*planted);
  // Without a seal, after the seal of the file that was there, and after one of a key that is not ours.
  write(path, bytes);
  expect_ignored("an earlier version of the program, without a seal");
  const auto sealed = contents(path);
  const auto line_end = std::find(sealed.begin(), sealed.end(), std::byte{'\n'}) + 1;
  std::vector<std::byte> forged(sealed.begin(), line_end);
  const auto good = unsealed(path);
  forged.insert(forged.end(), good.begin(), good.end());
  forged[forged.size() - 1] ^= std::byte{0xff};
  write(path, forged);
  expect_ignored("wrong seal");
  const std::string others = folder_.string() + ".other";
  const rt::UserKey other(others);
  const auto line = rt::seal_line(other, path.filename().string(), bytes);
  ASSERT_TRUE(line);
  const auto start = std::as_bytes(std::span(*line));
  forged.assign(start.begin(), start.end());
  forged.insert(forged.end(), bytes.begin(), bytes.end());
  write(path, forged);
  expect_ignored("wrong seal");
  fs::remove_all(others);
}

TEST_F(CodeCacheTest, WithoutAKeyNothingIsKeptOrUsedAndThatIsSaidOnce) {
  fill();
  const auto before = contents(file());
  const std::string key = folder_.string() + ".key/key";
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  EngineConfig config = optimized();
  config.profile_directory = (folder_ / "profiles").string();
  Start run(folder_, config);
  run.call_everything();
  const auto second = load(*run.engine, "(module (func (export \"f\") (result i32) (i32.const 1)))");
  EXPECT_EQ(run.report().functions_cached, 0u);
  EXPECT_THAT(run.log.warnings("cache"),
              ElementsAre(AllOf(HasSubstr(key), HasSubstr("its mode is 644"), HasSubstr("remove it"),
                                HasSubstr("none are used"))));
  run.end();
  EXPECT_THAT(run.log.warnings("cache"), testing::SizeIs(1));
  EXPECT_EQ(contents(file()), before);
}

TEST(CacheFile, SaysWhatWasPutIntoIt) {
  rt::CacheFile file;
  file.key = {.module = {1, 2, 3}, .options = "tier auto", .machine = "this one"};
  file.module_name = "name";
  file.llvm_path = "/lib/llvm";
  rt::CachedFunction function;
  function.function = FuncIndex(7);
  function.reason = "hot";
  function.changes = {{{jit::ChangeKind::kPrefetch, WasmOffset(100)},
                       {.state = feedback::ChangeState::kKept, .setting = 32, .gain = 0.5}}};
  function.calls[200] = {.candidates = {{3, 90}, {4, 10}}, .total = 120};
  function.image.resize(5, std::byte{9});
  file.functions.push_back(function);
  const auto parsed = rt::parse_cache_file(rt::format_cache_file(file));
  ASSERT_TRUE(parsed) << parsed.error().describe();
  EXPECT_EQ(parsed->key, file.key);
  EXPECT_EQ(parsed->module_name, "name");
  EXPECT_EQ(parsed->llvm_path, "/lib/llvm");
  ASSERT_EQ(parsed->functions.size(), 1u);
  EXPECT_EQ(parsed->functions[0].function, FuncIndex(7));
  EXPECT_EQ(parsed->functions[0].reason, "hot");
  EXPECT_EQ(parsed->functions[0].changes, function.changes);
  EXPECT_EQ(parsed->functions[0].image, function.image);
  ASSERT_EQ(parsed->functions[0].calls.size(), 1u);
  EXPECT_EQ(parsed->functions[0].calls.at(200).total, 120u);
  EXPECT_EQ(parsed->functions[0].calls.at(200).candidates.at(1).value, 4u);
  // What does not add up, or does not ascend, is no file.
  file.functions[0].calls[200].total = 80;
  EXPECT_FALSE(rt::parse_cache_file(rt::format_cache_file(file)));
  file.functions = {function, function};
  EXPECT_FALSE(rt::parse_cache_file(rt::format_cache_file(file)));
}

TEST_F(CodeCacheTest, AFileUnderTheNameOfAnotherIsIgnored) {
  fill();
  const auto path = file();
  auto parsed = rt::parse_cache_file(unsealed(path));
  ASSERT_TRUE(parsed);
  parsed->key.module[3] ^= 1;
  write_sealed(path, rt::format_cache_file(*parsed));
  expect_ignored("another module");
}

TEST_F(CodeCacheTest, CodeOfAnotherCompilerOrProcessorIsStaleAndReplaced) {
  fill();
  const auto path = file();
  auto parsed = rt::parse_cache_file(unsealed(path));
  ASSERT_TRUE(parsed);
  const std::string machine = parsed->key.machine;
  parsed->key.machine = "another one";
  write_sealed(path, rt::format_cache_file(*parsed));
  {
    Start run(folder_, optimized());
    EXPECT_EQ(run.report().functions_cached, 0u);
    EXPECT_THAT(run.log.lines(),
                Contains(AllOf(HasSubstr("cache: "), HasSubstr("another build"), HasSubstr("ignored"))));
    EXPECT_THAT(run.log.warnings("cache"), IsEmpty());  // so it is after every update
    EXPECT_EQ(run.call("sum", 3), 14);
  }
  parsed = rt::parse_cache_file(unsealed(path));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key.machine, machine);
  EXPECT_EQ(parsed->functions.size(), 1u);  // nothing of the stale ones
}

TEST_F(CodeCacheTest, WhatOthersCouldHaveWrittenIsIgnored) {
  fill();
  const auto path = file();
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  expect_ignored("can be written by others");
  ASSERT_EQ(::chmod(path.c_str(), 0602), 0);
  expect_ignored("can be written by others");
}

TEST_F(CodeCacheTest, ALinkIsIgnoredAndWhatItLeadsToLeftAlone) {
  fill();
  const auto path = file();
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  const auto before = contents(elsewhere);
  expect_ignored("is a link");
  EXPECT_EQ(contents(elsewhere), before);
  EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(CodeCacheTest, APipeInAFilesPlaceHoldsNobodyUp) {
  fill();
  const auto path = file();
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_ignored("no regular file");
}

TEST_F(CodeCacheTest, AFolderThatOthersCanWriteIsNotUsed) {
  fill();
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  Start run(folder_, optimized());
  EXPECT_EQ(run.report().functions_cached, 0u);
  EXPECT_THAT(run.log.warnings("cache"),
              ElementsAre(AllOf(HasSubstr(folder_.string()), HasSubstr("can be written by others"))));
  run.call_everything();
}

TEST_F(CodeCacheTest, DamageBehindAGoodSealDoesNoHarm) {
  fill();
  const auto whole = unsealed(file());
  Start run(folder_, optimized());
  const wasm::Module& module = static_cast<const rt::ModuleHandle&>(*run.module).wasm();
  std::mt19937 random(7);
  size_t refused = 0, placed = 0;
  for (int round = 0; round < 1500; ++round) {
    auto changed = whole;
    for (int i = 0; i < 3; ++i)
      changed[12 + random() % (changed.size() - 12)] = static_cast<std::byte>(random());
    const auto parsed = rt::parse_cache_file(changed);
    if (!parsed) {
      ++refused;
      continue;
    }
    for (const rt::CachedFunction& function : parsed->functions) {
      const auto version = jit::place_code_image(function.image, module, run.engine->code().arena());
      (version ? placed : refused)++;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(placed, 0u);
}

// ---------------------------------------------------------------- the automatic tier

// As an earlier run would have saved it: every function was worth optimizing.
std::string profile_of_everything(const fs::path& folder, const Module& module) {
  feedback::ModuleProfile profile;
  profile.hash_hex = module.content_hash_hex();
  for (uint32_t i = 0; i < kGuestFunctions; ++i) {
    feedback::Episode episode;
    episode.id = i + 1;
    episode.evidence.function = FuncIndex(i);
    episode.evidence.seconds_baseline = 1;
    episode.action = "optimize";
    episode.state = DecisionState::kCompiled;
    episode.reason = "hot";
    if (i == 6) episode.osr_loops = {0};
    profile.episodes.push_back(std::move(episode));
  }
  const std::string path = (folder / "profile.json").string();
  EXPECT_TRUE(feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, path));
  return path;
}

TEST_F(CodeCacheTest, TheAutomaticTierBeginsWithCodeOfAnEarlierRun) {
  EngineConfig config;
  config.profile_in = profile_of_everything(folder_, *load(*make_engine(), kGuest));
  {
    Start first(folder_, config);
    first.engine->wait_for_compiles();
    EXPECT_EQ(first.report().functions_optimized, kGuestFunctions);
    first.call_everything();
  }
  // What is in the cache is not compiled again because a profile says so, too.
  for (const bool with_profile : {false, true}) {
    EngineConfig again;
    if (with_profile) again.profile_in = config.profile_in;
    Start second(folder_, again);
    second.call_everything();
    second.engine->wait_for_compiles();
    const FeedbackReport report = second.report();
    EXPECT_EQ(report.functions_cached, kGuestFunctions);
    EXPECT_EQ(report.functions_optimized, 0u);
    EXPECT_EQ(report.functions_baseline, 0u);
    EXPECT_FALSE(second.opened_the_optimizer());
    ASSERT_EQ(report.decisions.size(), kGuestFunctions);
    EXPECT_THAT(report.decisions[0].reason, AllOf(HasSubstr("from the code cache"), HasSubstr("hot")));
    EXPECT_EQ(report.decisions[0].state, DecisionState::kCompiled);
  }
}

TEST_F(CodeCacheTest, CodeOfAnEarlierRunCanBeWithdrawnAndReplaced) {
  EngineConfig config;
  config.profile_in = profile_of_everything(folder_, *load(*make_engine(), kGuest));
  {
    Start first(folder_, config);
    first.engine->wait_for_compiles();
  }
  Start run(folder_, {});
  rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*run.module).code();
  EXPECT_EQ(run.call("sum", 3), 14);
  EXPECT_TRUE(code.withdraw(FuncIndex(6)));
  EXPECT_EQ(run.call("sum", 3), 14);
  EXPECT_EQ(run.report().functions_baseline, 1u);  // compiled now that it is needed
  jit::OptimizeRequest request;
  request.function = FuncIndex(6);
  auto made = code.optimize(request);
  ASSERT_TRUE(made) << made.error().describe();
  code.publish(std::shared_ptr<jit::CodeVersion>(std::move(made->version)));
  EXPECT_EQ(run.call("sum", 3), 14);
}

constexpr std::string_view kIndirect = R"((module (memory (export "memory") 32)
  (func (export "sum") (param $n i32) (result i32)
    (local $i i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s)
        (i32.load (i32.and (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 0xffffc)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $s))))";

TEST_F(CodeCacheTest, APrefetchThatWasKeptIsSettledAtItsDistance) {
  WasmOffset load;
  {
    Start first(folder_, {}, kIndirect);
    rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*first.module).code();
    // The second load of the body: i32.load is 0x28, then come alignment and offset.
    const wasm::FunctionBody& body = code.module()->body(FuncIndex(0));
    std::vector<uint32_t> loads;
    for (uint32_t at = body.begin.value; at + 2 < body.end.value; ++at)
      if (code.module()->bytes[at] == 0x28 && code.module()->bytes[at + 1] == 2 &&
          code.module()->bytes[at + 2] == 0)
        loads.push_back(at);
    ASSERT_EQ(loads.size(), 2u);
    load = WasmOffset(loads[1]);
    jit::OptimizeRequest request;
    request.function = FuncIndex(0);
    request.changes.push_back({.site = {jit::ChangeKind::kPrefetch, load}, .weight = 0.5});
    auto made = code.optimize(request);
    ASSERT_TRUE(made) << made.error().describe();
    ASSERT_TRUE(made->version->answers.at(0).is_applied()) << made->version->answers[0].why;
    const rt::KeptCode kept{
        std::move(made->version),
        "its load stalls",
        {{{jit::ChangeKind::kPrefetch, load},
          {.state = feedback::ChangeState::kKept, .setting = 40, .gain = 0.25}},
         {{jit::ChangeKind::kPrefetch, body.begin}, {.state = feedback::ChangeState::kRolledBack}}},
        {}};
    first.engine->code().cache->save(*code.module(), std::span(&kept, 1));
  }
  Start second(folder_, {}, kIndirect);
  rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*second.module).code();
  auto version = code.current(FuncIndex(0));
  ASSERT_TRUE(version);
  ASSERT_EQ(version->loop_cells.size(), 1u);
  EXPECT_EQ(version->loop_cells[0]->enabled, 1u);
  EXPECT_EQ(version->loop_cells[0]->distance, 40u);
  version.reset();  // its memory is the engine's
  EXPECT_EQ(second.call("sum", 10'000), 0);
  const FeedbackReport report = second.report();
  ASSERT_EQ(report.decisions.size(), 2u);
  EXPECT_EQ(report.decisions[1].kind, "prefetch");
  EXPECT_EQ(report.decisions[1].state, DecisionState::kKept);
  EXPECT_EQ(report.decisions[1].wasm_offset, load.value);
  EXPECT_EQ(report.decisions[1].measured_gain, 0.25);
  EXPECT_FALSE(second.opened_the_optimizer());
  // And is kept as it is.
  second.end();
  const auto parsed = rt::parse_cache_file(unsealed(file()));
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->functions.size(), 1u);
  EXPECT_EQ(parsed->functions[0].changes.size(), 2u);
}

constexpr std::string_view kChains = R"((module (memory (export "memory") 1)
  (func (export "sum") (param $n i32) (result i32) (local $p i32) (local $sum i32)
    (loop $l
      (local.set $p (i32.add (i32.const 64) (i32.shl (i32.and (local.get $n) (i32.const 31)) (i32.const 3))))
      (loop $chain
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $p))))
        (br_if $chain (local.tee $p (i32.load (local.get $p)))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (data (i32.const 64) "\00\00\00\00\01\00\00\00\00\00\00\00\02\00\00\00")))";

TEST_F(CodeCacheTest, InterleavedSearchesThatWereKeptAreSettledAtTheirWidth) {
  WasmOffset load;
  {
    Start first(folder_, {}, kChains);
    rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*first.module).code();
    // The one of the body's loads without an offset.
    const wasm::FunctionBody& body = code.module()->body(FuncIndex(0));
    for (uint32_t at = body.begin.value; at + 2 < body.end.value; ++at)
      if (code.module()->bytes[at] == 0x28 && code.module()->bytes[at + 1] == 2 &&
          code.module()->bytes[at + 2] == 0)
        load = WasmOffset(at);
    jit::OptimizeRequest request;
    request.function = FuncIndex(0);
    request.changes.push_back({.site = {jit::ChangeKind::kInterleave, load}, .weight = 0.5});
    auto made = code.optimize(request);
    ASSERT_TRUE(made) << made.error().describe();
    ASSERT_TRUE(made->version->answers.at(0).is_applied()) << made->version->answers[0].why;
    const rt::KeptCode kept{std::move(made->version),
                            "its load stalls",
                            {{{jit::ChangeKind::kInterleave, load},
                              {.state = feedback::ChangeState::kKept, .setting = 8, .gain = 1.5}}},
                            {}};
    first.engine->code().cache->save(*code.module(), std::span(&kept, 1));
  }
  Start second(folder_, {}, kChains);
  rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*second.module).code();
  auto version = code.current(FuncIndex(0));
  ASSERT_TRUE(version);
  ASSERT_EQ(version->loop_cells.size(), 1u);
  EXPECT_EQ(version->loop_cells[0]->enabled, 1u);
  EXPECT_EQ(version->loop_cells[0]->distance, 8u);
  version.reset();  // its memory is the engine's
  // Two of 32 chains have a value each: 1 and 2.
  EXPECT_EQ(second.call("sum", 32 * 100), 300);
  EXPECT_EQ(second.call("sum", 5), 2);
  const FeedbackReport report = second.report();
  ASSERT_EQ(report.decisions.size(), 2u);
  EXPECT_EQ(report.decisions[1].kind, "interleave");
  EXPECT_EQ(report.decisions[1].state, DecisionState::kKept);
  EXPECT_FALSE(second.opened_the_optimizer());
}

TEST_F(CodeCacheTest, CodeIsNotPlacedForADecisionThatIsTurnedOff) {
  EngineConfig config;
  config.profile_in = profile_of_everything(folder_, *load(*make_engine(), kGuest));
  {
    Start first(folder_, config);
    first.engine->wait_for_compiles();
  }
  EngineConfig without;
  without.disabled_decisions = {"prefetch"};
  EXPECT_EQ(Start(folder_, without).report().functions_cached, 0u);
  EngineConfig by_hotness;
  by_hotness.feedback = false;
  EXPECT_EQ(Start(folder_, by_hotness).report().functions_cached, 0u);
}

TEST_F(CodeCacheTest, PeopleCanSeeWhatIsKeptAndRemoveIt) {
  fill();
  write(folder_ / "b40ce4-0.code", {});
  auto info = code_cache_info(folder_.string());
  ASSERT_TRUE(info) << info.error().describe();
  ASSERT_EQ(info->files.size(), 2u);
  const bool first_is_broken = info->files[0].name == "b40ce4-0.code";
  const CodeCacheInfo::File& broken = info->files[first_is_broken ? 0 : 1];
  const CodeCacheInfo::File& good = info->files[first_is_broken ? 1 : 0];
  EXPECT_THAT(broken.defect, HasSubstr("truncated"));
  EXPECT_EQ(good.defect, "");
  EXPECT_EQ(good.functions, kCompiled);
  EXPECT_EQ(good.module, "guest");
  EXPECT_EQ(info->bytes, good.bytes);
  EXPECT_THAT(good.options, HasSubstr("optimized"));
  EXPECT_EQ(clear_code_cache(folder_.string()).value(), 2u);
  EXPECT_THAT(code_cache_info(folder_.string())->files, IsEmpty());
  EXPECT_THAT(code_cache_info((folder_ / "missing").string())->files, IsEmpty());
}

}  // namespace
}  // namespace hindsight
