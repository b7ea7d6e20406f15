// The processor that code is generated for, and how.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "jit/compile_options.h"

namespace hindsight::jit::optimizing {

struct HostTarget {
  std::string triple;
  std::string cpu;
  std::string features;
  // Bits that the vectorizers prefer; 0 leaves it to LLVM's model of the processor.
  uint32_t vector_bits = 0;
};

// What `tuning` makes of this machine. Without host features: x86-64-v2, because wasm's rounding operators
// need SSE4.1 to be instructions rather than library calls.
HostTarget host_target(const Tuning& tuning);

// For one compilation at a time: a TargetMachine is not thread-safe (target_machines.h). `split_cold`: functions marked
// for it are split (cold_parts.h).
Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const HostTarget& host, const Tuning& tuning,
                                                                 bool split_cold);

}  // namespace hindsight::jit::optimizing
