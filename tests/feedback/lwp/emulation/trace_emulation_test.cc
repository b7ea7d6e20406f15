// Unmodified native programs under the emulation: what they check themselves (programs/lwp_program.cc), and
// what one sees of them from outside.
#include "feedback/lwp/emulation/trace_emulation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace hindsight::lwp {
namespace {

namespace fs = std::filesystem;

struct Program {
  std::string name;
  std::string path;  // empty: could not be built here
  std::string reason;
};

void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

const Program kGcc{"Gcc", HINDSIGHT_LWP_PROGRAM_GCC, ""};
const Program kClang{"Clang", HINDSIGHT_LWP_PROGRAM_CLANG,
                     "there is no clang++ beside the compiler of this build"};
const Program kStatic{"Static", HINDSIGHT_LWP_PROGRAM_STATIC, "this build links no static programs"};

Result<TraceReport> emulate(std::vector<std::string> command) {
  return run_emulated({.command = std::move(command), .started = {}});
}

class TracedProgram : public testing::TestWithParam<Program> {
 protected:
  void SetUp() override {
    if (GetParam().path.empty()) GTEST_SKIP() << GetParam().reason;
  }
  TraceReport run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GetParam().path);
    const auto report = emulate(std::move(arguments));
    EXPECT_TRUE(report) << report.error().describe();
    return report ? *report : TraceReport{};
  }
};

#define EXPECT_ENDED(report, status)         \
  do {                                       \
    EXPECT_EQ((report).signal, 0);           \
    EXPECT_EQ((report).exit_status, status); \
  } while (0)

TEST_P(TracedProgram, SeesItsIntrinsicsWork) {
  const TraceReport report = run({"intrinsics"});
  EXPECT_ENDED(report, 0);
  EXPECT_EQ(report.counts.of(Operation::kLlwpcb), 5u);
  EXPECT_EQ(report.counts.of(Operation::kSlwpcb), 7u);
  EXPECT_EQ(report.counts.of(Operation::kLwpins), 1u + 2 + 3 + 3);
  EXPECT_EQ(report.counts.of(Operation::kLwpval), 1u + 4 + 31);
  EXPECT_EQ(report.counts.faults, 0u);
  EXPECT_EQ(report.programs, 1u);
  EXPECT_EQ(report.processes, 1u);
  EXPECT_EQ(report.threads, 1u);
}

TEST_P(TracedProgram, MayUseAnyOperand) {
  EXPECT_ENDED(run({"operands"}), 0);
}

TEST_P(TracedProgram, HasLwpInEachThread) {
  const TraceReport report = run({"threads", "16"});
  EXPECT_ENDED(report, 0);
  EXPECT_EQ(report.threads, 17u);
  EXPECT_EQ(report.processes, 1u);
  EXPECT_EQ(report.counts.of(Operation::kLwpins), 16u * 50);
}

TEST_P(TracedProgram, KeepsLwpInAForkedCopy) {
  const TraceReport report = run({"fork"});
  EXPECT_ENDED(report, 0);
  EXPECT_EQ(report.processes, 22u);
}

INSTANTIATE_TEST_SUITE_P(, TracedProgram, testing::Values(kGcc, kClang, kStatic),
                         [](const auto& info) { return info.param.name; });

class Traced : public testing::Test {
 protected:
  TraceReport run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kGcc.path);
    const auto report = emulate(std::move(arguments));
    EXPECT_TRUE(report) << report.error().describe();
    return report ? *report : TraceReport{};
  }
};

TEST_F(Traced, ExecBeginsWithLwpOff) {
  const TraceReport report = run({"exec"});
  EXPECT_ENDED(report, 5);
  EXPECT_EQ(report.programs, 3u);
}

TEST_F(Traced, VforkWorks) {
  EXPECT_ENDED(run({"vfork"}), 5);
}

TEST_F(Traced, AThreadThatIsNotTheFirstMayExec) {
  const TraceReport report = run({"thread-exec"});
  EXPECT_ENDED(report, 5);
  EXPECT_EQ(report.threads, 2u);
}

TEST_F(Traced, AFaultIsASignalAtTheInstructionWhichCanBeRepeated) {
  const TraceReport report = run({"fault"});
  EXPECT_ENDED(report, 0);
  EXPECT_EQ(report.counts.faults, 1u);
}

TEST_F(Traced, ABadControlBlockEndsTheProgramBySignal) {
  const TraceReport report = run({"bad-block"});
  EXPECT_EQ(report.signal, SIGSEGV);
  EXPECT_EQ(report.counts.faults, 1u);
}

TEST_F(Traced, OtherUndefinedInstructionsAreTheProgramsOwn) {
  EXPECT_ENDED(run({"own-handler"}), 0);
  EXPECT_EQ(run({"undefined"}).signal, SIGILL);
}

TEST_F(Traced, ExitStatusesAndSignalsPassThrough) {
  EXPECT_ENDED(run({"exit", "0"}), 0);
  EXPECT_ENDED(run({"exit", "77"}), 77);
  EXPECT_EQ(run({"kill", std::to_string(SIGTERM)}).signal, SIGTERM);
  EXPECT_EQ(run({"kill", std::to_string(SIGKILL)}).signal, SIGKILL);
  EXPECT_ENDED(run({"kill", std::to_string(SIGCHLD)}), 0);
}

TEST_F(Traced, AProgramThatStopsGoesOnWhenItIsTold) {
  EXPECT_ENDED(run({"stop"}), 0);
}

TEST_F(Traced, IsToldOfTheProcessBeforeItRunsAndMaySignalIt) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string script = kGcc.path + " wait >&" + std::to_string(ends[1]);
  TraceOptions options;
  options.command = {"/bin/sh", "-c", "exec \"$0\" wait", kGcc.path};
  std::thread killer;
  options.started = [&](pid_t pid) {
    killer = std::thread([&, pid] {
      char byte;
      (void)!read(ends[0], &byte, 1);  // "ready": LWP has been used
      kill(pid, SIGTERM);
    });
  };
  const int saved = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  const auto report = run_emulated(options);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(ends[1]);
  killer.join();
  close(ends[0]);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->signal, SIGTERM);
  EXPECT_EQ(report->programs, 2u);
  EXPECT_EQ(report->counts.of(Operation::kSlwpcb), 1u);
}

TEST_F(Traced, ShellPipelinesOfProgramsWork) {
  TraceOptions options;
  options.command = {"sh", "-c", "\"$0\" intrinsics | cat; (\"$0\" threads 4 & wait); exit 3", kGcc.path};
  const auto report = run_emulated(options);
  ASSERT_TRUE(report);
  EXPECT_ENDED(*report, 3);
  EXPECT_EQ(report->counts.of(Operation::kLwpins), 9u + 4 * 50);
}

// Where CPUID cannot be trapped, the system call that asks for it fails in the program, which must not
// notice. A program plays the trap itself.
TEST_F(Traced, AProgramWhoseCpuidIsTrappedSeesLwp) {
  TraceOptions options;
  options.insist_on_cpuid = true;
  for (const Program& program : {kGcc, kClang, kStatic}) {
    if (program.path.empty()) continue;
    options.command = {program.path, "cpuid"};
    const auto report = run_emulated(options);
    ASSERT_TRUE(report);
    EXPECT_ENDED(*report, 0);
  }
  options.command = {"sh", "-c", "\"$0\" intrinsics && \"$0\" threads 4 && \"$0\" vfork", kGcc.path};
  const auto report = run_emulated(options);
  ASSERT_TRUE(report);
  EXPECT_ENDED(*report, 5);
  if (!std::string(HINDSIGHT_LWP_PROGRAM_32).empty()) {
    options.command = {HINDSIGHT_LWP_PROGRAM_32};
    const auto narrow = run_emulated(options);
    if (narrow) EXPECT_ENDED(*narrow, 0);
  }
}

TEST_F(Traced, LeavesTheCallersOtherChildrenAlone) {
  const pid_t child = fork();
  if (child == 0) _exit(9);
  EXPECT_ENDED(run({"exit", "0"}), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST_F(Traced, SeveralProgramsMayRunAtOnce) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([this] { EXPECT_ENDED(run({"threads", "4"}), 0); });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Traced32, RunsProgramsOf32Bits) {
  if (std::string(HINDSIGHT_LWP_PROGRAM_32).empty()) GTEST_SKIP() << "the compiler links no 32-bit programs";
  const auto report = emulate({HINDSIGHT_LWP_PROGRAM_32});
  if (!report && report.error().kind == ErrorKind::kUnsupported) {
    GTEST_SKIP() << "this kernel runs no 32-bit programs: " << report.error().message;
  }
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_ENDED(*report, 0);
  EXPECT_EQ(report->counts.of(Operation::kLwpins), 3u);
  EXPECT_EQ(report->counts.of(Operation::kLwpval), 1u);
  EXPECT_EQ(report->counts.of(Operation::kLlwpcb), 2u);
  EXPECT_EQ(report->counts.of(Operation::kSlwpcb), 3u);
}

// ---- refusals

class TraceRefusal : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hindsight-trace-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& text, mode_t mode) const {
    const std::string path = folder_ / "program";
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  fs::path folder_;
};

void expect_refusal(const Result<TraceReport>& report, ErrorKind kind, const std::string& words) {
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, kind) << report.error().message;
  EXPECT_NE(report.error().message.find(words), std::string::npos) << report.error().message;
}

TEST_F(TraceRefusal, OfAProgramThatIsNotThere) {
  expect_refusal(emulate({"/no/such/program"}), ErrorKind::kUsage, "no program '/no/such/program'");
  expect_refusal(emulate({"no-such-program"}), ErrorKind::kUsage, "PATH");
  expect_refusal(emulate({""}), ErrorKind::kUsage, "empty");
  expect_refusal(emulate({}), ErrorKind::kUsage, "no program");
}

TEST_F(TraceRefusal, OfWhatCannotBeExecuted) {
  expect_refusal(emulate({file("text", 0644)}), ErrorKind::kUnsupported, "not executable: Permission denied");
  expect_refusal(emulate({file("neither ELF nor script", 0755)}), ErrorKind::kUnsupported,
                 "Exec format error");
  expect_refusal(emulate({file("#!/no/interpreter\n", 0755)}), ErrorKind::kUnsupported, "interpreter");
  expect_refusal(emulate({folder_.string()}), ErrorKind::kUnsupported, "not a file");
}

TEST_F(TraceRefusal, WhereThereCanBeNoProcess) {
  // In a child, because limits are for ever. The superuser has none, so it becomes somebody else.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (getuid() == 0 && setuid(65534) != 0)) _exit(77);
    const auto report = emulate({"/bin/true"});
    _exit(!report && report.error().kind == ErrorKind::kResource ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "limits cannot be set here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hindsight::lwp
