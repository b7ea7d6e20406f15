// TargetMachines: LLVM's models of the processor that no compile uses at the moment. Making one, and its tables of what the processor
// can do, takes half a millisecond, as long as generating the IR of a small function.
//
// Any thread. The lock is only tried: a compile that does not get it makes a model of its own. So it does in a child that was forked
// while another thread held the lock, for ever.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "jit/optimizing/ir/host_target.h"

namespace hindsight::jit::optimizing {

class TargetMachines {
 public:
  // As make_target_machine(), for the caller alone.
  Result<std::unique_ptr<llvm::TargetMachine>> take(const HostTarget& host, const Tuning& tuning,
                                                    bool split_cold);
  // Of a compile that ended well: one that was left in the middle may have left anything in it.
  void give_back(const Tuning& tuning, std::unique_ptr<llvm::TargetMachine> machine);

 private:
  std::mutex mutex_;
  std::vector<std::pair<Tuning, std::unique_ptr<llvm::TargetMachine>>> kept_;
};

}  // namespace hindsight::jit::optimizing
