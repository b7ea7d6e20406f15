#include "jit/optimizing/ir/target_machines.h"

#include <algorithm>

namespace hindsight::jit::optimizing {
namespace {

constexpr size_t kMostKept = 16;  // some hundred KiB each; more threads than that compile without

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> TargetMachines::take(const HostTarget& host,
                                                                  const Tuning& tuning, bool split_cold) {
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept.first == tuning; });
    if (found != kept_.end()) {
      std::unique_ptr<llvm::TargetMachine> machine = std::move(found->second);
      kept_.erase(found);
      machine->Options.EnableMachineFunctionSplitter = split_cold;
      return machine;
    }
  }
  return make_target_machine(host, tuning, split_cold);
}

void TargetMachines::give_back(const Tuning& tuning, std::unique_ptr<llvm::TargetMachine> machine) {
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock && kept_.size() < kMostKept)
    kept_.emplace_back(tuning, std::move(machine));
}

}  // namespace hindsight::jit::optimizing
