// Modules that ask for too much, through the command and on every tier. Each works, or is refused with an
// error that says what and where, in seconds and bounded memory. None of them crashes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <functional>

#include "tests/jit/wasm/module_bytes.h"
#include "tests/runtime/cli/scratch_folder.h"
#include "tests/sanitizers.h"

extern char** environ;

namespace {

using namespace hindsight::wasm::testing;  // NOLINT: the vocabulary of bytes

constexpr uint8_t kEnd = 0x0b;
constexpr uint8_t kNoResult = 0x40;
// The size of large bodies. The limit is five times as much; time and memory grow in proportion
// (tests/jit/growth).
constexpr uint32_t kLargestBody = 1'500'000;

void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Bytes times(uint64_t n, const Bytes& unit) {
  Bytes out;
  out.reserve(n * unit.size());
  for (uint64_t i = 0; i < n; ++i) append(out, unit);
  return out;
}

Bytes many(uint32_t n, const std::function<Bytes(uint32_t)>& item) {
  Bytes out = leb(n);
  for (uint32_t i = 0; i < n; ++i) append(out, item(i));
  return out;
}

Bytes name(uint32_t i) {
  return text("n" + std::to_string(i));
}

const Bytes kStart = text("_start");

// A program whose _start (function 1, or as often as `declared` says) has this body, locals declared in
// front. Function 0 takes and returns a thousand i32s; type 2 is its type, 3 = () -> 1000 i32s.
Bytes program(const Bytes& locals_and_code) {
  const Bytes tall(1000, kI32);
  Bytes contents = locals_and_code;
  contents.push_back(kEnd);
  return module({section(1, vec({func_type({}, {}), func_type({kI32}, {}), func_type(tall, tall),
                                 func_type({}, tall)})),
                 section(3, vec({{2}, {0}})), section(4, vec({{kFuncRef, 0, 1}})), section(5, vec({{0, 1}})),
                 section(6, vec({{kI32, 1, 0x41, 0, kEnd}})), section(7, vec({kStart + Bytes{0, 1}})),
                 section(10, vec({body({0x00}), leb(contents.size()) + contents}))});
}
Bytes program_of(const Bytes& code) {
  return program(Bytes{0} + code);
}
// The same without running it: it is compiled and returns at once.
Bytes returning(const Bytes& locals, const Bytes& code) {
  return program(locals + Bytes{0x23, 0, 0x45, 0x04, kNoResult, 0x0f, kEnd} + code);
}

struct Hostile {
  std::string what;
  std::function<Bytes()> make;
  std::string refusal;  // part of what stderr says; empty: the program works
  // For one run on any tier; generous, but no minute.
  double seconds = 10;
  uint64_t mebibytes = 1000;
};

std::vector<Hostile> hostile_modules() {
  return {
      {"a million nested blocks",
       [] {
         return program_of(times(1'000'000, {0x02, kNoResult}) + times(1'000'000, {kEnd}));
       },
       "too many nested blocks"},
      {"as many nested blocks as there may be",
       [] {
         return program_of(times(9'990, {0x02, kNoResult, 0x23, 0, 0x0d, 0}) + times(9'990, {kEnd}));
       },
       ""},
      {"a million locals in as many groups",
       [] { return program(many(1'000'000, [](uint32_t) {
              return Bytes{1, kI32};
            })); }, "too many"},
      {"billions of locals in one group", [] { return program(Bytes{1} + leb(0xffffffff) + Bytes{kI32}); },
       "too many"},
      {"more locals than 32 bits can count",
       [] {
         return program(vec({leb(0xffffffff) + Bytes{kI32}, leb(2) + Bytes{kI32}}));
       },
       "too many"},
      {"a thousand functions with 50 thousand locals each",
       [] {
         const Bytes one = Bytes{1} + leb(50'000) + Bytes{kI32, kEnd};
         return module({section(1, vec({func_type({}, {})})),
                        section(3, many(1000, [](uint32_t) { return Bytes{0}; })),
                        section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, many(1000, [&](uint32_t) { return leb(one.size()) + one; }))});
       },
       "too many"},
      {"50 thousand locals across branches without end",
       [] {
         Bytes code;
         for (uint32_t i = 0; i < 120'000; ++i)
           append(code, Bytes{0x23, 0, 0x04, kNoResult, 0x20} + leb(i * 7919 % 50'000) + Bytes{0x21} +
                            leb(i * 104'729 % 50'000) + Bytes{kEnd});
         return returning(Bytes{1} + leb(50'000) + Bytes{kI32},
                          Bytes{0x03, kNoResult} + code + Bytes{0x23, 0, 0x0d, 0, kEnd});
       },
       ""},
      {"a body of megabytes of nothing", [] { return program_of(Bytes(7'600'000, 0x01)); }, ""},
      {"a body of 10 MB", [] { return program_of(Bytes(10'000'000, 0x01)); }, "limit"},
      {"a body of calls",
       [] {
         return returning({0}, times(kLargestBody / 2, {0x10, 1}));
       },
       ""},
      {"a body of loads and stores",
       [] {
         return returning({0}, times(kLargestBody / 10, {0x41, 0, 0x41, 0, 0x28, 0, 0, 0x36, 0, 0}));
       },
       ""},
      {"a body of ifs",
       [] {
         return returning({0}, times(kLargestBody / 5, {0x23, 0, 0x04, kNoResult, kEnd}));
       },
       ""},
      {"a body of loops",
       [] {
         return returning({0}, times(kLargestBody / 7, {0x03, kNoResult, 0x23, 0, 0x0d, 0, kEnd}));
       },
       ""},
      {"towers of nested loops",
       [] {
         return returning(
             {0}, times(16, times(9'000, {0x03, kNoResult, 0x23, 0, 0x0d, 0}) + times(9'000, {kEnd})));
       },
       ""},
      {"branches that take a thousand values along, without end",
       [] {
         return returning({0}, Bytes{0x02, 3, 0x00} + times(kLargestBody / 4, {0x23, 0, 0x0d, 0}) +
                                   Bytes{kEnd} + times(1000, {0x1a}));
       },
       ""},
      {"the same where they are values",
       [] {
         return returning({0}, times(1000, {0x41, 1}) + Bytes{0x10, 0, 0x02, 2} +
                                   times(100'000, {0x23, 0, 0x0d, 0}) + Bytes{kEnd} + times(1000, {0x1a}));
       },
       ""},
      {"calls of functions with a thousand parameters and results, without end",
       [] {
         return returning({0}, times(1000, {0x41, 1}) + times(100'000, {0x10, 0}) + times(1000, {0x1a}));
       },
       "machine code", 10, 1500},
      {"operands without end",
       [] {
         return program_of(times(1'000'000, {0x41, 1}) + Bytes{0x00});
       },
       "too many operands"},
      {"a branch table of 65 thousand targets",
       [] {
         return returning(
             {0}, Bytes{0x02, kNoResult, 0x23, 0, 0x0e} + leb(65'520) + Bytes(65'521, 0) + Bytes{kEnd});
       },
       ""},
      {"a branch table of a million targets",
       [] {
         return program_of(Bytes{0x02, kNoResult, 0x41, 0, 0x0e} + leb(1'000'000) + Bytes(1'000'001, 0) +
                           Bytes{kEnd});
       },
       "too many br_table targets"},
      {"a branch table that claims more than there is",
       [] {
         return program_of({0x41, 0, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f});
       },
       "br_table"},
      {"branch tables to every label of a deep nest",
       [] {
         Bytes table = Bytes{0x23, 0, 0x0e} + leb(4'999);
         for (uint32_t i = 0; i < 5'000; ++i) append(table, leb(i));
         return returning({0}, times(5'000, {0x02, kNoResult}) +
                                   times(300, Bytes{0x02, kNoResult} + table + Bytes{kEnd}) +
                                   times(5'000, {kEnd}));
       },
       ""},
      {"a million types",
       [] {
         Bytes types = leb(1'000'000);
         for (uint32_t i = 0; i < 1'000'000; ++i) append(types, {0x60, 0, 0});
         return module({section(1, types), section(3, vec({{0}})), section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, vec({body({})}))});
       },
       ""},
      {"a million and one types",
       [] {
         return module({section(1, leb(1'000'001) + times(1'000'001, {0x60, 0, 0}))});
       },
       "too many"},
      {"a million functions",
       [] {
         return module({section(1, vec({func_type({}, {})})),
                        section(3, leb(1'000'000) + Bytes(1'000'000, 0)),
                        section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, leb(1'000'000) + times(1'000'000, {2, 0, kEnd}))});
       },
       ""},
      {"a million exports of one name",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(7, leb(1'000'000) + times(1'000'000, kStart + Bytes{0, 0})),
                        section(10, vec({body({})}))});
       },
       "duplicate export"},
      {"a million exports",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(7, many(1'000'000,
                                        [](uint32_t i) {
                                          return (i == 0 ? kStart : name(i)) + Bytes{0, 0};
                                        })),
                        section(10, vec({body({})}))});
       },
       ""},
      {"ten million elements",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(4, vec({Bytes{kFuncRef, 0} + leb(10'000'000)})),
                        section(7, vec({kStart + Bytes{0, 0}})),
                        section(9, vec({Bytes{0, 0x41, 0, kEnd} + leb(10'000'000) + Bytes(10'000'000, 0)})),
                        section(10, vec({body({})}))});
       },
       ""},
      {"a table of four billion elements",
       [] {
         return module({section(4, vec({Bytes{kFuncRef, 0} + leb(0xffffffff)}))});
       },
       "limit"},
      {"a hundred thousand tables",
       [] {
         return module({section(4, leb(100'001) + times(100'001, {kFuncRef, 0, 1}))});
       },
       "too many"},
      {"more memories than there may be",
       [] {
         return module({section(5, leb(101) + times(101, {0, 1}))});
       },
       "too many"},
      {"a hundred memories of 4 GiB each",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(5, leb(100) + times(100, Bytes{0} + leb(65'536))),
                        section(7, vec({kStart + Bytes{0, 0}})), section(10, vec({body({})}))});
       },
       ""},
      {"a memory of 2^48 pages",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(5, vec({Bytes{4} + leb(uint64_t{1} << 48)})),
                        section(7, vec({kStart + Bytes{0, 0}})), section(10, vec({body({})}))});
       },
       "memory"},
      {"a hundred thousand overlapping data segments",
       [] {
         return module(
             {section(1, vec({func_type({}, {})})), section(3, vec({{0}})), section(5, vec({{0, 1}})),
              section(7, vec({kStart + Bytes{0, 0}})), section(10, vec({body({})})),
              section(11, leb(100'000) + times(100'000, Bytes{0, 0x41, 0, kEnd, 20} + Bytes(20, 7)))});
       },
       ""},
      {"a data segment behind the memory's end",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(5, vec({{0, 1}})), section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, vec({body({})})), section(11, vec({{0, 0x41, 0x7f, kEnd, 1, 7}}))});
       },
       "out of bounds"},
      {"a number of a hundred bytes", [] { return module({Bytes{1} + Bytes(100, 0x80) + Bytes{0}}); },
       "integer"},
      {"a section that claims four gigabytes",
       [] {
         return module({Bytes{1, 0xff, 0xff, 0xff, 0xff, 0x0f}});
       },
       "section"},
      {"a vector that claims four billion items",
       [] {
         return module({section(1, {0xff, 0xff, 0xff, 0xff, 0x0f})});
       },
       "do not fit"},
      {"a constant expression of millions of operators",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(6, vec({Bytes{kI32, 0} + times(50'000, {0x41, 1}) + times(49'999, {0x6a}) +
                                        Bytes{kEnd}})),
                        section(7, vec({kStart + Bytes{0, 0}})), section(10, vec({body({})}))});
       },
       ""},
      {"names within names",
       [] {
         Bytes names = text("name");
         for (int i = 0; i < 100'000; ++i) append(names, {1, 5, 1, 0, 2, 'a', 'b'});
         return program_of({}) + section(0, names);
       },
       ""},
      {"recursion without end",
       [] {
         return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                        section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, vec({body({0x10, 0, 0x10, 0})}))});
       },
       "call stack exhausted"},
      {"recursion with a thousand parameters",
       [] {
         const Bytes tall(1000, kI32);
         return module({section(1, vec({func_type({}, {}), func_type(tall, tall)})),
                        section(3, vec({{0}, {1}})), section(7, vec({kStart + Bytes{0, 0}})),
                        section(10, vec({body(times(1000, {0x41, 1}) + Bytes{0x10, 1, 0x00}), body([] {
                                           Bytes code;
                                           for (uint32_t i = 0; i < 1000; ++i)
                                             append(code, Bytes{0x20} + leb(i));
                                           return code + Bytes{0x10, 1};
                                         }())}))});
       },
       "call stack exhausted"},
      {"handlers in handlers",
       [] {
         Bytes code;
         for (int i = 0; i < 4'000; ++i)
           append(code, {0x02, kNoResult, 0x1f, kNoResult, 1, 2, 0, 0x23, 0, 0x04, kNoResult, 0x10, 1, kEnd});
         return returning({0}, code + times(8'000, {kEnd}));
       },
       ""},
      {"handlers one after the other",
       [] {
         return returning(
             {0}, times(kLargestBody / 20, {0x02, kNoResult, 0x1f, kNoResult, 1, 2, 0, 0x10, 1, kEnd, kEnd}));
       },
       ""},
  };
}

struct Ran {
  int status = -1;  // 1000 + signal
  double seconds = 0;
  uint64_t mebibytes = 0;
  std::string err;
};

class HostileModules : public ScratchFolder, public testing::WithParamInterface<const char*> {
 protected:
  Ran run(const std::string& file) const {
    std::vector<std::string> words{HINDSIGHT_COMMAND, "run", "--tier", GetParam(), file};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string err = (folder_ / ".err").string();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = -1;
    const int failed = ::posix_spawn(&child, HINDSIGHT_COMMAND, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return {};
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<uint64_t>(usage.ru_maxrss) / 1024,
            contents(err)};
  }
};

TEST_P(HostileModules, WorkOrAreRefusedInSecondsAndBoundedMemory) {
  if (hindsight::kAddressSanitizer || hindsight::kThreadSanitizer)
    GTEST_SKIP() << "time and memory are those of the sanitizer";
  const char* only = std::getenv("HINDSIGHT_HOSTILE_ONLY");
  for (const Hostile& hostile : hostile_modules()) {
    if (only && hostile.what.find(only) == std::string::npos) continue;
    SCOPED_TRACE(hostile.what);
    const Bytes bytes = hostile.make();
    const std::string file = (folder_ / "hostile.wasm").string();
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const Ran ran = run(file);
    if (only || std::getenv("HINDSIGHT_HOSTILE_TABLE"))
      printf("%-60s %-9s %4d %6.2f s %5lu MiB %s\n", hostile.what.c_str(), GetParam(), ran.status,
             ran.seconds, static_cast<unsigned long>(ran.mebibytes), ran.err.substr(0, 200).c_str()),
          fflush(stdout);
    EXPECT_LT(ran.seconds, hostile.seconds);
    EXPECT_LT(ran.mebibytes, hostile.mebibytes);
    EXPECT_LT(ran.status, 1000) << "ended by a signal: " << ran.err;
    if (hostile.refusal.empty()) {
      EXPECT_EQ(ran.status, 0) << ran.err;
    } else {
      EXPECT_NE(ran.status, 0);
      EXPECT_THAT(ran.err, testing::HasSubstr(hostile.refusal));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTier, HostileModules, testing::Values("baseline", "optimized", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
