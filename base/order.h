// Says to ThreadSanitizer what a library that it does not see into orders: everything before
// order_before(key) on one thread comes before everything behind order_after(key) on another. Only where such
// an order exists; nothing is generated in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace hindsight {

#if defined(__SANITIZE_THREAD__)
inline void order_before(void* key) {
  __tsan_release(key);
}
inline void order_after(void* key) {
  __tsan_acquire(key);
}
#else
inline void order_before(void*) {}
inline void order_after(void*) {}
#endif

}  // namespace hindsight
