// `hindsight lwp emulate` as people use it: native programs in, their output and exit status out.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "feedback/lwp/emulation/emulator.h"
#include "tests/runtime/cli/scratch_folder.h"
#include "tests/sanitizers.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class LwpEmulate : public ScratchFolder {
 protected:
  std::string file(const std::string& name, const std::string& text,
                   fs::perms permissions = fs::perms::owner_all) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    fs::permissions(path, permissions);
    return path.string();
  }

  // Starts `words` with both outputs into files; `before`: in the new process, async-signal-safe.
  pid_t start(std::vector<std::string> words, const std::function<void()>& before = {}) {
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    const pid_t pid = fork();
    if (pid != 0) return pid;
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    if (before) before();
    execvp(argv[0], argv.data());
    _exit(127);
  }
  Outcome end(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), contents(folder_ / "out"),
            contents(folder_ / "err")};
  }
  Outcome run(std::vector<std::string> words, const std::function<void()>& before = {}) {
    return end(start(std::move(words), before));
  }
  Outcome emulate(std::vector<std::string> words, const std::function<void()>& before = {}) {
    words.insert(words.begin(), {HINDSIGHT_COMMAND, "lwp", "emulate"});
    return run(std::move(words), before);
  }
};

// ---- the example of the intrinsics' documentation

constexpr std::string_view kBegin = "#include <intrin.h>";

// The page of __llwpcb among the documents, whatever its file is called.
std::optional<std::string> example_program() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(HINDSIGHT_LWP_DOCUMENTS, ignored)) {
    const std::string text = contents(entry.path());
    const size_t begin = text.find(kBegin);
    if (begin == std::string::npos || text.find("__llwpcb(&myLWPCBStruct)") == std::string::npos) continue;
    const size_t main = text.find("\nmain()", begin);
    const size_t end = text.find("\n}", main);  // the first brace in the first column closes it
    if (main == std::string::npos || end == std::string::npos) continue;
    return text.substr(begin, end + 2 - begin) + "\n";
  }
  return std::nullopt;
}

TEST_F(LwpEmulate, RunsTheExampleOfTheIntrinsicsDocumentationUnchanged) {
  const auto program = example_program();
  if (!program) {
    GTEST_SKIP() << "the page of __llwpcb is not in the folder of documents '" << HINDSIGHT_LWP_DOCUMENTS
                 << "' (CMake: HINDSIGHT_LWP_DOCUMENTS)";
  }
  const std::string source = file("example.c", *program), binary = (folder_ / "example").string();
  const auto cpuid = hindsight::lwp::encode_capabilities(hindsight::lwp::emulated_capabilities());
  const auto define = [](const char* name, uint32_t value) {
    return std::string("-DHINDSIGHT_LWP_CPUID_") + name + "=" + std::to_string(value) + "u";
  };
  const Outcome compiled =
      run({HINDSIGHT_CC, "-std=gnu89", "-w", "-I", HINDSIGHT_INTRIN_FOLDER,
           define("1_ECX", cpuid.ecx_80000001), define("1C_EAX", cpuid.leaf_8000001c.eax),
           define("1C_EBX", cpuid.leaf_8000001c.ebx), define("1C_ECX", cpuid.leaf_8000001c.ecx),
           define("1C_EDX", cpuid.leaf_8000001c.edx), source, "-o", binary});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome outcome = emulate({"-v", binary});
  EXPECT_EQ(outcome.out,
            "64-bit compiler\n"
            "17 entries in ring buffer\n"
            "7 LWPVAL instructions, 10 LWPINS instructions\n");
  EXPECT_THAT(outcome.err,
              HasSubstr("emulated 75 LWP instructions: llwpcb 1, slwpcb 2, lwpins 10, lwpval 62"));
}

// ---- the intrinsics of today's compilers

TEST_F(LwpEmulate, RunsProgramsWithTheIntrinsicsOfGcc) {
  for (const char* what : {"intrinsics", "operands"}) {
    const Outcome outcome = emulate({HINDSIGHT_LWP_PROGRAM_GCC, what});
    EXPECT_EQ(outcome.status, 0) << what << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << "nothing to say about a program that works";
  }
}

TEST_F(LwpEmulate, RunsProgramsWithTheIntrinsicsOfClang) {
  if (std::string(HINDSIGHT_LWP_PROGRAM_CLANG).empty()) {
    GTEST_SKIP() << "there is no clang++ beside the compiler of this build";
  }
  for (const char* what : {"intrinsics", "operands"}) {
    const Outcome outcome = emulate({HINDSIGHT_LWP_PROGRAM_CLANG, what});
    EXPECT_EQ(outcome.status, 0) << what << ": " << outcome.err;
  }
}

TEST_F(LwpEmulate, WithoutItTheProgramsDoNotWork) {
  if (hindsight::lwp::detect_capabilities().usable.available) GTEST_SKIP() << "this processor has LWP";
  EXPECT_EQ(run({HINDSIGHT_LWP_PROGRAM_GCC, "intrinsics"}).status, 1000 + SIGILL);
}

// ---- as if the program had been started directly

TEST_F(LwpEmulate, EndsAsTheProgramDoes) {
  EXPECT_EQ(emulate({"sh", "-c", "exit 42"}).status, 42);
  EXPECT_EQ(emulate({"sh", "-c", "kill -TERM $$"}).status, 128 + SIGTERM);
  EXPECT_EQ(emulate({HINDSIGHT_LWP_PROGRAM_GCC, "undefined"}).status, 128 + SIGILL);
}

TEST_F(LwpEmulate, LeavesArgumentsAndStreamsToTheProgram) {
  const Outcome outcome =
      emulate({"sh", "-c", "echo \"$@\"; echo words >&2; exit 1", "sh", "-v", "--help", "--", "x"});
  EXPECT_EQ(outcome.out, "-v --help -- x\n");
  EXPECT_THAT(outcome.err, HasSubstr("words\n"));
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(LwpEmulate, HandsOnASignalThatIsMeantForTheProgram) {
  const pid_t pid = start({HINDSIGHT_COMMAND, "lwp", "emulate", HINDSIGHT_LWP_PROGRAM_GCC, "wait"});
  while (contents(folder_ / "out") != "ready\n") {
    ASSERT_EQ(waitpid(pid, nullptr, WNOHANG), 0);
    sched_yield();
  }
  kill(pid, SIGTERM);
  EXPECT_EQ(end(pid).status, 128 + SIGTERM);
}

TEST_F(LwpEmulate, TellsAProgramThatUsedNothingWhyThatMayBe) {
  const Outcome outcome = emulate({"true"});
  EXPECT_EQ(outcome.status, 0);
  if (outcome.err.empty()) GTEST_SKIP() << "CPUID can be trapped on this machine, so programs see LWP";
  EXPECT_THAT(outcome.err, HasSubstr("executed no LWP instruction"));
  EXPECT_THAT(outcome.err, HasSubstr("CPUID cannot be trapped"));
}

TEST_F(LwpEmulate, SaysWhatItFollowed) {
  const Outcome outcome = emulate({"--summary", HINDSIGHT_LWP_PROGRAM_GCC, "threads", "3"});
  EXPECT_THAT(outcome.err, HasSubstr("lwpins 150, lwpval 0; 0 faulted; programs 1, processes 1, threads 4"));
}

// ---- refusals

TEST_F(LwpEmulate, RefusesWhatItCannotRunWithTheUsualStatus) {
  const Outcome missing = emulate({"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err, "hindsight: there is no program 'no-such-program' in PATH\n");
  const std::string text = file("text", "words\n", fs::perms::owner_read);
  const Outcome unusable = emulate({text});
  EXPECT_EQ(unusable.status, 126);
  EXPECT_EQ(unusable.err, "hindsight: '" + text + "' is not executable: Permission denied\n");
  const Outcome nothing = emulate({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_EQ(nothing.err,
            "hindsight: no program to run; `hindsight lwp emulate --help` shows what can be written\n");
}

// As containers do that forbid it.
void forbid_ptrace() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(99);
  }
}

TEST_F(LwpEmulate, SaysSoWhereTracingIsForbidden) {
  if (hindsight::kAddressSanitizer)
    GTEST_SKIP() << "LeakSanitizer traces the command when it ends, and fails as well";
  const Outcome outcome = emulate({"true"}, forbid_ptrace);
  if (outcome.status == 99) GTEST_SKIP() << "seccomp filters cannot be installed here";
  EXPECT_EQ(outcome.status, 125);
  EXPECT_THAT(outcome.err, HasSubstr("programs cannot be traced here (ptrace: Operation not permitted)"));
}

}  // namespace
