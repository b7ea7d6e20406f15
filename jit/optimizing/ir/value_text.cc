#include "jit/optimizing/ir/value_text.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// What is used more than once is written again if it is no longer than this, and else has a name.
constexpr size_t kShortText = 10;
// Instructions of all formulas. What is longer says nothing to anyone.
constexpr unsigned kMostShown = 400;
constexpr std::string_view kCarriedLetters = "ijklmn";
constexpr std::string_view kValueLetters = "abcdefghopqrstuvwxyz";
// From here on numbers are masks and multipliers: hexadecimal.
constexpr int64_t kLeastMask = 1000;
constexpr int64_t kLeastPattern = 1 << 24;

std::string next_name(std::string_view letters, unsigned& used) {
  const unsigned round = used / letters.size();
  std::string name(1, letters[used++ % letters.size()]);
  return round == 0 ? name : name + std::to_string(round);
}

// Empty: it is none, or has more bits.
std::optional<int64_t> number_of(const Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (constant == nullptr || constant->getBitWidth() > 64) return std::nullopt;
  return constant->getSExtValue();
}

uint64_t in_bits(int64_t number, unsigned bits) {
  return bits >= 64 ? static_cast<uint64_t>(number)
                    : static_cast<uint64_t>(number) & ((uint64_t{1} << bits) - 1);
}

int64_t product(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) * static_cast<uint64_t>(right));
}

// Without the sign of a small one.
std::string magnitude(int64_t number, unsigned bits) {
  if (number > -kLeastPattern && number < kLeastPattern) return std::to_string(std::abs(number));
  return fmt::format("0x{:x}", in_bits(number, bits));
}
bool is_subtracted(int64_t number) {
  return number < 0 && number > -kLeastPattern;
}

// Is it a sum or a multiple of its operands?
bool is_linear(const Instruction& instruction) {
  if (instruction.getType()->isVectorTy()) return false;
  switch (instruction.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::Freeze:
      return true;
    case Instruction::Mul:
      return number_of(instruction.getOperand(1)).has_value();
    case Instruction::Shl:
      return number_of(instruction.getOperand(1)).has_value();
    case Instruction::GetElementPtr:
      return instruction.getNumOperands() == 2;
    default:
      return false;
  }
}

// A number that is zero-extended is the same. But a sum may have wrapped before, and is none of the wider one.
const Value* before_extension(const Value* value) {
  const auto* const extended = llvm::dyn_cast<llvm::ZExtInst>(value);
  const auto* const narrow =
      extended != nullptr ? llvm::dyn_cast<Instruction>(extended->getOperand(0)) : nullptr;
  return narrow != nullptr && !is_linear(*narrow) ? narrow : value;
}

// The bytes of an index's element.
int64_t element_bytes(const Instruction& step) {
  const auto& pointer = llvm::cast<llvm::GetElementPtrInst>(step);
  return static_cast<int64_t>(
      step.getModule()->getDataLayout().getTypeAllocSize(pointer.getSourceElementType()).getFixedValue());
}

// Where a load of the runtime's or of a cell's begins to look, and how far from there.
std::pair<const Value*, int64_t> origin_and_offset(const llvm::LoadInst& load) {
  llvm::APInt offset(64, 0);
  const Value* const from = load.getPointerOperand()->stripAndAccumulateConstantOffsets(
      load.getModule()->getDataLayout(), offset, /*AllowNonInbounds=*/true);
  return {from, offset.getSExtValue()};
}

// Where in the frame it looks; null: elsewhere.
const llvm::AllocaInst* kept_in_frame(const llvm::LoadInst& load) {
  return llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(load.getPointerOperand()));
}
// Bytes that runs ahead have of their own, if the address is among these, and else memory's.
bool is_beside_memory(const llvm::LoadInst& load) {
  const auto* const choice = llvm::dyn_cast<llvm::SelectInst>(load.getPointerOperand());
  return choice != nullptr &&
         llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(choice->getTrueValue(), 0));
}

bool is_distance(const llvm::LoadInst& load) {
  const auto [from, offset] = origin_and_offset(load);
  return llvm::isa<llvm::GlobalVariable>(from) && from->getName().starts_with(kCellPrefix) &&
         offset == kCellDistance;
}

// Its operator; null: it has none.
const char* sign_of(const Instruction& instruction) {
  using Compared = llvm::CmpInst;
  constexpr std::pair<unsigned, const char*> kOperators[] = {
      {Instruction::UDiv, "/"},   {Instruction::SDiv, "/s"}, {Instruction::URem, "%"},
      {Instruction::SRem, "%s"},  {Instruction::Shl, "<<"},  {Instruction::LShr, ">>"},
      {Instruction::AShr, ">>s"}, {Instruction::And, "&"},   {Instruction::Or, "|"},
      {Instruction::Xor, "^"},
  };
  constexpr std::pair<unsigned, const char*> kComparisons[] = {
      {Compared::ICMP_EQ, "=="},   {Compared::ICMP_NE, "!="},   {Compared::ICMP_ULT, "<"},
      {Compared::ICMP_ULE, "<="},  {Compared::ICMP_UGT, ">"},   {Compared::ICMP_UGE, ">="},
      {Compared::ICMP_SLT, "<s"},  {Compared::ICMP_SLE, "<=s"}, {Compared::ICMP_SGT, ">s"},
      {Compared::ICMP_SGE, ">=s"},
  };
  const auto* const compared = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
  const std::span<const std::pair<unsigned, const char*>> signs =
      compared != nullptr ? kComparisons : std::span(kOperators);
  const unsigned wanted = compared != nullptr ? compared->getPredicate() : instruction.getOpcode();
  const auto found = std::ranges::find(signs, wanted, &std::pair<unsigned, const char*>::first);
  return found != signs.end() ? found->second : nullptr;
}

// Bits, and numbers without a sign.
std::string pattern_of(const llvm::ConstantInt& constant) {
  const uint64_t pattern = in_bits(constant.getSExtValue(), constant.getBitWidth());
  return pattern < uint64_t{kLeastMask} ? std::to_string(pattern) : fmt::format("0x{:x}", pattern);
}

// A choice that is none: null, if it is one.
const Value* only_choice(const Instruction& instruction) {
  const auto* const choice = llvm::dyn_cast<llvm::SelectInst>(&instruction);
  const std::optional<int64_t> known = choice != nullptr ? number_of(choice->getCondition()) : std::nullopt;
  if (!known) return nullptr;
  return *known != 0 ? choice->getTrueValue() : choice->getFalseValue();
}

// What comes round to a phi of a header; null: from several places.
const Value* next_of(const llvm::PHINode& phi, const llvm::Loop& loop) {
  const llvm::BasicBlock* const latch = loop.getLoopLatch();
  return latch != nullptr ? phi.getIncomingValueForBlock(latch) : nullptr;
}

}  // namespace

bool ValueText::is_around(const llvm::Loop& loop) const {
  return loop_ != nullptr && loop.contains(loop_);
}

std::vector<const Value*> ValueText::parts_of(const Instruction& instruction) const {
  if (const std::optional<Clamp> clamp = clamp_of(instruction)) return {clamp->place};
  if (const Value* const chosen = only_choice(instruction)) return {chosen};
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    if (origin_of(*load)) return {load->getPointerOperand()};
    const llvm::AllocaInst* const kept = kept_in_frame(*load);
    return kept != nullptr ? stored_here(*kept) : std::vector<const Value*>{};
  }
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
    const llvm::Loop* const loop = loops_.getLoopFor(phi->getParent());
    const bool is_of_header = loop != nullptr && loop->getHeader() == phi->getParent();
    if (!is_of_header) return {phi->value_op_begin(), phi->value_op_end()};
    const Value* const next = is_around(*loop) ? next_of(*phi, *loop) : nullptr;
    return next != nullptr ? std::vector<const Value*>{next} : std::vector<const Value*>{};
  }
  if (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction)) return {};
  return {instruction.value_op_begin(), instruction.value_op_end()};
}

// What the loop leaves in a place of the frame.
std::vector<const Value*> ValueText::stored_here(const llvm::AllocaInst& kept) const {
  std::vector<const Value*> values;
  std::vector<const llvm::User*> users(kept.user_begin(), kept.user_end());
  for (size_t i = 0; i < users.size(); ++i) {
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(users[i]);
    if (store != nullptr && loop_ != nullptr && loop_->contains(store))
      values.push_back(store->getValueOperand());
    if (llvm::isa<llvm::GetElementPtrInst>(users[i]))
      users.insert(users.end(), users[i]->user_begin(), users[i]->user_end());
  }
  return values;
}

void ValueText::expect(const Value& value) {
  std::vector<const Value*> rest{&value};
  while (!rest.empty()) {
    const auto* const instruction = llvm::dyn_cast<Instruction>(before_extension(rest.back()));
    rest.pop_back();
    if (instruction == nullptr || ++uses_[instruction] > 1 || uses_.size() > kMostShown) continue;
    const std::vector<const Value*> parts = parts_of(*instruction);
    rest.insert(rest.end(), parts.begin(), parts.end());
  }
}

std::string ValueText::place(const Value& pointer, uint64_t bytes) {
  if (const std::optional<Clamp> clamp = clamp_of(pointer)) return "[" + clamped(*clamp, bytes) + "]";
  Sum sum;
  add(pointer, 1, sum);
  return "[" + in_memory(std::move(sum)) + "]";
}

std::string ValueText::in_memory(Sum sum) {
  std::string text;
  for (auto& [value, times] : sum.terms) {
    if (times == 1 && clamp_of(*value)) return text_of(sum, 64).text;  // which is a place of its own
    const std::optional<uint32_t> memory = ir_.memory_of(value, vmctx_);
    if (!memory || times != 1) continue;
    times = 0;
    if (*memory != 0) text = fmt::format("memory {}: ", *memory);
    return text + text_of(sum, 64).text;
  }
  return "host: " + text_of(sum, 64).text;
}

std::string ValueText::clamped(const Clamp& clamp, uint64_t bytes) {
  Sum sum;
  add(*clamp.place, 1, sum);
  std::string text = "clamp(" + in_memory(std::move(sum));
  if (clamp.bytes != bytes) text += fmt::format(", {} bytes", clamp.bytes);
  return text + ")";
}

// As prefetch_code.cc and speculation.cc write it.
std::optional<ValueText::Clamp> ValueText::clamp_of(const Value& value) const {
  using namespace llvm::PatternMatch;
  Value *place = nullptr, *base = nullptr, *last = nullptr;
  llvm::CmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  if (!match(&value, m_Select(m_ICmp(predicate, m_Sub(m_PtrToInt(m_Value(place)), m_PtrToInt(m_Value(base))),
                                     m_Value(last)),
                              m_Deferred(place), m_Deferred(base))))
    return std::nullopt;
  const std::optional<uint32_t> memory = ir_.memory_of(base, vmctx_);
  if (!memory) return std::nullopt;
  if (predicate == llvm::CmpInst::ICMP_ULT && length_of(*last) == memory)
    return Clamp{.place = place, .bytes = 1};
  Value* length = nullptr;
  llvm::ConstantInt* bytes = nullptr;
  if (predicate == llvm::CmpInst::ICMP_ULE && match(last, m_Sub(m_Value(length), m_ConstantInt(bytes))) &&
      length_of(*length) == memory)
    return Clamp{.place = place, .bytes = bytes->getZExtValue()};
  return std::nullopt;
}

// Of which memory it is the length.
std::optional<uint32_t> ValueText::length_of(const Value& value) const {
  const auto* const length = llvm::dyn_cast<llvm::LoadInst>(&value);
  if (length == nullptr) return std::nullopt;
  const auto [record, in_record] = origin_and_offset(*length);
  const auto* const found = llvm::dyn_cast<llvm::LoadInst>(record);
  if (found == nullptr || in_record != static_cast<int64_t>(offsetof(MemoryRecord, byte_length)))
    return std::nullopt;
  const auto [context, in_context] = origin_and_offset(*found);
  for (uint32_t memory = 0; context == vmctx_ && memory < ir_.wasm.memories.size(); ++memory)
    if (in_context == ir_.layout.memory_record(memory)) return memory;
  return std::nullopt;
}

void ValueText::add(const Value& value, int64_t times, Sum& sum) {
  if (const std::optional<int64_t> number = number_of(&value)) {
    sum.number += product(times, *number);
    return;
  }
  const Value* const term = before_extension(&value);
  if (const auto* instruction = llvm::dyn_cast<Instruction>(term)) {
    const Value* const chosen = only_choice(*instruction);
    if ((chosen != nullptr || is_linear(*instruction)) && !has_name(*instruction))
      return chosen != nullptr ? add(*chosen, times, sum) : add_parts(*instruction, times, sum);
  }
  const auto known = std::ranges::find(sum.terms, term, &std::pair<const Value*, int64_t>::first);
  if (known != sum.terms.end())
    known->second += times;
  else
    sum.terms.emplace_back(term, times);
}

void ValueText::add_parts(const Instruction& linear, int64_t times, Sum& sum) {
  const Value& left = *linear.getOperand(0);
  switch (linear.getOpcode()) {
    case Instruction::Add:
      add(left, times, sum);
      return add(*linear.getOperand(1), times, sum);
    case Instruction::Sub:
      add(left, times, sum);
      return add(*linear.getOperand(1), -times, sum);
    case Instruction::Mul:
      return add(left, product(times, *number_of(linear.getOperand(1))), sum);
    case Instruction::Shl:
      return add(left, product(times, int64_t{1} << (*number_of(linear.getOperand(1)) & 63)), sum);
    case Instruction::GetElementPtr:
      add(left, times, sum);
      return add(*linear.getOperand(1), product(times, element_bytes(linear)), sum);
    default:
      return add(left, times, sum);
  }
}

ValueText::Formula ValueText::text_of(const Sum& sum, unsigned bits) {
  std::vector<std::pair<const Value*, int64_t>> terms = sum.terms;
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.empty())
    return {.text = (is_subtracted(sum.number) ? "-" : "") + magnitude(sum.number, bits),
            .binds = Binds::kTightly};
  if (terms.size() == 1 && terms.front().second == 1 && sum.number == 0) return of(*terms.front().first);
  std::string text;
  for (const auto& [value, times] : terms) {
    if (is_subtracted(times))
      text += text.empty() ? "-" : " - ";
    else if (!text.empty())
      text += " + ";
    if (times != 1 && times != -1) text += magnitude(times, bits) + "*";
    text += operand(*value, Binds::kAsProduct);
  }
  if (sum.number != 0) text += (is_subtracted(sum.number) ? " - " : " + ") + magnitude(sum.number, bits);
  const bool is_product = terms.size() == 1 && sum.number == 0;
  return {.text = std::move(text), .binds = is_product ? Binds::kAsProduct : Binds::kAsSum};
}

// It gets one here, if it is shared and long.
bool ValueText::has_name(const Instruction& instruction) {
  const auto uses = uses_.find(&instruction);
  if (uses == uses_.end() || uses->second < 2 || instruction.getType()->isPointerTy() ||
      llvm::isa<llvm::PtrToIntInst>(instruction))
    return false;
  of(instruction);
  return names_.contains(&instruction);
}

ValueText::Formula ValueText::of(const Value& value) {
  if (const auto known = names_.find(&value); known != names_.end()) return {.text = known->second};
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&value)) {
    const std::optional<int64_t> number = number_of(constant);
    if (!number) return {.text = "a number"};
    const bool is_small = *number < 0 && *number > -kLeastMask && constant->getBitWidth() > 1;
    return {.text = is_small ? std::to_string(*number) : pattern_of(*constant)};
  }
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&value))
    return {.text = argument == vmctx_ ? "context" : fmt::format("arg{}", argument->getArgNo() - 1)};
  const auto* const instruction = llvm::dyn_cast<Instruction>(&value);
  if (instruction == nullptr) return {.text = llvm::isa<llvm::Constant>(value) ? "a constant" : "?"};
  if (ir_.memory_of(&value, vmctx_)) return {.text = "heap"};
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction)) return of_load(*load);
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) return of_phi(*phi);
  if (++shown_ > kMostShown) return {.text = "..."};
  Formula formula = expression(*instruction);
  if (uses_[&value] < 2 || formula.text.size() <= kShortText || instruction->getType()->isPointerTy())
    return formula;
  return {.text = define(value, formula.text)};
}

ValueText::Formula ValueText::of_load(const llvm::LoadInst& load) {
  if (const std::optional<WasmOffset> original = origin_of(load)) {
    const uint64_t bytes = load.getModule()->getDataLayout().getTypeStoreSize(load.getType());
    return {.text = define(
                load, fmt::format("@{} at {}", original->value, place(*load.getPointerOperand(), bytes)))};
  }
  if (is_distance(load)) return {.text = "D"};
  if (length_of(load)) return {.text = "length"};
  if (ir_.is_among(load, IrModule::World::kCells)) return {.text = define(load, "what the loop remembers")};
  if (ir_.is_among(load, IrModule::World::kRuntime)) return {.text = define(load, "of the runtime")};
  if (const llvm::AllocaInst* const kept = kept_in_frame(load)) return of_frame(load, *kept);
  if (is_beside_memory(load)) return {.text = define(load, "kept beside memory")};
  const llvm::DILocation* const position = ir_.position_of(load);
  if (position == nullptr) return {.text = define(load, "a load")};
  const bool is_now = loop_ != nullptr && loop_->contains(&load);
  return {.text = define(load, fmt::format("@{}{}", position->getLine(), is_now ? " itself" : " before"))};
}

// Invariant: it has its name before it is said what it becomes, as that leads back to it.
ValueText::Formula ValueText::of_frame(const llvm::LoadInst& load, const llvm::AllocaInst& kept) {
  const auto [known, is_new] = names_.try_emplace(&kept);
  if (!is_new) return {.text = names_[&load] = known->second};
  const std::string name = known->second = names_[&load] = next_name(kCarriedLetters, carried_names_);
  std::vector<std::string> texts;
  for (const Value* value : stored_here(kept)) {
    std::string text = of(*value).text;
    if (text != name && std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? ", goes on as " : ", or ") + text;
  definitions_.push_back(name + ": kept in the frame" + all);
  return {.text = name};
}

// Invariant: as above.
ValueText::Formula ValueText::of_phi(const llvm::PHINode& phi) {
  if (phi.getNumIncomingValues() == 1) return of(*phi.getIncomingValue(0));
  const llvm::Loop* const loop = loops_.getLoopFor(phi.getParent());
  const bool is_of_header = loop != nullptr && loop->getHeader() == phi.getParent();
  const std::string name = names_[&phi] = next_name(kCarriedLetters, carried_names_);
  std::string text;
  if (!is_of_header) {
    for (const Value* value : phi.incoming_values()) text += (text.empty() ? "" : ", or ") + of(*value).text;
  } else if (!is_around(*loop)) {
    text = "left by a loop before";
  } else {
    text = of_carried(phi, *loop);
  }
  definitions_.push_back(name + ": " + text);
  return {.text = name};
}

std::string ValueText::of_carried(const llvm::PHINode& phi, const llvm::Loop& loop) {
  const auto* const next = llvm::dyn_cast_or_null<Instruction>(next_of(phi, loop));
  const std::string whose = &loop == loop_ ? "" : " in a loop around";
  if (next == nullptr) return "is carried" + whose;
  if (is_linear(*next)) {
    Sum sum;
    add_parts(*next, 1, sum);
    const Value* const itself = &phi;
    const auto own = std::ranges::find(sum.terms, itself, &std::pair<const Value*, int64_t>::first);
    const bool by_number = sum.terms.size() == 1;
    if (own != sum.terms.end() && own->second == 1 && (by_number || &loop == loop_)) {
      own->second = 0;
      return "goes by " + text_of(sum, phi.getType()->getScalarSizeInBits()).text + whose;
    }
  }
  if (&loop != loop_) return "is carried" + whose;
  std::string text = "goes on as " + of(*next).text;
  for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
    if (!loop.contains(phi.getIncomingBlock(i)))
      if (const auto run = run_of(*phi.getIncomingValue(i))) text += ", from " + *run;
  return text;
}

// "j after D turns": what a loop of one block, which ran before, made of j.
std::optional<std::string> ValueText::run_of(const Value& value) {
  const auto* const last = llvm::dyn_cast<Instruction>(&value);
  if (last == nullptr) return std::nullopt;
  const llvm::BasicBlock* const block = last->getParent();
  const llvm::Loop* const loop = loops_.getLoopFor(block);
  if (loop == nullptr || loop->getNumBlocks() != 1 || is_around(*loop)) return std::nullopt;
  const auto* const again = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  const auto* const ends =
      again->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(again->getCondition()) : nullptr;
  if (ends == nullptr || ends->getPredicate() != llvm::CmpInst::ICMP_ULT) return std::nullopt;
  for (const llvm::PHINode& phi : block->phis()) {
    if (phi.getIncomingValueForBlock(block) != last) continue;
    const Value& start = *phi.getIncomingValue(phi.getIncomingBlock(0) == block ? 1 : 0);
    const std::optional<std::string> earlier = run_of(start);
    return fmt::format("{} after {} turns", earlier ? *earlier : of(start).text,
                       operand(*ends->getOperand(1), Binds::kAsProduct));
  }
  return std::nullopt;
}

ValueText::Formula ValueText::expression(const Instruction& instruction) {
  if (is_linear(instruction)) {
    Sum sum;
    add_parts(instruction, 1, sum);
    return text_of(sum,
                   instruction.getType()->isIntegerTy() ? instruction.getType()->getIntegerBitWidth() : 64);
  }
  if (const std::optional<Clamp> clamp = clamp_of(instruction)) return {.text = clamped(*clamp, 1)};
  if (const Value* const chosen = only_choice(instruction)) return of(*chosen);
  if (const std::optional<std::string> run = run_of(instruction))
    return {.text = *run, .binds = Binds::kLoosely};
  if (const char* const sign = sign_of(instruction)) return of_operands(instruction, sign);
  switch (instruction.getOpcode()) {
    case Instruction::Mul:
      return {.text = operand(*instruction.getOperand(0), Binds::kAsProduct) + "*" +
                      operand(*instruction.getOperand(1), Binds::kTightly),
              .binds = Binds::kAsProduct};
    case Instruction::ZExt:
      return of(*instruction.getOperand(0));
    case Instruction::SExt:
      return of_call("signed", instruction);
    case Instruction::Trunc:
      return of_call(fmt::format("low{}", instruction.getType()->getScalarSizeInBits()), instruction);
    case Instruction::Select:
      return {.text = operand(*instruction.getOperand(0), Binds::kTightly) + " ? " +
                      operand(*instruction.getOperand(1), Binds::kAsSum) + " : " +
                      operand(*instruction.getOperand(2), Binds::kAsSum),
              .binds = Binds::kLoosely};
    case Instruction::ExtractElement:
      return {.text = operand(*instruction.getOperand(0), Binds::kTightly) + "[" +
                      of(*instruction.getOperand(1)).text + "]"};
    case Instruction::Call:
      return of_intrinsic(llvm::cast<llvm::CallInst>(instruction));
    default:
      return of_call(instruction.getOpcodeName(), instruction);
  }
}

ValueText::Formula ValueText::of_intrinsic(const llvm::CallInst& call) {
  const llvm::Function* const callee = call.getCalledFunction();
  if (!llvm::isa<llvm::IntrinsicInst>(call) || callee == nullptr)
    return {.text = define(call, "what a call returns")};
  std::string_view name = callee->getName();
  name.remove_prefix(std::string_view("llvm.").size());
  name = name.substr(0, name.rfind('.'));  // what follows are types
  if (name == "fshl" && call.getArgOperand(0) == call.getArgOperand(1))
    return {.text = fmt::format("rotl({}, {})", of(*call.getArgOperand(0)).text,
                                of(*call.getArgOperand(2)).text)};
  return of_call(std::string(name), call, call.arg_size());
}

ValueText::Formula ValueText::of_call(const std::string& name, const Instruction& instruction,
                                      std::optional<unsigned> operands) {
  std::string text;
  for (unsigned i = 0; i < operands.value_or(instruction.getNumOperands()); ++i)
    text += (i == 0 ? "" : ", ") + of(*instruction.getOperand(i)).text;
  return {.text = name + "(" + text + ")"};
}

ValueText::Formula ValueText::of_operands(const Instruction& instruction, const char* sign) {
  const bool is_signed = std::string_view(sign).ends_with('s');
  const auto text = [&](const Value& value) {
    return !is_signed && number_of(&value) ? pattern_of(llvm::cast<llvm::ConstantInt>(value))
                                           : operand(value, Binds::kTightly);
  };
  return {.text = text(*instruction.getOperand(0)) + " " + sign + " " + text(*instruction.getOperand(1)),
          .binds = Binds::kLoosely};
}

std::string ValueText::operand(const Value& value, Binds least) {
  Formula formula = of(value);
  return formula.binds >= least ? std::move(formula.text) : "(" + formula.text + ")";
}

// Equal values have one name, also where they are computed twice.
std::string ValueText::define(const Value& value, const std::string& text) {
  const auto [known, is_new] = name_of_text_.try_emplace(text);
  if (is_new) {
    known->second = next_name(kValueLetters, value_names_);
    definitions_.push_back(known->second + ": " + text);
  }
  return names_[&value] = known->second;
}

}  // namespace hindsight::jit::optimizing
