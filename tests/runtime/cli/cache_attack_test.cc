// A guest that wants its own machine code run. It changes kept code or profiles, or puts some of its own there, with
// every call of WASI that writes, links, renames or makes anything. It goes through the command, as people use it.
//
//   home/.cache/hindsight/{code,profiles}   where the command keeps things, as HOME says; .local/state/hindsight: their key
//   home/{file,sub,other/file}              the guest's own
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "jit/code/image_bytes.h"
#include "runtime/storage/cache_directory.h"
#include "runtime/storage/code_cache_file.h"
#include "runtime/wasi/abi.h"
#include "tests/runtime/cli/command.h"

namespace hindsight {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using wasi::Errno;

// Whose code is kept. Long enough for what is planted in its place.
constexpr const char* kVictim = R"((module $victim
  (func (export "mix") (param i64 i64) (result i64)
    (i64.mul (i64.xor (i64.mul (i64.add (local.get 0) (i64.const 0x9e3779b97f4a7c15)) (i64.const 0xbf58476d1ce4e5b9))
                      (i64.rotl (local.get 1) (i64.const 17)))
             (i64.const 0x94d049bb133111eb)))))";

// A guest that makes some calls and prints how each ended: its errno, as one character.
class Attack {
 public:
  explicit Attack(std::string module = "wasi_snapshot_preview1") : wasi_(std::move(module)) {}

  void call(const std::string& name, const std::string& signature, const std::vector<std::string>& arguments,
            const std::string& words) {
    imports_[name] = signature;
    std::string call = "(call $" + name;
    for (const std::string& argument : arguments) call += " " + argument;
    code_ += "    (call $note " + call + "))\n";
    words_.push_back(name + " " + words);
  }
  static std::string i32(uint64_t value) { return "(i32.const " + std::to_string(value) + ")"; }
  static std::string i64(uint64_t value) { return "(i64.const " + std::to_string(value) + ")"; }
  // Pointer and length.
  std::string text(const std::string& text) {
    const size_t at = kData + data_.size();
    data_ += text;
    return i32(at) + " " + i32(text.size());
  }

  // The descriptor is remembered where `opened` says; -1 if there is none.
  void open(const std::string& path, uint32_t flags, bool follow, uint64_t rights,
            const std::string& directory = i32(3)) {
    code_ += "    (i32.store (i32.const 16) (i32.const -1))\n";
    call("path_open", "i32 i32 i32 i32 i32 i64 i64 i32 i32",
         {directory, i32(follow), text(path), i32(flags), i64(rights), i64(rights), i32(0), i32(16)},
         path + " flags " + std::to_string(flags));
  }
  static std::string opened() { return "(i32.load (i32.const 16))"; }
  void close() { call("fd_close", "i32", {opened()}, ""); }
  // All that can be done to what was opened last.
  void change_opened(const std::string& contents, const std::string& words) {
    const std::string at = text(contents);  // the vector of one
    code_ += "    (call $vector " + at + ")\n";
    call("fd_write", "i32 i32 i32 i32", {opened(), i32(32), i32(1), i32(24)}, words);
    call("fd_pwrite", "i32 i32 i32 i64 i32", {opened(), i32(32), i32(1), i64(0), i32(24)}, words);
    call("fd_allocate", "i32 i64 i64", {opened(), i64(0), i64(100'000)}, words);
    call("fd_filestat_set_size", "i32 i64", {opened(), i64(contents.size())}, words);
    call("fd_filestat_set_times", "i32 i64 i64 i32", {opened(), i64(1), i64(1), i32(wasi::fstflags::kMtim)},
         words);
  }
  // Every call that could change what `path` names, or put something there.
  void everything(const std::string& path) {
    using namespace wasi::oflags;  // NOLINT
    for (const bool follow : {true, false}) {
      for (const uint32_t flags :
           {0, int{kCreat}, int{kTrunc}, kCreat | kTrunc, kCreat | kExcl, int{kDirectory}}) {
        for (const uint64_t rights : {wasi::rights::kAll, wasi::rights::kAll & ~wasi::rights::kFdWrite}) {
          open(path, flags, follow, rights);
          change_opened("changed", path);
          close();
        }
      }
      call("path_filestat_set_times", "i32 i32 i32 i32 i64 i64 i32",
           {i32(3), i32(follow), text(path), i64(1), i64(1), i32(wasi::fstflags::kMtim)}, path);
      link(path, "taken-by-link", follow);
    }
    link("file", path, false);
    rename("file", path);
    rename("sub", path);
    rename(path, "taken-by-rename");
    symlink("file", path);
    symlink("../../../../sub", path);
    create_directory(path);
    call("path_remove_directory", "i32 i32 i32", {i32(3), text(path)}, path);
    call("path_unlink_file", "i32 i32 i32", {i32(3), text(path)}, path);
  }
  void link(const std::string& from, const std::string& to, bool follow) {
    call("path_link", "i32 i32 i32 i32 i32 i32 i32", {i32(3), i32(follow), text(from), i32(3), text(to)},
         from + " to " + to);
  }
  void rename(const std::string& from, const std::string& to) {
    call("path_rename", "i32 i32 i32 i32 i32 i32", {i32(3), text(from), i32(3), text(to)},
         from + " to " + to);
  }
  void symlink(const std::string& target, const std::string& path) {
    call("path_symlink", "i32 i32 i32 i32 i32", {text(target), i32(3), text(path)}, path + " to " + target);
  }
  void create_directory(const std::string& path) {
    call("path_create_directory", "i32 i32 i32", {i32(3), text(path)}, path);
  }

  std::string module() const {
    std::string text = "(module $attack\n";
    for (const auto& [name, signature] : imports_)
      text += "  (import \"" + wasi_ + "\" \"" + name + "\" (func $" + name + " (param " + signature +
              ") (result i32)))\n";
    if (!imports_.contains("fd_write"))
      text +=
          "  (import \"" + wasi_ + "\" \"fd_write\" (func $fd_write (param i32 i32 i32 i32) (result i32)))\n";
    text += "  (memory (export \"memory\") " + std::to_string(2 + data_.size() / 65536) + ")\n";
    text +=
        "  (global $noted (mut i32) (i32.const 1024))\n  (data (i32.const " + std::to_string(kData) + ") \"";
    constexpr const char* kDigits = "0123456789abcdef";
    for (const unsigned char c : data_) (((text += '\\') += kDigits[c >> 4]) += kDigits[c & 15]);
    text += R"(")
  (func $note (param i32)
    (i32.store8 (global.get $noted) (i32.add (local.get 0) (i32.const 32)))
    (global.set $noted (i32.add (global.get $noted) (i32.const 1))))
  (func $vector (param i32 i32)
    (i32.store (i32.const 32) (local.get 0))
    (i32.store (i32.const 36) (local.get 1)))
  (func (export "_start")
)" + code_ + R"(
    (call $vector (i32.const 1024) (i32.sub (global.get $noted) (i32.const 1024)))
    (drop (call $fd_write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 24)))))
)";
    return text;
  }
  // What of the calls ended well, by their words.
  std::vector<std::string> successes(const std::string& out) const {
    EXPECT_EQ(out.size(), words_.size()) << "the guest did not come to its end";
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(out.size(), words_.size()); ++i)
      if (out[i] == ' ') names.push_back(words_[i]);
    return names;
  }

 private:
  static constexpr size_t kData = 65536;
  const std::string wasi_;
  std::map<std::string, std::string> imports_;
  std::string data_, code_;
  std::vector<std::string> words_;
};

class CacheAttack : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    for (const char* name : {"HINDSIGHT_CODE_CACHE", "HINDSIGHT_PROFILE_DIR", "HINDSIGHT_KEY_DIR",
                             "HINDSIGHT_CACHE_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"})
      ::unsetenv(name);
    ::setenv("HOME", path("home").c_str(), 1);
    fs::create_directories(path("home/sub"));
    fs::create_directories(path("home/other"));
    file("home/file", "the guest's");
    victim_ = file("victim.wat", kVictim);
    answer_ = mix({"--no-code-cache", "--no-profile"}).out;
    ASSERT_NE(answer_, "");
  }
  Outcome mix(std::vector<std::string> options) const {
    std::vector<std::string> words = {"run", "--tier", "optimized"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word :
         {std::string("--invoke"), std::string("mix"), victim_, std::string("3"), std::string("4")})
      words.push_back(word);
    return hindsight(std::move(words));
  }
  Outcome attack(const Attack& attack, const std::string& directory, std::vector<std::string> options) const {
    std::vector<std::string> words = {"run", "--tier", "baseline"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : {std::string("--dir"), directory, file("attack.wat", attack.module())})
      words.push_back(word);
    return hindsight(std::move(words));
  }
  std::string key_folder() const { return path("home/.local/state/hindsight"); }
  // Has code and a profile kept in the usual places.
  void keep() {
    ASSERT_EQ(mix({}).out, answer_);
    const rt::CacheDirectory profiles(path("home/.cache/hindsight/profiles"),
                                      std::make_shared<const rt::UserKey>(key_folder()),
                                      rt::CacheDirectory::kProfileSuffix);
    ASSERT_TRUE(profiles.update("0-0.profile", [](const auto&) { return rt::CacheDirectory::Bytes(10); }));
  }
  static fs::path kept_code(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".code") return entry.path();
    ADD_FAILURE() << "nothing was kept";
    return {};
  }
  // All that can be told of what lies there, but for when it was read.
  static std::map<std::string, std::string> state(const fs::path& folder) {
    std::map<std::string, std::string> state;
    const auto note = [&](const fs::path& path) {
      struct stat status {};
      EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
      state[path.string()] =
          (S_ISREG(status.st_mode) ? contents(path) : "") + " links " + std::to_string(status.st_nlink) +
          " inode " + std::to_string(status.st_ino) + " mode " + std::to_string(status.st_mode) + " mtime " +
          std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
    };
    note(folder);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) note(entry.path());
    return state;
  }
  std::map<std::string, std::string> state_of_what_is_kept() const {
    auto all = state(path("home/.cache/hindsight/code"));
    all.merge(state(path("home/.cache/hindsight/profiles")));
    all.merge(state(key_folder()));
    return all;
  }
  // The victim's file with exit_group(42) at the beginning of its function: all of it as the command would write it, but for
  // the seal.
  std::vector<std::byte> planted() const {
    const rt::CacheDirectory folder(path("home/.cache/hindsight/code"),
                                    std::make_shared<const rt::UserKey>(key_folder()));
    const auto bytes = folder.read(kept_code(folder.path()).filename().string());
    EXPECT_TRUE(bytes && *bytes);
    auto file = rt::parse_cache_file(**bytes);
    EXPECT_TRUE(file);
    constexpr unsigned char kExit[] = {0xb8, 231, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05};
    for (rt::CachedFunction& function : file->functions) {
      jit::ImageReader in(function.image);
      in.number<uint32_t>();  // function
      in.number<double>();    // seconds
      const auto code = in.block();
      in.number<uint32_t>();  // size
      in.number<uint32_t>();  // hot bytes
      const auto entry = in.number<uint32_t>();
      EXPECT_LE(entry + sizeof kExit, code.size());
      std::ranges::copy(std::as_bytes(std::span(kExit)),
                        function.image.begin() + (code.data() - function.image.data()) + entry);
    }
    return rt::format_cache_file(*file);
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string victim_, answer_;
};

TEST_F(CacheAttack, ADirectoryAroundWhatIsKeptIsNotGivenByAnyOfItsNames) {
  fs::create_directory_symlink(path("home"), path("alias"));
  fs::create_directory_symlink("../.cache/hindsight/code", path("home/sub/way"));
  Attack some;
  some.create_directory("made");
  for (const bool there : {false, true}) {
    if (there) keep();
    const std::vector<std::string> around = {
        "home", "home/", "home/.", "home/sub/..", "home/sub/../../home", "alias", "alias/sub/..", ""};
    const std::vector<std::string> within = {"home/.cache",
                                             "home/.cache/hindsight",
                                             "home/.cache/hindsight/code",
                                             "home/.cache/hindsight/profiles",
                                             "home/.local",
                                             "home/.local/state/hindsight",
                                             "home/sub/way",
                                             "home/sub/../.cache/hindsight/code",
                                             "alias/.cache/hindsight/code/../profiles"};
    std::vector<std::string> names = around;
    if (there) names.insert(names.end(), within.begin(), within.end());
    const auto before = there ? state_of_what_is_kept() : std::map<std::string, std::string>();
    for (const std::string& name : names) {
      const Outcome refused = attack(some, path(name), {});
      EXPECT_EQ(refused.status, 2) << name << refused.err;
      EXPECT_EQ(refused.out, "") << name;
      EXPECT_THAT(refused.err, HasSubstr("cannot be given to a guest: it ")) << name;
      EXPECT_THAT(refused.err, HasSubstr(path(name))) << name;
    }
    if (there) {
      EXPECT_EQ(state_of_what_is_kept(), before);
    }
  }
  EXPECT_EQ(attack(some, "/", {}).status, 2);
  EXPECT_EQ(attack(some, path("home/other"), {}).status, 0);
  EXPECT_TRUE(fs::exists(path("home/other/made")));
}

// Where nothing is kept in this run the directory is given, with what other runs keep in it shut.
TEST_F(CacheAttack, NoCallOfWasiChangesWhatOtherRunsKeepOrPutsAnythingBesideIt) {
  keep();
  const std::string code =
      ".cache/hindsight/code/" + kept_code(path("home/.cache/hindsight/code")).filename().string();
  const auto before = state_of_what_is_kept();
  ASSERT_GE(before.size(), 7u);
  for (const char* module : {"wasi_snapshot_preview1", "wasi_unstable"}) {
    Attack all(module);
    all.symlink(".cache/hindsight/code", "way");
    all.symlink(code, "thing");
    for (const std::string& target :
         {code, std::string("way/" + fs::path(code).filename().string()),
          std::string(".cache/hindsight/code/0-0.code"), std::string("way/0-1.code"),
          std::string("sub/../.cache/hindsight/profiles/0-0.profile"),
          std::string(".cache/hindsight/profiles/0-1.profile"), std::string(".cache/hindsight/code/.lock"),
          std::string(".cache/hindsight/code/CACHEDIR.TAG"), std::string(".local/state/hindsight/key"),
          std::string(".local/state/hindsight/key2")})
      all.everything(target);
    // The folders, and those above, which would take them along.
    for (const char* folder :
         {".cache/hindsight/code", ".cache/hindsight/profiles", ".cache/hindsight", ".cache", ".local"}) {
      all.rename(folder, "taken-by-rename");
      all.rename("sub", folder);
      all.call("path_remove_directory", "i32 i32 i32", {Attack::i32(3), all.text(folder)}, folder);
      all.call("path_unlink_file", "i32 i32 i32", {Attack::i32(3), all.text(folder)}, folder);
    }
    // From a directory in between.
    all.open(".cache/hindsight", wasi::oflags::kDirectory, true, wasi::rights::kAllDirectory);
    const size_t own = 3;  // the two links, and this one
    for (const char* name : {"code/0-2.code", "profiles/0-2.profile"}) {
      all.call("path_symlink", "i32 i32 i32 i32 i32",
               {all.text("../../../file"), Attack::opened(), all.text(name)}, name);
      all.call("path_create_directory", "i32 i32 i32", {Attack::opened(), all.text(name)}, name);
      all.call("path_rename", "i32 i32 i32 i32 i32 i32",
               {Attack::i32(3), all.text("file"), Attack::opened(), all.text(name)}, name);
    }
    const Outcome outcome = attack(all, path("home"), {"--no-code-cache", "--no-profile"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(all.successes(outcome.out).size(), own) << testing::PrintToString(all.successes(outcome.out));
    EXPECT_EQ(state_of_what_is_kept(), before);
    EXPECT_EQ(contents(path("home/file")), "the guest's");
    for (const char* made : {"way", "thing"}) fs::remove(path("home") + "/" + made);
  }
  // What was kept is used as before.
  const Outcome next = mix({"-v"});
  EXPECT_EQ(next.out, answer_);
  EXPECT_THAT(next.err, HasSubstr("1 functions, "));
  EXPECT_THAT(next.err, Not(HasSubstr("ignored")));
  // The same calls do change what is not ours: it is not they that are wrong.
  Attack control;
  file("home/other/file", "as it was");
  control.everything("other/file");
  const auto done = control.successes(attack(control, path("home"), {"--no-code-cache", "--no-profile"}).out);
  std::set<std::string> calls;
  for (const std::string& words : done) calls.insert(words.substr(0, words.find(' ')));
  EXPECT_THAT(calls, testing::IsSupersetOf({"path_open", "fd_write", "fd_pwrite", "fd_allocate",
                                            "fd_filestat_set_size", "fd_filestat_set_times",
                                            "path_filestat_set_times", "path_link", "path_rename",
                                            "path_symlink", "path_unlink_file"}));
}

// Folders that this run's engine was not told of, such as those that another run named by --code-cache. Files in them are
// known by their mode and beginning, new ones can be made, and what was not sealed is not run.
TEST_F(CacheAttack, CodeThatAGuestPlantsIsNamedAndNeverRun) {
  keep();
  const std::vector<std::byte> code = planted();
  const std::string name = kept_code(path("home/.cache/hindsight/code")).filename().string();
  const std::string folder = path("home/other/cache");
  const std::vector<std::string> use = {"-v", "--code-cache", folder};
  ASSERT_EQ(mix(use).out, answer_);
  const std::string sealed = contents(fs::path(folder) / name);
  const std::string seal = sealed.substr(0, sealed.find('\n') + 1);

  // There is a sealed one: it stays.
  const auto before = state(folder);
  Attack change;
  change.everything("cache/" + name);
  EXPECT_THAT(change.successes(attack(change, path("home/other"), {}).out), IsEmpty());
  EXPECT_EQ(state(folder), before);

  struct Forged {
    std::string contents;
    const char* words;
  };
  for (const Forged& forged : {Forged{text_of(code), "an earlier version of the program, without a seal"},
                               Forged{seal + text_of(code), "wrong seal"},
                               Forged{"hindsight-sealed 1 " + std::string(64, '0') + " " +
                                          std::to_string(code.size()) + "\n" + text_of(code),
                                      "wrong seal"}}) {
    for (const bool by_link : {false, true}) {
      fs::remove(fs::path(folder) / name);
      Attack plant;
      const std::string written = by_link ? "cache/mine" : "cache/" + name;
      plant.open(written, wasi::oflags::kCreat, false, wasi::rights::kAllFile);
      plant.change_opened(forged.contents, written);
      plant.close();
      if (by_link) plant.link(written, "cache/" + name, false);
      const Outcome planting = attack(plant, path("home/other"), {});
      ASSERT_EQ(contents(fs::path(folder) / name), forged.contents) << planting.err;
      const Outcome outcome = mix(use);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_EQ(outcome.out, answer_);
      EXPECT_THAT(outcome.err, HasSubstr(std::string("warning: cache: ") + folder));
      EXPECT_THAT(outcome.err, HasSubstr(forged.words));
      // It was replaced by what was compiled.
      EXPECT_THAT(mix(use).err, Not(HasSubstr(forged.words)));
      fs::remove(fs::path(folder) / "mine");
    }
  }
  // A link is not followed.
  fs::rename(fs::path(folder) / name, fs::path(folder) / "0-9.code");
  Attack plant;
  plant.symlink("0-9.code", "cache/" + name);
  EXPECT_EQ(plant.successes(attack(plant, path("home/other"), {}).out).size(), 1u);
  const Outcome linked = mix(use);
  EXPECT_EQ(linked.out, answer_);
  EXPECT_THAT(linked.err, HasSubstr("is a link"));

  // Only with the key would it have run: what was planted is code indeed.
  const rt::CacheDirectory with_key(folder, std::make_shared<const rt::UserKey>(key_folder()));
  ASSERT_TRUE(with_key.update(name, [&](const auto&) { return code; }));
  EXPECT_EQ(mix(use).status, 42);
}

// A mount of the folder is the folder. From one of a part of it nothing leads to the folder, so that a guest can make
// files there. But nothing is read from there, and without a seal nothing would be accepted.
TEST_F(CacheAttack, CodeThatIsPlantedThroughAMountOfTheCacheIsNotRunEither) {
  keep();
  const std::vector<std::byte> code = planted();
  const fs::path folder = path("home/.cache/hindsight/code");
  fs::create_directories(path("mounted/code"));
  fs::create_directories(path("mounted/part"));
  fs::create_directories(folder / "part");
  if (::mount(folder.c_str(), path("mounted/code").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP()
        << "this process may not mount; that files without a seal are not run is shown without a mount above";
  const std::string name = kept_code(folder).filename().string();
  Attack plant;
  plant.everything("code/" + name);
  plant.open("code/0-0.code", wasi::oflags::kCreat, false, wasi::rights::kAllFile);
  plant.change_opened(text_of(code), "code/0-0.code");
  plant.close();
  ASSERT_EQ(::mount((folder / "part").c_str(), path("mounted/part").c_str(), nullptr, MS_BIND, nullptr), 0);
  plant.open("part/" + name, wasi::oflags::kCreat, false, wasi::rights::kAllFile);
  plant.change_opened(text_of(code), "in the part");
  plant.close();
  const auto before = contents(folder / name);
  const Outcome outcome = attack(plant, path("mounted"), {"--no-code-cache", "--no-profile"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const std::string& words : plant.successes(outcome.out))
    EXPECT_THAT(words, AnyOf(HasSubstr("part"), HasSubstr("fd_close"))) << words;
  EXPECT_EQ(contents(folder / "part" / name), text_of(code));
  EXPECT_EQ(attack(plant, path("mounted/code"), {}).status, 2);
  EXPECT_EQ(::umount(path("mounted/part").c_str()), 0);
  EXPECT_EQ(::umount(path("mounted/code").c_str()), 0);
  EXPECT_EQ(contents(folder / name), before);
  const Outcome next = mix({"-v"});
  EXPECT_EQ(next.status, 0);
  EXPECT_EQ(next.out, answer_);
}

// Nor does it help to be there first: a key that the guest made is none.
TEST_F(CacheAttack, AKeyThatAGuestMadeBeforeThereWasOneSealsNothing) {
  Attack first;
  for (const char* folder : {".local", ".local/state", ".local/state/hindsight"})
    first.create_directory(folder);
  const std::string key = "hindsight-key 1 " + std::string(64, 'a') + "\n";
  first.open(".local/state/hindsight/key", wasi::oflags::kCreat, false, wasi::rights::kAllFile);
  first.change_opened(key, "the key");
  first.close();
  const mode_t before = ::umask(022);
  for (const mode_t umask : {022, 077}) {
    ::umask(umask);
    EXPECT_EQ(attack(first, path("home"), {"--no-code-cache", "--no-profile"}).status, 0);
    ASSERT_EQ(contents(key_folder() + "/key"), key);
    const Outcome outcome = mix({});
    EXPECT_EQ(outcome.out, answer_);
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("others can enter its folder"), HasSubstr("its mode is 600")));
    for (const auto& entry : fs::recursive_directory_iterator(path("home/.cache")))
      EXPECT_NE(entry.path().extension(), ".code") << "something was kept";
    fs::remove_all(path("home/.local"));
  }
  ::umask(before);
}

}  // namespace
}  // namespace hindsight
