// The native unit: the processor's own Lightweight Profiling. attach() arms a control block on the guest
// thread with LLWPCB, the processor fills its ring, and the monitor reads it while it fills.
//
// What the reader may trust. The processor may hold a record and the head back; whatever the head in memory
// says is there is complete. So drain() hands out what has been published. detach(), which is SLWPCB and
// LLWPCB(0) on the guest thread, publishes the rest for the last drain().
//
// The unit has two rings. The processor keeps the head of its ring to itself, so what instrumented code of
// this library records goes into ring(). drain() reads both, each in order.
//
// Rates. The interval of each event is chosen for the asked number of records a second from a usual rate of
// that event (nominal_rate). LWP counts events and not time. set_frequency() writes new intervals into the
// block. They hold from the next attach() at the latest. They hold from the next reload where the processor
// reads intervals in the block (it saves none in its XSAVE area). Value samples and programmed events are
// recorded one and all.
#pragma once

#include <memory>

#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

// Events of this kind that busy code causes in a second: 0 for those that are all recorded. An order of
// magnitude; only the number of records depends on it.
uint64_t nominal_rate(EventId id);

// For a thread on a processor of these capabilities; they must be free of why_not_native()'s objections. The
// instructions must work: natively, or emulated for this process (sigill_emulation.h).
// Unit::attach: kUsage if the thread's LWP is on already, on behalf of somebody else.
std::unique_ptr<UnitFactory> make_native_factory(const Capabilities& capabilities);

}  // namespace hindsight::lwp
