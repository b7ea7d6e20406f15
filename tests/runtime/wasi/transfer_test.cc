// Reading, writing and seeking.
#include <pthread.h>
#include <signal.h>

#include <thread>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

class TransferPipe {
 public:
  TransferPipe() {
    if (::pipe(ends_) != 0) std::abort();
  }
  ~TransferPipe() {
    close_reader();
    close_writer();
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() { close_end(0); }
  void close_writer() { close_end(1); }

 private:
  void close_end(int end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }
  int ends_[2];
};

TEST(WasiTransfer, WhatIsWrittenIsReadBack) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  EXPECT_EQ(guest.write(*fd, "hello world"), 11u);
  const uint32_t position = guest.reserve(8);
  ASSERT_EQ(guest.call("fd_tell", *fd, position), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(position), 11u);
  ASSERT_EQ(guest.call("fd_seek", *fd, static_cast<uint64_t>(-5), 2, position), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint64_t>(position), 6u);
  EXPECT_EQ(guest.read(*fd, 100), "world");
  EXPECT_EQ(guest.read(*fd, 100), "");
  ASSERT_EQ(guest.call("fd_seek", *fd, uint64_t{0}, 0, position), Errno::kSuccess);
  EXPECT_EQ(guest.read(*fd, 5), "hello");
  EXPECT_EQ(guest.call("fd_seek", *fd, static_cast<uint64_t>(-6), 1, position), Errno::kInval);
  EXPECT_EQ(guest.call("fd_seek", *fd, uint64_t{0}, 3, position), Errno::kInval);
  EXPECT_EQ(guest.call("fd_seek", *fd, uint64_t{0}, 0, guest.bytes.size() - 7), Errno::kFault);
}

TEST(WasiTransfer, SeveralVectorsAreFilledInOrderAndEmptyOnesSkipped) {
  TempDir dir;
  write_host_file(dir / "file", "abcdefgh");
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file");
  ASSERT_TRUE(fd);
  const uint32_t buffer = guest.reserve(16);
  const uint32_t done = guest.reserve(4);
  const uint32_t iovs = guest.reserve(24);
  const std::pair<uint32_t, uint32_t> vectors[] = {{buffer + 8, 3}, {buffer, 0}, {buffer, 4}};
  for (uint32_t i = 0; i < 3; i++) {
    ASSERT_TRUE(guest.memory().store(iovs + i * 8, vectors[i].first));
    ASSERT_TRUE(guest.memory().store(iovs + i * 8 + 4, vectors[i].second));
  }
  ASSERT_EQ(guest.call("fd_read", *fd, iovs, 3, done), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(done), 7u);
  EXPECT_EQ(guest.get_string(buffer + 8, 3), "abc");
  EXPECT_EQ(guest.get_string(buffer, 4), "defg");
}

TEST(WasiTransfer, MoreVectorsThanTheHostTakesMakeAShortTransfer) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  const uint32_t byte = guest.put("x");
  const uint32_t iovs = guest.reserve(2000 * 8);
  for (uint32_t i = 0; i < 2000; i++) {
    ASSERT_TRUE(guest.memory().store(iovs + i * 8, byte));
    ASSERT_TRUE(guest.memory().store(iovs + i * 8 + 4, uint32_t{1}));
  }
  const uint32_t done = guest.reserve(4);
  ASSERT_EQ(guest.call("fd_write", *fd, iovs, 2000, done), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(done), 1024u);
  EXPECT_EQ(std::filesystem::file_size(dir / "file"), 1024u);
}

TEST(WasiTransfer, PositionedCallsLeaveThePositionAlone) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  const uint32_t done = guest.reserve(4);
  const uint32_t text = guest.put("ABC");
  ASSERT_EQ(guest.call("fd_pwrite", *fd, guest.put_iovec(text, 3), 1, uint64_t{5}, done), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(done), 3u);
  const uint32_t buffer = guest.reserve(8);
  ASSERT_EQ(guest.call("fd_pread", *fd, guest.put_iovec(buffer, 8), 1, uint64_t{6}, done), Errno::kSuccess);
  EXPECT_EQ(guest.get_string(buffer, guest.get<uint32_t>(done)), "BC");
  EXPECT_EQ(guest.read(*fd, 8), std::string("\0\0\0\0\0ABC", 8));
  EXPECT_EQ(guest.call("fd_pread", *fd, guest.put_iovec(buffer, 8), 1, ~uint64_t{0}, done), Errno::kInval);
}

TEST(WasiTransfer, AppendingWritesAtTheEnd) {
  TempDir dir;
  write_host_file(dir / "file", "1");
  Guest guest(directory_config(dir.path()));
  OpenOptions options = kForWriting;
  options.fd_flags = fdflags::kAppend;
  const auto fd = guest.open(kRoot, "file", options);
  ASSERT_TRUE(fd);
  ASSERT_TRUE(guest.write(*fd, "2"));
  ASSERT_EQ(guest.call("fd_seek", *fd, uint64_t{0}, 0, guest.reserve(8)), Errno::kSuccess);
  ASSERT_TRUE(guest.write(*fd, "3"));
  EXPECT_EQ(read_host_file(dir / "file"), "123");
}

TEST(WasiTransfer, FaultsAreFoundBeforeAnythingMoves) {
  TempDir dir;
  Guest guest(directory_config(dir.path()));
  const auto fd = guest.open(kRoot, "file", kCreating);
  ASSERT_TRUE(fd);
  const uint32_t end = static_cast<uint32_t>(guest.bytes.size());
  const uint32_t text = guest.put("text");
  const uint32_t good = guest.put_iovec(text, 4);
  EXPECT_EQ(guest.call("fd_write", *fd, good, 1, end - 3), Errno::kFault);
  EXPECT_EQ(guest.call("fd_write", *fd, guest.put_iovec(end - 3, 4), 1, 64), Errno::kFault);
  EXPECT_EQ(guest.call("fd_write", *fd, guest.put_iovec(0xffffffff, 2), 1, 64), Errno::kFault);
  EXPECT_EQ(guest.call("fd_write", *fd, good, 0x20000001, 64), Errno::kFault);
  EXPECT_EQ(guest.call("fd_write", *fd, end - 7, 1, 64), Errno::kFault);
  EXPECT_EQ(std::filesystem::file_size(dir / "file"), 0u);
}

TEST(WasiTransfer, TheAccessModeIsTheOneAskedFor) {
  TempDir dir;
  write_host_file(dir / "file", "text");
  Guest guest(directory_config(dir.path()));
  const auto reader = guest.open(kRoot, "file", {.base = rights::kFdRead});
  const auto writer = guest.open(kRoot, "file", {.base = rights::kFdWrite});
  ASSERT_TRUE(reader && writer);
  EXPECT_EQ(guest.write(*reader, "x").error(), Errno::kBadf);
  EXPECT_EQ(guest.read(*writer, 1).error(), Errno::kBadf);
  EXPECT_EQ(guest.read(kRoot, 1).error(), Errno::kIsdir);
  EXPECT_EQ(guest.write(kRoot, "x").error(), Errno::kIsdir);
}

TEST(WasiTransfer, CapturedStreamsTakeAndGiveText) {
  std::string out;
  Config config = quiet_config();
  config.stdin_text = "line\nrest";
  config.stdout_sink = [&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Guest guest(std::move(config));
  EXPECT_EQ(guest.read(0, 5), "line\n");
  EXPECT_EQ(guest.read(0, 100), "rest");
  EXPECT_EQ(guest.read(0, 100), "");
  EXPECT_EQ(guest.write(1, "one "), 4u);
  EXPECT_EQ(guest.write(1, "two"), 3u);
  EXPECT_EQ(out, "one two");
  EXPECT_EQ(guest.read(1, 1).error(), Errno::kBadf);
  EXPECT_EQ(guest.write(0, "x").error(), Errno::kBadf);
}

TEST(WasiTransfer, ALargeWriteToAPipeArrivesWhole) {
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdout_fd = pipe.writer();
  std::string text;
  for (int i = 0; text.size() < 150'000; i++) text += std::to_string(i) + ",";
  std::string got;
  {
    Guest guest(std::move(config));
    pipe.close_writer();
    std::thread reader([&] {
      char buffer[1000];
      ssize_t n;
      while ((n = ::read(pipe.reader(), buffer, sizeof buffer)) > 0) got.append(buffer, n);
    });
    EXPECT_EQ(guest.write(1, text), text.size());
    guest.context.reset();  // closes the last writing end
    reader.join();
  }
  EXPECT_EQ(got, text);
}

TEST(WasiTransfer, WritingToAClosedPipeIsAnErrorAndNotTheEndOfTheProcess) {
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdout_fd = pipe.writer();
  Guest guest(std::move(config));
  pipe.close_reader();
  EXPECT_EQ(guest.write(1, "x").error(), Errno::kPipe);
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0) << "the signal was left behind";
  sigset_t blocked;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0) << "the mask was not restored";
}

TEST(WasiTransfer, ANonblockingWriteStopsAtAFullPipe) {
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdout_fd = pipe.writer();
  Guest guest(std::move(config));
  ASSERT_EQ(guest.call("fd_fdstat_set_flags", 1, fdflags::kNonblock), Errno::kSuccess);
  const std::string text(100'000, 'x');
  const auto first = guest.write(1, text);
  ASSERT_TRUE(first);
  EXPECT_LT(*first, text.size());
  guest.forget();
  EXPECT_EQ(guest.write(1, text).error(), Errno::kAgain);
}

TEST(WasiTransfer, AHostDescriptorInNonblockingModeStillBlocksTheGuest) {
  TransferPipe pipe;
  ASSERT_EQ(::fcntl(pipe.reader(), F_SETFL, O_NONBLOCK), 0);
  Config config = quiet_config();
  config.stdin_fd = pipe.reader();
  Guest guest(std::move(config));
  std::thread writer([&] { ASSERT_EQ(::write(pipe.writer(), "later", 5), 5); });
  EXPECT_EQ(guest.read(0, 10), "later");
  writer.join();
}

TEST(WasiInterruption, EndsAReadThatWaitsForInput) {
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdin_fd = pipe.reader();
  Guest guest(std::move(config));
  std::thread interrupter([&] { guest.context->interrupt(); });
  EXPECT_EQ(guest.read(0, 1).error(), Errno::kIntr);
  interrupter.join();
  EXPECT_EQ(guest.read(0, 1).error(), Errno::kIntr) << "it stays interrupted";
  guest.context->clear_interrupt();
  ASSERT_EQ(::write(pipe.writer(), "x", 1), 1);
  EXPECT_EQ(guest.read(0, 1), "x");
}

TEST(WasiInterruption, ThePlainFlagOfTheEmbedderIsSeenWithoutASignal) {
  TransferPipe pipe;
  std::atomic<bool> flag{false};
  Config config = quiet_config();
  config.stdin_fd = pipe.reader();
  config.interrupted = &flag;
  Guest guest(std::move(config));
  std::thread interrupter([&] { flag.store(true); });
  EXPECT_EQ(guest.read(0, 1).error(), Errno::kIntr);
  interrupter.join();
}

TEST(WasiInterruption, EndsAWriteToAFullPipeAndTellsWhatWasWritten) {
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdout_fd = pipe.writer();
  Guest guest(std::move(config));
  // The pipe holds less than this, and nobody reads.
  const std::string text(150'000, 'x');
  std::thread interrupter([&] {
    char byte;
    // Something has been written, so the guest is past its first look at the flag.
    ASSERT_EQ(::read(pipe.reader(), &byte, 1), 1);
    guest.context->interrupt();
  });
  const auto written = guest.write(1, text);
  interrupter.join();
  ASSERT_TRUE(written);
  EXPECT_GT(*written, 0u);
  EXPECT_LT(*written, text.size());
}

void ignore_signal(int) {}

TEST(WasiInterruption, ASignalAloneDoesNotEndARead) {
  struct sigaction action {};
  action.sa_handler = ignore_signal;  // no SA_RESTART: the host call does return EINTR
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  TransferPipe pipe;
  Config config = quiet_config();
  config.stdin_fd = pipe.reader();
  Guest guest(std::move(config));
  const pthread_t self = ::pthread_self();
  std::thread signaller([&] {
    for (int i = 0; i < 50; i++) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::yield();
    }
    ASSERT_EQ(::write(pipe.writer(), "x", 1), 1);
  });
  EXPECT_EQ(guest.read(0, 1), "x");
  signaller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace hindsight::wasi
