// A machine that has no thread left for anyone who asks without a stack of his own, as long as this exists. std::thread says EAGAIN,
// as it does where the number of threads is limited. Threads that are there stay.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace hindsight {

class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t attributes;
    EXPECT_EQ(::pthread_getattr_default_np(&attributes), 0);
    // More than there are addresses.
    EXPECT_EQ(::pthread_attr_setstacksize(&attributes, size_t{1} << 48), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&attributes), 0);
    (void)::pthread_attr_destroy(&attributes);
  }
  ~NoThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    (void)::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace hindsight
