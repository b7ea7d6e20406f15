// Arguments, environment, clocks, random bytes and the process.
#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

TEST(WasiStrings, ArgumentsAndEnvironmentArriveWithTheirTerminators) {
  Config config = quiet_config();
  config.args = {"program", "", "a b"};
  config.env = {"NAME=value"};
  Guest guest(std::move(config));
  const uint32_t count = guest.reserve(4);
  const uint32_t size = guest.reserve(4);
  ASSERT_EQ(guest.call("args_sizes_get", count, size), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(count), 3u);
  EXPECT_EQ(guest.get<uint32_t>(size), 13u);
  const uint32_t pointers = guest.reserve(12);
  const uint32_t bytes = guest.reserve(13);
  ASSERT_EQ(guest.call("args_get", pointers, bytes), Errno::kSuccess);
  EXPECT_EQ(guest.get_string(bytes, 13), std::string("program\0\0a b\0", 13));
  EXPECT_EQ(guest.get<uint32_t>(pointers), bytes);
  EXPECT_EQ(guest.get<uint32_t>(pointers + 4), bytes + 8);
  EXPECT_EQ(guest.get<uint32_t>(pointers + 8), bytes + 9);

  ASSERT_EQ(guest.call("environ_sizes_get", count, size), Errno::kSuccess);
  EXPECT_EQ(guest.get<uint32_t>(count), 1u);
  EXPECT_EQ(guest.get<uint32_t>(size), 11u);
  ASSERT_EQ(guest.call("environ_get", pointers, bytes), Errno::kSuccess);
  EXPECT_EQ(guest.get_string(bytes, 11), std::string("NAME=value\0", 11));
}

TEST(WasiStrings, ABlockThatDoesNotFitIsAFault) {
  Config config = quiet_config();
  config.args = {"program"};
  Guest guest(std::move(config));
  const uint32_t end = static_cast<uint32_t>(guest.bytes.size());
  EXPECT_EQ(guest.call("args_get", 16, end - 8), Errno::kSuccess);
  EXPECT_EQ(guest.call("args_get", 16, end - 7), Errno::kFault);
  EXPECT_EQ(guest.call("args_get", end - 3, 16), Errno::kFault);
  EXPECT_EQ(guest.call("args_sizes_get", 16, end - 3), Errno::kFault);
}

TEST(WasiStrings, AStringWithANulIsRefusedAtCreation) {
  Config config = quiet_config();
  config.args = {std::string("a\0b", 3)};
  const auto created = WasiContext::create(std::move(config));
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind, ErrorKind::kUsage);
}

TEST(WasiClock, EveryClockHasATimeAndAResolution) {
  Guest guest(quiet_config());
  const uint32_t at = guest.reserve(8);
  for (uint32_t id = 0; id < 4; id++) {
    ASSERT_EQ(guest.call("clock_res_get", id, at), Errno::kSuccess);
    EXPECT_GT(guest.get<uint64_t>(at), 0u);
    ASSERT_EQ(guest.call("clock_time_get", id, uint64_t{0}, at), Errno::kSuccess);
    const uint64_t first = guest.get<uint64_t>(at);
    EXPECT_GT(first, 0u);
    if (id == 0) continue;  // may be set back
    ASSERT_EQ(guest.call("clock_time_get", id, ~uint64_t{0}, at), Errno::kSuccess);
    EXPECT_GE(guest.get<uint64_t>(at), first);
  }
  EXPECT_EQ(guest.call("clock_time_get", 4, uint64_t{0}, at), Errno::kInval);
  EXPECT_EQ(guest.call("clock_res_get", 0xffffffff, at), Errno::kInval);
  EXPECT_EQ(guest.call("clock_time_get", 0, uint64_t{0}, guest.bytes.size() - 7), Errno::kFault);
}

TEST(WasiRandom, ASeedMakesItReproducible) {
  const auto bytes_of = [](std::optional<uint64_t> seed) {
    Config config = quiet_config();
    config.random_seed = seed;
    Guest guest(std::move(config));
    const uint32_t at = guest.reserve(1003);
    EXPECT_EQ(guest.call("random_get", at, 1003), Errno::kSuccess);
    EXPECT_EQ(guest.bytes[at + 1003], 0) << "wrote past the end";
    return guest.get_string(at, 1003);
  };
  EXPECT_EQ(bytes_of(7), bytes_of(7));
  EXPECT_NE(bytes_of(7), bytes_of(8));
  EXPECT_NE(bytes_of(std::nullopt), bytes_of(std::nullopt));
  EXPECT_NE(bytes_of(std::nullopt), std::string(1003, '\0'));
}

TEST(WasiRandom, NothingAtTheVeryEndIsFineAndOneByteMoreIsNot) {
  Guest guest(quiet_config());
  EXPECT_EQ(guest.call("random_get", guest.bytes.size(), 0), Errno::kSuccess);
  EXPECT_EQ(guest.call("random_get", guest.bytes.size(), 1), Errno::kFault);
  EXPECT_EQ(guest.call("random_get", 1, 0xffffffff), Errno::kFault);
}

TEST(WasiProcess, ExitEndsTheGuestWithItsCode) {
  Guest guest(quiet_config());
  uint64_t untouched = 99;
  const Outcome outcome = guest.raw_call("proc_exit", &untouched, 300);
  EXPECT_TRUE(outcome.exited());
  EXPECT_EQ(outcome.code, 300u);
  EXPECT_EQ(untouched, 99u);
}

TEST(WasiProcess, RaisingDoesWhatSignalsDoWithoutAHandler) {
  Guest guest(quiet_config());
  uint64_t result = 0;
  const Outcome aborted = guest.raw_call("proc_raise", &result, 6);
  EXPECT_TRUE(aborted.exited());
  EXPECT_EQ(aborted.code, 134u);
  EXPECT_EQ(guest.call("proc_raise", 0), Errno::kSuccess);
  EXPECT_EQ(guest.call("proc_raise", 16), Errno::kSuccess);
  EXPECT_EQ(guest.call("proc_raise", 18), Errno::kNotsup);
  EXPECT_EQ(guest.call("proc_raise", 31), Errno::kInval);
  EXPECT_EQ(guest.call("sched_yield"), Errno::kSuccess);
}

TEST(WasiSockets, TellNoDescriptorFromNoSocket) {
  Config config = quiet_config();
  config.stdin_text = "";
  Guest guest(std::move(config));
  EXPECT_EQ(guest.call("sock_shutdown", 77, 0), Errno::kBadf);
  EXPECT_EQ(guest.call("sock_shutdown", 0, 0), Errno::kNotsock);
  EXPECT_EQ(guest.call("sock_accept", 0, 0, 16), Errno::kNotsock);
  EXPECT_EQ(guest.call("sock_recv", 0, 16, 1, 0, 16, 16), Errno::kNotsock);
  EXPECT_EQ(guest.call("sock_send", 0, 16, 1, 0, 16), Errno::kNotsock);
}

}  // namespace
}  // namespace hindsight::wasi
