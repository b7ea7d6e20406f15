#include "jit/baseline/place_code.h"

#include <string>

namespace hindsight::jit {

std::unexpected<Error> asmjit_error(asmjit::Error error, const char* doing) {
  const ErrorKind kind = error == asmjit::kErrorOutOfMemory ? ErrorKind::kResource : ErrorKind::kInternal;
  return make_error(kind, std::string(doing) + ": " + asmjit::DebugUtils::errorAsString(error), "assembler");
}

asmjit::Environment code_environment() {
  return asmjit::Environment::host();
}

Result<CodeAllocation> place_code(asmjit::CodeHolder& code, CodeArena& arena, size_t alignment) {
  if (const auto e = code.flatten()) return asmjit_error(e, "cannot lay out code");
  if (const auto e = code.resolveUnresolvedLinks()) return asmjit_error(e, "cannot resolve labels");
  const size_t estimated = code.codeSize();
  HINDSIGHT_ASSIGN(CodeAllocation memory, arena.allocate(estimated, alignment));
  if (const auto e = code.relocateToBase(reinterpret_cast<uint64_t>(memory.executable())))
    return asmjit_error(e, "cannot relocate code");
  if (code.codeSize() > memory.size())
    return asmjit_error(asmjit::kErrorInvalidState, "code grew while it was relocated");
  if (const auto e = code.copyFlattenedData(memory.write().bytes().data(), memory.size()))
    return asmjit_error(e, "cannot copy code");
  return memory;
}

}  // namespace hindsight::jit
