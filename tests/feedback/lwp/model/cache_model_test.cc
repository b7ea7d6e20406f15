// Sequences short enough to be followed by hand.
#include "feedback/lwp/model/cache_model.h"

#include <gtest/gtest.h>

namespace hindsight::lwp {
namespace {

// Two sets of two lines of 64 bytes; after it one level of 4 sets x 4 ways.
CacheConfig tiny(Replacement replacement = Replacement::kLru) {
  CacheConfig config;
  config.levels = {{256, 2, 4, replacement}, {1024, 4, 10, Replacement::kLru}};
  config.memory_latency = 100;
  return config;
}

class Cache {
 public:
  explicit Cache(const CacheConfig& config) : model_(config) { EXPECT_TRUE(check(config)); }
  // Long after everything before has arrived.
  uint32_t level(uint64_t address) {
    now_ += 10'000;
    return model_.access(address, 4, now_, 1).level;
  }
  CacheModel& model() { return model_; }

 private:
  CacheModel model_;
  uint64_t now_ = 0;
};

TEST(CacheModels, EvictWhatWasUsedLeastRecently) {
  Cache cache(tiny());
  // Lines 0, 2 and 4 share a set of the first level.
  EXPECT_EQ(cache.level(0 * 64), 2u);
  EXPECT_EQ(cache.level(2 * 64), 2u);
  EXPECT_EQ(cache.level(0 * 64 + 60), 0u);  // touched: line 2 is the oldest
  EXPECT_EQ(cache.level(4 * 64), 2u);
  EXPECT_EQ(cache.level(0 * 64), 0u);
  EXPECT_EQ(cache.level(2 * 64), 1u);  // gone from the first level, not from the second
  EXPECT_EQ(cache.level(1 * 64), 2u);  // the other set was never touched
}

TEST(CacheModels, FirstInFirstOutForgetsUses) {
  Cache cache(tiny(Replacement::kFifo));
  cache.level(0 * 64);
  cache.level(2 * 64);
  EXPECT_EQ(cache.level(0 * 64), 0u);  // does not help it
  cache.level(4 * 64);
  EXPECT_EQ(cache.level(2 * 64), 0u);
  EXPECT_EQ(cache.level(0 * 64), 1u);
}

TEST(CacheModels, MissesTakeTheLatencyOfTheLevelThatHasTheLine) {
  CacheModel cache(tiny());
  EXPECT_EQ(cache.access(0, 4, 1000, 1).done, 1100u);
  EXPECT_EQ(cache.access(0, 4, 2000, 1).done, 2004u);
  cache.access(2 * 64, 4, 3000, 1);
  cache.access(4 * 64, 4, 4000, 1);
  EXPECT_EQ(cache.access(0, 4, 5000, 1).done, 5010u);
}

TEST(CacheModels, ASecondAccessToALineOnItsWayWaitsForIt) {
  CacheModel cache(tiny());
  EXPECT_EQ(cache.access(0, 4, 1000, 1).done, 1100u);
  const CacheAccess second = cache.access(8, 4, 1010, 2);
  EXPECT_EQ(second.done, 1100u);
  EXPECT_EQ(second.level, 2u);  // where the line comes from
  EXPECT_EQ(cache.access(16, 4, 1200, 3).level, 0u);
}

TEST(CacheModels, MemoryDeliversOneLineAnInterval) {
  CacheConfig config = tiny();
  config.memory_interval = 20;
  CacheModel cache(config);
  EXPECT_EQ(cache.access(0x10000, 4, 1000, 1).done, 1100u);
  EXPECT_EQ(cache.access(0x20000, 4, 1000, 2).done, 1120u);
  EXPECT_EQ(cache.access(0x30000, 4, 1000, 3).done, 1140u);
  // A later request does not delay an earlier one.
  EXPECT_EQ(cache.access(0x40000, 4, 5000, 4).done, 5100u);
  EXPECT_EQ(cache.access(0x50000, 4, 2000, 5).done, 2100u);
}

TEST(CacheModels, AnAccessAcrossTwoLinesTakesTheLaterOfBoth) {
  CacheModel cache(tiny());
  cache.access(0, 4, 1000, 1);
  const CacheAccess both = cache.access(62, 4, 2000, 1);
  EXPECT_EQ(both.level, 2u);
  EXPECT_EQ(both.done, 2100u);
  EXPECT_EQ(cache.access(64, 4, 3000, 1).level, 0u);
}

TEST(CacheModels, TranslationCostsAWalkOnceAPage) {
  CacheConfig config = tiny();
  config.tlbs = {{2, 2, 0}, {4, 4, 7}};
  config.walk_latency = 30;
  CacheModel cache(config);
  const auto page = [&](uint64_t n) { return cache.access(n * 4096, 4, 1'000'000, 1).tlb_misses; };
  EXPECT_EQ(page(0), 2u);
  EXPECT_EQ(page(0), 0u);
  EXPECT_EQ(page(1), 2u);
  EXPECT_EQ(page(2), 2u);
  EXPECT_EQ(page(0), 1u);  // pushed out of the first TLB, known to the second
  EXPECT_EQ(page(3), 2u);
  EXPECT_EQ(page(4), 2u);
  EXPECT_EQ(page(1), 2u);  // the second TLB holds four
}

TEST(CacheModels, TheStridePrefetcherHidesAStreamAndNotAShuffle) {
  CacheConfig config = tiny();
  config.levels = {{32 << 10, 8, 4, Replacement::kLru}, {1 << 20, 8, 14, Replacement::kLru}};
  config.prefetch_distance = 8;
  CacheModel cache(config);
  uint64_t now = 0, late = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t done = cache.access(0x100000 + i * 64, 8, now, 42).done;
    if (i > 20 && done > now + 4) ++late;
    now += 50;
  }
  EXPECT_EQ(late, 0u);
  EXPECT_GT(cache.prefetched(), 900u);
  // A stream that begins again is followed again.
  for (uint64_t i = 0; i < 40'000; ++i) cache.access(0x10000000 + i * 64, 8, now += 50, 42);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t done = cache.access(0x10000000 + i * 64, 8, now, 42).done;
    if (i > 20 && done > now + 4) ++late;
    now += 50;
  }
  EXPECT_EQ(late, 0u);
  const uint64_t before = cache.prefetched();
  uint64_t random = 1;
  for (int i = 0; i < 1000; ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    cache.access(random >> 36, 8, now += 50, 43);
  }
  EXPECT_LT(cache.prefetched() - before, 20u);
}

TEST(CacheModels, RefuseShapesThatNoCacheHas) {
  CacheConfig config = tiny();
  config.levels[0].bytes = 300;
  EXPECT_FALSE(check(config));
  config = tiny();
  config.levels.clear();
  EXPECT_FALSE(check(config));
  config = tiny();
  config.line_bytes = 48;
  EXPECT_FALSE(check(config));
  config = tiny();
  config.tlbs = {{6, 2, 0}};
  EXPECT_FALSE(check(config));
}

}  // namespace
}  // namespace hindsight::lwp
