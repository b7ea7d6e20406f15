#include "feedback/lwp/units/perf_ring.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <random>

namespace hindsight::lwp {
namespace {

constexpr size_t kRingSize = 4096;
constexpr size_t kSampleSize = 168;

// Writes what the kernel would write, at free-running positions of a small ring.
struct KernelRing {
  std::vector<std::byte> data = std::vector<std::byte>(kRingSize, std::byte{0xEE});
  uint64_t tail = 0, head = 0;

  explicit KernelRing(uint64_t start = 0) : tail(start), head(start) {}

  void put_bytes(const void* from, size_t size) {
    for (size_t i = 0; i < size; ++i, ++head) data[head % kRingSize] = static_cast<const std::byte*>(from)[i];
  }
  void put_header(uint32_t type, size_t size) {
    const perf_event_header header{type, PERF_RECORD_MISC_USER, static_cast<uint16_t>(size)};
    put_bytes(&header, sizeof header);
  }
  void put(uint64_t word) { put_bytes(&word, sizeof word); }
  // Register i of the kernel's order gets the value base + i.
  void put_sample(uint64_t pc, uint64_t base, uint64_t abi = PERF_SAMPLE_REGS_ABI_64) {
    put_header(PERF_RECORD_SAMPLE, kSampleSize);
    put(pc);
    put(uint64_t{42} << 32 | 41);
    put(1000 + pc);

    put(abi);
    for (uint64_t i = 0; i < 16; ++i) put(base + i);
  }
  PerfParseResult parse(std::vector<RawSample>& out) {
    const PerfParseResult result = parse_perf_ring(data, tail, head, 250'000, out);
    tail += result.consumed;
    return result;
  }
};

TEST(PerfRing, MapsTheKernelsRegisterOrderToEncodingOrder) {
  KernelRing ring;
  ring.put_sample(0x401000, 0x100);
  std::vector<RawSample> out;
  EXPECT_EQ(ring.parse(out).samples, 1u);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].pc, 0x401000u);
  EXPECT_EQ(out[0].time_ns, 0x401000u + 1000);
  EXPECT_EQ(out[0].period_ns, 250'000u);
  // The kernel writes ax bx cx dx si di bp sp r8..r15.
  EXPECT_EQ(out[0][Register::kRax], 0x100u);
  EXPECT_EQ(out[0][Register::kRbx], 0x101u);
  EXPECT_EQ(out[0][Register::kRcx], 0x102u);
  EXPECT_EQ(out[0][Register::kRdx], 0x103u);
  EXPECT_EQ(out[0][Register::kRsi], 0x104u);
  EXPECT_EQ(out[0][Register::kRdi], 0x105u);
  EXPECT_EQ(out[0][Register::kRbp], 0x106u);
  EXPECT_EQ(out[0][Register::kRsp], 0x107u);
  EXPECT_EQ(out[0][Register::kR8], 0x108u);
  EXPECT_EQ(out[0][Register::kR15], 0x10Fu);
}

TEST(PerfRing, AsksForNoSegmentRegister) {
  EXPECT_EQ(kPerfRegisterMask, 0xFF00FFu);  // ax..sp and r8..r15; 12 to 15 are ds, es, fs, gs
}

TEST(PerfRing, ReadsSamplesThatWrapAtEveryPossiblePlace) {
  for (uint64_t before_end = 8; before_end < kSampleSize; before_end += 8) {
    KernelRing ring(5 * kRingSize - before_end);
    ring.put_sample(0x401000 + before_end, before_end);
    std::vector<RawSample> out;
    ring.parse(out);
    ASSERT_EQ(out.size(), 1u) << before_end;
    EXPECT_EQ(out[0].pc, 0x401000 + before_end);
    EXPECT_EQ(out[0][Register::kR15], before_end + 15);
  }
}

TEST(PerfRing, ReadsAStreamManyTimesItsSize) {
  KernelRing ring(UINT64_MAX - 1000 * 8 + 1);  // positions themselves wrap, too
  std::vector<RawSample> out;
  uint64_t n = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 20; ++i) ring.put_sample(n++, 0);
    EXPECT_EQ(ring.parse(out).samples, 20u);
  }
  for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(out[i].pc, i);
}

TEST(PerfRing, CountsLostThrottledAndForeignRecordsBetweenSamples) {
  KernelRing ring;
  ring.put_sample(1, 0);
  ring.put_header(PERF_RECORD_LOST, 24);
  ring.put(7);
  ring.put(13);
  ring.put_header(PERF_RECORD_LOST_SAMPLES, 16);
  ring.put(4);
  for (const uint32_t type : {PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE}) {
    ring.put_header(type, 32);
    ring.put(1);
    ring.put(2);
    ring.put(3);
  }
  ring.put_header(PERF_RECORD_COMM, 24);
  ring.put(0);
  ring.put(0);
  ring.put_sample(2, 0);
  std::vector<RawSample> out;
  const PerfParseResult result = ring.parse(out);
  EXPECT_EQ(result.samples, 2u);
  EXPECT_EQ(result.lost, 17u);
  EXPECT_EQ(result.throttled, 1u);
  EXPECT_EQ(result.other, 2u);
  EXPECT_EQ(result.malformed, 0u);
}

TEST(PerfRing, CountsSamplesWithoutRegistersInsteadOfInventingThem) {
  KernelRing ring;
  ring.put_header(PERF_RECORD_SAMPLE, 40);
  for (const uint64_t word : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{PERF_SAMPLE_REGS_ABI_NONE}}) {
    ring.put(word);
  }
  ring.put_sample(2, 0, PERF_SAMPLE_REGS_ABI_32);
  std::vector<RawSample> out;
  EXPECT_EQ(ring.parse(out).without_registers, 2u);
  EXPECT_TRUE(out.empty());
}

TEST(PerfRing, SkipsASampleOfAnotherLayoutButGoesOnBehindIt) {
  KernelRing ring;
  ring.put_header(PERF_RECORD_SAMPLE, 64);
  for (int i = 0; i < 7; ++i) ring.put(0);
  ring.put_sample(2, 0);
  std::vector<RawSample> out;
  const PerfParseResult result = ring.parse(out);
  EXPECT_EQ(result.malformed, 1u);
  EXPECT_EQ(out.size(), 1u);
}

TEST(PerfRing, GivesUpTheRestBehindASizeThatCannotBe) {
  for (const size_t size : {size_t{0}, size_t{4}, size_t{20}, size_t{8000}}) {
    KernelRing ring;
    ring.put_sample(1, 0);
    ring.put_header(PERF_RECORD_SAMPLE, size);
    ring.put_sample(2, 0);
    std::vector<RawSample> out;
    const PerfParseResult result = ring.parse(out);
    EXPECT_EQ(result.malformed, 1u) << size;
    EXPECT_EQ(out.size(), 1u) << size;
    EXPECT_EQ(ring.tail, ring.head) << size;
  }
}

TEST(PerfRing, RefusesPositionsThatSpanMoreThanTheRing) {
  std::vector<std::byte> data(kRingSize);
  std::vector<RawSample> out;
  EXPECT_EQ(parse_perf_ring(data, 0, kRingSize + 8, 1, out).malformed, 1u);
  EXPECT_EQ(parse_perf_ring(data, 8, 0, 1, out).malformed, 1u);
  EXPECT_EQ(parse_perf_ring(std::span(data).first(100), 0, 8, 1, out).malformed, 1u);
  EXPECT_EQ(parse_perf_ring(data, 0, 4, 1, out).malformed, 1u);
}

TEST(PerfRing, SurvivesDamagedStreams) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 20'000; ++round) {
    KernelRing ring(random() & ~uint64_t{7});
    const auto count = 1 + random() % 20;
    for (uint64_t i = 0; i < count; ++i) ring.put_sample(i, 0);
    for (auto damage = random() % 8; damage > 0; --damage) {
      ring.data[(ring.tail + random() % (count * kSampleSize)) % kRingSize] =
          static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) ring.head -= random() % kSampleSize;
    std::vector<RawSample> out;
    const PerfParseResult result = parse_perf_ring(ring.data, ring.tail, ring.head, 1, out);
    ASSERT_EQ(result.consumed, ring.head - ring.tail);
    ASSERT_EQ(result.samples, out.size());
    ASSERT_LE(out.size(), count);
  }
}

TEST(PerfRing, SurvivesNoise) {
  std::mt19937_64 random(1);
  std::vector<std::byte> data(kRingSize);
  for (int round = 0; round < 5'000; ++round) {
    for (size_t i = 0; i < data.size(); i += 8) {
      // Small sizes and real types, or nearly every stream would end at its first header.
      const uint64_t word = (random() % 16) | (random() % 256) << 48;
      std::memcpy(data.data() + i, &word, 8);
    }
    std::vector<RawSample> out;
    const uint64_t tail = random();
    parse_perf_ring(data, tail, tail + random() % (kRingSize + 1), 1, out);
    ASSERT_LE(out.size(), kRingSize / kSampleSize);
  }
}

}  // namespace
}  // namespace hindsight::lwp
