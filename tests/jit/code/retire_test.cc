#include "jit/code/retire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "jit/code/code_registry.h"
#include "jit/code/move_code.h"

namespace hindsight::jit {
namespace {

std::shared_ptr<CodeVersion> make_version(CodeArena& arena, uint32_t bytes = 64) {
  auto version = std::make_shared<CodeVersion>();
  version->memory = *arena.allocate(bytes);
  version->id = CodeRegistry::next_version_id();
  version->code_size = CodeOffset(bytes);
  version->entry = version->memory.executable();
  return version;
}

TEST(RetireList, FreesOnlyWhatNoThreadHolds) {
  auto arena = *CodeArena::create(1 << 20);
  RetireList list;
  auto held = make_version(*arena);
  list.add(held);
  list.add(make_version(*arena));
  const auto scan = [&](std::span<const CodeRange> ranges, std::vector<bool>& live) {
    for (size_t i = 0; i < ranges.size(); ++i) live[i] = ranges[i].begin == held->begin();
  };
  size_t reported = 0;
  EXPECT_EQ(list.collect(scan, [&](const CodeVersion&) { ++reported; }), 1u);
  EXPECT_EQ(reported, 1u);
  EXPECT_EQ(list.pending(), 1u);
  EXPECT_EQ(list.freed(), 1u);
  held.reset();
  EXPECT_EQ(list.collect([](auto, auto&) {}, nullptr), 1u);
  EXPECT_EQ(arena->bytes_in_use(), 0u);
}

TEST(RetireList, FreesTheWholeBehindItsPartsAndNotAtTheSameTime) {
  auto arena = *CodeArena::create(1 << 20);
  RetireList list;
  std::vector<CodeRelocation> nothing;
  auto whole = make_version(*arena);
  whole->tier = Tier::kOptimized;
  whole->hot_bytes = CodeOffset(32);
  whole->relocations = nothing;
  std::shared_ptr<CodeVersion> part = *copy_version(whole, *arena->allocate(32));
  EXPECT_EQ(part->code_size.value, 32u);
  EXPECT_EQ(part->whole.get(), whole.get());
  const auto no_thread = [](auto, auto&) {};
  list.add(std::move(whole));
  EXPECT_EQ(list.collect(no_thread, nullptr), 0u) << "a thread in the part may go on in the whole";
  list.add(std::move(part));
  EXPECT_EQ(list.collect(no_thread, nullptr), 1u) << "a thread may have gone on during the scan";
  EXPECT_EQ(list.collect(no_thread, nullptr), 1u);
  EXPECT_EQ(arena->bytes_in_use(), 0u);
}

TEST(RetireList, FreesWhatComesFirstWhereAThreadStopsAnswering) {
  auto arena = *CodeArena::create(1 << 20);
  RetireList list;
  const auto first = make_version(*arena), second = make_version(*arena);
  const std::byte* const behind = second->begin();
  list.add(first);
  list.add(second);
  const auto answered_once = [](std::span<const CodeRange>, std::vector<bool>& live) {
    std::fill(live.begin() + 1, live.end(), true);
  };
  EXPECT_EQ(list.collect(answered_once, [&](const CodeVersion& freed) { EXPECT_NE(freed.begin(), behind); }),
            1u);
  EXPECT_EQ(list.pending(), 1u);
  const auto nobody_answers = [](std::span<const CodeRange>, std::vector<bool>& live) {
    std::fill(live.begin(), live.end(), true);
  };
  EXPECT_EQ(list.collect(nobody_answers, nullptr), 0u);
  EXPECT_EQ(list.pending(), 1u);
}

TEST(RetireList, ManyThreadsRetireAndCollectAtOnceAndEachVersionIsReportedOnce) {
  auto arena = *CodeArena::create(8 << 20);
  RetireList list;
  std::atomic<size_t> reported = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        list.add(make_version(*arena));
        list.collect([](auto, auto&) {}, [&](const CodeVersion&) { ++reported; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  list.collect([](auto, auto&) {}, [&](const CodeVersion&) { ++reported; });
  EXPECT_EQ(reported, 800u);
  EXPECT_EQ(list.freed(), 800u);
  EXPECT_EQ(list.pending(), 0u);
}

TEST(CodeRegistry, FindsAVersionByAnyOfItsAddresses) {
  auto arena = *CodeArena::create(1 << 20);
  CodeRegistry registry;
  const auto module = std::make_shared<const wasm::Module>();
  auto a = make_version(*arena, 128);
  auto b = make_version(*arena, 128);
  registry.add(module, a);
  registry.add(module, b);
  EXPECT_EQ(registry.find(a->begin())->version, a);
  EXPECT_EQ(registry.find(a->end() - 1)->version, a);
  EXPECT_EQ(registry.find(b->begin() + 5)->version, b);
  EXPECT_FALSE(registry.find(b->end() + 1000));
  registry.remove(*a);
  EXPECT_FALSE(registry.find(a->begin()));
  EXPECT_EQ(registry.size(), 1u);
}

TEST(CodeRegistry, ReadersAndWritersRunAtOnce) {
  auto arena = *CodeArena::create(8 << 20);
  CodeRegistry registry;
  const auto module = std::make_shared<const wasm::Module>();
  auto stable = make_version(*arena);
  registry.add(module, stable);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        auto version = make_version(*arena);
        registry.add(module, version);
        registry.remove(*version);
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto found = registry.find(stable->begin());
        ASSERT_TRUE(found);
        EXPECT_EQ(found->version, stable);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(registry.size(), 1u);
}

}  // namespace
}  // namespace hindsight::jit
