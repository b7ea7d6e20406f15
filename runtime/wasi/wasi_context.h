// What a guest can reach of the outside world: its arguments, environment, descriptors and preopened
// directories. A context belongs to one guest; the engine hands it to every WASI call of that guest
// (runtime/wasi/functions.h).
//
// Threads: several may make calls. One call at a time runs; the others wait for it, but not for one that itself waits for
// something to be ready (wait.h). interrupt() may be called by any thread and any signal handler.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/wasi/fd_table.h"
#include "runtime/wasi/own_files.h"
#include "runtime/wasi/owned_fd.h"
#include "runtime/wasi/path_resolver.h"

namespace hindsight::wasi {

// Gets what the guest wrote, in order, on the guest's thread. The bytes are the guest's own memory: they are
// to be copied, not kept. It must not throw (what it throws becomes the guest's kIo).
using Sink = std::function<void(std::span<const std::byte>)>;

struct Preopen {
  std::string host_path;
  std::string guest_path;
  bool read_only = false;  // nothing below can be written, created, removed or renamed
};

struct Config {
  std::vector<std::string> args;  // args[0] is the program's name
  std::vector<std::string> env;   // "NAME=value"
  std::vector<Preopen> preopens;  // guest descriptors 3, 4, ...

  // What of the embedder's own no guest may reach, and how its files begin (own_files.h).
  std::vector<OwnFolder> own_folders;
  std::vector<std::string> own_file_starts;

  // Host descriptors of the standard streams. They are duplicated: the caller keeps its own, and the guest
  // closing one closes only its duplicate. One that is not open is closed for the guest too.
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  // Where given, these take the place of the descriptors.
  std::optional<std::string> stdin_text;
  Sink stdout_sink;
  Sink stderr_sink;

  // Open at a time, standard streams and preopened directories included; beyond it path_open answers kMfile.
  uint64_t max_descriptors = 1024;

  // With a seed random_get answers the same bytes in each run; without, the kernel's.
  std::optional<uint64_t> random_seed;

  // A flag of the embedder that interrupts as interrupt() does; it must outlive the context. It is looked at
  // when a signal arrives and at least every kFlagPeriod (wait.h).
  const std::atomic<bool>* interrupted = nullptr;

  // For tests and for kernels that offer less than they say.
  PathResolver::Strategy path_strategy = PathResolver::best();
};

class WasiContext {
 public:
  // Opens the preopened directories. Fails with kUsage for one that is no directory or cannot be opened, naming it. Also
  // for one that would give the guest what is the embedder's own, and for strings with a NUL inside. Fails with kResource
  // where the host has no descriptors left.
  static Result<std::unique_ptr<WasiContext>> create(Config config);
  ~WasiContext();  // closes all descriptors of the guest
  WasiContext(const WasiContext&) = delete;
  WasiContext& operator=(const WasiContext&) = delete;

  // Makes the call that the guest is blocked in, and every later one that would block, answer kIntr, until
  // clear_interrupt(). Any thread; async-signal-safe.
  void interrupt();
  // Not while interrupt() may run.
  void clear_interrupt();
  bool interrupted() const;

  // One call of a guest, while it lives: holds the context's lock, and pins the descriptors that the call uses.
  class Call {
   public:
    explicit Call(const WasiContext& context) : lock_(context.call_mutex_) { ++context.turns_; }

   private:
    const std::lock_guard<std::recursive_mutex> lock_;
    const FdPins pins_;  // given back under the lock
  };

  // The rest is for the calls of this room.
  // Runs `blocking`, a system call, while others may make their calls, or go on with theirs. True: some did.
  template <typename F>
  bool unlocked(const F& blocking) const {
    const uint64_t turns = turns_;
    call_mutex_.unlock();
    blocking();
    call_mutex_.lock();
    return turns_++ != turns;
  }
  const std::vector<std::string>& args() const { return config_.args; }
  const std::vector<std::string>& env() const { return config_.env; }
  FdTable& fds() { return fds_; }
  bool may_open() const { return fds_.open_count() < config_.max_descriptors; }
  const PathResolver& paths() const { return paths_; }
  const OwnFiles& own() const { return own_; }
  int wake_fd() const { return wake_fd_.get(); }
  bool has_outside_flag() const { return config_.interrupted != nullptr; }
  // The state of the seeded generator, or null where the kernel's bytes are wanted.
  uint64_t* random_state() { return config_.random_seed ? &*config_.random_seed : nullptr; }
  // Reused by fd_read and its kin, so that a read allocates nothing; whoever uses it takes it out meanwhile.
  std::vector<iovec>& iovec_scratch() { return iovec_scratch_; }

 private:
  explicit WasiContext(Config config);
  Status add_stream(uint32_t guest_fd, int host_fd);
  Result<FdEntry> open_preopen(const Preopen& preopen);

  // Recursive: an embedder's sink may run a guest that calls again.
  mutable std::recursive_mutex call_mutex_;  // protects all but wake_fd_ and interrupted_
  mutable uint64_t turns_ = 0;               // of calls that begin, or go on after they waited
  Config config_;
  OwnFiles own_;
  PathResolver paths_;
  FdTable fds_;
  OwnedFd wake_fd_;  // an eventfd, readable while interrupted
  // Publishes nothing but itself: the waiter needs no other memory of the interrupting thread. Set before
  // wake_fd_ is written, so that who is woken by it sees the flag (the kernel orders the two calls).
  std::atomic<bool> interrupted_{false};
  std::vector<iovec> iovec_scratch_;
};

}  // namespace hindsight::wasi
