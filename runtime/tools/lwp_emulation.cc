// The LWP instructions of native code, as the public API offers them; all of the work is feedback/lwp's.
#include "feedback/lwp/emulation/sigill_emulation.h"
#include "feedback/lwp/emulation/trace_emulation.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {

Result<LwpEmulationReport> emulate_lwp(const LwpEmulation& emulation) {
  HINDSIGHT_ASSIGN(const lwp::TraceReport trace,
                   lwp::run_emulated({.command = emulation.command, .started = emulation.started}));
  LwpEmulationReport report;
  report.exit_status = trace.exit_status;
  report.signal = trace.signal;
  report.llwpcb = trace.counts.of(lwp::Operation::kLlwpcb);
  report.slwpcb = trace.counts.of(lwp::Operation::kSlwpcb);
  report.lwpins = trace.counts.of(lwp::Operation::kLwpins);
  report.lwpval = trace.counts.of(lwp::Operation::kLwpval);
  report.faults = trace.counts.faults;
  report.programs = trace.programs;
  report.processes = trace.processes;
  report.threads = trace.threads;
  report.cpuid_shown = trace.cpuid_shown;
  report.cpuid_reason = trace.cpuid_reason;
  return report;
}

Status emulate_lwp_here(bool even_if_handled) {
  return lwp::install_lwp_emulation(even_if_handled ? lwp::IfSigillIsHandled::kChain
                                                    : lwp::IfSigillIsHandled::kRefuse);
}

}  // namespace hindsight
