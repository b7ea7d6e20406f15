#include "jit/optimizing/changes/prefetch/merge_equal.h"

#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace hindsight::jit::optimizing {
namespace {

bool can_be_merged(const llvm::Instruction& instruction) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) return load->isSimple();
  return !llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) && !instruction.isTerminator() &&
         !instruction.mayReadOrWriteMemory();
}

}  // namespace

void merge_equal(llvm::Instruction* first, llvm::Instruction& end) {
  using Key = std::tuple<unsigned, llvm::Type*, std::vector<const llvm::Value*>>;
  std::map<Key, std::vector<llvm::Instruction*>> kept;
  llvm::Instruction* next = nullptr;
  for (llvm::Instruction* at = first ? first->getNextNode() : &end.getParent()->front(); at != &end;
       at = next) {
    next = at->getNextNode();
    if (!can_be_merged(*at)) continue;
    std::vector<llvm::Instruction*>& alike =
        kept[Key(at->getOpcode(), at->getType(), {at->value_op_begin(), at->value_op_end()})];
    const auto same = std::find_if(alike.begin(), alike.end(),
                                   [&](llvm::Instruction* one) { return one->isIdenticalTo(at); });
    if (same == alike.end()) {
      alike.push_back(at);
      continue;
    }
    at->replaceAllUsesWith(*same);
    at->eraseFromParent();
  }
}

}  // namespace hindsight::jit::optimizing
