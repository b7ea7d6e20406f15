#include "jit/wasm/validate/function_validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "jit/wasm/limits.h"
#include "jit/wasm/loop_nests.h"

namespace hindsight::wasm {

namespace {

// Parsed form of the opcode table's signatures, for the opcodes whose typing is not special.
struct Signature {
  bool plain = false;  // no immediate, and this signature is all of its typing
  uint8_t param_count = 0;
  uint8_t params[3] = {};
  uint8_t result = 0;  // 0: none
};

constexpr uint8_t type_of_letter(char letter) {
  switch (letter) {
    case 'i':
      return static_cast<uint8_t>(ValType::kI32);
    case 'I':
      return static_cast<uint8_t>(ValType::kI64);
    case 'f':
      return static_cast<uint8_t>(ValType::kF32);
    case 'v':
      return static_cast<uint8_t>(ValType::kV128);
    default:
      return static_cast<uint8_t>(ValType::kF64);
  }
}

constexpr Signature parse_signature(ImmKind imm, const char* text) {
  Signature out;
  if (text[0] == '*') return out;
  out.plain = imm == ImmKind::kNone;
  const char* p = text;
  for (; *p != ':'; ++p) out.params[out.param_count++] = type_of_letter(*p);
  if (p[1] != '\0') out.result = type_of_letter(p[1]);
  return out;
}

struct Signatures {
  std::array<Signature, 256> plain{};
  std::array<Signature, 32> prefixed{};
  std::array<Signature, 256> atomic{};
};

constexpr Signatures make_signatures() {
  Signatures out;
  auto add = [&](uint16_t code, ImmKind imm, const char* text) {
    if (code >= kAtomicPrefix) {
      out.atomic[code - kAtomicPrefix] = parse_signature(imm, text);
    } else if (code >= kFirstPrefixedCode) {
      out.prefixed[code - kFirstPrefixedCode] = parse_signature(imm, text);
    } else {
      out.plain[code] = parse_signature(imm, text);
    }
  };
#define HINDSIGHT_ADD(name, code, text, imm, signature) add(code, ImmKind::imm, signature);
  HINDSIGHT_WASM_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return out;
}

constexpr Signatures kSignatures = make_signatures();

// Block types of the short form refer to one of these.
constexpr ValType kSingles[] = {ValType::kI32,  ValType::kI64,     ValType::kF32,       ValType::kF64,
                                ValType::kV128, ValType::kFuncRef, ValType::kExternRef, ValType::kExnRef};

}  // namespace

std::span<const ValType> FunctionValidator::single(ValType type) {
  for (const ValType& entry : kSingles)
    if (entry == type) return {&entry, 1};
  return {&*singles_.insert(type).first, 1};
}

std::string FunctionValidator::name_of(Operand operand) {
  if (operand == kUnknown) return "any value";
  if (operand == kUnknownRef) return "a reference";
  return to_string(static_cast<ValType>(operand));
}

bool FunctionValidator::fail(std::string message) {
  return reader_.fail(at_, std::move(message));
}

bool FunctionValidator::mismatch(std::string_view expected, std::string_view found) {
  return fail(fmt::format("type mismatch: expected {}, found {}", expected, found));
}

// ---- the two stacks ------------------------------------------------------------------------------------

bool FunctionValidator::grow() {
  if (height_ >= kMaxOperands)
    return reader_.too_many(at_, height_ + 1, "operands on the stack", kMaxOperands);
  operands_.resize(std::clamp<size_t>(2 * operands_.size(), 64, kMaxOperands));
  return true;
}

// Long lists of types are compared and copied as memory. Two bytes of a body can call a function with a
// thousand parameters, or leave a block with a thousand results. This way such a body does not take minutes.
constexpr size_t kLongList = 8;

// Whether the operands on top are exactly these, so that popping and pushing them would change nothing.
bool FunctionValidator::on_top(std::span<const ValType> types) {
  static_assert(sizeof(Operand) == sizeof(ValType));
  steps_ += 1 + types.size() / 16;
  if (height_ - floor_ < types.size()) return false;
  return types.empty() ||
         std::memcmp(&operands_[height_ - types.size()], types.data(), types.size_bytes()) == 0;
}

bool FunctionValidator::push_all(std::span<const ValType> types) {
  if (types.size() >= kLongList && height_ + types.size() <= kMaxOperands) {
    bool vectors = false;
    for (const ValType type : types) vectors |= type == ValType::kV128;
    uses_v128_ |= vectors;
    while (operands_.size() < height_ + types.size())
      operands_.resize(std::clamp<size_t>(2 * operands_.size(), 64, kMaxOperands));
    std::memcpy(&operands_[height_], types.data(), types.size_bytes());
    height_ += static_cast<uint32_t>(types.size());
    max_stack_ = std::max(max_stack_, height_);
    steps_ += 1 + types.size() / 16;
    return true;
  }
  for (const ValType type : types) {
    if (type == ValType::kV128) uses_v128_ = true;
    if (!push(type)) return false;
  }
  return true;
}

bool FunctionValidator::pop_any(Operand& type) {
  ++steps_;
  if (height_ > floor_) [[likely]] {
    type = operands_[--height_];
    return true;
  }
  if (!unreachable_) return mismatch("a value", "nothing on the stack");
  type = kUnknown;
  return true;
}

bool FunctionValidator::fits(Operand found, ValType expected) {
  if (found == kUnknown) return true;
  if (found == kUnknownRef) return is_reference(expected);
  return is_subtype(static_cast<ValType>(found), expected);
}

bool FunctionValidator::pop_unusual(ValType expected) {
  if (height_ > floor_) {
    const Operand found = operands_[height_ - 1];
    if (!fits(found, expected)) return mismatch(to_string(expected), name_of(found));
    --height_;
    return true;
  }
  if (!unreachable_) return mismatch(to_string(expected), "nothing on the stack");
  return true;
}

bool FunctionValidator::pop_all(std::span<const ValType> types) {
  if (types.size() >= kLongList && on_top(types)) {
    height_ -= static_cast<uint32_t>(types.size());
    return true;
  }
  for (size_t i = types.size(); i-- > 0;)
    if (!pop(types[i])) return false;
  return true;
}

bool FunctionValidator::peek_all(std::span<const ValType> types) {
  size_t height = height_;
  steps_ += types.size();
  for (size_t i = types.size(); i-- > 0;) {
    if (height <= floor_) {
      if (unreachable_) return true;  // everything further down is unknown
      return mismatch(to_string(types[i]), "nothing on the stack");
    }
    const Operand found = operands_[--height];
    if (!fits(found, types[i])) return mismatch(to_string(types[i]), name_of(found));
  }
  return true;
}

void FunctionValidator::enter_top() {
  floor_ = frames_.back().height;
  unreachable_ = frames_.back().unreachable;
}

bool FunctionValidator::push_frame(Opcode opcode, std::span<const ValType> params,
                                   std::span<const ValType> results) {
  // The function's own frame is not a nesting of blocks.
  if (frames_.size() > kMaxControlDepth)
    return reader_.too_many(at_, frames_.size(), "nested blocks", kMaxControlDepth);
  Frame frame;
  frame.opcode = opcode;
  frame.entered_dead = !frames_.empty() && (frames_.back().entered_dead || frames_.back().unreachable);
  frame.height = height_;
  frame.offset = at_;
  frame.set_locals = static_cast<uint32_t>(set_locals_.size());
  frame.params = params;
  frame.results = results;
  frames_.push_back(frame);
  enter_top();
  return push_all(params);
}

void FunctionValidator::set_unreachable() {
  height_ = floor_;
  frames_.back().unreachable = true;
  unreachable_ = true;
}

// ---- immediates ----------------------------------------------------------------------------------------

bool FunctionValidator::block_type(std::span<const ValType>& params, std::span<const ValType>& results) {
  params = {};
  results = {};
  const uint32_t start = reader_.offset();
  if (!reader_.at_end() && (reader_.peek() & 0xc0) == 0x40) {
    if (reader_.peek() == 0x40) {
      reader_.skip(1);
      return true;
    }
    ValType type{};
    if (!read_value_type(reader_, module_, type)) return false;
    results = single(type);
    return true;
  }
  int64_t index = 0;
  if (!reader_.s33(index)) return false;
  if (index < 0) return reader_.fail(start, "malformed block type");
  if (static_cast<uint64_t>(index) >= module_.types.size())
    return reader_.fail(start, fmt::format("unknown type {}", index));
  const FuncType& type = module_.types[static_cast<size_t>(index)];
  params = type.params;
  results = type.results;
  return true;
}

bool FunctionValidator::memory(const MemoryType*& type) {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.memories.size()) return fail(fmt::format("unknown memory {}", index));
  type = &module_.memories[index];
  has_memory_access_ = true;
  return true;
}

// The alignment, memory and offset of an access.
bool FunctionValidator::memory_argument(uint32_t align_log2, const MemoryType*& type, bool exactly) {
  const uint32_t align_at = reader_.offset();
  uint32_t align = 0;
  uint32_t index = 0;
  if (!reader_.u32(align)) return false;
  if (align >= 2 * kMemArgHasMemory) return reader_.fail(align_at, "malformed memop flags");
  if (align & kMemArgHasMemory) {
    align &= ~kMemArgHasMemory;
    if (!reader_.u32(index)) return false;
  }
  if (index >= module_.memories.size()) return fail(fmt::format("unknown memory {}", index));
  type = &module_.memories[index];
  const uint32_t offset_at = reader_.offset();
  uint64_t offset = 0;
  if (!reader_.u64(offset)) return false;
  if (!type->is64 && offset > UINT32_MAX)
    return reader_.fail(offset_at, "offset out of range: at most 2^32 - 1");
  if (align > align_log2) return reader_.fail(align_at, "alignment must not be larger than natural");
  if (exactly && align != align_log2)
    return reader_.fail(align_at, "alignment of an atomic access must be natural");
  has_memory_access_ = true;
  return true;
}

bool FunctionValidator::label(const Frame*& frame) {
  uint32_t depth = 0;
  if (!reader_.u32(depth)) return false;
  if (depth >= frames_.size()) return fail(fmt::format("unknown label {}", depth));
  frame = &frames_[frames_.size() - 1 - depth];
  return true;
}

bool FunctionValidator::branch(const Frame*& frame) {
  if (!label(frame)) return false;
  note_branch(static_cast<size_t>(frame - frames_.data()));
  return true;
}

[[gnu::always_inline]] inline bool FunctionValidator::local(const FunctionBody& body, uint32_t& index,
                                                            ValType& type) {
  if (!reader_.u32(index)) return false;
  if (index >= body.locals.size()) return fail(fmt::format("unknown local {}", index));
  type = body.locals[index];
  return true;
}

bool FunctionValidator::table(uint32_t& index, ValType& element) {
  if (!reader_.u32(index)) return false;
  if (index >= module_.tables.size()) return fail(fmt::format("unknown table {}", index));
  element = module_.tables[index].element;
  return true;
}

bool FunctionValidator::global(const Global*& global) {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.globals.size()) return fail(fmt::format("unknown global {}", index));
  global = &module_.globals[index];
  return true;
}

bool FunctionValidator::data_index() {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (!data_count_) return fail("data count section required");
  if (index >= *data_count_) return fail(fmt::format("unknown data segment {}", index));
  return true;
}

// ---- operators -----------------------------------------------------------------------------------------

bool FunctionValidator::block(FunctionBody& body, Opcode opcode) {
  std::span<const ValType> params;
  std::span<const ValType> results;
  if (!block_type(params, results)) return false;
  bool has_clauses = false;
  if (opcode == Opcode::kTryTable && !catch_clauses(has_clauses)) return false;
  if (opcode == Opcode::kIf && !pop(ValType::kI32)) return false;
  if (!pop_all(params) || !push_frame(opcode, params, results)) return false;
  body.max_control_depth = std::max(body.max_control_depth, static_cast<uint32_t>(frames_.size() - 1));
  frames_.back().has_clauses = has_clauses;
  if (opcode == Opcode::kLoop) open_loop(body);
  return true;
}

LoopFrame::Kind FunctionValidator::kind_of(const Frame& frame) {
  switch (frame.opcode) {
    case Opcode::kLoop:
      return LoopFrame::Kind::kLoop;
    case Opcode::kTry:
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      return LoopFrame::Kind::kHandler;
    default:
      return frame.has_clauses ? LoopFrame::Kind::kHandler : LoopFrame::Kind::kBlock;
  }
}

// Notes the loop that was opened last, and the frames around it that no loop before has noted: each once.
void FunctionValidator::open_loop(FunctionBody& body) {
  size_t first = frames_.size();  // not noted yet
  uint32_t catches = open_catches_;
  for (; first > 0 && frames_[first - 1].noted == kNotNoted; --first) {
    const Opcode opcode = frames_[first - 1].opcode;
    catches -= opcode == Opcode::kCatch || opcode == Opcode::kCatchAll ? 1 : 0;
  }
  for (; first < frames_.size(); ++first) {
    ++steps_;
    Frame& frame = frames_[first];
    LoopFrame noted;
    noted.offset = WasmOffset(frame.offset);
    noted.height = frame.height + catches;
    if (first == 0) {
      noted.kind = LoopFrame::Kind::kFunction;
    } else {
      noted.kind = kind_of(frame);
      noted.type_offset = frame.offset + 1;
      noted.parent = frames_[first - 1].noted;
    }
    catches += frame.opcode == Opcode::kCatch || frame.opcode == Opcode::kCatchAll ? 1 : 0;
    frame.noted = static_cast<uint32_t>(body.loop_frames.size());
    body.loop_frames.push_back(noted);
  }

  Frame& frame = frames_.back();
  LoopInfo loop;
  loop.offset = WasmOffset(at_);
  loop.stack_height = frame.height + open_catches_;
  loop.param_count = static_cast<uint32_t>(frame.params.size());
  loop.depth = static_cast<uint32_t>(open_loops_.size());
  if (!open_loops_.empty()) loop.parent = LoopIndex(open_loops_.back().index);
  loop.reachable = !frame.entered_dead;
  loop.frame = frame.noted;
  frame.loop = static_cast<uint32_t>(body.loops.size());
  const auto position = static_cast<uint32_t>(frames_.size() - 1);
  open_loops_.push_back({*frame.loop, position, position});
  body.loops.push_back(loop);
}

void FunctionValidator::note_branch(size_t target) {
  frames_[target].branched = at_;
  if (open_loops_.empty()) return;
  uint32_t& lowest = open_loops_.back().lowest;
  lowest = std::min(lowest, static_cast<uint32_t>(target));
}

// A frame is a target of the loop if the last branch to it came after the loop's beginning. At most 63 frames are looked at.
void FunctionValidator::close_loop(LoopInfo& loop) {
  const OpenLoop open = open_loops_.back();
  open_loops_.pop_back();
  loop.end = WasmOffset(at_);
  loop.selects = open.selects;
  uint32_t last = open.lowest;
  if (open.frame - last > kMostLoopLevels) {
    loop.too_deep = true;
    last = open.frame - kMostLoopLevels;
  }
  for (uint32_t at = last; at < open.frame; ++at) {
    ++steps_;
    if (frames_[at].branched > loop.offset.value) loop.targets |= uint64_t{1} << (open.frame - at);
  }
  if (open_loops_.empty()) return;
  uint32_t& lowest = open_loops_.back().lowest;
  lowest = std::min(lowest, open.lowest);
}

bool FunctionValidator::else_branch() {
  Frame& frame = frames_.back();
  if (frame.opcode != Opcode::kIf) return fail("unexpected else: it does not belong to an if");
  if (!pop_all(frame.results)) return false;
  if (height_ != frame.height)
    return fail("type mismatch: values remain on the stack at the end of the block");
  forget_set_locals(frame);
  frame.opcode = Opcode::kElse;
  frame.unreachable = false;
  unreachable_ = false;
  return push_all(frame.params);
}

bool FunctionValidator::end(FunctionBody& body) {
  const Frame frame = frames_.back();
  if (!pop_all(frame.results)) return false;
  if (height_ != frame.height)
    return fail("type mismatch: values remain on the stack at the end of the block");
  forget_set_locals(frame);
  // An if without else passes its parameters on, so that they must be its results.
  if (frame.opcode == Opcode::kIf && !std::ranges::equal(frame.params, frame.results, is_subtype))
    return fail("type mismatch: an if without else must have the same parameters and results");
  if (frame.loop) close_loop(body.loops[*frame.loop]);
  if (frame.opcode == Opcode::kCatch || frame.opcode == Opcode::kCatchAll) --open_catches_;
  frames_.pop_back();
  if (frames_.empty()) {
    if (!reader_.at_end())
      return reader_.fail(reader_.offset(), "section size mismatch: code after the end of the function");
    return true;
  }
  enter_top();
  return push_all(frame.results);
}

bool FunctionValidator::br_table() {
  const uint32_t count_at = reader_.offset();
  uint32_t count = 0;
  if (!reader_.u32(count)) return false;
  if (count >= reader_.remaining())
    return reader_.fail(count_at, "unexpected end: br_table targets do not fit into the function");
  if (count > kMaxBrTableTargets)
    return reader_.too_many(count_at, count, "br_table targets", kMaxBrTableTargets);
  if (!pop(ValType::kI32)) return false;

  // All labels must agree in arity with the default, which comes last. Comparing each with the first one is
  // the same. A label is checked against the stack once, however often it is named, or hostile tables would
  // cost targets times arity.
  const uint32_t mark = ++br_table_serial_;
  std::optional<size_t> arity;
  for (uint32_t i = 0; i <= count; ++i) {
    uint32_t depth = 0;
    const uint32_t target_at = reader_.offset();
    ++steps_;
    if (!reader_.u32(depth)) return false;
    if (depth >= frames_.size()) return reader_.fail(target_at, fmt::format("unknown label {}", depth));
    Frame& frame = frames_[frames_.size() - 1 - depth];
    if (frame.br_table_mark == mark) continue;
    frame.br_table_mark = mark;
    note_branch(frames_.size() - 1 - depth);
    const auto types = frame.label_types();
    if (!arity) arity = types.size();
    if (types.size() != *arity)
      return reader_.fail(target_at, fmt::format("type mismatch: br_table targets take {} and {} values",
                                                 *arity, types.size()));
    if (!peek_all(types)) return false;
  }
  set_unreachable();
  return true;
}

bool FunctionValidator::call(std::span<const ValType> params, std::span<const ValType> results) {
  has_calls_ = true;
  return pop_all(params) && push_all(results);
}

// The callee returns to the caller's caller, so that its results must be the function's.
bool FunctionValidator::return_call(const FuncType& callee) {
  has_calls_ = true;
  has_tail_calls_ = true;
  if (!std::ranges::equal(callee.results, frames_.front().results, is_subtype))
    return fail(
        fmt::format("type mismatch: a tail call of a function of type {} in a function with other results",
                    to_string(callee)));
  if (!pop_all(callee.params)) return false;
  set_unreachable();
  return true;
}

bool FunctionValidator::call_indirect(bool tail) {
  uint32_t type = 0;
  uint32_t table_index = 0;
  ValType element{};
  if (!reader_.u32(type)) return false;
  if (!table(table_index, element)) return false;
  if (!is_func_ref(element)) return mismatch("a table of funcref", to_string(element));
  if (type >= module_.types.size()) return fail(fmt::format("unknown type {}", type));
  if (!pop(ValType::kI32)) return false;
  if (tail) return return_call(module_.types[type]);
  return call(module_.types[type].params, module_.types[type].results);
}

bool FunctionValidator::select() {
  Operand a = 0;
  Operand b = 0;
  if (!pop(ValType::kI32) || !pop_any(a) || !pop_any(b)) return false;
  for (const Operand operand : {a, b})
    if (operand != kUnknown && is_reference(static_cast<ValType>(operand)))
      return mismatch("a number (select without a type)", name_of(operand));
  if (a != b && a != kUnknown && b != kUnknown) return mismatch(name_of(b), name_of(a));
  return push(a == kUnknown ? b : a);
}

bool FunctionValidator::select_typed() {
  const uint32_t start = reader_.offset();
  uint32_t count = 0;
  if (!reader_.u32(count)) return false;
  if (count != 1) return reader_.fail(start, "invalid result arity: select takes exactly one type");
  ValType type{};
  if (!read_value_type(reader_, module_, type)) return false;
  return pop(ValType::kI32) && pop(type) && pop(type) && push(type);
}

bool FunctionValidator::memory_access(uint8_t code) {
  const MemoryType* type = nullptr;
  if (!memory_argument(access_log2(static_cast<Opcode>(code)), type)) return false;
  const Signature& signature = kSignatures.plain[code];
  for (unsigned i = signature.param_count; i-- > 1;)
    if (!pop(static_cast<ValType>(signature.params[i]))) return false;
  return pop(type->address()) && (signature.result == 0 || push(signature.result));
}

bool FunctionValidator::atomic() {
  uint32_t sub = 0;
  if (!reader_.u32(sub)) return false;
  if (sub > 0xff || find_opcode(static_cast<uint16_t>(kAtomicPrefix + sub)) == nullptr)
    return fail(fmt::format("illegal opcode 0xfe 0x{:02x}", sub));
  const auto opcode = static_cast<Opcode>(kAtomicPrefix + sub);
  if (opcode == Opcode::kAtomicFence) {
    const uint32_t flags_at = reader_.offset();
    uint8_t flags = 0;
    if (!reader_.u8(flags)) return false;
    return flags == 0 || reader_.fail(flags_at, "zero byte expected after atomic.fence");
  }
  // Waiting and notifying are calls into the runtime.
  if (opcode < Opcode::kAtomicFence) has_calls_ = true;
  const MemoryType* type = nullptr;
  if (!memory_argument(access_log2(opcode), type, /*exactly=*/true)) return false;
  const Signature& signature = kSignatures.atomic[sub];
  for (unsigned i = signature.param_count; i-- > 1;)
    if (!pop(static_cast<ValType>(signature.params[i]))) return false;
  return pop(type->address()) && (signature.result == 0 || push(signature.result));
}

bool FunctionValidator::memory_copy() {
  const MemoryType* to = nullptr;
  const MemoryType* from = nullptr;
  if (!memory(to) || !memory(from)) return false;
  // A count that both memories can have.
  const ValType count = to->is64 && from->is64 ? ValType::kI64 : ValType::kI32;
  return pop(count) && pop(from->address()) && pop(to->address());
}

bool FunctionValidator::ref_func() {
  uint32_t index = 0;
  if (!reader_.u32(index)) return false;
  if (index >= module_.functions.size()) return fail(fmt::format("unknown function {}", index));
  if (!module_.declared_function_refs[index])
    return fail(fmt::format("undeclared function reference {}", index));
  has_calls_ = true;
  return push(non_null(typed_ref(module_.canonical_types[module_.functions[index].value])));
}

bool FunctionValidator::table_init() {
  uint32_t segment = 0;
  uint32_t table_index = 0;
  ValType element{};
  if (!reader_.u32(segment) || !table(table_index, element)) return false;
  if (segment >= module_.elements.size()) return fail(fmt::format("unknown elem segment {}", segment));
  if (!is_subtype(module_.elements[segment].type, element))
    return mismatch(to_string(element), to_string(module_.elements[segment].type));
  return true;
}

bool FunctionValidator::table_copy() {
  uint32_t destination = 0;
  uint32_t source = 0;
  ValType to{};
  ValType from{};
  if (!table(destination, to) || !table(source, from)) return false;
  return is_subtype(from, to) || mismatch(to_string(to), to_string(from));
}

bool FunctionValidator::prefixed() {
  uint32_t sub = 0;
  if (!reader_.u32(sub)) return false;
  if (sub >= kSignatures.prefixed.size() ||
      find_opcode(static_cast<uint16_t>(kFirstPrefixedCode + sub)) == nullptr) {
    if (sub == 0x12) return reader_.unsupported(at_, "memory control (memory.discard)");
    if (sub >= 0x13 && sub <= 0x16) return reader_.unsupported(at_, "wide arithmetic");
    return fail(fmt::format("illegal opcode 0xfc 0x{:02x}", sub));
  }
  const auto opcode = static_cast<Opcode>(kFirstPrefixedCode + sub);
  // Everything after the conversions is a call into the runtime.
  if (opcode >= Opcode::kMemoryInit) has_calls_ = true;
  uint32_t index = 0;
  ValType element{};
  const MemoryType* memory_type = nullptr;
  switch (opcode) {
    case Opcode::kMemoryInit:
      return data_index() && memory(memory_type) && pop(ValType::kI32) && pop(ValType::kI32) &&
             pop(memory_type->address());
    case Opcode::kDataDrop:
      if (!data_index()) return false;
      break;
    case Opcode::kMemoryCopy:
      return memory_copy();
    case Opcode::kMemoryFill:
      return memory(memory_type) && pop(memory_type->address()) && pop(ValType::kI32) &&
             pop(memory_type->address());
    case Opcode::kTableInit:
      if (!table_init()) return false;
      break;
    case Opcode::kElemDrop:
      if (!reader_.u32(index)) return false;
      if (index >= module_.elements.size()) return fail(fmt::format("unknown elem segment {}", index));
      break;
    case Opcode::kTableCopy:
      if (!table_copy()) return false;
      break;
    case Opcode::kTableGrow:
      return table(index, element) && pop(ValType::kI32) && pop(element) && push(ValType::kI32);
    case Opcode::kTableSize:
      return table(index, element) && push(ValType::kI32);
    case Opcode::kTableFill:
      return table(index, element) && pop(ValType::kI32) && pop(element) && pop(ValType::kI32);
    default:
      break;  // conversions: no immediates
  }
  const Signature& signature = kSignatures.prefixed[sub];
  for (unsigned i = signature.param_count; i-- > 0;)
    if (!pop(static_cast<ValType>(signature.params[i]))) return false;
  return signature.result == 0 || push(signature.result);
}

bool FunctionValidator::step(FunctionBody& body) {
  at_ = reader_.offset();
  ++instructions_;
  uint8_t code = 0;
  if (!reader_.u8(code)) return false;

  const Signature& signature = kSignatures.plain[code];
  if (signature.plain) {
    for (unsigned i = signature.param_count; i-- > 0;)
      if (!pop(static_cast<ValType>(signature.params[i]))) return false;
    return signature.result == 0 || push(signature.result);
  }

  const auto opcode = static_cast<Opcode>(code);
  ValType type{};
  Operand operand = 0;
  uint32_t index = 0;
  int32_t i32 = 0;
  int64_t i64 = 0;
  uint32_t f32 = 0;
  uint64_t f64 = 0;
  const Frame* target = nullptr;
  const Global* global_ptr = nullptr;
  const MemoryType* memory_type = nullptr;

  switch (opcode) {
    case Opcode::kUnreachable:
      set_unreachable();
      return true;
    case Opcode::kIf:
      note_choice();
      return block(body, opcode);
    case Opcode::kBlock:
    case Opcode::kLoop:
      return block(body, opcode);
    case Opcode::kElse:
      return else_branch();
    case Opcode::kEnd:
      return end(body);
    case Opcode::kBr:
      if (!branch(target) || !pop_all(target->label_types())) return false;
      set_unreachable();
      return true;
    case Opcode::kBrIf:
      note_choice();
      if (!branch(target) || !pop(ValType::kI32)) return false;
      if (on_top(target->label_types())) return true;
      // Popping and pushing back turns unknown operands into the label's types, as the specification does.
      return pop_all(target->label_types()) && push_all(target->label_types());
    case Opcode::kBrTable:
      note_choice();
      return br_table();
    case Opcode::kReturn:
      if (!pop_all(frames_.front().results)) return false;
      note_branch(0);
      set_unreachable();
      return true;
    case Opcode::kCall:
    case Opcode::kReturnCall: {
      if (!reader_.u32(index)) return false;
      if (index >= module_.functions.size()) return fail(fmt::format("unknown function {}", index));
      const FuncType& callee = module_.types[module_.functions[index].value];
      if (opcode == Opcode::kReturnCall) return return_call(callee);
      return call(callee.params, callee.results);
    }
    case Opcode::kCallIndirect:
    case Opcode::kReturnCallIndirect:
      return call_indirect(opcode == Opcode::kReturnCallIndirect);
    case Opcode::kCallRef:
    case Opcode::kReturnCallRef:
      return call_ref(opcode == Opcode::kReturnCallRef);
    case Opcode::kDrop:
      return pop_any(operand);
    case Opcode::kSelect:
      note_select();
      return select();
    case Opcode::kSelectT:
      note_select();
      return select_typed();
    case Opcode::kLocalGet:
      if (!local(body, index, type)) return false;
      if (!local_has_value_.empty() && !local_has_value_[index])
        return fail(fmt::format("uninitialized local {}", index));
      return push(type);
    case Opcode::kLocalSet:
    case Opcode::kLocalTee:
      if (!local(body, index, type) || !pop(type)) return false;
      if (!local_has_value_.empty()) local_was_set(index);
      return opcode == Opcode::kLocalSet || push(type);
    case Opcode::kGlobalGet:
      if (!global(global_ptr)) return false;
      if (global_ptr->type.type == ValType::kV128) uses_v128_ = true;
      return push(global_ptr->type.type);
    case Opcode::kGlobalSet:
      if (!global(global_ptr)) return false;
      if (!global_ptr->type.mutable_) return fail("global is immutable");
      return pop(global_ptr->type.type);
    case Opcode::kTableGet:
      has_calls_ = true;
      return table(index, type) && pop(ValType::kI32) && push(type);
    case Opcode::kTableSet:
      has_calls_ = true;
      return table(index, type) && pop(type) && pop(ValType::kI32);
    case Opcode::kMemorySize:
      return memory(memory_type) && push(memory_type->address());
    case Opcode::kMemoryGrow:
      has_calls_ = true;
      return memory(memory_type) && pop(memory_type->address()) && push(memory_type->address());
    case Opcode::kI32Const:
      return reader_.s32(i32) && push(ValType::kI32);
    case Opcode::kI64Const:
      return reader_.s64(i64) && push(ValType::kI64);
    case Opcode::kF32Const:
      return reader_.f32(f32) && push(ValType::kF32);
    case Opcode::kF64Const:
      return reader_.f64(f64) && push(ValType::kF64);
    case Opcode::kRefNull:
      return read_heap_type(reader_, module_, type) && push(type);
    case Opcode::kRefIsNull:
      return pop_reference(operand) && push(ValType::kI32);
    case Opcode::kRefAsNonNull:
      return ref_as_non_null();
    case Opcode::kBrOnNull:
      note_choice();
      return br_on_null();
    case Opcode::kBrOnNonNull:
      note_choice();
      return br_on_non_null();
    case Opcode::kRefFunc:
      return ref_func();
    default:
      break;
  }
  if (code >= 0x28 && code <= 0x3e) return memory_access(code);
  if (find_opcode(code) != nullptr) return exceptions(body, opcode);  // what is left of the table
  if (code == 0xfc) return prefixed();
  if (code == 0xfe) return atomic();
  if (code == kSimdPrefix) return simd();
  if (const char* feature = feature_of_opcode(code)) return reader_.unsupported(at_, feature);
  return fail(fmt::format("illegal opcode 0x{:02x}", code));
}

namespace {

// What quick_steps() knows of an opcode.
struct Quick {
  enum class Kind : uint8_t { kOther, kPlain, kLocalGet, kLocalSet, kLocalTee, kI32Const, kLoad, kStore };
  Kind kind = Kind::kOther;
  uint8_t params = 0;           // kPlain: at most two
  uint8_t align_log2 = 0;       // kLoad, kStore: the largest
  uint8_t second = 0, top = 0;  // types of the operands; kStore: of the value
  uint8_t result = 0;           // 0: none
};

constexpr auto kQuick = [] {
  std::array<Quick, 256> all{};
  for (uint32_t code = 0; code < 256; ++code) {
    const Signature& signature = kSignatures.plain[code];
    Quick& quick = all[code];
    if (signature.plain && signature.param_count <= 2) {
      quick.kind = Quick::Kind::kPlain;
      quick.params = signature.param_count;
      if (quick.params >= 1) quick.top = signature.params[quick.params - 1];
      if (quick.params == 2) quick.second = signature.params[0];
      quick.result = signature.result;
    }
  }
  all[static_cast<uint8_t>(Opcode::kLocalGet)].kind = Quick::Kind::kLocalGet;
  all[static_cast<uint8_t>(Opcode::kLocalSet)].kind = Quick::Kind::kLocalSet;
  all[static_cast<uint8_t>(Opcode::kLocalTee)].kind = Quick::Kind::kLocalTee;
  all[static_cast<uint8_t>(Opcode::kI32Const)].kind = Quick::Kind::kI32Const;
  for (auto code = static_cast<uint32_t>(Opcode::kI32Load);
       code <= static_cast<uint32_t>(Opcode::kI64Store32); ++code) {
    const Signature& signature = kSignatures.plain[code];
    Quick& quick = all[code];
    const bool loads = signature.result != 0;
    quick.kind = loads ? Quick::Kind::kLoad : Quick::Kind::kStore;
    quick.align_log2 = static_cast<uint8_t>(access_log2(static_cast<Opcode>(code)));
    quick.result = signature.result;
    if (!loads) quick.top = signature.params[1];
  }
  return all;
}();

}  // namespace

void FunctionValidator::quick_steps(const FunctionBody& body) {
  // An instruction takes at most three bytes here and pushes at most one operand. What it changes is kept out of
  // memory meanwhile, as operands and heights have one type and the compiler must expect them in one place.
  const uint8_t* at = reader_.position();
  const uint8_t* const begin = at;
  const uint8_t* const end = at + reader_.remaining();
  Operand* const operands = operands_.data();
  const auto capacity = static_cast<uint32_t>(operands_.size());
  const ValType* const locals = body.locals.data();
  // Locals that must be set before they are read are step()'s.
  const auto local_count = local_has_value_.empty() ? static_cast<uint32_t>(body.locals.size()) : 0;
  const bool memory32 = !module_.memories.empty() && !module_.memories[0].is64;
  constexpr auto kI32 = static_cast<Operand>(ValType::kI32);
  const uint32_t floor = floor_;
  uint32_t height = height_;
  uint32_t max = max_stack_;
  uint64_t done = 0;
  bool accesses = false;
  while (end - at >= 3 && height < capacity) {
    const Quick& quick = kQuick[at[0]];
    const uint32_t depth = height - floor;
    switch (quick.kind) {
      case Quick::Kind::kLocalGet:
        if (at[1] >= 0x80 || at[1] >= local_count) goto out;
        operands[height++] = static_cast<Operand>(locals[at[1]]);
        at += 2;
        break;
      case Quick::Kind::kI32Const:
        if (at[1] >= 0x80) goto out;
        operands[height++] = kI32;
        at += 2;
        break;
      case Quick::Kind::kLocalSet:
      case Quick::Kind::kLocalTee:
        if (at[1] >= 0x80 || at[1] >= local_count || depth == 0 ||
            operands[height - 1] != static_cast<Operand>(locals[at[1]]))
          goto out;
        if (quick.kind == Quick::Kind::kLocalSet) --height;
        at += 2;
        break;
      case Quick::Kind::kPlain:
        if (depth < quick.params) goto out;
        if (quick.params >= 1 && operands[height - 1] != quick.top) goto out;
        if (quick.params == 2 && operands[height - 2] != quick.second) goto out;
        height -= quick.params;
        operands[height] = quick.result;
        height += quick.result != 0 ? 1 : 0;
        at += 1;
        break;
      case Quick::Kind::kLoad:
        if (at[1] > quick.align_log2 || at[2] >= 0x80 || !memory32 || depth < 1 ||
            operands[height - 1] != kI32)
          goto out;
        operands[height - 1] = quick.result;
        accesses = true;
        at += 3;
        break;
      case Quick::Kind::kStore:
        if (at[1] > quick.align_log2 || at[2] >= 0x80 || !memory32 || depth < 2 ||
            operands[height - 1] != quick.top || operands[height - 2] != kI32)
          goto out;
        height -= 2;
        accesses = true;
        at += 3;
        break;
      case Quick::Kind::kOther:
        goto out;
    }
    ++done;
    if (height > max) max = height;
  }
out:
  height_ = height;
  max_stack_ = max;
  instructions_ += done;
  has_memory_access_ |= accesses;
  reader_.skip(static_cast<uint32_t>(at - begin));
}

bool FunctionValidator::validate(FunctionBody& body, const FuncType& type) {
  height_ = 0;
  frames_.clear();
  open_loops_.clear();
  br_table_serial_ = 0;
  max_stack_ = 0;
  has_calls_ = false;
  has_memory_access_ = false;
  has_tail_calls_ = false;
  uses_v128_ = false;
  has_handlers_ = false;
  branches_outside_loops_ = 0;
  open_catches_ = max_catches_ = 0;
  track_locals(body, type.params.size());
  at_ = reader_.offset();
  body.begin = WasmOffset(at_);
  if (!push_frame(Opcode::kBlock, {}, type.results)) return false;
  while (!frames_.empty()) {
    quick_steps(body);
    if (!step(body)) return false;
  }
  body.end = WasmOffset(reader_.offset());
  body.max_stack = max_stack_ + max_catches_;
  body.has_calls = has_calls_;
  body.has_memory_access = has_memory_access_;
  body.has_tail_calls = has_tail_calls_;
  body.uses_v128 = uses_v128_ || std::ranges::find(body.locals, ValType::kV128) != body.locals.end();
  body.has_handlers = has_handlers_;
  body.branches_outside_loops = branches_outside_loops_;
  return true;
}

}  // namespace hindsight::wasm
