#include "jit/optimizing/changes/fetch_text.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "jit/optimizing/changes/prefetch/prefetch_call.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/value_text.h"

namespace hindsight::jit::optimizing {
namespace {

bool is_fetch(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::prefetch) ||
         is_prefetch_call(instruction);
}

// Of one loop of the code, in its order.
struct Fetches {
  const llvm::Loop* loop = nullptr;
  unsigned line = 0;  // of the loop that has the change
  std::vector<llvm::CallInst*> calls;
};

// Copies of a loop that have the same have it once.
void append(ChangeSet& changes, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += kFetchPrefix + line + "\n";
  if (changes.fetches.find(text) == std::string::npos) changes.fetches += text;
}

void append_definitions(ValueText& values, std::vector<std::string>& lines) {
  for (const std::string& definition : values.take_definitions()) lines.push_back("  " + definition);
}

class FetchTextPass : public llvm::PassInfoMixin<FetchTextPass> {
 public:
  explicit FetchTextPass(ChangeSet& changes) : changes_(&changes) {}

  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    std::vector<Fetches> all;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!is_fetch(instruction) || !origin_of(instruction)) continue;
      const llvm::Loop* const loop = loops.getLoopFor(instruction.getParent());
      const unsigned line = instruction.getDebugLoc() ? instruction.getDebugLoc().getLine() : 0;
      auto found = std::ranges::find_if(
          all, [&](const Fetches& other) { return other.loop == loop && other.line == line; });
      if (found == all.end()) found = all.insert(all.end(), Fetches{.loop = loop, .line = line, .calls = {}});
      found->calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
    }
    for (const Fetches& fetches : all) tell(fetches, function, loops);
    return llvm::PreservedAnalyses::all();
  }

 private:
  void tell(const Fetches& fetches, const llvm::Function& function, const llvm::LoopInfo& loops) {
    ValueText values(changes_->ir, function, loops, fetches.loop);
    for (const llvm::CallInst* call : fetches.calls) values.expect(*call->getArgOperand(0));
    std::vector<std::string> lines{"ahead in @" + std::to_string(fetches.line) + ":"};
    for (llvm::CallInst* call : fetches.calls) {
      const std::string line = "fetch " + values.place(*call->getArgOperand(0), 1) + " for @" +
                               std::to_string(origin_of(*call)->value);
      call->setMetadata(kCopyOf, nullptr);  // it is told
      append_definitions(values, lines);
      lines.push_back("  " + line);
    }
    append(*changes_, lines);
  }

  ChangeSet* changes_;
};

}  // namespace

void tell_choices(ChangeSet& changes, const llvm::Function& function, const llvm::LoopInfo& loops,
                  const llvm::Loop& loop, WasmOffset change,
                  const std::vector<const llvm::Instruction*>& choices) {
  ValueText values(changes.ir, function, loops, &loop);
  for (const llvm::Instruction* choice : choices) values.expect(*choice);
  std::vector<std::string> lines{"branches in @" + std::to_string(change.value) + ":"};
  for (const llvm::Instruction* choice : choices) {
    const std::string line = "on " + values.value(*choice);
    append_definitions(values, lines);
    lines.push_back("  " + line);
  }
  append(changes, lines);
}

void add_fetch_text(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  if (changes.ir.request.dump_ir) passes.addPass(FetchTextPass(changes));
}

}  // namespace hindsight::jit::optimizing
