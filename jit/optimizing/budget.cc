#include "jit/optimizing/budget.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

#include "base/free_memory.h"
#include "jit/optimizing/pass_limits.h"

namespace hindsight::jit::optimizing {
namespace {

// Some ten times what functions of programs take on a busy machine. For functions of hundreds of KiB, what a guest may well take from a
// background thread, and no more.
constexpr double kFixedSeconds = 2, kSecondsPerByte = 1e-4, kMostSeconds = 20;
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
// What passes allocate between two looks fits into what is to be left. Before the first pass there has to be more: what LLVM takes for any
// function, and a kibibyte for each byte of a large one.
constexpr auto kBetweenLooksAtMemory = std::chrono::milliseconds(50);
constexpr uint64_t kLeastFree = uint64_t{24} << 20, kLeastFreeToBegin = uint64_t{48} << 20,
                   kBytesPerByte = 1024;

double seconds_for(const OptimizeRequest& request) {
  return std::min(kMostSeconds, kFixedSeconds + kSecondsPerByte * bytes_to_compile(request));
}

uint64_t least_free_for(const OptimizeRequest& request) {
  return kLeastFreeToBegin + kBytesPerByte * bytes_to_compile(request);
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Budget::Budget(const OptimizeRequest& request)
    : request_(request), begin_(now()), seconds_(seconds_for(request)) {}

double Budget::now() const {
  return request_.meters != nullptr ? request_.meters->thread_seconds() : thread_seconds();
}

Budget::Clock::duration Budget::between(Clock::duration looks) const {
  return request_.meters != nullptr ? Clock::duration{} : looks;
}

uint64_t Budget::free() const {
  return request_.meters != nullptr ? request_.meters->free_memory() : free_memory();
}

Status Budget::check_begin() {
  free_ = free();
  if (free_ < least_free_for(request_)) why_ = NoCode::kNoMemory;
  return check();
}

bool Budget::is_over() {
  if (why_) return true;
  if (request_.give_way) request_.give_way();
  // Relaxed: nothing is published by it.
  const auto wished = [](const std::atomic<bool>* wish) {
    return wish != nullptr && wish->load(std::memory_order_relaxed);
  };
  if (wished(request_.abandoned) || wished(request_.process_ends)) why_ = NoCode::kAbandoned;
  // The thread's own clock is a system call, and what is free are several.
  const Clock::time_point now = Clock::now();
  if (!why_ && now >= next_look_) {
    next_look_ = now + between(kBetweenLooks);
    if (this->now() - begin_ > seconds_) why_ = NoCode::kTooSlow;
  }
  if (!why_ && now >= next_look_at_memory_) {
    next_look_at_memory_ = now + between(kBetweenLooksAtMemory);
    free_ = free();
    if (free_ < kLeastFree) why_ = NoCode::kNoMemory;
  }
  return why_.has_value();
}

Status Budget::check() {
  if (!is_over()) return {};
  char words[128];
  switch (*why_) {
    case NoCode::kAbandoned:
      return make_error(ErrorKind::kResource, "abandoned: nobody waits for the code");
    case NoCode::kNoMemory:
      std::snprintf(words, sizeof words, "abandoned: too little memory is left to compile it: %llu MiB",
                    static_cast<unsigned long long>(free_ >> 20));
      return make_error(ErrorKind::kResource, words);
    default:
      std::snprintf(words, sizeof words,
                    "abandoned: compiling took more than %.1f s of CPU time, the limit for its size",
                    seconds_);
      return make_error(ErrorKind::kResource, words);
  }
}

}  // namespace hindsight::jit::optimizing
