// The hardware unit: the processor's own sampling for the events that it can deliver, the clock unit for the
// rest. Internal to this room; made through select_unit.
//
// Event 5 and the stalls that are weighed by time always come from the clock beside it. How much of a
// thread's time a load costs cannot be read off samples of loads, because their latencies overlap. The
// hardware adds events 2, 3 and 4 with exact instructions, addresses, latencies, sources and predictions, in
// Batch::hardware and Batch::taken_branches. An event that the kernel refuses stays what the clock unit makes
// of it, and its row in events() says why.
#pragma once

#include <memory>
#include <string>

#include "feedback/lwp/units/hardware/hardware_plan.h"
#include "feedback/lwp/units/perf_kernel.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

// `clock` makes the clock units that hardware units have beside them. `kernel` must outlive the factory and
// its units. Asks the kernel once what events() can promise.
std::unique_ptr<UnitFactory> make_hardware_factory(PerfKernel& kernel, HardwareMachine machine,
                                                   std::unique_ptr<UnitFactory> clock);

// Why not one hardware event can be had on this machine, event by event; empty if at least one can.
std::string hardware_refusal(PerfKernel& kernel, const HardwareMachine& machine);

}  // namespace hindsight::lwp
