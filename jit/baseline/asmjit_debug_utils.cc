// asmjit's debugging hooks, defined here so that the archive's own are not linked. Those print to stderr,
// which a library of ours never does. In Debian's build they are not position independent either, which a
// shared library must be.
#include <asmjit/core.h>

#include <cstdlib>

ASMJIT_BEGIN_NAMESPACE

namespace DebugUtils {

const char* errorAsString(Error error) noexcept {
  switch (error) {
    case kErrorOk:
      return "ok";
    case kErrorOutOfMemory:
      return "out of memory";
    case kErrorInvalidArgument:
      return "invalid argument";
    case kErrorInvalidState:
      return "invalid state";
    case kErrorInvalidInstruction:
      return "invalid instruction";
    case kErrorInvalidDisplacement:
      return "invalid displacement";
    case kErrorRelocOffsetOutOfRange:
      return "relocation out of range";
    case kErrorTooLarge:
      return "too large";
    default:
      return "asmjit error";
  }
}

void debugOutput(const char*) noexcept {}

// Only for asmjit's own bugs: its release build has no assertions left that call this.
void assertionFailed(const char*, int, const char*) noexcept {
  std::abort();
}

}  // namespace DebugUtils

ASMJIT_END_NAMESPACE
