// assemble_text: runs hindsight-wat on the text and reads its answer. See wat_protocol.h.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "jit/wasm/module.h"
#include "jit/wasm/wat_protocol.h"

namespace hindsight::wasm {

namespace {

constexpr const char* kHelperName = "hindsight-wat";

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Never one of the three standard descriptors, which an embedder may have closed: the child's dup2 calls
// would overwrite one file with the other.
Result<Fd> anonymous_file() {
  const Fd file(memfd_create("hindsight-wat", MFD_CLOEXEC));
  if (file.get() >= 0) {
    const int fd = fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0) return Fd(fd);
  }
  return make_error(ErrorKind::kResource, fmt::format("cannot make a temporary file: {}", strerror(errno)));
}

Status write_all(const Fd& file, std::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = pwrite(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return make_error(ErrorKind::kResource,
                        fmt::format("cannot write to a temporary file: {}", strerror(errno)));
    done += static_cast<size_t>(n);
  }
  return {};
}

bool read_all(const Fd& file, void* out, size_t size, uint64_t offset) {
  auto* p = static_cast<char*>(out);
  while (size != 0) {
    const ssize_t n = pread(file.get(), p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return true;
}

std::string directory_of(std::string path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string resolved(const char* path) {
  char* real = realpath(path, nullptr);
  std::string out = real != nullptr ? real : "";
  free(real);
  return out;
}

// The library's own folder first: an installed library finds the helper of its own version.
Result<std::string> find_helper() {
  std::vector<std::string> folders;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_helper), &info) != 0 && info.dli_fname != nullptr)
    folders.push_back(directory_of(resolved(info.dli_fname)));
  folders.push_back(directory_of(resolved("/proc/self/exe")));
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    for (const char* relative : {"/", "/../bin/", "/../../bin/", "/../libexec/hindsight/"}) {
      std::string path = folder + relative + kHelperName;
      if (access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return make_error(
      ErrorKind::kResource,
      fmt::format("text modules need the program {}, which is neither beside the library nor in "
                  "../bin from there; convert the file to the binary format instead",
                  kHelperName));
}

// Spawn attributes and file actions, destroyed together.
struct SpawnPlan {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;

  SpawnPlan() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int prepare(int input, int output) {
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (error == 0)
      error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (error == 0)
      error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    return error;
  }
};

// How the helper ended, for the message of an answer that never came.
std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL) return "took too long or too much memory";
    return fmt::format("ended by signal {}", WTERMSIG(status));
  }
  return "ended without an answer";
}

}  // namespace

Result<std::vector<uint8_t>> assemble_text(std::string_view text, std::string_view name) {
  HINDSIGHT_ASSIGN(const std::string helper, find_helper());
  HINDSIGHT_ASSIGN(const Fd input, anonymous_file());
  HINDSIGHT_ASSIGN(const Fd output, anonymous_file());
  HINDSIGHT_TRY(write_all(input, text));

  SpawnPlan plan;
  pid_t pid = -1;
  int error = plan.prepare(input.get(), output.get());
  std::string argument = kHelperName;
  char* arguments[] = {argument.data(), nullptr};
  char* environment[] = {nullptr};
  if (error == 0)
    error = posix_spawn(&pid, helper.c_str(), &plan.actions, &plan.attributes, arguments, environment);
  if (error != 0)
    return make_error(ErrorKind::kResource, fmt::format("cannot start {}: {}", helper, strerror(error)),
                      std::string(name));
  int status = 0;
  // ECHILD: the embedder ignores SIGCHLD or reaped the child itself; waitpid still returned after its end,
  // and the answer, not the status, says how it went.
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }

  WatAnswer answer;
  if (!read_all(output, &answer, sizeof(answer), 0) || answer.magic != WatAnswer::kMagic ||
      answer.bytes > kWatMaxAnswerBytes)
    return make_error(ErrorKind::kBadModule,
                      fmt::format("malformed text module: its parser {}", describe_end(status)),
                      std::string(name));
  std::vector<uint8_t> bytes(static_cast<size_t>(answer.bytes));
  if (!read_all(output, bytes.data(), bytes.size(), sizeof(answer)))
    return make_error(ErrorKind::kInternal, "the text parser's answer is cut short", std::string(name));
  if (answer.status == WatAnswer::kModule) return bytes;
  return make_error(ErrorKind::kBadModule,
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                    std::string(name));
}

}  // namespace hindsight::wasm
