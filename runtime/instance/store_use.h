// StoreUse: the right of a thread to use a store, while it lives. Taken where the embedder comes in: by the outermost
// call, instantiation or write; those inside of it have it already.
//
// Argument: Store::user is the address of a thread-local object, so no two living threads have the same. A thread that
// finds its own there has put it there (relaxed is enough to see that). Taking it is an acquire that pairs with the
// release of who had it, so that what that one did in the store is seen. It costs one compare-and-exchange an outermost
// call.
#pragma once

#include "runtime/instance/store.h"

namespace hindsight::rt {

class StoreUse {
 public:
  explicit StoreUse(Store& store) : store_(store) {
    static thread_local char t_marker;
    const void* const self = &t_marker;
    if (store.user.load(std::memory_order_relaxed) == self) {
      held_ = true;
      return;
    }
    const void* nobody = nullptr;
    held_ = mine_ = store.user.compare_exchange_strong(nobody, self, std::memory_order_acquire,
                                                       std::memory_order_relaxed);
  }
  ~StoreUse() {
    if (mine_) store_.user.store(nullptr, std::memory_order_release);
  }
  StoreUse(const StoreUse&) = delete;
  StoreUse& operator=(const StoreUse&) = delete;

  // False: another thread uses the store.
  explicit operator bool() const { return held_; }
  static std::unexpected<Error> refusal() {
    return make_error(ErrorKind::kUsage,
                      "another thread is using the instance's store; a store is one thread's at a time");
  }

 private:
  Store& store_;
  bool held_ = false;
  bool mine_ = false;  // taken here
};

}  // namespace hindsight::rt
