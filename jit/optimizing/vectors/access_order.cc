#include "jit/optimizing/vectors/access_order.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

#include "jit/optimizing/ir/load_user.h"
#include "jit/optimizing/vectors/memory_reach.h"

namespace hindsight::jit::optimizing {
namespace {

struct OrderedAccess {
  llvm::Instruction* instruction;
  const llvm::Value* base;
  llvm::APInt begin, end;  // of the access, from the base on
  const llvm::Value* pointer;
  bool stores;
  bool may_trap;

  // Whether the other one traps wherever this one does: it reaches at least as far.
  bool traps_no_more_than(const OrderedAccess& other) const {
    return !may_trap || (other.may_trap && base == other.base && end.sle(other.end));
  }
};

// A load and a store of the same place: the processor may have one instruction for both.
bool are_update(const OrderedAccess& first, const OrderedAccess& second) {
  return !first.stores && second.stores && first.pointer == second.pointer && first.end == second.end;
}

// Where the second covers the first, code generation removes the first, and what was loaded for it alone.
bool may_be_covered(const OrderedAccess& first, const OrderedAccess& second) {
  return first.stores && second.stores && first.base == second.base && first.begin.slt(second.end) &&
         second.begin.slt(first.end);
}

// Whether it shows which of them comes first.
bool order_shows(const OrderedAccess& first, const OrderedAccess& second) {
  if (may_be_covered(first, second)) return true;
  if ((!first.stores && !second.stores) || are_update(first, second)) return false;
  const bool first_shows = first.stores && !second.traps_no_more_than(first);
  const bool second_shows = second.stores && !first.traps_no_more_than(second);
  return first_shows || second_shows;
}

// What a branch on `a or b`, or on `a and b`, decides by, in the order in which it becomes several branches.
void add_parts(llvm::Value* condition, std::vector<llvm::Value*>& parts) {
  using namespace llvm::PatternMatch;
  llvm::Value *one, *other;
  if (condition->hasOneUse() && (match(condition, m_LogicalOr(m_Value(one), m_Value(other))) ||
                                 match(condition, m_LogicalAnd(m_Value(one), m_Value(other))))) {
    add_parts(one, parts);
    add_parts(other, parts);
  } else {
    parts.push_back(condition);
  }
}

// Adds to `seen` what a value is computed from, itself included: in `block`, if there is one. Calls `found` with each load.
template <typename Found>
void walk_operands(llvm::Value* value, const llvm::BasicBlock* block,
                   const llvm::SmallPtrSetImpl<const llvm::Value*>* but,
                   llvm::SmallPtrSetImpl<const llvm::Value*>& seen, Found found) {
  std::vector<llvm::Value*> worklist{value};
  while (!worklist.empty()) {
    auto* const at = llvm::dyn_cast<llvm::Instruction>(worklist.back());
    worklist.pop_back();
    if (at == nullptr || llvm::isa<llvm::PHINode>(at) || (block != nullptr && at->getParent() != block))
      continue;
    if ((but != nullptr && but->contains(at)) || !seen.insert(at).second) continue;
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(at)) found(*load);
    worklist.insert(worklist.end(), at->op_begin(), at->op_end());
  }
}

class Orderer {
 public:
  explicit Orderer(IrModule& ir)
      : ir_(ir),
        fence_(llvm::InlineAsm::get(llvm::FunctionType::get(ir.void_type, false), "", "~{memory}",
                                    /*hasSideEffects=*/true)) {}

  void order(llvm::BasicBlock& block) {
    // The accesses since the last instruction that keeps its own place.
    std::vector<OrderedAccess> open;
    for (llvm::Instruction& instruction : block) {
      const std::optional<OrderedAccess> access = access_of(instruction);
      if (!access) {
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (call != nullptr && call->mayReadOrWriteMemory() && !llvm::isa<llvm::IntrinsicInst>(call))
          open.clear();
        continue;
      }
      const auto shows = [&](const OrderedAccess& earlier) { return order_shows(earlier, *access); };
      const auto last = std::find_if(open.rbegin(), open.rend(), shows).base();
      if (last != open.begin()) {
        // Before the load of an update, as it must be somewhere after the last whose order shows.
        const auto load = std::find_if(
            last, open.end(), [&](const OrderedAccess& earlier) { return are_update(earlier, *access); });
        fence_off(load == open.end() ? instruction : *load->instruction);
        open.erase(open.begin(), load);
      }
      open.push_back(*access);
    }
  }

  // What no other instruction of its block needs code generation takes to where it is needed, past what other blocks store in other places. A
  // user keeps it where it is.
  void keep_in_blocks(llvm::Function& function) {
    llvm::SmallPtrSet<const llvm::BasicBlock*, 8> storing;
    for (const llvm::BasicBlock& block : function)
      if (llvm::any_of(block, [&](const llvm::Instruction& instruction) {
            const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
            if (call != nullptr && (call->isInlineAsm() || call->hasFnAttr(llvm::Attribute::Cold)))
              return false;
            return instruction.mayWriteToMemory() && !ir_.is_among(instruction, IrModule::World::kCells);
          }))
        storing.insert(&block);
    for (llvm::BasicBlock& block : function)
      if (storing.size() > (storing.contains(&block) ? 1 : 0)) keep_in_block(block);
  }

  void keep_in_block(llvm::BasicBlock& block) {
    std::vector<llvm::LoadInst*> leaving;
    for (llvm::Instruction& instruction : block) {
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || llvm::any_of(load->users(), [&](const llvm::User* user) {
            return llvm::cast<llvm::Instruction>(user)->getParent() == &block &&
                   !llvm::isa<llvm::PHINode>(user);
          }))
        continue;
      const std::optional<OrderedAccess> access = access_of(instruction);
      if (access && access->may_trap) leaving.push_back(load);
    }
    for (llvm::LoadInst* load : leaving) add_load_user(*load);
  }

  // What computes with a byte extends it. Where the user takes what is extended, too, that is done as the byte is loaded.
  static void extend_for_user(llvm::Instruction& instruction) {
    if (!is_pin(instruction)) return;
    auto& user = llvm::cast<llvm::CallInst>(instruction);
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(user.getArgOperand(0));
    if (load == nullptr || !load->getType()->isIntegerTy() || load->getType()->getIntegerBitWidth() >= 32)
      return;
    llvm::IRBuilder<> b(&user);
    add_user(b, *b.CreateZExt(load, b.getInt32Ty()));
    user.eraseFromParent();
  }

  // A store whose value is put together of two halves stays one: code generation would make it two, of which the first is made where the
  // second traps.
  static void keep_whole(llvm::Instruction& instruction) {
    using namespace llvm::PatternMatch;
    auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    if (store != nullptr && store->isSimple() &&
        match(store->getValueOperand(), m_c_Or(m_ZExt(m_Value()), m_Shl(m_ZExt(m_Value()), m_ConstantInt()))))
      store->setVolatile(true);
  }

  void keep_before_branch(llvm::BasicBlock& block) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (branch == nullptr || !branch->isConditional()) return;
    std::vector<llvm::Value*> parts;
    add_parts(branch->getCondition(), parts);
    if (parts.size() == 1) return;
    // What the first branch of them needs is in its block still. Of the rest each value is looked at once in a function.
    llvm::SmallPtrSet<const llvm::Value*, 16> first;
    walk_operands(parts.front(), &block, nullptr, first, [](llvm::LoadInst&) {});
    for (llvm::Value* part : llvm::drop_begin(parts)) {
      walk_operands(part, nullptr, &first, of_later_parts_, [&](llvm::LoadInst& load) {
        const std::optional<OrderedAccess> access = access_of(load);
        if (access && access->may_trap) add_load_user(load);
      });
    }
  }

 private:
  void fence_off(llvm::Instruction& rest) {
    llvm::CallInst* const fence = llvm::CallInst::Create(fence_, "", rest.getIterator());
    fence->setDoesNotThrow();
    fence->setDebugLoc(rest.getDebugLoc());
  }

  std::optional<OrderedAccess> access_of(llvm::Instruction& instruction) const {
    const bool stores = llvm::isa<llvm::StoreInst>(instruction);
    if (!stores && !llvm::isa<llvm::LoadInst>(instruction)) return std::nullopt;
    if (ir_.is_among(instruction, IrModule::World::kCells)) return std::nullopt;
    const bool of_memory = !ir_.is_among(instruction, IrModule::World::kRuntime);
    if (!of_memory && !stores) return std::nullopt;
    const llvm::DataLayout& layout = ir_.module.getDataLayout();
    const llvm::Value* const pointer = llvm::getLoadStorePointerOperand(&instruction);
    llvm::APInt begin(64, 0);
    const llvm::Value* const base =
        pointer->stripAndAccumulateConstantOffsets(layout, begin, /*AllowNonInbounds=*/true);
    const llvm::APInt end =
        begin + layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)).getFixedValue();
    return OrderedAccess{&instruction,
                         base,
                         begin,
                         end,
                         pointer,
                         stores,
                         of_memory && !is_inside_memory(instruction) &&
                             !ir_.is_always_there(base, end, instruction.getFunction()->getArg(0))};
  }

  IrModule& ir_;
  llvm::InlineAsm* const fence_;
  llvm::SmallPtrSet<const llvm::Value*, 32> of_later_parts_;  // their loads have users
};

}  // namespace

void keep_order_of_accesses(IrModule& ir) {
  if (ir.request.options.bounds == BoundsChecks::kExplicit) return;
  Orderer orderer(ir);
  for (llvm::Function& function : ir.module) {
    for (llvm::BasicBlock& block : function) {
      orderer.order(block);
      for (llvm::Instruction& instruction : block) Orderer::keep_whole(instruction);
    }
    for (llvm::BasicBlock& block : function) orderer.keep_before_branch(block);
    orderer.keep_in_blocks(function);
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block))
        Orderer::extend_for_user(instruction);
  }
}

}  // namespace hindsight::jit::optimizing
