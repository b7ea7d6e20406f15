#include "runtime/code/exit_gate.h"

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "runtime/exec/guest_thread.h"

namespace hindsight::rt {
namespace {

// Changed under the gate's lock, which is held as well where it decides, in enter(). Relaxed: read without it, it is a wish.
constinit std::atomic<bool> g_shut{false};
constinit thread_local bool t_shut_it = false;
constinit thread_local uint32_t t_inside = 0;

struct Gate {
  std::mutex mutex;  // protects what follows, and the change of g_shut
  std::condition_variable left;
  uint64_t inside = 0;  // as often as threads are inside
};
Gate* g_gate = nullptr;

// Another one in a child of fork(), where nobody else is: written where one thread lives.
Gate& gate() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_gate = new Gate;
    at_fork_in_child([] {
      g_gate = new Gate;
      g_gate->inside = t_inside;
    });
  });
  return *g_gate;
}

bool enter() {
  Gate& g = gate();
  const std::lock_guard lock(g.mutex);
  // Who is inside already may go on with what it does there: it is waited for.
  if (g_shut.load(std::memory_order_relaxed) && t_inside == 0) return false;
  ++g.inside;
  ++t_inside;
  return true;
}

void leave() {
  Gate& g = gate();
  const std::lock_guard lock(g.mutex);
  --g.inside;
  --t_inside;
  // Under the lock: who waits may end the process as soon as it is free.
  g.left.notify_all();
}

void shut() {
  Gate& g = gate();
  std::unique_lock lock(g.mutex);
  t_shut_it = true;
  g_shut.store(true, std::memory_order_relaxed);
  g.left.wait_for(lock, ExitGate::kPatience, [&] { return g.inside <= t_inside; });
}

}  // namespace

bool ExitGate::shut_at_exit() {
  (void)gate();  // not for the first time at exit()
  return std::atexit(rt::shut) == 0;
}

const std::atomic<bool>& ExitGate::shut() {
  return g_shut;
}

bool ExitGate::shut_by_this_thread() {
  return t_shut_it;
}

ExitGate::Inside::Inside() : inside_(enter()) {}
ExitGate::Inside::~Inside() {
  if (inside_) leave();
}

}  // namespace hindsight::rt
