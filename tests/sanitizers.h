// Which sanitizer a test was built with, and how a test that cannot work under one says so. For tests alone:
// the library is the same under all of them.
#pragma once

#include <gtest/gtest.h>

namespace hindsight {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace hindsight

// ThreadSanitizer holds a signal back until the thread next calls into its run-time library, and then hands
// the handler a copy of the context. So nothing redirects a thread that is in generated code, and a thread
// that stays there is never asked anything.
#define HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS() \
  if (::hindsight::kThreadSanitizer)            \
  GTEST_SKIP() << "ThreadSanitizer delays signals, and a thread in generated code never takes them"
