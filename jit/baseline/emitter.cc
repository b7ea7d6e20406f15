// Labels, data and placing. The instructions are in encode.cc.
#include "jit/baseline/emitter.h"

#include <algorithm>
#include <array>

namespace hindsight::jit::baseline {

namespace {
constexpr size_t kFirstBytes = 16 << 10;
// More than this is not kept for the next function.
constexpr size_t kKeptBytes = 1 << 20;
constexpr int32_t kMarker = 0x4b3c2d1e;

bool is_relative(const asmjit::Operand_& operand) {
  return operand.isMem() && operand.as<x86::Mem>().baseType() == asmjit::RegType::kX86_Rip;
}
}  // namespace

Emitter::Emitter() {
  grow(0);
  if (const auto e = code_.init(code_environment())) errors_.first = e;
  code_.setErrorHandler(&errors_);
  code_.attach(&rare_);
}

Emitter::~Emitter() = default;

void Emitter::reset() {
  if (static_cast<size_t>(end_ - begin_.get()) > kKeptBytes) {
    begin_.reset();
    at_ = end_ = nullptr;
    grow(0);
  }
  at_ = begin_.get();
  labels_.clear();
  data_uses_.clear();
  near_calls_.clear();
  errors_.first = asmjit::kErrorOk;
}

void Emitter::grow(size_t bytes) {
  const size_t used = offset();
  const size_t size = std::max({kFirstBytes, 2 * used, used + 2 * bytes});
  auto larger = std::make_unique_for_overwrite<uint8_t[]>(size);
  if (used) std::memcpy(larger.get(), begin_.get(), used);
  begin_ = std::move(larger);
  at_ = begin_.get() + used;
  end_ = begin_.get() + size;
}

void Emitter::bind(Label label, uint32_t ahead) {
  LabelState& state = labels_[label.id];
  const auto here = static_cast<uint32_t>(offset()) + ahead;
  state.offset = here;
  for (uint32_t use = state.uses; use != kNoUse;) {
    uint32_t next;
    std::memcpy(&next, begin_.get() + use, sizeof next);
    const uint32_t distance = here - (use + 4);
    std::memcpy(begin_.get() + use, &distance, sizeof distance);
    use = next;
  }
  state.uses = kNoUse;
}

void Emitter::use_label(Label label) {
  LabelState& state = labels_[label.id];
  const auto here = static_cast<uint32_t>(offset());
  if (state.offset != kUnbound) return put32(state.offset - (here + 4));
  put32(state.uses);
  state.uses = here;
}

void Emitter::jmp(Label to) {
  room();
  const uint32_t target = labels_[to.id].offset;
  const auto here = static_cast<uint32_t>(offset());
  if (target != kUnbound && here + 2 - target <= 128) {
    *at_++ = 0xeb;
    *at_++ = static_cast<uint8_t>(target - (here + 2));
    return;
  }
  *at_++ = 0xe9;
  use_label(to);
}

void Emitter::j(x86::CondCode cc, Label to) {
  room();
  const uint32_t target = labels_[to.id].offset;
  const auto here = static_cast<uint32_t>(offset());
  if (target != kUnbound && here + 2 - target <= 128) {
    *at_++ = static_cast<uint8_t>(0x70 | static_cast<uint8_t>(cc));
    *at_++ = static_cast<uint8_t>(target - (here + 2));
    return;
  }
  *at_++ = 0x0f;
  *at_++ = static_cast<uint8_t>(0x80 | static_cast<uint8_t>(cc));
  use_label(to);
}

uint32_t Emitter::j_later(x86::CondCode cc) {
  room();
  *at_++ = 0x0f;
  *at_++ = static_cast<uint8_t>(0x80 | static_cast<uint8_t>(cc));
  put32(0);
  return static_cast<uint32_t>(offset());
}

void Emitter::direct_here(uint32_t jump) {
  const uint32_t distance = static_cast<uint32_t>(offset()) - jump;
  std::memcpy(begin_.get() + jump - 4, &distance, sizeof distance);
}

void Emitter::subtract_from_counter(int32_t at, uint32_t n) {
  // Invariant: the counters are at the start of ThreadState, so that a displacement of 8 bits does.
  const bool small = n <= 127;
  put32(0x006e8141u | (small ? 0x00000200u : 0u) | static_cast<uint32_t>(at) << 24);
  if (small)
    *at_++ = static_cast<uint8_t>(n);
  else
    put32(n);
}

void Emitter::count_down(int32_t at, uint32_t n, RareStub stub) {
  room();
  subtract_from_counter(at, n);
  call_unless(x86::CondCode::kNS, stub);
}

uint32_t Emitter::count_down_and_leave(int32_t at, uint32_t n) {
  room();
  subtract_from_counter(at, n);
  return j_later(x86::CondCode::kS);
}

void Emitter::look_and_go_back(int32_t at, uint32_t earlier) {
  room();
  put32(0x007e8341u | static_cast<uint32_t>(at) << 24);  // as subtract_from_counter()
  *at_++ = 0;
  const uint32_t jump = j_later(x86::CondCode::kNS);
  const uint32_t distance = earlier - jump;
  std::memcpy(at_ - 4, &distance, sizeof distance);
}

void Emitter::return_to(uint32_t at) {
  room();
  *at_++ = 0xe9;
  put32(0);
  const uint32_t distance = at - static_cast<uint32_t>(offset());
  std::memcpy(at_ - 4, &distance, sizeof distance);
}

void Emitter::count_run_and_branch(uint32_t n, RareStub stub) {
  room();
  subtract_from_counter(kThreadLwpInstructions, n);
  *at_++ = 0x78;  // js: to the call
  *at_++ = 7;
  subtract_from_counter(kThreadLwpBranches, 1);
  call_unless(x86::CondCode::kNS, stub);
}

void Emitter::call_near(const void* function) {
  room();
  *at_++ = 0xe8;
  near_calls_.push_back({static_cast<uint32_t>(offset()), function});
  put32(0);
}

void Emitter::embed(const void* data, size_t bytes) {
  if (static_cast<size_t>(end_ - at_) < bytes) grow(bytes);
  std::memcpy(at_, data, bytes);
  at_ += bytes;
}

void Emitter::embed_zeros(size_t bytes) {
  if (static_cast<size_t>(end_ - at_) < bytes) grow(bytes);
  std::memset(at_, 0, bytes);
  at_ += bytes;
}

void Emitter::align_data(uint32_t alignment) {
  embed_zeros((alignment - offset() % alignment) % alignment);
}

void Emitter::align_code(uint32_t alignment) {
  // The processor manufacturers' recommended forms of nop, by length.
  static constexpr uint8_t kNops[9][9] = {{0x90},
                                          {0x66, 0x90},
                                          {0x0f, 0x1f, 0x00},
                                          {0x0f, 0x1f, 0x40, 0x00},
                                          {0x0f, 0x1f, 0x44, 0x00, 0x00},
                                          {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
                                          {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
                                          {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
                                          {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}};
  for (size_t left = (alignment - offset() % alignment) % alignment; left != 0;) {
    const size_t length = std::min<size_t>(left, 9);
    embed(kNops[length - 1], length);
    left -= length;
  }
}

asmjit::Error Emitter::by_asmjit(asmjit::InstId inst, const asmjit::Operand_* operands, size_t count) {
  asmjit::Operand_ copies[6];
  uint32_t label = ~0u;
  for (size_t i = 0; i < count; ++i) {
    copies[i] = operands[i];
    if (!is_relative(operands[i])) continue;
    auto& mem = copies[i].as<x86::Mem>();
    label = static_cast<uint32_t>(mem.offsetLo32());
    mem.setOffset(kMarker);
  }
  (void)rare_.setOffset(0);
  if (const auto e = rare_.emitOpArray(inst, copies, count)) return e;
  const size_t size = rare_.offset();
  const auto begin = static_cast<uint32_t>(offset());
  embed(rare_.bufferData(), size);
  if (label == ~0u) return asmjit::kErrorOk;
  // The displacement stands at the end, or in front of an immediate.
  for (const uint32_t trailing : {0u, 1u, 2u, 4u}) {
    if (size < 4 + trailing) break;
    const auto position = begin + static_cast<uint32_t>(size) - 4 - trailing;
    if (std::memcmp(begin_.get() + position, &kMarker, 4) != 0) continue;
    data_uses_.push_back({position, label, trailing});
    return asmjit::kErrorOk;
  }
  errors_.first = asmjit::kErrorInvalidDisplacement;
  return errors_.first;
}

Result<CodeAllocation> Emitter::place(CodeArena& arena, size_t alignment) {
  for (const DataUse& use : data_uses_) {
    const uint32_t distance = labels_[use.label].offset - (use.position + 4 + use.trailing);
    std::memcpy(begin_.get() + use.position, &distance, sizeof distance);
  }
  HINDSIGHT_ASSIGN(CodeAllocation memory, arena.allocate(offset(), alignment));
  // The few functions that are called, each asked for once.
  struct Known {
    const void* function = nullptr;
    const std::byte* entry = nullptr;
  };
  std::array<Known, 16> known;
  for (const NearCall& call : near_calls_) {
    Known& entry = known[(reinterpret_cast<uintptr_t>(call.function) >> 5) % known.size()];
    if (entry.function != call.function) {
      HINDSIGHT_ASSIGN(entry.entry, arena.near_entry(call.function));
      entry.function = call.function;
    }
    // Invariant: one arena is less than 2 GiB, so the distance fits.
    const auto distance = static_cast<int32_t>(entry.entry - (memory.executable() + call.position + 4));
    std::memcpy(begin_.get() + call.position, &distance, sizeof distance);
  }
  std::memcpy(memory.write().bytes().data(), begin_.get(), offset());
  return memory;
}

}  // namespace hindsight::jit::baseline
