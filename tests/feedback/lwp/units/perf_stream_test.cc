#include "feedback/lwp/units/perf_stream.h"

#include <gtest/gtest.h>

#include "feedback/lwp/units/perf_sample.h"
#include "tests/feedback/lwp/units/kernel_ring.h"

namespace hindsight::lwp {
namespace {

constexpr uint64_t kType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;

// Accepts samples of kType and remembers their addresses.
struct Collector final : SampleReader {
  std::vector<uint64_t> ips;
  std::vector<uint16_t> miscs;
  bool read_sample(uint16_t misc, std::span<const std::byte> body) override {
    const auto sample = parse_perf_sample(body, kType);
    if (!sample) return false;
    ips.push_back(sample->ip);
    miscs.push_back(misc);
    return true;
  }
};

StreamCounts walk(GuardedRing& ring, Collector& reader) {
  std::vector<std::byte> scratch;
  const StreamCounts counts = walk_perf_stream(ring.data(), ring.tail, ring.head, scratch, reader);
  EXPECT_EQ(counts.consumed, ring.head - ring.tail);
  EXPECT_EQ(counts.record_bytes + counts.malformed_bytes, counts.consumed);
  ring.tail += counts.consumed;
  return counts;
}

TEST(PerfStream, HandsOutEverySampleWhereverItWraps) {
  for (uint64_t before_end = 8; before_end <= 64; before_end += 8) {
    GuardedRing ring(4096, 7 * 4096 - before_end);
    ring.sample(kType, {.ip = 1});
    ring.sample(kType, {.ip = 2});
    Collector reader;
    const StreamCounts counts = walk(ring, reader);
    EXPECT_EQ(reader.ips, (std::vector<uint64_t>{1, 2})) << before_end;
    EXPECT_EQ(counts.samples, 2u);
    EXPECT_EQ(counts.malformed, 0u);
  }
}

TEST(PerfStream, FollowsAStreamManyTimesTheRingAndPastTheEndOfItsPositions) {
  GuardedRing ring(4096, UINT64_MAX - 4096 * 3 + 1);
  Collector reader;
  uint64_t n = 0;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 50; ++i) ring.sample(kType, {.ip = n++});
    walk(ring, reader);
  }
  ASSERT_EQ(reader.ips.size(), n);
  for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(reader.ips[i], i);
}

TEST(PerfStream, PassesTheHeadersMiscOn) {
  GuardedRing ring;
  ring.sample(kType, {}, PERF_RECORD_MISC_USER);
  ring.sample(kType, {}, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
  Collector reader;
  walk(ring, reader);
  EXPECT_EQ(reader.miscs, (std::vector<uint16_t>{PERF_RECORD_MISC_USER,
                                                 PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP}));
}

TEST(PerfStream, CountsWhatTheKernelSaysItLostAndThrottled) {
  GuardedRing ring;
  ring.sample(kType, {.ip = 1});
  ring.lost(13);
  ring.record(PERF_RECORD_LOST_SAMPLES, {4});
  ring.throttle();
  ring.record(PERF_RECORD_UNTHROTTLE, {1, 2, 3});
  ring.record(PERF_RECORD_MMAP2, {0, 0, 0});
  ring.record(4711, {});  // a type of a kernel to come, without a body
  ring.sample(kType, {.ip = 2});
  Collector reader;
  const StreamCounts counts = walk(ring, reader);
  EXPECT_EQ(counts.lost, 17u);
  EXPECT_EQ(counts.throttled, 1u);
  EXPECT_EQ(counts.other, 3u);
  EXPECT_EQ(counts.samples, 2u);
  EXPECT_EQ(counts.malformed_bytes, 0u);
}

TEST(PerfStream, CountsRecordsThatAreTooShortForTheirTypeAndGoesOn) {
  GuardedRing ring;
  ring.record(PERF_RECORD_LOST, {1});
  ring.record(PERF_RECORD_LOST_SAMPLES, {});
  ring.record(PERF_RECORD_THROTTLE, {1, 2});
  ring.record(PERF_RECORD_SAMPLE, {1, 2});           // an identifier, an address, and then nothing
  ring.record(PERF_RECORD_SAMPLE, {1, 2, 3, 4, 5});  // one word too many
  ring.sample(kType, {.ip = 2});
  Collector reader;
  const StreamCounts counts = walk(ring, reader);
  EXPECT_EQ(counts.malformed, 5u);
  EXPECT_EQ(counts.malformed_bytes, 16u + 8 + 24 + 24 + 48);
  EXPECT_EQ(reader.ips, (std::vector<uint64_t>{2}));
}

TEST(PerfStream, GivesUpBehindASizeThatCannotBe) {
  for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, size_t{4096}, size_t{65528}}) {
    GuardedRing ring;
    const size_t good = ring.sample(kType, {.ip = 1});
    ring.header(PERF_RECORD_SAMPLE, size);
    for (int i = 0; i < 10; ++i) ring.word(0);
    Collector reader;
    const StreamCounts counts = walk(ring, reader);
    EXPECT_EQ(counts.malformed, 1u) << size;
    EXPECT_EQ(counts.record_bytes, good) << size;
    EXPECT_EQ(counts.malformed_bytes, 88u) << size;
  }
}

TEST(PerfStream, GivesUpATruncatedTail) {
  GuardedRing ring;
  ring.sample(kType, {.ip = 1});
  const size_t whole = ring.sample(kType, {.ip = 2});
  for (size_t cut = 1; cut < whole; ++cut) {
    Collector reader;
    std::vector<std::byte> scratch;
    const auto counts = walk_perf_stream(ring.data(), 0, ring.head - cut, scratch, reader);
    EXPECT_EQ(reader.ips, (std::vector<uint64_t>{1})) << cut;
    EXPECT_EQ(counts.malformed_bytes, whole - cut);
  }
}

TEST(PerfStream, RefusesPositionsThatCannotBe) {
  GuardedRing ring;
  Collector reader;
  std::vector<std::byte> scratch;
  const auto malformed = [&](std::span<const std::byte> data, uint64_t tail, uint64_t head) {
    return walk_perf_stream(data, tail, head, scratch, reader).malformed_bytes;
  };
  EXPECT_EQ(malformed(ring.data(), 0, 4097), 4097u);
  EXPECT_EQ(malformed(ring.data(), 8, 0), UINT64_MAX - 7);
  EXPECT_EQ(malformed(ring.data().first(24), 0, 8), 8u);  // no power of two
  EXPECT_EQ(malformed({}, 0, 8), 8u);
}

TEST(PerfSample, ReadsEveryFieldInTheKernelsOrder) {
  GuardedRing ring;
  std::vector<std::byte> raw(20);
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i);
  const SampleFields fields{.identifier = 1,
                            .ip = 2,
                            .pid = 3,
                            .tid = 4,
                            .time = 5,
                            .address = 6,
                            .cpu = 7,
                            .period = 8,
                            .raw = raw,
                            .branches = {branch(9, 10, true, false)},
                            .weight = 11,
                            .data_source = 12};
  for (const uint64_t weight : {uint64_t{PERF_SAMPLE_WEIGHT}, uint64_t{PERF_SAMPLE_WEIGHT_STRUCT}}) {
    const uint64_t type = (kKnownSampleFields & ~uint64_t{PERF_SAMPLE_WEIGHT_TYPE}) | weight;
    GuardedRing r;
    const size_t size = r.sample(type, fields);
    const auto sample = parse_perf_sample(r.data().subspan(8, size - 8), type);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->identifier, 1u);
    EXPECT_EQ(sample->ip, 2u);
    EXPECT_EQ(sample->pid, 3u);
    EXPECT_EQ(sample->tid, 4u);
    EXPECT_EQ(sample->time, 5u);
    EXPECT_EQ(sample->address, 6u);
    EXPECT_EQ(sample->cpu, 7u);
    EXPECT_EQ(sample->period, 8u);
    ASSERT_EQ(sample->raw.size(), 20u);
    EXPECT_EQ(sample->raw[19], std::byte{19});
    ASSERT_EQ(sample->branch_count(), 1u);
    EXPECT_EQ(sample->branch(0).from, 9u);
    EXPECT_EQ(sample->branch(0).to, 10u);
    EXPECT_TRUE(sample->branch(0).mispredicted());
    EXPECT_EQ(sample->weight, 11u);
    EXPECT_EQ(sample->data_source, 12u);
  }
}

TEST(PerfSample, RefusesBodiesOfAnotherLength) {
  GuardedRing ring;
  const uint64_t type = kType | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK;
  const size_t size =
      ring.sample(type, {.raw = std::vector<std::byte>(12), .branches = {branch(1, 2, false, true)}});
  const auto body = ring.data().subspan(8, size);
  EXPECT_TRUE(parse_perf_sample(body.first(size - 8), type));
  EXPECT_FALSE(parse_perf_sample(body, type));
  for (size_t n = 0; n < size - 8; ++n) EXPECT_FALSE(parse_perf_sample(body.first(n), type)) << n;
}

TEST(PerfSample, RefusesCountsThatWouldOverflow) {
  for (const uint64_t count : {uint64_t{0x0AAAAAAAAAAAAAAB}, UINT64_MAX, uint64_t{1} << 61}) {
    GuardedRing ring;
    ring.word(count);
    for (int i = 0; i < 6; ++i) ring.word(1);
    EXPECT_FALSE(parse_perf_sample(ring.data().first(56), PERF_SAMPLE_BRANCH_STACK));
  }
}

TEST(PerfSample, RefusesFieldsThatItDoesNotKnow) {
  GuardedRing ring;
  EXPECT_FALSE(parse_perf_sample(ring.data().first(16), PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN));
}

}  // namespace
}  // namespace hindsight::lwp
