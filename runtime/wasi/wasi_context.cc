#include "runtime/wasi/wasi_context.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace hindsight::wasi {
namespace {

// Guest strings end at a NUL: one inside would shift every later string of the block.
Status check_strings(const std::vector<std::string>& strings, std::string_view what) {
  for (const std::string& string : strings) {
    if (string.find('\0') != std::string::npos)
      return make_error(ErrorKind::kUsage, std::string(what) + " contains a NUL character");
  }
  return {};
}

// What a stream may do follows from its access mode; a terminal that cannot seek is how isatty knows it.
uint64_t stream_rights(int access_mode, bool terminal) {
  uint64_t granted = rights::kAllFile;
  if (access_mode == O_RDONLY) granted &= ~(rights::kFdWrite | rights::kFdAllocate);
  if (access_mode == O_WRONLY) granted &= ~rights::kFdRead;
  if (terminal) granted &= ~(rights::kFdSeek | rights::kFdTell);
  return granted;
}

FdEntry sink_entry(Sink sink) {
  FdEntry entry;
  entry.kind = FdEntry::Kind::kSink;
  entry.rights_base = rights::kFdWrite | rights::kFdFilestatGet | rights::kFdFdstatSetFlags |
                      rights::kPollFdReadwrite | rights::kFdSeek | rights::kFdTell;
  entry.sink = std::move(sink);
  return entry;
}

FdEntry text_entry(std::string text) {
  FdEntry entry;
  entry.kind = FdEntry::Kind::kText;
  entry.rights_base = rights::kFdRead | rights::kFdFilestatGet | rights::kFdFdstatSetFlags |
                      rights::kPollFdReadwrite | rights::kFdSeek | rights::kFdTell;
  entry.text = std::move(text);
  return entry;
}

}  // namespace

WasiContext::WasiContext(Config config)
    : config_(std::move(config)),
      // Without a preopened directory there is no path.
      own_(config_.preopens.empty() ? OwnFiles() : OwnFiles(config_.own_folders, config_.own_file_starts)),
      paths_(config_.path_strategy, own_.any() ? &own_ : nullptr) {}

WasiContext::~WasiContext() = default;

Result<std::unique_ptr<WasiContext>> WasiContext::create(Config config) {
  HINDSIGHT_TRY(check_strings(config.args, "a guest argument"));
  HINDSIGHT_TRY(check_strings(config.env, "a guest environment variable"));
  std::unique_ptr<WasiContext> context(new WasiContext(std::move(config)));
  context->wake_fd_ = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!context->wake_fd_)
    return make_error(ErrorKind::kResource, std::string("no descriptor left for WASI: ") + strerror(errno));

  Config& owned = context->config_;
  if (owned.stdin_text) {
    context->fds_.insert_at(0, text_entry(std::move(*owned.stdin_text)));
  } else {
    HINDSIGHT_TRY(context->add_stream(0, owned.stdin_fd));
  }
  if (owned.stdout_sink) {
    context->fds_.insert_at(1, sink_entry(std::move(owned.stdout_sink)));
  } else {
    HINDSIGHT_TRY(context->add_stream(1, owned.stdout_fd));
  }
  if (owned.stderr_sink) {
    context->fds_.insert_at(2, sink_entry(std::move(owned.stderr_sink)));
  } else {
    HINDSIGHT_TRY(context->add_stream(2, owned.stderr_fd));
  }
  uint32_t guest_fd = 3;
  for (const Preopen& preopen : owned.preopens) {
    auto entry = context->open_preopen(preopen);
    if (!entry) return std::unexpected(entry.error());
    context->fds_.insert_at(guest_fd++, std::move(*entry));
  }
  return context;
}

Status WasiContext::add_stream(uint32_t guest_fd, int host_fd) {
  if (host_fd < 0) return {};
  FdEntry entry;
  entry.fd = OwnedFd(::fcntl(host_fd, F_DUPFD_CLOEXEC, 3));
  if (!entry.fd) {
    if (errno == EBADF) return {};
    return make_error(ErrorKind::kResource,
                      std::string("cannot duplicate a standard stream: ") + strerror(errno));
  }
  struct stat status;
  if (::fstat(entry.fd.get(), &status) != 0)
    return make_error(ErrorKind::kResource,
                      std::string("cannot look at a standard stream: ") + strerror(errno));
  entry.filetype = filetype_of(entry.fd.get(), status.st_mode);
  entry.shared = true;
  entry.terminal = ::isatty(entry.fd.get()) == 1;
  const int flags = ::fcntl(entry.fd.get(), F_GETFL);
  if (flags >= 0 && (flags & O_APPEND)) entry.flags |= fdflags::kAppend;
  entry.rights_base = stream_rights(flags < 0 ? O_RDWR : flags & O_ACCMODE, entry.terminal);
  if (entry.is_directory()) entry.rights_base = rights::kFdFilestatGet;
  fds_.insert_at(guest_fd, std::move(entry));
  return {};
}

Result<FdEntry> WasiContext::open_preopen(const Preopen& preopen) {
  FdEntry entry;
  entry.fd = OwnedFd(::open(preopen.host_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entry.fd) {
    const bool ours = errno == EMFILE || errno == ENFILE;
    return make_error(ours ? ErrorKind::kResource : ErrorKind::kUsage,
                      std::string("cannot open this directory for the guest: ") + strerror(errno),
                      preopen.host_path);
  }
  if (preopen.guest_path.find('\0') != std::string::npos)
    return make_error(ErrorKind::kUsage, "the guest's path contains a NUL character", preopen.host_path);
  HINDSIGHT_TRY(own_.check_preopen(entry.fd.get(), preopen.host_path));
  const uint64_t denied = preopen.read_only ? rights::kModifying : 0;
  entry.filetype = Filetype::kDirectory;
  entry.rights_base = rights::kAllDirectory & ~denied;
  entry.rights_inheriting = rights::kAll & ~denied;
  entry.preopen_name = preopen.guest_path;
  return entry;
}

void WasiContext::interrupt() {
  const int saved = errno;  // we may stand in a signal handler
  interrupted_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  // The only failure is a full counter, which is readable all the same.
  (void)!::write(wake_fd_.get(), &one, sizeof one);
  errno = saved;
}

void WasiContext::clear_interrupt() {
  interrupted_.store(false, std::memory_order_relaxed);
  uint64_t drained = 0;
  (void)!::read(wake_fd_.get(), &drained, sizeof drained);
}

bool WasiContext::interrupted() const {
  return interrupted_.load(std::memory_order_relaxed) ||
         (config_.interrupted && config_.interrupted->load(std::memory_order_relaxed));
}

}  // namespace hindsight::wasi
