// Which threads may still hold addresses of unpublished code? The scanner for jit::RetireList.
//
// Argument. Each thread stores `inside` (sequentially consistent) before it reads any entry slot. The scanner runs
// after the slots were overwritten, and a sequentially consistent fence. If it then reads inside == 0, the thread's
// next slot read comes after its store of `inside`, hence after our read in the total order. Hence it sees the new
// slots: the thread can be skipped. If it reads inside != 0, the thread is sent a signal. The handler looks at the
// interrupted registers and at every word that an entry of the thread's has on a stack (guest_thread.h). There may be
// several stacks: a guest that was left on one is inside as long as its entry has not ended.
//
// A thread that does not answer (it blocks the signal, or does not get to run) holds a scan up for its whole patience,
// once. From then on nobody waits for it until it answers, which it does by itself once it gets the signal. What is
// safe is to take all for live as long as it is inside, and so that is what scans say at once.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "jit/code/retire.h"

namespace hindsight::rt {

// For RetireList::collect. Any thread outside the guest, or inside (it then scans itself); one scan at a
// time. If a thread does not answer within `patience`, all ranges that it was not known to be out of by then are taken
// for live.
void scan_guest_threads(std::span<const jit::CodeRange> ranges, std::vector<bool>& live,
                        std::chrono::milliseconds patience = std::chrono::milliseconds(200));

}  // namespace hindsight::rt
