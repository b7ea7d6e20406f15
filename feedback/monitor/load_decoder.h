// Which load does a clock sample stand right after? An out-of-order core takes the timer interrupt when the
// stalled load retires. So the sampled pc is the instruction right after it, and the sample's registers still
// hold the load's base and index. Measured: 96-99 % and 95 % of the samples of a missing load.
//
// A store that misses waits in a buffer, and nobody waits for it until that is full. Then samples stand after the stores of
// the loop: after the one that misses in 84-98 % of them where there are few others, 68 % among seven that hit (Zen 5).
// Other processors may spread them.
#pragma once

#include <cstdint>
#include <optional>

#include "feedback/lwp/format/sample.h"
#include "jit/code/code_version.h"

namespace hindsight::feedback {

struct PrecedingAccess {
  jit::CodeVersion const* version = nullptr;
  CodeOffset instruction;  // start of it
  // Effective address; of a gather or scatter, that of one lane. Unknown if the load overwrote its own base or index, and where no
  // lane is known.
  std::optional<uint64_t> address;
  bool has_lanes = false;  // a gather, or a scatter
  bool is_store = false;   // it only writes
};

// The load or store that ends at `pc`, if the instruction in front of `pc` accesses memory other than its own frame and
// constants. Folded loads (`add rax, [rbx+8*rcx]`), gathers, scatters and read-modify-write instructions count. `registers` in x86
// encoding order and `vector_index`, as of `pc`. Decodes from the nearest known instruction boundary; `pc` must lie in the
// version's code. Thread-safe.
std::optional<PrecedingAccess> access_before(const jit::CodeVersion& version, CodeOffset pc,
                                             const uint64_t (&registers)[16],
                                             const lwp::VectorIndex& vector_index = {});

}  // namespace hindsight::feedback
