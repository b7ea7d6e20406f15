#include "jit/optimizing/pass_timer.h"

#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/Pass.h>

#include <algorithm>

#include "jit/optimizing/extend_early.h"
#include "jit/optimizing/pipeline.h"

namespace hindsight::jit::optimizing {
namespace {

// What takes long in large functions. Behind them a compile can be left. A mark is one more pass, whose needs LLVM works out anew in each
// compile: behind every pass they took some hundredths of it.
constexpr llvm::StringLiteral kLong[] = {"CodeGen Prepare",
                                         "X86 DAG->DAG Instruction Selection",
                                         "Machine InstCombiner",
                                         "Early Machine Loop Invariant Code Motion",
                                         "Machine Common Subexpression Elimination",
                                         "Machine code sinking",
                                         "Live Variable Analysis",
                                         "Register Coalescer",
                                         "Machine Instruction Scheduler",
                                         "Greedy Register Allocator",
                                         "Control Flow Optimizer",
                                         "Branch Probability Basic Block Placement",
                                         "X86 Execution Dependency Fix"};

// Runs after a pass and says so.
class Mark : public llvm::FunctionPass {
 public:
  static char id;
  Mark(PassTimer& timer, const PassTimer::Between& between, std::string behind)
      : FunctionPass(id), timer_(timer), between_(between), behind_(std::move(behind)) {}
  llvm::StringRef getPassName() const override { return "Mark"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesAll(); }
  bool runOnFunction(llvm::Function& function) override {
    if (timer_.wanted()) timer_.reached(behind_);
    size_t instructions = 0;
    if (const auto* const all = getAnalysisIfAvailable<llvm::MachineModuleInfoWrapperPass>())
      if (const llvm::MachineFunction* const own = all->getMMI().getMachineFunction(function))
        for (const llvm::MachineBasicBlock& block : *own) instructions += block.size();
    between_(instructions);
    return false;
  }

 private:
  PassTimer& timer_;
  const PassTimer::Between& between_;
  const std::string behind_;
};
char Mark::id = 0;

class MarkingManager : public llvm::legacy::PassManagerBase {
 public:
  MarkingManager(llvm::legacy::PassManager& passes, PassTimer& timer, PassLimits& limits,
                 PassTimer::Between between)
      : passes_(passes), timer_(timer), limits_(limits), between_(std::move(between)) {}
  void add(llvm::Pass* pass) override {
    if (extend_early_goes_before(pass->getPassName())) add(make_extend_early_pass());
    if (!limits_.allows_codegen(pass->getPassName())) {
      delete pass;
      return;
    }
    std::string name = pass->getPassName().str();
    const bool is_marked = timer_.wanted()
                               ? pass->getAsImmutablePass() == nullptr
                               : std::find(std::begin(kLong), std::end(kLong), name) != std::end(kLong);
    passes_.add(pass);  // which may end its life
    if (is_marked) passes_.add(new Mark(timer_, between_, std::move(name)));
  }

 private:
  llvm::legacy::PassManager& passes_;
  PassTimer& timer_;
  PassLimits& limits_;
  const PassTimer::Between between_;
};

}  // namespace

void PassTimer::listen(llvm::PassInstrumentationCallbacks& callbacks) {
  if (!wanted_) return;
  callbacks.registerBeforeNonSkippedPassCallback([this](llvm::StringRef name, llvm::Any) { enter(name); });
  callbacks.registerAfterPassCallback(
      [this](llvm::StringRef, llvm::Any, const llvm::PreservedAnalyses&) { leave(); });
  callbacks.registerAfterPassInvalidatedCallback(
      [this](llvm::StringRef, const llvm::PreservedAnalyses&) { leave(); });
  callbacks.registerBeforeAnalysisCallback([this](llvm::StringRef name, llvm::Any) { enter(name); });
  callbacks.registerAfterAnalysisCallback([this](llvm::StringRef, llvm::Any) { leave(); });
}

std::unique_ptr<llvm::legacy::PassManagerBase> PassTimer::into(llvm::legacy::PassManager& passes,
                                                               PassLimits& limits, Between between) {
  return std::make_unique<MarkingManager>(passes, *this, limits, std::move(between));
}

void PassTimer::begin_codegen() {
  mark_ = thread_seconds();
}

void PassTimer::reached(const std::string& pass) {
  const double now = thread_seconds();
  count(pass, now - mark_);
  mark_ = now;
}

void PassTimer::enter(llvm::StringRef name) {
  running_.push_back({name.str(), thread_seconds(), 0});
}

void PassTimer::leave() {
  if (running_.empty()) return;
  const Running done = std::move(running_.back());
  running_.pop_back();
  const double seconds = thread_seconds() - done.begin;
  if (!running_.empty()) running_.back().inner += seconds;
  // "llvm::PassManager<...>" and its adaptors do nothing themselves.
  const bool runs_others = done.name.find("PassManager<") != std::string::npos ||
                           done.name.find("PassAdaptor") != std::string::npos;
  count(runs_others ? "(passing on)" : done.name, seconds - done.inner);
}

void PassTimer::count(const std::string& name, double seconds) {
  PassCost& cost = costs_[name];
  ++cost.runs;
  cost.seconds += seconds;
}

std::vector<PassCost> PassTimer::costs() const {
  std::vector<PassCost> all;
  for (const auto& [name, cost] : costs_) all.push_back({name, cost.runs, cost.seconds});
  std::stable_sort(all.begin(), all.end(),
                   [](const PassCost& a, const PassCost& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace hindsight::jit::optimizing
