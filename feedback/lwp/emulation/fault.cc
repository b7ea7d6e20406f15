#include "feedback/lwp/emulation/fault.h"

#include <fmt/format.h>

namespace hindsight::lwp {

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kInvalidOpcode:
      return "#UD";
    case FaultKind::kGeneralProtection:
      return "#GP";
    case FaultKind::kPageFault:
      return "#PF";
  }
  return "?";
}

Error to_error(const Fault& fault) {
  ErrorKind kind = ErrorKind::kUsage;
  if (fault.kind == FaultKind::kInvalidOpcode) kind = ErrorKind::kUnsupported;
  if (fault.kind == FaultKind::kPageFault) kind = ErrorKind::kResource;
  std::string message = fmt::format("{}: {}", to_string(fault.kind), fault.reason);
  if (fault.address != 0) message += fmt::format(" (at {:#x})", fault.address);
  return make_error(kind, std::move(message)).error();
}

}  // namespace hindsight::lwp
