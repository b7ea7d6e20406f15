#include "jit/optimizing/changes/split_cold/cold_parts.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/ProfileSummary.h>

#include "jit/optimizing/changes/split_cold/split_parameters.h"

namespace hindsight::jit::optimizing {

void mark_for_splitting(llvm::Module& module) {
  // Shares of all counts, in millionths, with the lowest count that belongs to the share. No count is as high as a hot
  // one, and the lowest two are cold. The shares are those that LLVM asks for, in its analysis and in the splitter.
  constexpr uint64_t kNever = uint64_t{1} << 62;
  const llvm::SummaryEntryVector shares = {{990'000, kNever, 1}, {999'950, 1, 1}, {999'999, 1, 1}};
  llvm::ProfileSummary summary(llvm::ProfileSummary::PSK_Instr, shares, /*TotalCount=*/kCallsOfCold,
                               /*MaxCount=*/kCallsOfCold, /*MaxInternalCount=*/kCallsOfCold,
                               /*MaxFunctionCount=*/kCallsOfCold, /*NumCounts=*/1, /*NumFunctions=*/1);
  module.setProfileSummary(summary.getMD(module.getContext()), llvm::ProfileSummary::PSK_Instr);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && !function.hasPersonalityFn()) function.setEntryCount(kCallsOfCold);
  }
}

}  // namespace hindsight::jit::optimizing
