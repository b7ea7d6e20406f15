#include "jit/code/code_arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hindsight::jit {
namespace {

TEST(CodeArena, WhatIsWrittenThroughOneViewRunsThroughTheOther) {
  auto arena = *CodeArena::create(1 << 20);
  CodeAllocation code = *arena->allocate(6);
  const unsigned char bytes[] = {0xb8, 42, 0, 0, 0, 0xc3};  // mov eax, 42; ret
  std::memcpy(code.writable().data(), bytes, sizeof bytes);
  EXPECT_NE(static_cast<const void*>(code.executable()), code.writable().data());
  EXPECT_EQ(reinterpret_cast<int (*)()>(reinterpret_cast<uintptr_t>(code.executable()))(), 42);
  EXPECT_TRUE(arena->contains(code.executable()));
  EXPECT_FALSE(arena->contains(code.writable().data()));
}

int answer() {
  return 42;
}

TEST(CodeArena, ANearEntryLeadsToItsFunctionAndIsMadeOnce) {
  auto arena = *CodeArena::create(1 << 20);
  const std::byte* entry = *arena->near_entry(reinterpret_cast<const void*>(answer));
  EXPECT_TRUE(arena->contains(entry));
  EXPECT_EQ(reinterpret_cast<int (*)()>(reinterpret_cast<uintptr_t>(entry))(), 42);
  EXPECT_EQ(*arena->near_entry(reinterpret_cast<const void*>(answer)), entry);
  EXPECT_EQ(arena->bytes_in_use(), 0u);
  std::vector<std::thread> threads;
  std::vector<const std::byte*> seen(4);
  for (size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&, i] { seen[i] = *arena->near_entry(reinterpret_cast<const void*>(std::abort)); });
  for (std::thread& thread : threads) thread.join();
  for (const std::byte* each : seen) EXPECT_EQ(each, seen[0]);
  EXPECT_EQ(arena->bytes_in_use(), 0u);
}

TEST(CodeArena, FreedPiecesAreFilledWithBreakpointsJoinedAndUsedAgain) {
  auto arena = *CodeArena::create(1 << 16);
  {
    std::vector<CodeAllocation> pieces;
    for (;;) {
      auto piece = arena->allocate(1000);
      if (!piece) {
        EXPECT_EQ(piece.error().kind, ErrorKind::kResource);
        break;
      }
      pieces.push_back(std::move(*piece));
    }
    EXPECT_EQ(pieces.size(), size_t{65536 / 1024});
    const std::byte* first = pieces[0].executable();
    pieces[0] = CodeAllocation();
    EXPECT_EQ(first[0], std::byte{0xcc});
    EXPECT_TRUE(arena->allocate(1024));
  }
  EXPECT_EQ(arena->bytes_in_use(), 0u);
  EXPECT_TRUE(arena->allocate(65536));
}

TEST(CodeArena, PiecesAllocatedTogetherLieBehindEachOtherAndAreFreedOneByOne) {
  auto arena = *CodeArena::create(8 << 20);
  const CodeAllocation padding = *arena->allocate(100);
  const size_t sizes[] = {100, 64, 1, 5000};
  auto pieces = *arena->allocate_together(sizes, kHugeCodePage);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[0].executable()) % kHugeCodePage, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[0].writable().data()) % kHugeCodePage, 0u);
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_GE(pieces[i].size(), sizes[i]);
    if (i > 0) {
      EXPECT_EQ(pieces[i].executable(), pieces[i - 1].executable() + pieces[i - 1].size());
    }
    std::memset(pieces[i].writable().data(), static_cast<int>(i), pieces[i].size());
  }
  const size_t in_use = arena->bytes_in_use();
  const size_t freed = pieces[1].size();
  pieces[1] = CodeAllocation();
  EXPECT_EQ(arena->bytes_in_use(), in_use - freed);
  EXPECT_EQ(pieces[2].executable()[0], std::byte{2});
  pieces.clear();
  EXPECT_EQ(arena->bytes_in_use(), padding.size());
}

TEST(CodeArena, PiecesThatDoNotFitTogetherLeaveTheArenaAsItWas) {
  auto arena = *CodeArena::create(1 << 16);
  const size_t sizes[] = {40'000, 40'000};
  const auto pieces = arena->allocate_together(sizes);
  ASSERT_FALSE(pieces);
  EXPECT_EQ(pieces.error().kind, ErrorKind::kResource);
  const size_t huge[] = {1, ~size_t{0}};
  EXPECT_FALSE(arena->allocate_together(huge));
  EXPECT_EQ(arena->bytes_in_use(), 0u);
  EXPECT_TRUE(arena->allocate(1 << 16));
}

TEST(CodeArena, RandomUseNeverOverlapsAndKeepsAlignment) {
  auto arena = *CodeArena::create(1 << 20);
  std::mt19937 random(7);
  std::vector<std::pair<CodeAllocation, std::byte>> live;
  for (int i = 0; i < 4000; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const size_t alignment = size_t{64} << (random() % 7);
      auto piece = arena->allocate(1 + random() % 5000, alignment);
      if (!piece) continue;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece->executable()) % alignment, 0u);
      const auto mark = static_cast<std::byte>(random());
      std::memset(piece->writable().data(), static_cast<int>(mark), piece->size());
      live.emplace_back(std::move(*piece), mark);
    } else {
      const size_t k = random() % live.size();
      for (const std::byte b : live[k].first.writable()) ASSERT_EQ(b, live[k].second);
      live[k] = std::move(live.back());
      live.pop_back();
    }
  }
  live.clear();
  EXPECT_EQ(arena->bytes_in_use(), 0u);
}

TEST(CodeArena, ThreadsAllocateAndFreeAtOnce) {
  auto arena = *CodeArena::create(8 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (int i = 0; i < 500; ++i) {
        auto piece = arena->allocate(100 + static_cast<size_t>(i));
        ASSERT_TRUE(piece);
        std::memset(piece->writable().data(), t, piece->size());
        ASSERT_TRUE(arena->contains(piece->executable()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(arena->bytes_in_use(), 0u);
}

// Runs `body` in a child; its status, or 1000 and the signal that ended it.
int status_in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

void fill(const CodeAllocation& piece, int byte) {
  const CodeWriting writing = piece.write();
  std::memset(writing.bytes().data(), byte, writing.bytes().size());
}

bool holds(const CodeAllocation& piece, int byte) {
  const auto same = [&](std::byte b) { return b == static_cast<std::byte>(byte); };
  const std::span<const std::byte> executable(piece.executable(), piece.size());
  return std::ranges::all_of(piece.writable(), same) && std::ranges::all_of(executable, same);
}

TEST(CodeArena, AfterAForkEachProcessHasWhatItWroteItself) {
  auto arena = *CodeArena::create(16 << 20);
  CodeAllocation before = *arena->allocate(10'000);
  CodeAllocation large = *arena->allocate(5 << 20);  // over several chunks
  fill(before, 1);
  fill(large, 2);
  int turn[2], back[2];
  ASSERT_EQ(pipe(turn), 0);
  ASSERT_EQ(pipe(back), 0);
  char byte = 0;
  const pid_t child = fork();
  if (child == 0) {
    fill(before, 3);
    CodeAllocation mine = *arena->allocate(1 << 20);
    fill(mine, 4);
    bool right = write(back[1], "x", 1) == 1 && read(turn[0], &byte, 1) == 1;
    right = right && holds(before, 3) && holds(large, 2) && holds(mine, 4);
    large = {};
    right = right && holds(before, 3) && holds(mine, 4);
    _exit(right ? 0 : 1);
  }
  ASSERT_EQ(read(back[0], &byte, 1), 1);
  EXPECT_TRUE(holds(before, 1));
  EXPECT_TRUE(holds(large, 2));
  CodeAllocation mine = *arena->allocate(1 << 20);
  fill(mine, 5);
  fill(large, 6);
  before = {};
  ASSERT_EQ(write(turn[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(holds(large, 6));
  EXPECT_TRUE(holds(mine, 5));
  for (const int fd : {turn[0], turn[1], back[0], back[1]}) close(fd);
}

// Which memory is mapped there: equal numbers, the same memory.
uint64_t memory_at(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %lu", &begin, &end, &inode) != 3) continue;
    if (const auto at = reinterpret_cast<uint64_t>(address); at >= begin && at < end) return inode;
  }
  return 0;
}

TEST(CodeArena, WhatBothProcessesOnlyRunIsCopiedForNeither) {
  auto arena = *CodeArena::create(16 << 20);
  const CodeAllocation first = *arena->allocate(kHugeCodePage);
  const CodeAllocation second = *arena->allocate(kHugeCodePage);
  fill(first, 1);
  fill(second, 2);
  const uint64_t memory = memory_at(first.executable());
  ASSERT_NE(memory, 0u);
  EXPECT_EQ(memory_at(first.writable().data()), memory);
  EXPECT_EQ(status_in_child([&] {
              fill(second, 3);
              if (!holds(first, 1) || memory_at(first.executable()) != memory) return 1;
              fill(first, 4);
              const uint64_t mine = memory_at(first.executable());
              return mine != memory && memory_at(first.writable().data()) == mine && holds(first, 4) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(memory_at(first.executable()), memory);
}

TEST(CodeArena, ChildrenOfChildrenAllHaveTheirOwn) {
  auto arena = *CodeArena::create(4 << 20);
  CodeAllocation piece = *arena->allocate(100'000);
  fill(piece, 1);
  for (int i = 0; i < 5; i++) {
    EXPECT_EQ(status_in_child([&] {
                fill(piece, 2);
                const int grandchild = status_in_child([&] {
                  if (!holds(piece, 2)) return 1;
                  fill(piece, 3);
                  return holds(piece, 3) ? 0 : 2;
                });
                return grandchild == 0 && holds(piece, 2) ? 0 : 3;
              }),
              0);
    EXPECT_TRUE(holds(piece, 1));
  }
}

TEST(CodeArena, IsNoFileInTheEyesOfALimitOnTheSizeOfFiles) {
  EXPECT_EQ(status_in_child([] {
              const rlimit none{0, 0};
              if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
              auto arena = CodeArena::create();
              if (!arena) return 2;
              for (int i = 0; i < 10; i++) {
                auto piece = (*arena)->allocate(1 << 20);
                if (!piece) return 3;
                fill(*piece, i);
              }
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace hindsight::jit
