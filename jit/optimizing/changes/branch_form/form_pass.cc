#include "jit/optimizing/changes/branch_form/form_pass.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/IR/ValueHandle.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "jit/optimizing/changes/branch_form/chosen_ways.h"
#include "jit/optimizing/changes/branch_form/form_parameters.h"
#include "jit/optimizing/changes/branch_form/if_conversion.h"
#include "jit/optimizing/changes/fetch_text.h"
#include "jit/optimizing/changes/values/usual_values.h"
#include "jit/optimizing/versions/carried_chain.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_groups.h"
#include "jit/optimizing/versions/loop_versions.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

struct Candidate {
  Slot* slot = nullptr;
  llvm::WeakVH at;  // null: converted with another
  llvm::Loop* innermost = nullptr;
  std::string words;     // why it should pay
  bool certain = false;  // its operand is the usual value throughout that version of the loop
};

using FormGroup = LoopGroup<Candidate>;

std::string cycles_text(double cycles) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", cycles);
  return text;
}

double taken_share(const BranchCounts& counts) {
  const auto taken = static_cast<double>(counts.taken), not_taken = static_cast<double>(counts.not_taken);
  return (taken + 1) / (taken + not_taken + 2);
}

class FormChanger {
 public:
  FormChanger(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        analyses_(analyses),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)) {}

  bool run() {
    if (find_candidates().empty()) return false;
    simplify_loops(function_, analyses_);
    std::vector<FormGroup> groups;
    for (Candidate& candidate : find_candidates()) judge(std::move(candidate), groups);
    for (FormGroup& group : merged<Candidate>(std::move(groups), [](FormGroup&around, Candidate candidate) {
           around.parts.push_back(std::move(candidate));
         }))
      convert(group);
    return true;
  }

 private:
  static const BranchCounts& counts_of(const Candidate& candidate) {
    return what_of<BranchCounts>(candidate.slot->request);
  }
  static bool is_value(const Candidate& candidate) { return candidate.slot->kind() == ChangeKind::kValue; }
  static const UsualValue& value_of(const Candidate& candidate) {
    return what_of<UsualValue>(candidate.slot->request);
  }
  static Instruction& at(const Candidate& candidate) {
    return *llvm::cast<Instruction>(static_cast<Value*>(candidate.at));
  }
  static void refuse(const Candidate& candidate, std::string_view why) { candidate.slot->refuse(why); }

  // Conditional branches, choices and operators at the places that are asked about; operators last.
  std::vector<Candidate> find_candidates() const {
    std::vector<Candidate> candidates, operators;
    for (Instruction& instruction : llvm::instructions(function_)) {
      const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(&instruction);
      const bool branches = branch != nullptr && branch->isConditional();
      const bool operates = usual_operand(instruction) != nullptr;
      if (!branches && !operates && !is_choice(instruction)) continue;
      const llvm::DILocation* const position = ir_.position_of(instruction);
      if (position == nullptr) continue;
      llvm::Loop* const innermost = loops_.getLoopFor(instruction.getParent());
      const ChangeKind kind = operates   ? ChangeKind::kValue
                              : branches ? ChangeKind::kSelect
                                         : ChangeKind::kBranch;
      for (Slot& slot : changes_.of(kind))
        if (slot.at().value == position->getLine())
          (operates ? operators : candidates).push_back({&slot, &instruction, innermost, {}});
    }
    find_choices_of_way(candidates);
    std::ranges::move(operators, std::back_inserter(candidates));
    return candidates;
  }

  void find_choices_of_way(std::vector<Candidate>& candidates) const {
    std::map<const llvm::Loop*, ChosenWays> ways;
    for (Slot& slot : changes_.of(ChangeKind::kSpeculate)) {
      for (const llvm::LoadInst* load : loads_of(ir_, function_, slot.at())) {
        llvm::Loop* const loop = loops_.getLoopFor(load->getParent());
        std::vector<Instruction*> choices;
        if (loop) choices = ways.try_emplace(loop, *loop, loops_).first->second.of(*load);
        if (choices.empty()) slot.refuse("no choice says where it goes next");
        for (Instruction* choice : choices) candidates.push_back({&slot, choice, loop, {}});
      }
    }
  }

  void judge(Candidate candidate, std::vector<FormGroup>& groups) {
    // What is left of a loop after its unrolled copy may be no loop: what the others are counts.
    if (candidate.innermost == nullptr) {
      if (!in_loops_.contains(candidate.slot)) refuse(candidate, "it is in no loop that could be on trial");
      return;
    }
    in_loops_.insert(candidate.slot);
    if (!worth_its_form(candidate)) return;
    llvm::Loop& loop = with_short_loops(*candidate.innermost, dominators_, expected_turns);
    if (const std::string_view why = why_not_twice(loop, dominators_); !why.empty())
      return refuse(candidate, why);
    Slot& slot = *candidate.slot;
    const auto claim = changes_.claim(slot, place_of(ir_, at(candidate), slot.at(), loops_, loop));
    if (!claim) return slot.wait(claim.error());
    group_of(groups, loop, *claim).parts.push_back(std::move(candidate));
  }

  bool worth_its_form(Candidate& candidate) {
    if (is_value(candidate)) return worth_a_value(candidate);
    if (candidate.slot->kind() == ChangeKind::kSpeculate) {
      candidate.words =
          "a choice says where it goes next, by what it loads: as a branch the processor goes ahead on a "
          "guess";
      return true;
    }
    return candidate.slot->kind() == ChangeKind::kSelect ? worth_a_select(candidate)
                                                         : worth_a_branch(candidate);
  }

  bool worth_a_value(Candidate& candidate) {
    const uint64_t usual = value_of(candidate).value;
    if (const std::string_view why = why_not_usual(at(candidate), usual); !why.empty()) {
      refuse(candidate, why);
      return false;
    }
    candidate.words = std::string(llvm::isa<llvm::CallInst>(at(candidate)) ? "specialized for "
                                                                           : "specialized for divisor ") +
                      std::to_string(usual) +
                      (llvm::isa<llvm::CallInst>(at(candidate)) ? " bytes, inlined" : "");
    return true;
  }

  bool worth_a_select(Candidate& candidate) {
    auto& branch = llvm::cast<llvm::BranchInst>(at(candidate));
    const auto hammock = find_hammock(branch, *candidate.innermost, ir_.request.mispredict_cycles);
    if (!hammock) {
      candidate.words = "within the arms of another";
      if (within_arms_.contains(&branch)) return true;
      refuse(candidate, hammock.error());
      return false;
    }
    const double taken = taken_share(counts_of(candidate));
    const auto shares = shares_of_blocks(*hammock, [&](const llvm::BranchInst& other) {
      return &other == hammock->branch ? taken : weighed_share(other).value_or(0.5);
    });
    double lost = counts_of(candidate).mispredicted * ir_.request.mispredict_cycles;
    double more = hammock->accesses;
    for (const llvm::BasicBlock* block : hammock->blocks) {
      more += operations_of(*block) * (1 - shares.at(block));
      lost += shares.at(block) * mispredicted_at_end_of(*block) * ir_.request.mispredict_cycles;
    }
    // Of these the processor has to guess that they are not gone.
    double wrong = 0;
    for (const llvm::BasicBlock* aside : hammock->asides)
      wrong += shares.at(aside) * ir_.request.mispredict_cycles;
    const Sides sides = sides_of(*hammock, shares);
    more += static_cast<double>(sides.pairs.size() * hammock->branches);
    const double waited = cycles_waited(*candidate.innermost, sides, taken);
    const double cost = more / kOperationsACycle + waited + wrong;
    candidate.words = words_of(*hammock) + "; as a branch it loses " + cycles_text(lost) +
                      " cycles to mispredictions, as a select it costs about " + cycles_text(cost);
    if (kDoubt * lost > cost) {
      for (const llvm::BasicBlock* block : hammock->blocks) within_arms_.insert(block->getTerminator());
      return true;
    }
    refuse(candidate, candidate.words + ": no gain");
    return false;
  }
  static std::string words_of(const Hammock& hammock) {
    if (hammock.branches > 1)
      return std::to_string(hammock.operations) + " operations with " + std::to_string(hammock.branches - 1) +
             (hammock.branches == 2 ? " more branch" : " more branches");
    const auto on = [&](unsigned way) {
      const llvm::BasicBlock* const arm = hammock.branch->getSuccessor(way);
      return arm == hammock.join ? 0 : operations_of(*arm);
    };
    return "arms of " + std::to_string(on(0)) + " and " + std::to_string(on(1)) + " operations";
  }
  double mispredicted_at_end_of(const llvm::BasicBlock& block) const {
    const llvm::DILocation* const position = ir_.position_of(*block.getTerminator());
    if (position == nullptr || llvm::succ_size(&block) < 2) return 0;
    for (const Slot& slot : changes_.of(ChangeKind::kSelect))
      if (slot.at().value == position->getLine()) return what_of<BranchCounts>(slot.request).mispredicted;
    return 0;
  }
  // Of what several ways bring, the one that is gone most often.
  static Sides sides_of(const Hammock& hammock, const std::map<const llvm::BasicBlock*, double>& shares) {
    const std::set<const llvm::BasicBlock*> of_yes = hammock.come_to_by(hammock.branch->getSuccessor(0));
    Sides sides{.condition = hammock.branch->getCondition(), .pairs = {}};
    for (const llvm::PHINode& phi : hammock.join->phis()) {
      const Value *yes = nullptr, *no = nullptr;
      double most_yes = -1, most_no = -1;
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
        const llvm::BasicBlock* const last = phi.getIncomingBlock(i);
        const bool is_own = last == &hammock.from();
        if (!is_own && !hammock.contains(last)) continue;
        const bool is_yes = is_own ? hammock.branch->getSuccessor(0) == hammock.join : of_yes.contains(last);
        double& most = is_yes ? most_yes : most_no;
        if (shares.at(last) <= most) continue;
        most = shares.at(last);
        (is_yes ? yes : no) = phi.getIncomingValue(i);
      }
      sides.pairs.push_back({yes ? yes : no, no ? no : yes, &phi});
    }
    return sides;
  }

  bool worth_a_branch(Candidate& candidate) {
    Sides sides;
    if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(&at(candidate))) {
      sides.condition = select->getCondition();
      sides.pairs.push_back({select->getTrueValue(), select->getFalseValue(), select});
    } else {
      const auto& least = llvm::cast<llvm::MinMaxIntrinsic>(at(candidate));
      sides.pairs.push_back({least.getLHS(), least.getRHS(), &least});
    }
    const double waited = cycles_waited(*candidate.innermost, sides, likely_first(candidate));
    const double lost = counts_of(candidate).mispredicted * ir_.request.mispredict_cycles;
    if (waited == 0) {
      refuse(candidate, "no loop-carried value waits for it");
      return false;
    }
    candidate.words = "loop-carried values wait " + cycles_text(waited) +
                      " cycles for the choice; as a branch it would lose " + cycles_text(lost) +
                      " to mispredictions";
    if (kDoubt * waited > lost) return true;
    refuse(candidate, candidate.words + ": no gain");
    return false;
  }

  // The share of executions that choose the first operand. What the choice itself says counts, because LLVM
  // may have turned it round since; of a minimum nobody knows, and both are as likely.
  double likely_first(const Candidate& candidate) const {
    if (!llvm::isa<llvm::SelectInst>(at(candidate))) return 0.5;
    return weighed_share(at(candidate)).value_or(taken_share(counts_of(candidate)));
  }

  void convert(FormGroup& group) {
    // A copy of the loop that stands elsewhere (an OSR entry's, whose first iteration is apart) may have been
    // taken with another loop around it.
    std::erase_if(group.parts,
                  [&](const Candidate& candidate) { return candidate.slot->is_elsewhere(group.claim); });
    if (group.parts.empty()) return;
    uint32_t cell = 0;  // the same for all
    for (const Candidate& candidate : group.parts) cell = changes_.cell_of(group.claim, *candidate.slot);
    add_followers(group, cell);
    tell_ways(group);
    const CellCode code(ir_, function_, cell);
    const llvm::DebugLoc location = loop_location(ir_, function_, group.claim.loop());
    for (Candidate& candidate : group.parts) {
      candidate.certain = is_value(candidate) && group.loop->isLoopInvariant(usual_operand(at(candidate)));
      if (candidate.certain) candidate.words += ", compared once a strip";
    }
    std::map<uint32_t, MemoryPlace> places;
    make_versions(
        *group.loop, location,
        [&](llvm::IRBuilder<>& b) -> VersionChoice {
          places = memory_places(group, code, b);
          VersionChoice choice = choice_of(code, b);
          choice.with = b.CreateAnd(choice.with, usual_throughout(group, b));
          return choice;
        },
        [&](Instruction* before, Value* iterations) { code.emit_countdown(iterations, before, location); });
    for (const Candidate& candidate : group.parts) change(candidate, group.claim, places);
  }

  // For tests.
  void tell_ways(const FormGroup& group) const {
    if (!ir_.request.dump_ir) return;
    std::vector<std::pair<const llvm::Loop*, std::vector<const Instruction*>>> by_loop;
    for (const Candidate& candidate : group.parts) {
      if (candidate.slot->kind() != ChangeKind::kSpeculate) continue;
      if (by_loop.empty() || by_loop.back().first != candidate.innermost)
        by_loop.push_back({candidate.innermost, {}});
      std::vector<const Instruction*>& choices = by_loop.back().second;
      if (!llvm::is_contained(choices, &at(candidate))) choices.push_back(&at(candidate));
    }
    for (const auto& [loop, choices] : by_loop)
      tell_choices(changes_, function_, loops_, *loop, group.claim.loop(), choices);
  }

  // Other loads go the same way: what stalls there by now has been tried.
  void add_followers(const FormGroup& group, uint32_t cell) {
    std::set<llvm::Loop*> loops;
    for (const Candidate& candidate : group.parts)
      if (candidate.slot->kind() == ChangeKind::kSpeculate) loops.insert(candidate.innermost);
    for (llvm::Loop* loop : loops) {
      const ChosenWays ways(*loop, loops_);
      for (llvm::BasicBlock* block : loop->blocks()) {
        for (Instruction& instruction : *block) {
          const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
          const llvm::DILocation* const position = load ? ir_.position_of(instruction) : nullptr;
          if (!position || ir_.is_of(instruction, IrModule::World::kRuntime)) continue;
          const Site site{ChangeKind::kSpeculate, WasmOffset(position->getLine())};
          if (!changes_.is_known(site) && !ways.of(*load).empty())
            changes_.add_follower(site, group.claim, cell, "goes where a choice of another load says");
        }
      }
    }
  }

  // Whether all operands that do not change in the loop are what they usually are. One that is not used in
  // this run of the loop may be anything, which must not decide about more than the version.
  Value* usual_throughout(const FormGroup& group, llvm::IRBuilder<>& b) const {
    Value* all = b.getTrue();
    for (const Candidate& candidate : group.parts) {
      if (!candidate.certain) continue;
      Value* const operand = usual_operand(at(candidate));
      auto* const type = llvm::cast<llvm::IntegerType>(operand->getType());
      all = b.CreateAnd(all, b.CreateICmpEQ(b.CreateFreeze(operand),
                                            llvm::ConstantInt::get(type, value_of(candidate).value)));
    }
    return all;
  }

  std::map<uint32_t, MemoryPlace> memory_places(const FormGroup& group, const CellCode& code,
                                                llvm::IRBuilder<>& b) const {
    std::map<uint32_t, MemoryPlace> places;
    for (const Candidate& candidate : group.parts) {
      for (const uint32_t memory : memories_of(at(candidate))) {
        const auto load = [&](int64_t offset) {
          return code.runtime_load(b, ir_.ptr, function_.getArg(0), offset, /*invariant=*/true);
        };
        if (const auto [place, is_new] = places.try_emplace(memory); is_new)
          place->second = {load(ir_.layout.memory_base(memory)), load(ir_.layout.memory_record(memory))};
      }
    }
    return places;
  }

  void change(const Candidate& candidate, const LoopClaim& claim,
              const std::map<uint32_t, MemoryPlace>& places) {
    Instruction* const place = llvm::cast_or_null<Instruction>(static_cast<Value*>(candidate.at));
    if (is_value(candidate)) {
      if (place != nullptr)
        use_value(ir_, *place, value_of(candidate), candidate.certain,
                  [&](uint32_t memory) { return places.at(memory); });
    } else if (auto* const branch = llvm::dyn_cast_or_null<llvm::BranchInst>(place)) {
      // Others were converted since it was looked at, which may have made its arms part of longer blocks.
      // So what is in the loop is looked up anew.
      const llvm::DominatorTree dominators(function_);
      const llvm::LoopInfo loops(dominators);
      const llvm::Loop* const loop = loops.getLoopFor(branch->getParent());
      if (loop == nullptr) return refuse(candidate, "it is in no loop any more");
      const auto hammock = find_hammock(*branch, *loop, ir_.request.mispredict_cycles);
      if (!hammock) return refuse(candidate, hammock.error());
      convert_to_selects(ir_, *hammock);
    } else if (place != nullptr) {
      const bool knows = llvm::isa<llvm::SelectInst>(place) && candidate.slot->kind() == ChangeKind::kBranch;
      convert_to_branch(ir_, *place, knows ? std::optional(likely_first(candidate)) : std::nullopt);
    }
    candidate.slot->apply(claim, candidate.words);
  }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  llvm::FunctionAnalysisManager& analyses_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  std::set<const Slot*> in_loops_;            // those of which a copy is in a loop
  std::set<const Instruction*> within_arms_;  // of branches that become selects
};

}  // namespace

llvm::PreservedAnalyses FormPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  return FormChanger(*changes_, function, analyses).run() ? llvm::PreservedAnalyses::none()
                                                          : llvm::PreservedAnalyses::all();
}

void add_form(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(FormPass(changes));
}

}  // namespace hindsight::jit::optimizing
