#include "jit/optimizing/changes/jump_pointers/carried_place.h"

#include <llvm/Analysis/ValueTracking.h>

#include <algorithm>

#include "jit/optimizing/changes/jump_pointers/jump_parameters.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// Computes and does nothing else, whatever the operands.
bool only_computes(const Instruction& instruction) {
  if (instruction.getType()->isVectorTy()) return false;
  if (const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(&instruction))
    return !operation->isIntDivRem() && operation->getType()->isIntegerTy();
  return llvm::isa<llvm::GetElementPtrInst, llvm::FreezeInst, llvm::ZExtInst, llvm::SExtInst, llvm::TruncInst,
                   llvm::PtrToIntInst, llvm::IntToPtrInst, llvm::BitCastInst>(instruction);
}

// Loads from one place, whatever was stored before each of them: a pointer that is loaded in both arms of a branch.
bool loads_one_place(const PHINode& phi) {
  const auto* const first = llvm::dyn_cast<llvm::LoadInst>(phi.getIncomingValue(0));
  return first != nullptr &&
         std::all_of(phi.block_begin(), phi.block_end(), [&](const llvm::BasicBlock* from) {
           const auto* const load = llvm::dyn_cast<llvm::LoadInst>(phi.getIncomingValueForBlock(from));
           return load != nullptr && load->getPointerOperand() == first->getPointerOperand();
         });
}

constexpr std::string_view kFromElsewhere = "the address is not computed from loop-carried values alone";

class PlaceFinder {
 public:
  PlaceFinder(llvm::Loop& loop, llvm::LoadInst& load, const llvm::LoopInfo& loops) : loops_(loops) {
    place_.loop = &loop;
    place_.load = &load;
  }

  std::expected<CarriedPlace, std::string_view> run() {
    place_.base = llvm::getUnderlyingObject(place_.load->getPointerOperand(), 0);
    const auto* const base = llvm::dyn_cast<Instruction>(place_.base);
    if (base != nullptr && place_.loop->contains(base))
      return std::unexpected("the address is not based on one memory");
    if (!walk(place_.load->getPointerOperand())) return std::unexpected(kFromElsewhere);
    std::string_view why = "the address does not come from a load of the loop";
    for (PHINode* phi : place_.carried) {
      const Next next = follow(*phi);
      if (next == Next::kLoads) return std::move(place_);
      if (next == Next::kChooses) why = "the loop chooses its next pointer, as a search does";
    }
    return std::unexpected(why);
  }

 private:
  enum class Next { kLoads, kComputes, kChooses };

  bool walk(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == nullptr || !place_.loop->contains(instruction)) return true;
    if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) return walk_phi(*phi);
    if (!only_computes(*instruction)) return false;
    if (!place_.between.insert(instruction).second) return true;
    if (place_.between.size() > kMostToTheAddress) return false;
    return std::all_of(instruction->op_begin(), instruction->op_end(),
                       [&](llvm::Use& use) { return walk(use); });
  }
  bool walk_phi(PHINode& phi) {
    if (phi.getParent() == place_.loop->getHeader()) {
      place_.carried.insert(&phi);
      return true;
    }
    const llvm::Loop* const inner = loops_.getLoopFor(phi.getParent());
    const llvm::BasicBlock* const before = inner != nullptr ? inner->getLoopPreheader() : nullptr;
    if (before == nullptr || phi.getParent() != inner->getHeader()) return false;
    Value* const start = phi.getIncomingValueForBlock(before);
    if (!place_.starts.emplace(&phi, start).second) return true;
    return walk(start);
  }

  // How the phi gets its value for the next turn: through a load whose address comes from such phis?
  Next follow(PHINode& phi) const {
    const llvm::BasicBlock* const latch = place_.loop->getLoopLatch();
    if (latch == nullptr) return Next::kComputes;
    LoopWalk walk(*place_.loop, kMostFollowed, phi.getIncomingValueForBlock(latch));
    bool loads = false;
    while (const Instruction* const instruction = walk.next()) {
      if (const auto* const other = llvm::dyn_cast<PHINode>(instruction)) {
        if (other->getParent() == place_.loop->getHeader()) {
          walk.add(other->getIncomingValueForBlock(latch));
        } else if (other->getNumIncomingValues() == 1 || loads_one_place(*other) || nodes_choose(phi)) {
          walk.follow(*other);
        } else {
          return Next::kChooses;
        }
        continue;
      }
      if (const auto* const choice = llvm::dyn_cast<llvm::SelectInst>(instruction)) {
        if (!is_of_nodes(choice->getCondition(), phi)) return Next::kChooses;
        walk.follow(*choice);
        continue;
      }
      if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
        loads = true;
        walk.add(load->getPointerOperand());
      } else if (only_computes(*instruction)) {
        walk.follow(*instruction);
      } else {
        return Next::kComputes;
      }
    }
    // A load from where the loop has not been loaded from says nothing of the next turn's address: p =
    // table[i].
    return loads && !walk.was_cut() && walk.has_seen(phi) ? Next::kLoads : Next::kComputes;
  }

  // Whether what stands in the nodes decides which way a turn goes within the loop, and nothing that comes from elsewhere, as
  // the key of a search does. Then the loop goes the same way again, unless the nodes were written to.
  bool nodes_choose(const PHINode& phi) const {
    for (const llvm::BasicBlock* block : place_.loop->blocks()) {
      const Instruction* const end = block->getTerminator();
      if (end->getNumSuccessors() < 2 || place_.loop->isLoopExiting(block)) continue;
      if (!llvm::isa<llvm::BranchInst, llvm::SwitchInst>(end) || !is_of_nodes(end->getOperand(0), phi))
        return false;
    }
    return true;
  }
  bool is_of_nodes(const Value* value, const PHINode& phi) const {
    std::vector<const Value*> work{value};
    std::set<const Value*> seen;
    while (!work.empty()) {
      const Value* const one = work.back();
      work.pop_back();
      if (!seen.insert(one).second || one == &phi || llvm::isa<llvm::Constant>(one)) continue;
      if (seen.size() > kMostFollowed) return false;
      const auto* const made = llvm::dyn_cast<Instruction>(one);
      if (made == nullptr || !place_.loop->contains(made)) {
        if (!one->getType()->isPointerTy()) return false;  // a memory is no key
        continue;
      }
      if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(made)) {
        work.push_back(load->getPointerOperand());
        continue;
      }
      const bool joins = llvm::isa<PHINode>(made) && made->getParent() != place_.loop->getHeader();
      if (!joins && !only_computes(*made) && !llvm::isa<llvm::CmpInst, llvm::SelectInst>(made)) return false;
      for (const Value* operand : made->operands()) work.push_back(operand);
    }
    return true;
  }

  const llvm::LoopInfo& loops_;
  CarriedPlace place_;
};

Value* emitted(Value* value, const CarriedPlace& place, llvm::IRBuilder<>& b,
               std::map<Value*, Value*>& made) {
  if (const auto found = made.find(value); found != made.end()) return found->second;
  Value* result = value;
  if (auto* const phi = llvm::dyn_cast<PHINode>(value); phi != nullptr && place.starts.contains(phi)) {
    result = emitted(place.starts.at(phi), place, b, made);
  } else if (auto* const instruction = llvm::dyn_cast<Instruction>(value);
             instruction != nullptr && place.between.contains(instruction)) {
    // Depth is bounded by kMostToTheAddress.
    std::vector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(emitted(operand, place, b, made));
    Instruction* const copy = instruction->clone();
    copy->dropPoisonGeneratingFlags();
    for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
    b.Insert(copy);
    copy->setDebugLoc(b.getCurrentDebugLocation());
    result = copy;
  }
  return made[value] = result;
}

}  // namespace

Value* CarriedPlace::emit(llvm::IRBuilder<>& b, const std::map<PHINode*, Value*>& values) const {
  std::map<Value*, Value*> made(values.begin(), values.end());
  // The turn is perhaps never made: what is compared of it, and branched on, must be some place.
  return b.CreateFreeze(emitted(load->getPointerOperand(), *this, b, made));
}

std::expected<CarriedPlace, std::string_view> find_carried_place(llvm::LoadInst& load,
                                                                 const llvm::LoopInfo& loops) {
  llvm::Loop* const innermost = loops.getLoopFor(load.getParent());
  if (innermost == nullptr) return std::unexpected("it is in no loop");
  // What the innermost loop says, unless one around it carries the pointer.
  const auto first = PlaceFinder(*innermost, load, loops).run();
  if (first) return first;
  for (llvm::Loop* loop = innermost->getParentLoop(); loop != nullptr; loop = loop->getParentLoop())
    if (auto place = PlaceFinder(*loop, load, loops).run()) return place;
  return first;
}

}  // namespace hindsight::jit::optimizing
