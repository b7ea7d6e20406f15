// Stopping a guest from outside without polls in its code.
//
// Who asks. Three have reasons to end an entry, and each reason is a bit of EntryState::asked:
//   the embedder  interrupt(). Sticky: it ends one entry, the one that a thread is in or the next one, with
//                 TrapCode::kInterrupted. It is taken back by clear_interrupt() or by the entry that ends so, and by
//                 nothing else: not by an entry that came to its end by itself before it noticed.
//   the program   end_program(), of GuestThreads: sticky as well, until continue_program().
//   the time      each outermost entry has the store's limit for itself: its deadline is made as it begins and goes
//                 with it, noticed or not. It never hits another entry. TrapCode::kTimedOut.
// What is asked before an entry begins ends it before any of its code runs.
//
// How a thread inside is reached. It gets a mark (ThreadState: the reason, and a stack limit that fails at the next
// function entry) and a signal. The signal's handler looks where the thread is. In generated code it redirects the
// thread to the trap path. Anywhere else (host function, builtin, trampoline, a memset that a loop became) it leaves the
// mark. Function entries notice the mark, and so do the ends of host calls and builtins, and optimized loops around a
// long call (jit/optimizing/mark_checks.h). The latter do because a loop may spend all but a millionth of its time in
// such a call. One timer thread repeats the signal until the entry has ended, because a signal may always come while the
// thread is in between.
//
// What may be in the way. The signal is a standard one: it needs no entry of the user's quota of pending signals, and
// never waits in a queue twice. It must not be blocked, nor may SIGSEGV and SIGBUS, with which guest memory is guarded.
// What is done about it is a system call of some 170 ns where an entry or a host call takes 34.
//   Threads let the three through at their first 16 entries, and at every 256th. One that is found to block them in
//   between does so at each entry from then on. (A thread's very first entry tells how the host makes threads only.)
//   With a time limit, each entry lets them through, also one inside of another. So does the end of each host function
//   (34 ns become 205). So a limit holds whatever the host does to its signals.
//   A thread in which the signal has no effect ten times is asked after (SigBlk in /proc, and sigaction). If it blocks
//   the signal, or the host has put another handler in its place, it is sent SIGSEGV or SIGBUS. SigBlk says the same of a
//   thread that stands in our handler: it blocks the signal if it has run with it blocked. The one is chosen that
//   it lets through to this library's handler, which does then what the other would have done. Whoever does not block
//   these because guests need them is so reached without the kick, and no other thread notices anything. (To take the
//   permission to execute from the code would reach the same threads, since it is by SIGSEGV that they would hear of
//   it. But it would end the process where one thread blocks SIGSEGV, and stop all the others.)
//   A thread may block all three in a host function of an entry without a limit, and then run a loop without calls and
//   builtins. It is out of reach.
// Either is told to the embedder by a warning, once an entry, and counted (base/system_failures.h).
// Deadlines themselves are the timer thread's waits on a condition variable, and need no signal, no timer of the
// kernel's and no quota. Where that thread cannot be started, an entry with a limit fails before it runs.
//
// The signal in the kick's place. What is sent is counted in GuestThread before, and known by its sender: other signals
// of its kind are faults, or the host's. Two may be on their way, one whose handler has begun and one that waits for its
// end. They may also come when the entry has ended. Each takes one of the count; with none left a signal is the host's.
// It is only sent to a thread that lets it through and that none waits for, whose entry the lock keeps open. Should the
// thread block it in that moment, it waits until the thread does not. The kernel drops it where one waits already: then
// one more of the host's own is taken for ours, once. It drops a fault's own where this one waits: the fault then happens
// again. A handler of the host's that takes the place of ours in that moment gets a signal that it does not know.
//
// Who keeps what: the timer knows entries, never stores (EntryState), so that a store ends on a thread of its host's.
// With its store it forgets an entry. A store that is called again and again keeps its place in the timer's list meanwhile.
//
// Stale marks: they are set only under EntryState::mutex while a thread is inside, and removed under it when the
// outermost entry ends. So a signal that arrives late finds none.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/instance/store.h"

namespace hindsight::rt {

// Any thread; these return at once.
void interrupt(const std::shared_ptr<Store>& store);
void clear_interrupt(
    const std::shared_ptr<Store>& store);  // no effect on an entry that is being ended already
void end_program(const std::shared_ptr<Store>& store);
void continue_program(const std::shared_ptr<Store>& store);
// For each outermost entry that begins from now on, and, from now on, for the one that a thread is in; zero: none.
void set_timeout(const std::shared_ptr<Store>& store, std::chrono::milliseconds limit);

// When an entry that begins now is to end; the end of time without a limit, or with one of more than a century.
inline std::chrono::steady_clock::time_point deadline_of(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  if (limit.count() == 0 || limit > std::chrono::years(100)) return Clock::time_point::max();
  return Clock::now() + limit;
}
// Called as the entry begins: sees to it that somebody looks at the store at entry_state().deadline. False: no thread
// can be started for it.
[[nodiscard]] bool watch_deadline(Store& store, std::chrono::steady_clock::time_point deadline);

// How many entries' deadlines the timer is to look at.
size_t watched_entries();

// Why the entry that the calling thread is in is to end; kNone: it is not.
inline jit::TrapCode asked_to_end(const Store& store) {
  // Acquire pairs with the release store of stack_limit, which comes after the mark: who sees a limit of ~0 sees the
  // mark.
  return static_cast<jit::TrapCode>(store.thread()->interrupt_requested.load(std::memory_order_acquire));
}
inline bool is_interruption(jit::TrapCode code) {
  return code == jit::TrapCode::kInterrupted || code == jit::TrapCode::kTimedOut;
}

}  // namespace hindsight::rt
