// Stopping a guest from outside without polls in its code.
//
// interrupt() marks the store (flag, and a stack limit that fails at the next function entry) and sends a
// signal to the thread inside. Its handler looks where the thread is: in generated code it redirects the
// thread to the trap path; anywhere else (host function, builtin, trampoline) it leaves the mark, which
// function entries and the ends of host calls notice. One timer thread repeats the signal each millisecond
// until the entry has ended, because a signal may always come while the thread is in between.
//
// Stale interrupts: marks are set only under EntryState::mutex while a thread is inside, and cleared under it
// when the outermost entry ends. So a signal that arrives late finds no mark, and a mark never outlives the
// entry for which it was made.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/instance/store.h"

namespace hindsight::rt {

// Any thread. No effect if no thread is inside the store. True if one was.
bool interrupt(const std::shared_ptr<Store>& store);
// The same, or, if nobody is inside, the next entry is ended as soon as it begins: whatever the thread that the
// store belongs to is doing, one entry will end so.
void interrupt_now_or_next(const std::shared_ptr<Store>& store);
// Takes the latter back.
void forget_interruption(const std::shared_ptr<Store>& store);
// interrupt(store) once `limit` has passed; replaces an earlier limit of the store; zero cancels. If nobody
// is inside at that time, the next entry is ended as soon as it begins: a limit is never missed between two
// entries. It ends one entry.
void set_timeout(const std::shared_ptr<Store>& store, std::chrono::milliseconds limit);

}  // namespace hindsight::rt
