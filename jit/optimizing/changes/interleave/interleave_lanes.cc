// Searches in the lanes of vectors. A step of as many as a vector holds is a handful of instructions, and a
// mask instead of a branch says what each decides.
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>

#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;

// One word of a lane.
bool is_word(const llvm::Type& type) {
  return type.isIntegerTy(32) || type.isIntegerTy(64) || type.isFloatTy() || type.isDoubleTy();
}

// What can lie in the frame, an element a search, and be read as a vector: a vector of i1 is packed into
// bits.
bool lies_in_frame(const llvm::Type& type) {
  return is_word(type) || type.isPointerTy();
}

bool is_min_or_max(const Instruction& operation) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&operation);
  if (!call) return false;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
      return true;
    default:
      return false;
  }
}

bool may_divide(const Instruction& operation) {
  switch (operation.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::FRem:
      return true;
    default:
      return false;
  }
}

// Not so a pin (protect.h): its load has to be made though nothing may need it.
bool has_lanes(const Instruction& operation) {
  if (llvm::isa<llvm::PHINode>(operation)) return is_word(*operation.getType());
  if (llvm::isa<llvm::BinaryOperator>(operation)) return !may_divide(operation);
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&operation))
    return load->isSimple() && is_word(*load->getType());
  if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&operation))
    return address->getNumIndices() == 1;
  if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&operation))
    return !compare->getOperand(0)->getType()->isPointerTy();
  if (llvm::isa<llvm::BitCastInst>(operation))
    return is_word(*operation.getType()) && is_word(*operation.getOperand(0)->getType());
  return llvm::isa<llvm::SelectInst, llvm::TruncInst, llvm::ZExtInst, llvm::SExtInst, llvm::FreezeInst>(
             operation) ||
         is_min_or_max(operation);
}

}  // namespace

unsigned search_lanes(const IrModule& ir, const InterleaveShape& shape) {
  constexpr unsigned kLaneBits = 32;
  if (shape.steps.size() != 1 || ir.host.features.find("+avx2") == std::string::npos) return 0;
  const llvm::BasicBlock& step = *shape.steps.front();
  const auto* const end = llvm::dyn_cast<llvm::BranchInst>(step.getTerminator());
  if (!end || !end->isConditional()) return 0;
  for (const Instruction& operation : step) {
    if (&operation == end) continue;
    if (!has_lanes(operation)) return 0;
    for (const llvm::Value* operand : operation.operands()) {
      const auto* const made = llvm::dyn_cast<Instruction>(operand);
      if (made && shape.in_head.contains(made->getParent()) && !lies_in_frame(*operand->getType())) return 0;
    }
  }
  for (const llvm::BasicBlock* to : llvm::successors(&step))
    for (const llvm::PHINode& phi : to->phis())
      if (!lies_in_frame(*phi.getType())) return 0;
  // Two vectors at once hide what one waits for. A power of two: the frame has room for kMaxInterleaveWidth.
  return std::bit_floor(std::min(kMostSearchLanes, 2 * ir.host.vector_bits / kLaneBits));
}

namespace interleaving {

Value* Emission::lanes_from(Builder& b, llvm::AllocaInst* array, Value* base) const {
  llvm::Type* const type = array->getAllocatedType()->getArrayElementType();
  return b.CreateAlignedLoad(llvm::FixedVectorType::get(type, lanes_), element(b, array, base),
                             ir_.module.getDataLayout().getABITypeAlign(type));
}

void Emission::lanes_to(Builder& b, Value* lanes, llvm::AllocaInst* array, Value* base) const {
  llvm::Type* const type = array->getAllocatedType()->getArrayElementType();
  b.CreateAlignedStore(lanes, element(b, array, base), ir_.module.getDataLayout().getABITypeAlign(type));
}

// The lanes of an operand.
Value* Emission::lanes_of(Value* value, Builder& b, Value* base, Copies& in_lanes) {
  if (const auto found = in_lanes.find(value); found != in_lanes.end()) return found->second;
  const auto* const made = llvm::dyn_cast<Instruction>(value);
  Value* const lanes = made && shape_.in_head.contains(made->getParent())
                           ? lanes_from(b, kept_array(value), base)
                           : b.CreateVectorSplat(lanes_, value);
  in_lanes[value] = lanes;
  return lanes;
}

Value* Emission::emit_lanes(Instruction& operation, Builder& b, Value* base, Value* mask, Copies& in_lanes) {
  const auto lanes = [&](unsigned operand) {
    return lanes_of(operation.getOperand(operand), b, base, in_lanes);
  };
  const auto wide = [&](llvm::Type* type) { return llvm::FixedVectorType::get(type, lanes_); };
  if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&operation))
    return b.CreateBinOp(binary->getOpcode(), lanes(0), lanes(1));
  if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&operation))
    return b.CreateCmp(compare->getPredicate(), lanes(0), lanes(1));
  if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&operation))
    return b.CreateCast(cast->getOpcode(), lanes(0), wide(cast->getType()));
  if (llvm::isa<llvm::SelectInst>(operation)) return b.CreateSelect(lanes(0), lanes(1), lanes(2));
  if (llvm::isa<llvm::FreezeInst>(operation)) return b.CreateFreeze(lanes(0));
  if (auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&operation)) {
    Value* const start = address->getPointerOperand();
    const auto* const made = llvm::dyn_cast<Instruction>(start);
    const bool same = !made || !shape_.outer->contains(made);
    return b.CreateGEP(address->getSourceElementType(), same ? start : lanes(0), lanes(1));
  }
  if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&operation)) {
    // Lanes without a search read the frame. One load a lane: gathers are no faster on many processors, and
    // LLVM makes a branch a lane of masked ones there.
    Value* const nowhere = b.CreateVectorSplat(lanes_, searching_);
    Value* const places = b.CreateSelect(mask, lanes(0), nowhere);
    Value* gather = llvm::PoisonValue::get(wide(load->getType()));
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      llvm::LoadInst* const one =
          b.CreateAlignedLoad(load->getType(), b.CreateExtractElement(places, lane), load->getAlign());
      one->copyMetadata(*load);
      one->setDebugLoc(load->getDebugLoc());
      gather = b.CreateInsertElement(gather, one, lane);
    }
    return gather;
  }
  const auto& call = llvm::cast<llvm::IntrinsicInst>(operation);
  return b.CreateBinaryIntrinsic(call.getIntrinsicID(), lanes(0), lanes(1));
}

void Emission::emit_lane_steps() {
  BasicBlock* const original = shape_.steps.front();
  Builder b = at(round_);
  PHINode* const active = b.CreatePHI(ir_.i1, 2);
  active->addIncoming(llvm::CmpInst::Create(Instruction::ICmp, llvm::CmpInst::ICMP_NE, active_now_, number(0),
                                            "", heads_end_->getTerminator()),
                      heads_end_);
  BasicBlock* const going_on = begin_round(active);

  move(b, step_);
  PHINode* const base = b.CreatePHI(i64(), 2);
  base->addIncoming(number(0), going_on);
  PHINode* const still = b.CreatePHI(ir_.i1, 2);
  still->addIncoming(b.getFalse(), going_on);
  Value* const mask = b.CreateIsNotNull(lanes_from(b, searching_, base));
  BasicBlock* const lanes = new_block("lanes");
  b.CreateCondBr(b.CreateOrReduce(mask), lanes, step_end_);

  move(b, lanes);
  Copies in_lanes;
  for (PHINode& phi : original->phis()) in_lanes[&phi] = lanes_from(b, state_.at(&phi), base);
  for (Instruction& operation : *original) {
    if (llvm::isa<PHINode>(operation) || operation.isTerminator()) continue;
    if (operation.getDebugLoc()) b.SetCurrentDebugLocation(operation.getDebugLoc());
    Value* const made = emit_lanes(operation, b, base, mask, in_lanes);
    in_lanes[&operation] = made;
  }
  b.SetCurrentDebugLocation(location_);
  // Lanes without a search compute whatever they do: none of it decides anything.
  auto* const end = llvm::cast<llvm::BranchInst>(original->getTerminator());
  Value* stay = b.CreateFreeze(lanes_of(end->getCondition(), b, base, in_lanes));
  const bool stays_if_true = end->getSuccessor(0) == original;
  if (!stays_if_true) stay = b.CreateNot(stay);
  Value* const go_on = b.CreateAnd(mask, stay);
  Value* const leave = b.CreateAnd(mask, b.CreateNot(stay));
  BasicBlock* const to = end->getSuccessor(stays_if_true ? 1 : 0);
  Way& out = ways_.emplace_back(Way{original, to, nullptr, {}});
  for (PHINode& phi : to->phis()) {
    Value* const result = phi.getIncomingValueForBlock(original);
    const auto* made = llvm::dyn_cast<Instruction>(result);
    if (!made || !shape_.in_steps.contains(made->getParent())) continue;
    llvm::AllocaInst* const results = out.results[&phi] = array(phi.getType());
    // Not a masked store, which some processors take ten times as long for.
    lanes_to(b, b.CreateSelect(leave, lanes_of(result, b, base, in_lanes), lanes_from(b, results, base)),
             results, base);
  }
  for (PHINode& phi : original->phis())
    lanes_to(b, lanes_of(phi.getIncomingValueForBlock(original), b, base, in_lanes), state_.at(&phi), base);
  lanes_to(b, b.CreateZExt(go_on, llvm::FixedVectorType::get(ir_.i8, lanes_)), searching_, base);
  Value* const any = b.CreateOr(still, b.CreateOrReduce(go_on));
  b.CreateBr(step_end_);

  move(b, step_end_);
  PHINode* const still_now = b.CreatePHI(ir_.i1, 2);
  still_now->addIncoming(still, step_);
  still_now->addIncoming(any, lanes);
  Value* const next = b.CreateAdd(base, number(lanes_), "", true, true);
  base->addIncoming(next, step_end_);
  still->addIncoming(still_now, step_end_);
  active->addIncoming(still_now, step_end_);
  end_loop(step_end_, next, width_, step_, round_);
}

}  // namespace interleaving
}  // namespace hindsight::jit::optimizing
