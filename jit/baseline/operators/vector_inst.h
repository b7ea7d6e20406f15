// A vector operation in both encodings: SSE overwrites its first operand, AVX has a destination of its own.
#pragma once

#include <asmjit/asmjit.h>

namespace hindsight::jit::baseline {

struct VectorInst {
  asmjit::InstId sse = 0;
  asmjit::InstId avx = 0;
};

}  // namespace hindsight::jit::baseline

// HINDSIGHT_VP(addb): paddb and vpaddb. HINDSIGHT_VF(Addps, addps): addps and vaddps.
#define HINDSIGHT_VP(name) \
  (::hindsight::jit::baseline::VectorInst{asmjit::x86::Inst::kIdP##name, asmjit::x86::Inst::kIdVp##name})
#define HINDSIGHT_VF(sse, avx) \
  (::hindsight::jit::baseline::VectorInst{asmjit::x86::Inst::kId##sse, asmjit::x86::Inst::kIdV##avx})
