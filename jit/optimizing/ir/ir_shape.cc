#include "jit/optimizing/ir/ir_shape.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Support/raw_ostream.h>

#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

std::string counted(size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

std::string joined(std::span<const std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

bool is_prefetch(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

// What is in some blocks.
class Contents {
 public:
  Contents(const IrModule& ir, std::span<const BasicBlock* const> blocks, bool is_loop) : ir_(ir) {
    for (const BasicBlock* block : blocks) {
      if (llvm::isa<llvm::UnreachableInst>(block->getTerminator())) continue;
      ++blocks_;
      for (const Instruction& instruction : *block) add(instruction);
    }
    if (!is_loop) phis_ = 0;
  }

  size_t blocks() const { return blocks_; }

  std::string text() const {
    std::vector<std::string> parts;
    const auto say = [&](size_t count, std::string_view one, std::string_view many) {
      if (count != 0) parts.push_back(counted(count, one, many));
    };
    say(phis_, "phi", "phis");
    say(loads_, "load", "loads");
    say(stores_, "store", "stores");
    say(prefetches_, "prefetch", "prefetches");
    say(gathers_, "gather", "gathers");
    say(selects_, "select", "selects");
    say(divisions_, "division", "divisions");
    for (const std::string& number : divisors_) parts.push_back("a division by " + number);
    say(calls_, "call", "calls");
    say(nulls_, "comparison with null", "comparisons with null");
    say(pins_, "pinned load", "pinned loads");
    say(cuts_, "cut", "cuts");
    for (const std::string& cell : cells_) parts.push_back("looks at cell " + cell);
    if (!vector_.empty()) parts.push_back("vectors of " + vector_);
    return joined(parts);
  }

  std::string weights() const { return joined(weights_); }

 private:
  void add(const Instruction& instruction) {
    note_vector(instruction);
    if (llvm::isa<llvm::PHINode>(instruction)) ++phis_;
    if (llvm::isa<llvm::SelectInst>(instruction)) ++selects_;
    if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction)) add_access(instruction);
    if (const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) add_division(*operation);
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) add_call(*call);
    if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(&instruction)) add_weights(*branch);
    if (const auto* compared = llvm::dyn_cast<llvm::ICmpInst>(&instruction))
      nulls_ += llvm::isa<llvm::ConstantPointerNull>(compared->getOperand(1)) ? 1 : 0;
  }

  void add_access(const Instruction& access) {
    if (ir_.is_among(access, IrModule::World::kRuntime)) return;
    if (const std::string cell = cell_of(*llvm::getLoadStorePointerOperand(&access)); !cell.empty())
      cells_.insert(cell);
    else if (!ir_.is_among(access, IrModule::World::kCells))
      ++(llvm::isa<llvm::LoadInst>(access) ? loads_ : stores_);
  }

  // Its number; empty: it is none.
  std::string cell_of(const Value& place) const {
    llvm::APInt offset(64, 0);
    const Value* const from = place.stripAndAccumulateConstantOffsets(ir_.module.getDataLayout(), offset,
                                                                      /*AllowNonInbounds=*/true);
    const llvm::StringRef name = from->getName();
    return llvm::isa<llvm::GlobalVariable>(from) && name.starts_with(kCellPrefix)
               ? name.drop_front(std::string_view(kCellPrefix).size()).str()
               : "";
  }

  void add_division(const llvm::BinaryOperator& operation) {
    if (!operation.isIntDivRem()) return;
    if (const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(operation.getOperand(1)))
      divisors_.push_back(std::to_string(number->getSExtValue()));
    else
      ++divisions_;
  }

  void add_call(const llvm::CallBase& call) {
    if (call.isInlineAsm()) {
      if (!llvm::cast<llvm::InlineAsm>(call.getCalledOperand())->getAsmString().empty()) return;
      ++(call.getType()->isVoidTy() ? pins_ : cuts_);
    } else if (const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
      prefetches_ += is_prefetch(call) ? 1 : 0;
      gathers_ += intrinsic->getIntrinsicID() == llvm::Intrinsic::masked_gather ? 1 : 0;
    } else if (!call.hasFnAttr(llvm::Attribute::Cold)) {
      ++calls_;  // that of a strip's end is cold
    }
  }

  void add_weights(const llvm::BranchInst& branch) {
    const llvm::MDNode* const said = branch.getMetadata(llvm::LLVMContext::MD_prof);
    uint64_t yes = 0, no = 0;
    if (said == nullptr || said == ir_.unlikely || said == ir_.likely ||
        !llvm::extractBranchWeights(branch, yes, no))
      return;
    weights_.push_back(std::to_string(yes) + ":" + std::to_string(no));
  }

  // The one with the most lanes.
  void note_vector(const Instruction& instruction) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    if (type == nullptr || type->getNumElements() <= lanes_ || type->getElementType()->isIntegerTy(1)) return;
    lanes_ = type->getNumElements();
    vector_.clear();
    llvm::raw_string_ostream(vector_) << *type;
  }

  const IrModule& ir_;
  size_t blocks_ = 0, phis_ = 0, loads_ = 0, stores_ = 0, prefetches_ = 0, gathers_ = 0, selects_ = 0;
  size_t divisions_ = 0, calls_ = 0, nulls_ = 0, pins_ = 0, cuts_ = 0;
  std::vector<std::string> divisors_, weights_;
  std::set<std::string> cells_;
  unsigned lanes_ = 1;
  std::string vector_;
};

class ShapeWriter {
 public:
  explicit ShapeWriter(IrModule& ir) : ir_(ir) {}

  std::string run() {
    for (llvm::Function& function : ir_.module)
      if (!function.isDeclaration()) add_function(function);
    return std::move(text_);
  }

 private:
  void add_line(unsigned depth, const std::string& line) {
    text_ += kShapePrefix + std::string(2 * depth, ' ') + line + "\n";
  }
  void add_weights(unsigned depth, const Contents& contents) {
    if (!contents.weights().empty()) add_line(depth, "weights " + contents.weights());
  }

  void add_function(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    const auto all = loops.getLoopsInPreorder();
    size_t prefetches = 0;
    for (const BasicBlock& block : function)
      for (const Instruction& instruction : block) prefetches += is_prefetch(instruction) ? 1 : 0;
    std::vector<std::string> totals;
    if (!all.empty()) totals.push_back(counted(all.size(), "loop", "loops"));
    if (prefetches != 0) totals.push_back(counted(prefetches, "prefetch", "prefetches"));
    const Contents outside(ir_, blocks_of(function, loops, nullptr), /*is_loop=*/false);
    std::string line = function.getName().str() + ": " + (totals.empty() ? "no loop" : joined(totals));
    if (const std::string more = outside.text(); !more.empty())
      line += totals.empty() ? ", " + more : "; outside of them " + more;
    add_line(0, line);
    add_weights(1, outside);
    for (const llvm::Loop* loop : all) {
      const Contents contents(ir_, blocks_of(function, loops, loop), /*is_loop=*/true);
      const std::string what = contents.text();
      add_line(loop->getLoopDepth(), "loop of " + counted(contents.blocks(), "block", "blocks") +
                                         (what.empty() ? "" : ": ") + what);
      add_weights(loop->getLoopDepth() + 1, contents);
    }
  }

  // Whose innermost loop it is; null: those in no loop. In the order of the code.
  static std::vector<const BasicBlock*> blocks_of(const llvm::Function& function, const llvm::LoopInfo& loops,
                                                  const llvm::Loop* loop) {
    std::vector<const BasicBlock*> blocks;
    for (const BasicBlock& block : function)
      if (loops.getLoopFor(&block) == loop) blocks.push_back(&block);
    return blocks;
  }

  IrModule& ir_;
  std::string text_;
};

}  // namespace

std::string shape_of(IrModule& ir) {
  return ShapeWriter(ir).run();
}

}  // namespace hindsight::jit::optimizing
