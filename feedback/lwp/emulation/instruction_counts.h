// How many LWP instructions of each kind were emulated.
#pragma once

#include <array>
#include <cstdint>

#include "feedback/lwp/emulation/xop_decoder.h"

namespace hindsight::lwp {

struct InstructionCounts {
  std::array<uint64_t, kOperations> executed{};  // by Operation
  uint64_t faults = 0;                           // that raised #GP or #PF instead; repetitions count again

  uint64_t of(Operation operation) const { return executed[static_cast<unsigned>(operation)]; }
  uint64_t total() const { return executed[0] + executed[1] + executed[2] + executed[3]; }
  InstructionCounts& operator+=(const InstructionCounts& other) {
    for (unsigned i = 0; i < kOperations; ++i) executed[i] += other.executed[i];
    faults += other.faults;
    return *this;
  }
};

}  // namespace hindsight::lwp
