// Profiles kept between engines: what a second start takes over, what is refused, and what it says.
#include "runtime/storage/profile_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>

#include "feedback/profile/merge.h"
#include "runtime/engine/handles.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

namespace fs = std::filesystem;
using feedback::Episode;
using feedback::ModuleProfile;
using rt::ProfileStore;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kProfiledGuest = R"((module $guest
  (func (export "sum") (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s) (i32.mul (local.get $n) (local.get $n))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func (export "twice") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))))";

class ProfileStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-profiles-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ::setenv("HINDSIGHT_KEY_DIR", (pattern + "/key").c_str(), 1);  // of what needs no engine
    key_ = std::make_shared<const rt::UserKey>(pattern + "/key");
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    ::unsetenv("HINDSIGHT_KEY_DIR");
  }
  EngineConfig config() {
    EngineConfig config;
    config.compile_threads = 1;
    config.profile_directory = (folder_ / "profiles").string();
    config.key_directory = (folder_ / "key").string();
    config.log = [this](LogLevel level, std::string_view topic, std::string_view line) {
      const std::lock_guard lock(mutex_);
      if (topic == "profile" && level == LogLevel::kWarning) warnings_.emplace_back(line);
    };
    return config;
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }
  // A start of the guest that ends at once; what was optimized before it ran.
  uint64_t start(EngineConfig config) {
    auto engine = Engine::create(std::move(config));
    EXPECT_TRUE(engine) << engine.error().describe();
    auto module = load(**engine, kProfiledGuest);
    (*engine)->wait_for_compiles();
    const uint64_t optimized = (*engine)->feedback_report().functions_optimized;
    Linker linker(**engine);
    auto instance = linker.instantiate(module);
    EXPECT_TRUE(instance);
    const Value five = Value::i32(5);
    EXPECT_EQ((*(*instance)->call("sum", std::span(&five, 1)))[0].as_i32(), 55);
    EXPECT_EQ((*(*instance)->call("twice", std::span(&five, 1)))[0].as_i32(), 10);
    return optimized;
  }
  // What a run would find that sees `sum` hot.
  ModuleProfile run(double seconds = 1) {
    ModuleProfile profile;
    profile.hash_hex = hash_;
    profile.name = "guest";
    Episode episode;
    episode.id = 1;
    episode.evidence.function = FuncIndex(0);
    episode.evidence.name = "sum";
    episode.action = "optimize";
    episode.state = DecisionState::kCompiled;
    episode.reason = "it was hot";
    episode.osr_loops = {0};
    profile.episodes = {episode};
    feedback::FunctionSamples samples;
    samples.function = FuncIndex(0);
    samples.name = "sum";
    samples.samples = 250 * seconds;
    samples.seconds_baseline = seconds;
    profile.samples = {samples};
    return profile;
  }
  // The store of an engine that decides nothing by itself.
  struct Stored {
    std::shared_ptr<rt::EngineHandle> engine;
    std::shared_ptr<const Module> module;
    const ProfileStore& store() const { return *engine->code().profiles; }
    const wasm::Module& wasm() const { return static_cast<const rt::ModuleHandle&>(*module).wasm(); }
  };
  Stored open() {
    Stored stored;
    stored.engine = std::static_pointer_cast<rt::EngineHandle>(Engine::create(config()).value());
    stored.module = load(*stored.engine, kProfiledGuest);
    hash_ = stored.module->content_hash_hex();
    return stored;
  }
  // As if `runs` had been added by programs that ended.
  void fill(const std::vector<double>& seconds = {1}) {
    Stored stored = open();
    for (const double s : seconds) EXPECT_TRUE(stored.store().add(stored.wasm(), run(s), {}));
    // Its own end must not add one more.
    fs::path kept = folder_ / "kept";
    fs::rename(folder_ / "profiles", kept);
    stored.module.reset();
    stored.engine.reset();
    fs::remove_all(folder_ / "profiles");
    fs::rename(kept, folder_ / "profiles");
    warnings();
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_ / "profiles"))
      if (entry.path().extension() == ".profile") return entry.path();
    ADD_FAILURE() << "nothing was kept";
    return {};
  }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // As somebody with the user's rights would.
  static void write(const fs::path& path, std::string_view text) {
    std::error_code ignored;
    fs::permissions(path, fs::perms::owner_write, fs::perm_options::add, ignored);
    std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  rt::CacheDirectory directory() const {
    return {(folder_ / "profiles").string(), key_, rt::CacheDirectory::kProfileSuffix};
  }
  // What follows the seal, and the like under a good seal: as this program would write it.
  std::string unsealed(const fs::path& path) const {
    const auto bytes = directory().read(path.filename().string()).value().value();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void write_sealed(const fs::path& path, std::string_view text) const {
    const auto bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(directory().update(path.filename().string(), [&](const auto&) {
      return rt::CacheDirectory::Bytes(bytes.begin(), bytes.end());
    }));
  }
  feedback::ProfileFile kept() const {
    const std::string text = unsealed(file());
    auto parsed = ProfileStore::parse(std::as_bytes(std::span(text)));
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? *parsed : feedback::ProfileFile{};
  }
  // A start that finds the file unusable: it says so once, computes the same, and takes nothing over.
  void expect_ignored(const std::string& words) {
    EXPECT_EQ(start(config()), 0u) << words;
    EXPECT_THAT(warnings(),
                ElementsAre(AllOf(HasSubstr(folder_.string()), HasSubstr(words), HasSubstr("ignored"))));
  }

  fs::path folder_;
  std::shared_ptr<const rt::UserKey> key_;
  std::string hash_;
  std::mutex mutex_;  // protects warnings_
  std::vector<std::string> warnings_;
};

TEST_F(ProfileStoreTest, ASecondStartCompilesWhatTheFirstHadDecided) {
  EXPECT_EQ(start(config()), 0u);
  fill();
  EXPECT_EQ(start(config()), 1u);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(ProfileStoreTest, ARunInWhichNothingWasDecidedChangesNothing) {
  ModuleProfile undecided = run();
  undecided.episodes.clear();
  Stored stored = open();
  EXPECT_TRUE(stored.store().add(stored.wasm(), undecided, {}));
  EXPECT_FALSE(fs::exists(folder_ / "profiles"));
  fill();
  const std::string before = contents(file());
  EXPECT_TRUE(stored.store().add(stored.wasm(), undecided, {}));
  EXPECT_EQ(contents(file()), before);
}

TEST_F(ProfileStoreTest, RunsThatEndOneAfterTheOtherAreAllInIt) {
  fill({1, 2, 3});
  const feedback::ProfileFile file = kept();
  ASSERT_EQ(file.modules.size(), 1u);
  EXPECT_EQ(file.modules[0].runs_seen, 3u);
  const double f = feedback::fading(1);
  EXPECT_NEAR(file.modules[0].samples[0].seconds_baseline, f * f + 2 * f + 3, 1e-9);
}

TEST_F(ProfileStoreTest, ProcessesThatEndAtOnceAreAllInIt) {
  fill();
  constexpr int kProcesses = 6, kRuns = 5;
  Stored stored = open();
  for (int i = 0; i < kProcesses; ++i) {
    if (::fork() == 0) {
      // One that waited for its turn longer than a program's end should, tries again.
      for (int k = 0; k < kRuns; k += stored.store().add(stored.wasm(), run(), {}).has_value()) {
      }
      ::_exit(0);
    }
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = -1;
    ::wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(kept().modules[0].runs_seen, 1u + kProcesses * kRuns);
}

TEST_F(ProfileStoreTest, AProcessThatIsKilledWhileItWritesLosesItsOwnRunAlone) {
  fill({1, 1});
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      // Writes until it is killed.
      const std::string name = file().filename().string();
      for (;;) {
        (void)directory().update(name, [&](std::optional<rt::CacheDirectory::Bytes> old) {
          auto parsed = ProfileStore::parse(*old);
          if (!parsed) ::_exit(1);
          const std::string text = feedback::format_profile(feedback::merge(*parsed, *parsed), true);
          const auto bytes = std::as_bytes(std::span(text));
          return rt::CacheDirectory::Bytes(bytes.begin(), bytes.end());
        });
      }
    }
    ::usleep(500 + 300 * static_cast<useconds_t>(i % 7));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ASSERT_GE(kept().modules[0].runs_seen, 2u);
  }
  EXPECT_EQ(start(config()), 1u);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(ProfileStoreTest, DamagedAndTruncatedFilesAreIgnoredAndWrittenAnew) {
  fill();
  const std::string sound = contents(file());
  std::string flipped = sound;
  flipped[flipped.size() / 2] ^= 4;
  write(file(), flipped);
  expect_ignored("wrong seal");
  write(file(), sound.substr(0, sound.size() / 2));
  expect_ignored("is truncated");
  write(file(), "");
  expect_ignored("is truncated: 0 bytes");
  write(file(), "not at all");
  expect_ignored("has no seal");
  fill();
  EXPECT_EQ(kept().modules.size(), 1u);
  EXPECT_EQ(start(config()), 1u);
  EXPECT_THAT(warnings(), IsEmpty());
  std::string version = sound;
  version.replace(version.find(" 1 "), 3, " 7 ");
  write(file(), version);
  expect_ignored("another version");
  fs::remove(file());
  fill();
  EXPECT_EQ(start(config()), 1u);
}

// One that somebody made who has no key: its advice is not taken, however well-formed.
TEST_F(ProfileStoreTest, AProfileThatSomebodyElseWroteIsIgnoredUnlessItIsNamed) {
  fill();
  const std::string inside = unsealed(file()), sealed = contents(file());
  write(file(), inside);
  expect_ignored("has no seal");
  write(file(), "hindsight-kept-profile 1 0123 " + std::to_string(inside.size()) + "\n" + inside);
  expect_ignored("an earlier version");
  std::string changed = sealed;
  changed.replace(changed.find("it was hot"), 10, "it was not");
  write(file(), changed);
  expect_ignored("wrong seal");
  // Who names a file says that it is to be used: no seal is asked for.
  EngineConfig named = config();
  named.profile_directory.clear();
  for (const std::string& text : {inside, changed, sealed}) {
    write(folder_ / "named", text);
    named.profile_in = (folder_ / "named").string();
    EXPECT_EQ(start(named), 1u);
  }
}

TEST_F(ProfileStoreTest, AVersionOfTheContentsThatNobodyKnowsIsIgnored) {
  fill();
  std::string text = unsealed(file());
  const size_t version = text.find("\"version\":");
  ASSERT_NE(version, std::string::npos);
  text.replace(version, 11, "\"version\":1");
  write_sealed(file(), text);
  EXPECT_EQ(start(config()), 0u);
  EXPECT_THAT(warnings(), IsEmpty()) << "after every update it is so";
}

TEST_F(ProfileStoreTest, AFileUnderTheNameOfAnotherModuleIsIgnored) {
  fill();
  feedback::ProfileFile other = kept();
  other.modules[0].hash_hex[0] = other.modules[0].hash_hex[0] == 'a' ? 'b' : 'a';
  write_sealed(file(), feedback::format_profile(other, true));
  expect_ignored("another module");
  other = kept();
  other.modules[0].hash_hex = hash_;
  other.modules[0].options += ", no prefetch";
  write_sealed(file(), feedback::format_profile(other, true));
  expect_ignored("another module");
  other.modules.clear();
  write_sealed(file(), feedback::format_profile(other, true));
  expect_ignored("another module");
}

TEST_F(ProfileStoreTest, FilesThatSomebodyElseCouldHaveWrittenAreIgnored) {
  fill();
  ASSERT_EQ(::chmod(file().c_str(), 0666), 0);
  expect_ignored("written by others");
  const fs::path name = file(), elsewhere = folder_ / "elsewhere";
  ASSERT_EQ(::chmod(name.c_str(), 0600), 0);
  fs::rename(name, elsewhere);
  fs::create_symlink(elsewhere, name);
  expect_ignored("is a link");
  fs::remove(name);
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  expect_ignored("no regular file");
  fs::remove(name);
  fs::rename(elsewhere, name);
  ASSERT_EQ(::chmod((folder_ / "profiles").c_str(), 0777), 0);
  expect_ignored("written by others");
  ASSERT_EQ(::chmod((folder_ / "profiles").c_str(), 0700), 0);
  EXPECT_EQ(start(config()), 1u);
}

TEST_F(ProfileStoreTest, AFolderThatCannotBeWrittenIsSaidAndNothingElse) {
  write(folder_ / "profiles", "a file in its place");
  EXPECT_EQ(start(config()), 0u);
  EXPECT_THAT(warnings(), Contains(HasSubstr((folder_ / "profiles").string())));
}

TEST_F(ProfileStoreTest, WhateverASealedFileSaysTheGuestComputesTheSame) {
  fill({1, 2});
  feedback::ProfileFile file = kept();
  Episode& e = file.modules[0].episodes[0];
  e.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                 {.state = feedback::ChangeState::kKept,
                  .setting = 4'000'000'000,
                  .gain = 1e17,
                  .why = "x",
                  .runs_ago = 3}},
                {{jit::ChangeKind::kInterleave, WasmOffset(80)},
                 {.state = feedback::ChangeState::kKept,
                  .setting = 4'000'000'000,
                  .gain = 1e17,
                  .why = "y",
                  .runs_ago = 3}}};
  e.evidence.loads.push_back({.load = WasmOffset(~0u), .stall_samples = 1e18});
  e.evidence.branches.push_back({WasmOffset(3), 1, 1, uint64_t{1} << 62, uint64_t{1} << 62, 9, 9});
  e.evidence.calls.push_back({WasmOffset(~0u), uint64_t{1} << 62, {{~0u, uint64_t{1} << 62}}});
  const std::string name = this->file().string();
  const std::string sound = feedback::format_profile(file, true);
  std::mt19937 random(7);
  int taken_over = 0;
  for (int i = 0; i < 60; ++i) {
    std::string text = sound;
    for (int k = 0; i > 0 && k < 1 + i % 4; ++k) {
      // Numbers and names, mostly: what is no JSON any more is refused at once.
      const size_t at = text.find_first_of("0123456789", random() % text.size());
      if (at != std::string::npos) text[at] = static_cast<char>('0' + random() % 10);
    }
    write_sealed(name, text);
    const uint64_t optimized = start(config());
    EXPECT_LE(optimized, 2u);
    taken_over += optimized > 0;
    warnings();
  }
  EXPECT_GT(taken_over, 0);
}

TEST_F(ProfileStoreTest, AFunctionThatTheModuleDoesNotHaveIsIgnoredWithALine) {
  fill();
  feedback::ProfileFile file = kept();
  file.modules[0].episodes.push_back(file.modules[0].episodes[0]);
  file.modules[0].episodes[1].evidence.function = FuncIndex(1'000'000);
  write_sealed(this->file(), feedback::format_profile(file, true));
  EXPECT_EQ(start(config()), 1u);
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("do not fit the module")));
}

TEST_F(ProfileStoreTest, OtherOptionsAreAnotherProfile) {
  fill();
  EngineConfig other = config();
  other.disabled_decisions = {"prefetch"};
  EXPECT_EQ(start(other), 0u);
  EngineConfig by_hotness = config();
  by_hotness.feedback = false;
  EXPECT_EQ(start(by_hotness), 0u);
  EXPECT_EQ(start(config()), 1u);
}

TEST_F(ProfileStoreTest, IsOfNoUseToFixedTiers) {
  fill();
  EngineConfig fixed = config();
  fixed.tier = TierMode::kBaseline;
  fixed.profiling = false;
  EXPECT_EQ(start(fixed), 0u);
  EXPECT_EQ(kept().modules[0].runs_seen, 1u);
}

TEST_F(ProfileStoreTest, AnExplicitProfileGoesBeforeTheKeptOne) {
  fill();
  feedback::ProfileFile other = kept();
  other.modules[0].episodes.clear();
  const std::string path = (folder_ / "explicit.json").string();
  ASSERT_TRUE(feedback::save_profile(other, path));
  EngineConfig with = config();
  with.profile_in = path;
  EXPECT_EQ(start(with), 0u);
}

TEST_F(ProfileStoreTest, TakesOutTheLeastRecentlyUsedBeyondItsBound) {
  fill();
  const fs::path old = folder_ / "profiles" / (std::string(64, '0') + "-0000000000000000.profile");
  write(old, std::string(100'000, 'x'));
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), long_ago, 0), 0);
  EngineConfig bounded = config();
  bounded.profile_directory_bytes =
      fs::file_size(file()) + 90'000;  // room for what a run adds, and not for both
  EXPECT_EQ(start(bounded), 1u);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(kept().modules[0].runs_seen, 2u);
}

TEST_F(ProfileStoreTest, PeopleCanSeeWhatIsKeptAndRemoveIt) {
  fill({1, 1});
  const std::string directory = (folder_ / "profiles").string();
  write(folder_ / "profiles" / "b40ce4-0.profile", "");
  const auto all = kept_profiles(directory);
  ASSERT_TRUE(all) << all.error().describe();
  ASSERT_EQ(all->files.size(), 2u);
  for (const KeptProfiles::File& file : all->files) {
    if (file.name == "b40ce4-0.profile") {
      EXPECT_EQ(file.defect, "is truncated: 0 bytes");
    } else {
      EXPECT_EQ(file.defect, "");
      EXPECT_EQ(file.runs, 2u);
      EXPECT_EQ(file.module_hash, hash_);
    }
  }
  EXPECT_EQ(clear_kept_profiles(directory).value(), 2u);
  EXPECT_THAT(kept_profiles(directory)->files, IsEmpty());
}

}  // namespace
}  // namespace hindsight
