// Stacks of a host's own, and fibers that run on them.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace hindsight {

// Memory of which a host makes stacks.
class Mapping {
 public:
  explicit Mapping(size_t bytes)
      : begin_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        bytes_(bytes) {
    EXPECT_NE(begin_, MAP_FAILED);
  }
  ~Mapping() { munmap(begin_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* const begin_;
  const size_t bytes_;
};

// One stack, with a page below it that nobody may touch.
class GuardedStack {
 public:
  explicit GuardedStack(size_t bytes) : memory_(bytes + kPage) {
    EXPECT_EQ(mprotect(memory_.begin(), kPage, PROT_NONE), 0);
  }
  std::span<std::byte> bytes() const { return {memory_.begin() + kPage, memory_.bytes() - kPage}; }

 private:
  static constexpr size_t kPage = 4096;
  const Mapping memory_;
};

// Runs `body` on a stack, which outlives it, in turns with who resumes it.
class Fiber {
 public:
  Fiber(std::span<std::byte> stack, std::function<void()> body) : body_(std::move(body)) {
    EXPECT_EQ(getcontext(&there_), 0);
    there_.uc_stack.ss_sp = stack.data();
    there_.uc_stack.ss_size = stack.size();
    there_.uc_link = &here_;
    const auto address = reinterpret_cast<uintptr_t>(this);
    makecontext(&there_, reinterpret_cast<void (*)()>(&begin), 2, static_cast<uint32_t>(address),
                static_cast<uint32_t>(address >> 32));
  }
  ~Fiber() { EXPECT_TRUE(is_over_); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume() { EXPECT_EQ(swapcontext(&here_, &there_), 0); }
  void yield() { EXPECT_EQ(swapcontext(&there_, &here_), 0); }  // on the fiber
  bool is_over() const { return is_over_; }

 private:
  static void begin(uint32_t low, uint32_t high) {
    auto& fiber = *reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
    fiber.body_();
    fiber.is_over_ = true;
  }
  std::function<void()> body_;
  ucontext_t there_{}, here_{};
  bool is_over_ = false;
};

// Runs `body` there, to its end.
inline void run_on(const GuardedStack& stack, std::function<void()> body) {
  Fiber(stack.bytes(), std::move(body)).resume();
}

}  // namespace hindsight
