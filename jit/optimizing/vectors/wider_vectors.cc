#include "jit/optimizing/vectors/wider_vectors.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <set>

#include "jit/optimizing/vectors/guarded_loop.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

constexpr uint64_t kLeastVectorIterations = 8;
constexpr unsigned kWasmVectorBits = 128;

llvm::FixedVectorType* vector_type(const Value* value) {
  return llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
}

// x86's instructions for 256 bits that do in each half what those for 128 do.
llvm::Intrinsic::ID in_halves(llvm::Intrinsic::ID of) {
  switch (of) {
    case llvm::Intrinsic::x86_sse2_pmadd_wd:
      return llvm::Intrinsic::x86_avx2_pmadd_wd;
    case llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128:
      return llvm::Intrinsic::x86_avx2_pmadd_ub_sw;
    case llvm::Intrinsic::x86_ssse3_pmul_hr_sw_128:
      return llvm::Intrinsic::x86_avx2_pmul_hr_sw;
    case llvm::Intrinsic::x86_ssse3_pshuf_b_128:
      return llvm::Intrinsic::x86_avx2_pshuf_b;
    case llvm::Intrinsic::x86_sse2_packsswb_128:
      return llvm::Intrinsic::x86_avx2_packsswb;
    case llvm::Intrinsic::x86_sse2_packssdw_128:
      return llvm::Intrinsic::x86_avx2_packssdw;
    case llvm::Intrinsic::x86_sse2_packuswb_128:
      return llvm::Intrinsic::x86_avx2_packuswb;
    case llvm::Intrinsic::x86_sse41_packusdw:
      return llvm::Intrinsic::x86_avx2_packusdw;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

// What a loop carries, in vectors: joined lane by lane, so that lanes may be joined later.
struct Sum {
  PHINode* phi = nullptr;
  Instruction* last = nullptr;
  std::vector<Value*> leaves;  // joined with the phi, in the first copy of the body
};

bool joins_lanes(unsigned opcode) {
  return opcode == Instruction::Add || opcode == Instruction::Xor || opcode == Instruction::Or;
}

// What of a loop's block becomes wider, if all of it can.
class Selection {
 public:
  Selection(const GuardedLoop& loop, unsigned factor) : loop_(loop), factor_(factor) {}

  bool select() {
    if (!select_sums()) return false;
    bool vectors = false;
    for (const AffineAccess& access : loop_.accesses.all) {
      if (!access.is_store || is_of_later_copy(access.instruction)) continue;
      if (!take(access.instruction)) return false;
    }
    for (const Sum& sum : sums_)
      for (Value* leaf : sum.leaves)
        if (!take(leaf)) return false;
    if (taken_.empty() || !only_leaves_what_is_known()) return false;
    // One place a group, if it is stored to: then no iteration reads what another one writes.
    std::map<size_t, std::set<int64_t>> places;
    std::set<size_t> stored;
    for (const AffineAccess& access : loop_.accesses.all) {
      if (!taken_.contains(access.instruction)) continue;
      vectors |= access.bytes == kWasmVectorBits / 8;
      places[access.group].insert(access.offset);
      if (access.is_store) stored.insert(access.group);
    }
    for (const size_t group : stored)
      if (places[group].size() != 1) return false;
    return vectors;
  }

  // In program order.
  std::vector<Instruction*> taken() const {
    std::vector<Instruction*> all;
    for (Instruction& instruction : *loop_.block)
      if (taken_.contains(&instruction)) all.push_back(&instruction);
    return all;
  }
  const std::vector<Sum>& sums() const { return sums_; }

 private:
  bool inside(const Value* value) const {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    return instruction && instruction->getParent() == loop_.block;
  }
  bool is_of_later_copy(const Instruction* store) const {
    const auto& later = loop_.rerolling.stores;
    return std::find(later.begin(), later.end(), store) != later.end();
  }
  bool is_induction(const PHINode& phi) const {
    return std::any_of(loop_.inductions.begin(), loop_.inductions.end(),
                       [&](const GuardedLoop::Induction& induction) { return induction.phi == &phi; });
  }

  bool select_sums() {
    for (PHINode& phi : loop_.block->phis()) {
      if (is_induction(phi)) continue;
      auto* const last = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(loop_.block));
      if (!last || !inside(last) || !joins_lanes(last->getOpcode()) || !vector_type(&phi) || !phi.hasOneUse())
        return false;
      Sum sum{&phi, last, {}};
      if (loop_.rerolling.copies == 1) {
        if (last->getOperand(0) != &phi && last->getOperand(1) != &phi) return false;
        sum.leaves.push_back(last->getOperand(last->getOperand(0) == &phi ? 1 : 0));
      } else {
        for (const Rerolling::Carried& carried : loop_.rerolling.carried)
          if (carried.phi == &phi) sum.leaves = carried.leaves;
        if (sum.leaves.empty()) return false;
      }
      sums_.push_back(std::move(sum));
    }
    return true;
  }

  // Notes what `value` is made of; false if some of it has no wider form.
  bool take(Value* value) {
    if (!inside(value)) return true;
    auto* const instruction = llvm::cast<Instruction>(value);
    if (taken_.contains(instruction)) return true;
    if (!has_wider_form(*instruction)) return false;
    taken_.insert(instruction);
    for (Value* operand : instruction->operands())
      if (!operand->getType()->isPointerTy() && !take(operand)) return false;
    return true;
  }

  bool has_wider_form(const Instruction& instruction) const {
    if (const AffineAccess* access = loop_.accesses.of(&instruction)) {
      const Value* value = access->is_store ? instruction.getOperand(0) : &instruction;
      const int64_t step =
          loop_.accesses.groups[access->group].step / static_cast<int64_t>(loop_.rerolling.copies);
      return vector_type(value) && step == access->bytes;
    }
    if (!vector_type(&instruction)) return false;
    if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
      if (in_halves(call->getIntrinsicID()) != llvm::Intrinsic::not_intrinsic) return factor_ == 2;
      return llvm::isTriviallyVectorizable(call->getIntrinsicID());
    }
    // Scalars become part of a vector lane by lane alone.
    for (const Value* operand : instruction.operands())
      if (inside(operand) && !vector_type(operand)) return false;
    return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst,
                     llvm::SelectInst, llvm::ShuffleVectorInst>(instruction);
  }

  // After the loop: sums, and where inductions have come to.
  bool only_leaves_what_is_known() const {
    for (const PHINode& phi : loop_.after->phis()) {
      const Value* const value = phi.getIncomingValueForBlock(loop_.block);
      if (!inside(value)) continue;
      bool known = false;
      for (const Sum& sum : sums_) known |= sum.last == value;
      for (const GuardedLoop::Induction& induction : loop_.inductions)
        known |= induction.phi->getIncomingValueForBlock(loop_.block) == value;
      if (!known) return false;
    }
    return true;
  }

  const GuardedLoop& loop_;
  const unsigned factor_;
  std::set<const Instruction*> taken_;
  std::vector<Sum> sums_;
};

// Makes the wider loop. Analyses know nothing of it.
class Widener {
 public:
  Widener(GuardedLoop& loop, const Selection& selection, unsigned factor)
      : loop_(loop),
        selection_(selection),
        factor_(factor),
        context_(loop.block->getContext()),
        function_(*loop.block->getParent()),
        b_(context_) {}

  void make() {
    make_entry();
    make_block();
    connect();
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, &function_, loop_.block);
  }
  llvm::Type* wider(llvm::Type* type) const {
    const auto* const vector = llvm::cast<llvm::FixedVectorType>(type);
    return llvm::FixedVectorType::get(vector->getElementType(), factor_ * vector->getNumElements());
  }

  // chunks = iterations * copies / factor; left = iterations that the chunks leave.
  void make_entry() {
    entry_ = new_block("wider.entry");
    block_ = new_block("wider");
    exit_ = new_block("wider.exit");
    b_.SetInsertPoint(entry_);
    b_.SetCurrentDebugLocation(loop_.location);
    const uint64_t copies = loop_.rerolling.copies;
    Value* const iterations = b_.CreateAdd(loop_.backedges, b_.getInt64(1), "", true, true);
    // Iterations to a chunk, or chunks to an iteration: both are powers of two where neither divides the
    // other.
    if (copies % factor_ == 0) {
      chunks_ = b_.CreateMul(iterations, b_.getInt64(copies / factor_), "chunks", true, true);
      done_ = iterations;
    } else {
      const uint64_t each = factor_ / copies;
      left_ = b_.CreateURem(iterations, b_.getInt64(each), "left");
      done_ = b_.CreateSub(iterations, left_, "", true, true);
      chunks_ = b_.CreateUDiv(done_, b_.getInt64(each), "chunks");
    }
  }

  void make_block() {
    llvm::IRBuilder<> phis(block_);
    phis.SetCurrentDebugLocation(loop_.location);
    PHINode* const counter = phis.CreatePHI(b_.getInt64Ty(), 2, "chunk");
    std::vector<PHINode*> sums;
    for (const Sum& sum : selection_.sums()) sums.push_back(phis.CreatePHI(wider(sum.phi->getType()), 2));
    b_.SetInsertPoint(block_);
    for (Instruction* instruction : selection_.taken()) {
      b_.SetCurrentDebugLocation(instruction->getDebugLoc());
      wide_[instruction] = widen(*instruction, counter);
    }
    b_.SetCurrentDebugLocation(loop_.location);
    for (size_t i = 0; i < sums.size(); ++i) {
      const Sum& sum = selection_.sums()[i];
      Value* value = sums[i];
      for (Value* leaf : sum.leaves) value = b_.CreateBinOp(opcode_of(sum), value, wide_of(leaf));
      sums[i]->addIncoming(llvm::Constant::getNullValue(sums[i]->getType()), entry_);
      sums[i]->addIncoming(value, block_);
      sum_.push_back(value);
    }
    Value* const next = b_.CreateAdd(counter, b_.getInt64(1), "", true, true);
    counter->addIncoming(b_.getInt64(0), entry_);
    counter->addIncoming(next, block_);
    b_.CreateCondBr(b_.CreateICmpEQ(next, chunks_), exit_, block_)
        ->setMetadata(llvm::LLVMContext::MD_loop, loop_identity(context_, loop_.identity, {}));
    b_.SetInsertPoint(entry_);
    b_.CreateBr(block_);
  }
  static Instruction::BinaryOps opcode_of(const Sum& sum) {
    return llvm::cast<llvm::BinaryOperator>(sum.last)->getOpcode();
  }

  // A value of the loop in as many iterations as a chunk has, one after the other.
  Value* wide_of(Value* value) {
    Value*& wide = wide_[value];
    if (wide) return wide;
    auto* const vector = vector_type(value);
    if (!vector) return value;  // a scalar from outside, the same for all lanes
    if (auto* const constant = llvm::dyn_cast<llvm::Constant>(value)) {
      std::vector<llvm::Constant*> lanes;
      for (unsigned i = 0; i < factor_ * vector->getNumElements(); ++i)
        lanes.push_back(constant->getAggregateElement(i % vector->getNumElements()));
      if (std::none_of(lanes.begin(), lanes.end(), [](auto* lane) { return lane == nullptr; }))
        return wide = llvm::ConstantVector::get(lanes);
    }
    std::vector<int> mask;
    for (unsigned i = 0; i < factor_ * vector->getNumElements(); ++i)
      mask.push_back(static_cast<int>(i % vector->getNumElements()));
    llvm::IRBuilder<> before(entry_);
    before.SetCurrentDebugLocation(loop_.location);
    return wide = before.CreateShuffleVector(value, mask);
  }

  Value* widen(Instruction& instruction, Value* counter) {
    if (const AffineAccess* access = loop_.accesses.of(&instruction)) return widen_access(*access, counter);
    if (const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction))
      return widen_shuffle(*shuffle);
    if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) return widen_call(*call);
    if (const auto* const cast = llvm::dyn_cast<llvm::CastInst>(&instruction))
      return b_.CreateCast(cast->getOpcode(), wide_of(cast->getOperand(0)), wider(cast->getType()));
    if (const auto* const compare = llvm::dyn_cast<llvm::CmpInst>(&instruction))
      return b_.CreateCmp(compare->getPredicate(), wide_of(compare->getOperand(0)),
                          wide_of(compare->getOperand(1)));
    if (auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction))
      return b_.CreateSelect(wide_of(select->getCondition()), wide_of(select->getTrueValue()),
                             wide_of(select->getFalseValue()));
    if (const auto* const unary = llvm::dyn_cast<llvm::UnaryOperator>(&instruction))
      return b_.CreateUnOp(unary->getOpcode(), wide_of(unary->getOperand(0)));
    return b_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(instruction).getOpcode(),
                          wide_of(instruction.getOperand(0)), wide_of(instruction.getOperand(1)));
  }

  Value* widen_access(const AffineAccess& access, Value* counter) {
    const int64_t chunk = access.bytes * static_cast<int64_t>(factor_);
    Value* place = b_.CreateInBoundsGEP(
        b_.getInt8Ty(), loop_.starts[access.group],
        b_.CreateMul(counter, b_.getInt64(static_cast<uint64_t>(chunk)), "", false, true));
    if (access.offset != 0)
      place = b_.CreateInBoundsGEP(b_.getInt8Ty(), place, b_.getInt64(static_cast<uint64_t>(access.offset)));
    Instruction* made = nullptr;
    if (access.is_store)
      made = b_.CreateAlignedStore(wide_of(access.instruction->getOperand(0)), place, llvm::Align(1));
    else
      made = b_.CreateAlignedLoad(wider(access.instruction->getType()), place, llvm::Align(1));
    // Where it is in the program, and which world's memory it is.
    llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 4> metadata;
    access.instruction->getAllMetadataOtherThanDebugLoc(metadata);
    for (const auto& [kind, node] : metadata) made->setMetadata(kind, node);
    return made;
  }

  // Chunk by chunk of what each of the two operands was.
  Value* widen_shuffle(const llvm::ShuffleVectorInst& shuffle) {
    const auto lanes = static_cast<int>(vector_type(shuffle.getOperand(0))->getNumElements());
    std::vector<int> mask;
    for (int part = 0; part < static_cast<int>(factor_); ++part) {
      for (const int lane : shuffle.getShuffleMask()) {
        if (lane < 0)
          mask.push_back(lane);
        else if (lane < lanes)
          mask.push_back(part * lanes + lane);
        else
          mask.push_back(static_cast<int>(factor_) * lanes + part * lanes + lane - lanes);
      }
    }
    return b_.CreateShuffleVector(wide_of(shuffle.getOperand(0)), wide_of(shuffle.getOperand(1)), mask);
  }

  Value* widen_call(const llvm::IntrinsicInst& call) {
    std::vector<Value*> arguments;
    for (const llvm::Use& argument : call.args()) arguments.push_back(wide_of(argument.get()));
    const llvm::Intrinsic::ID halves = in_halves(call.getIntrinsicID());
    if (halves != llvm::Intrinsic::not_intrinsic) return b_.CreateIntrinsic(halves, {}, arguments);
    return b_.CreateIntrinsic(wider(call.getType()), call.getIntrinsicID(), arguments);
  }

  void connect() {
    BasicBlock* const narrow_entry = new_block("narrow.entry");
    BasicBlock* const narrow_exit = new_block("narrow.exit");
    b_.SetInsertPoint(exit_);
    b_.SetCurrentDebugLocation(loop_.location);
    // What the loop has when it goes on after the chunks.
    std::map<const Value*, Value*> resumed;  // header phi
    for (const auto& [phi, step] : loop_.inductions) {
      Value* const way =
          b_.CreateMul(b_.CreateZExtOrTrunc(done_, phi->getType()),
                       llvm::ConstantInt::get(phi->getType(), static_cast<uint64_t>(step), true));
      resumed[phi] = b_.CreateAdd(phi->getIncomingValueForBlock(loop_.before), way);
    }
    for (size_t i = 0; i < sum_.size(); ++i) resumed[selection_.sums()[i].phi] = joined(i);

    for (PHINode& phi : loop_.block->phis()) {
      Value* start = phi.getIncomingValueForBlock(loop_.before);
      if (left_) {
        PHINode* const entering = PHINode::Create(phi.getType(), 2, "", narrow_entry);
        entering->addIncoming(start, loop_.before);
        entering->addIncoming(resumed[&phi], exit_);
        start = entering;
      }
      phi.setIncomingValueForBlock(loop_.before, start);
    }
    loop_.block->replacePhiUsesWith(loop_.before, narrow_entry);
    branch(narrow_entry, loop_.block);
    branch(narrow_exit, loop_.after);
    loop_.block->getTerminator()->replaceSuccessorWith(loop_.after, narrow_exit);
    for (PHINode& phi : loop_.after->phis()) {
      Value* const value = phi.getIncomingValueForBlock(loop_.block);
      Value* all_done = value;
      for (const auto& [carrier, result] : resumed)
        if (llvm::cast<PHINode>(carrier)->getIncomingValueForBlock(loop_.block) == value) all_done = result;
      phi.removeIncomingValue(loop_.block, /*DeletePHIIfEmpty=*/false);
      phi.addIncoming(closed_value(value, loop_.block, narrow_exit), narrow_exit);
      phi.addIncoming(all_done, exit_);
    }
    if (left_)
      b_.CreateCondBr(b_.CreateICmpEQ(left_, b_.getInt64(0)), loop_.after, narrow_entry);
    else
      b_.CreateBr(loop_.after);
    branch_on_guard(loop_, entry_, narrow_entry);
  }
  void branch(BasicBlock* from, BasicBlock* to) {
    llvm::BranchInst::Create(to, from)->setDebugLoc(loop_.location);
  }

  // The parts of a wide sum and what the loop began with, in one vector of 128 bits.
  Value* joined(size_t index) {
    const Sum& sum = selection_.sums()[index];
    const auto lanes = static_cast<int>(vector_type(sum.phi)->getNumElements());
    Value* const wide = closed_value(sum_[index], block_, exit_);
    Value* value = sum.phi->getIncomingValueForBlock(loop_.before);
    for (int part = 0; part < static_cast<int>(factor_); ++part) {
      std::vector<int> mask;
      for (int lane = 0; lane < lanes; ++lane) mask.push_back(part * lanes + lane);
      value = b_.CreateBinOp(opcode_of(sum), value, b_.CreateShuffleVector(wide, mask));
    }
    return value;
  }

  GuardedLoop& loop_;
  const Selection& selection_;
  const unsigned factor_;
  llvm::LLVMContext& context_;
  llvm::Function& function_;
  llvm::IRBuilder<> b_;
  BasicBlock* entry_ = nullptr;
  BasicBlock* block_ = nullptr;
  BasicBlock* exit_ = nullptr;
  Value* chunks_ = nullptr;
  Value* done_ = nullptr;  // iterations of the loop as it is
  Value* left_ = nullptr;  // null: none ever
  std::map<Value*, Value*> wide_;
  std::vector<Value*> sum_;
};

bool has_vectors(const BasicBlock& block) {
  return std::any_of(block.begin(), block.end(), [](const Instruction& instruction) {
    return instruction.getType()->isVectorTy() ||
           (llvm::isa<llvm::StoreInst>(instruction) && instruction.getOperand(0)->getType()->isVectorTy());
  });
}

}  // namespace

llvm::PreservedAnalyses WiderVectorsPass::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager& analyses) {
  const unsigned factor = vector_bits / kWasmVectorBits;
  if (function.isDeclaration() || factor < 2) return llvm::PreservedAnalyses::all();
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  std::vector<std::pair<std::unique_ptr<GuardedLoop>, std::unique_ptr<Selection>>> work;
  bool changed = false;
  for (llvm::Loop* loop : latest_first(loops)) {
    if (loop->getNumBlocks() != 1 || !has_vectors(*loop->getHeader())) continue;
    std::optional<GuardedLoop> found = find_guarded_loop(*loop, dominators, evolution);
    if (!found) continue;
    changed = true;  // the count is in the preheader
    const unsigned copies = found->rerolling.copies;
    if (copies % factor != 0 && factor % copies != 0) continue;
    auto kept = std::make_unique<GuardedLoop>(std::move(*found));
    auto selection = std::make_unique<Selection>(*kept, factor);
    if (!selection->select() ||
        !emit_guard(ir, *kept, evolution, kLeastVectorIterations, /*reorders=*/true) || !kept->apart)
      continue;
    kept->remember_shape();
    work.emplace_back(std::move(kept), std::move(selection));
  }
  // Blocks change only when all is known.
  for (auto& [loop, selection] : work)
    if (loop->has_kept_its_shape()) Widener(*loop, *selection, factor).make();
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace hindsight::jit::optimizing
