// Linked into a program, gives it the instructions within its own process, before main.
#include <cstdio>
#include <cstdlib>

#include "feedback/lwp/emulation/sigill_emulation.h"

namespace {
[[gnu::constructor]] void install() {
  const hindsight::Status installed =
      hindsight::lwp::install_lwp_emulation(hindsight::lwp::IfSigillIsHandled::kRefuse);
  if (installed) return;
  std::fprintf(stderr, "%s\n", installed.error().describe().c_str());
  std::exit(1);
}
}  // namespace
