// ExitGate: what no thread but the one that ends the process may be doing while exit() takes it apart.
//
// exit(), and a return from main, destroy what is static on the thread that calls it, while all other threads go on. A
// compile would use objects of LLVM's, and a log callback the host's, that are gone by then. So there is a gate that such
// work goes through. exit() shuts it for good, by a handler of atexit(). That asks compiles to end soon and waits for
// those who are inside; nobody comes in afterwards. One a process, for all engines; never destroyed.
//
// Argument. Handlers run in the reverse order of what was registered, destructors of static objects among them. So what
// had been made when shut_at_exit() was called is still there while the handler waits. When it goes, nobody is inside. It
// is called with the first engine (for the host's objects), and before and after the optimizing tier is opened. The one
// before waits for an opening that exit() falls into, since opening is inside. The one after is for what LLVM made then,
// if it is not kept from destroying at all (jit/optimizing/never_destroyed.cc). What a host makes after its first engine
// and destroys while an engine lives its callbacks may not use: there nobody can wait in time.
//
// The wait has an end, kPatience. Should a thread inside wait for a lock that the exiting thread holds, exit() goes on
// after it, as it did without a gate. A thread that calls exit() inside does not wait for itself.
//
// Not all ends come by here. _exit(), quick_exit(), abort() and signals destroy nothing, so all go on to the last
// instant. In a child of fork() nobody is inside but the thread that forked, if it was.
#pragma once

#include <atomic>
#include <chrono>
#include <utility>

namespace hindsight::rt {

class ExitGate {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};

  // From now on exit() shuts the gate before it destroys what is there now. Any thread. Each call is remembered by libc
  // to the end of the process, so there should be few. False: no memory for it, or the process has all but ended.
  static bool shut_at_exit();

  // Set for good once exit() has begun: a wish to be quick. Relaxed is enough, entering says for sure.
  static const std::atomic<bool>& shut();
  // Inside the gate as long as it exists. Any thread, any number of times.
  class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    // False: the process is ending, keep out.
    explicit operator bool() const { return inside_; }

   private:
    const bool inside_;
  };

  // Calls a function of the host's, inside. Not once exit() has begun, but on the thread that ends the process: what that
  // does it does in order.
  template <typename Call>
  static void call_host(Call&& call) {
    const Inside inside;
    if (inside || shut_by_this_thread()) std::forward<Call>(call)();
  }

 private:
  static bool shut_by_this_thread();
};

}  // namespace hindsight::rt
