#include "feedback/lwp/emulation/program_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace hindsight::lwp {
namespace {

std::string words_of(int error) {
  return std::generic_category().message(error);
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// 0, or the errno that an attempt to execute it would give.
int objection(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return errno;
  if (!S_ISREG(about.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::unexpected<Error> not_executable(const std::string& path, int error) {
  if (error == EISDIR) return make_error(ErrorKind::kUnsupported, fmt::format("'{}' is not a file", path));
  return make_error(ErrorKind::kUnsupported,
                    fmt::format("'{}' is not executable: {}", path, words_of(error)));
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  if (name.empty()) return make_error(ErrorKind::kUsage, "the program's name is empty");
  if (name.find('/') != std::string::npos) {
    const int error = objection(name);
    if (error == 0) return name;
    if (error == ENOENT || error == ENOTDIR) {
      return make_error(ErrorKind::kUsage, fmt::format("there is no program '{}'", name));
    }
    return not_executable(name, error);
  }
  const char* variable = std::getenv("PATH");
  const std::string folders = variable ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::string found;  // but not executable
  int why = 0;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int error = objection(path);
    if (error == 0) return path;
    if (error == EACCES && found.empty()) {
      found = path;
      why = error;
    }
    begin = end + 1;
  }
  if (!found.empty()) return not_executable(found, why);
  return make_error(ErrorKind::kUsage, fmt::format("there is no program '{}' in PATH", name));
}

Result<Launch> Launch::create(const std::vector<std::string>& command, long ptrace_options) {
  Launch launch;
  if (command.empty()) return make_error(ErrorKind::kUsage, "no program was named");
  HINDSIGHT_ASSIGN(launch.path_, find_program(command.front()));
  int go[2], failure[2];
  if (pipe2(go, O_CLOEXEC) != 0) return make_error(ErrorKind::kResource, "no pipe: " + words_of(errno));
  launch.go_ = go[1];
  if (pipe2(failure, O_CLOEXEC | O_NONBLOCK) != 0) {
    const int error = errno;
    close(go[0]);
    return make_error(ErrorKind::kResource, "no pipe: " + words_of(error));
  }
  launch.failure_ = failure[0];

  // Between fork and exec only async-signal-safe functions: other threads may hold any lock.
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const char* path = launch.path_.c_str();
  launch.pid_ = fork();
  if (launch.pid_ == 0) {
    close(go[1]);  // else this process would keep its own pipe open when the parent dies
    char byte;
    if (read(go[0], &byte, 1) != 1) _exit(127);
    execve(path, arguments.data(), environ);
    const int error = errno;
    // A few bytes into an empty pipe.
    (void)!write(failure[1], &error, sizeof error);
    _exit(127);
  }
  const int fork_error = errno;
  close(go[0]);
  close(failure[1]);
  if (launch.pid_ < 0) {
    return make_error(ErrorKind::kResource, "no process for the program: " + words_of(fork_error));
  }
  if (ptrace(PTRACE_SEIZE, launch.pid_, nullptr, ptrace_options) != 0) {
    const int error = errno;
    close_if_open(launch.go_);
    int status = 0;
    waitpid(launch.pid_, &status, 0);
    return make_error(
        ErrorKind::kResource,
        fmt::format("programs cannot be traced here (ptrace: {}); a container's seccomp filter or "
                    "kernel.yama.ptrace_scope may forbid it",
                    words_of(error)));
  }
  return launch;
}

Launch::Launch(Launch&& other) noexcept
    : path_(std::move(other.path_)),
      pid_(other.pid_),
      go_(std::exchange(other.go_, -1)),
      failure_(std::exchange(other.failure_, -1)) {}

Launch::~Launch() {
  close_if_open(go_);
  close_if_open(failure_);
}

void Launch::go() {
  const char byte = 0;
  // Fails only where the process is gone already, which its exit will tell.
  (void)!write(go_, &byte, 1);
  close_if_open(go_);
}

Status Launch::became_program() const {
  int error = 0;
  if (read(failure_, &error, sizeof error) != static_cast<ssize_t>(sizeof error)) return {};
  if (error == ENOENT) {
    return make_error(
        ErrorKind::kUnsupported,
        fmt::format("'{}' cannot be executed: the loader or interpreter that it names does not exist",
                    path_));
  }
  return make_error(ErrorKind::kUnsupported,
                    fmt::format("'{}' cannot be executed: {}", path_, words_of(error)));
}

}  // namespace hindsight::lwp
