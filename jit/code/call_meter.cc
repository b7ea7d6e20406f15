#include "jit/code/call_meter.h"

#include <cstring>
#include <utility>

namespace hindsight::jit {
namespace {

// A line for the instructions, one for where they lead: nothing is written where something is executed.
constexpr size_t kLine = 64;

}  // namespace

CallMeter::CallMeter(CodeAllocation memory, const void* code)
    : memory_(std::move(memory)), counter_(std::make_unique<Counter>()) {
  const CodeWriting writing = memory_.write();
  std::byte* const out = writing.bytes().data();
  constexpr unsigned char kMovR11[] = {0x49, 0xbb};        // mov r11, imm64
  constexpr unsigned char kIncR11[] = {0x49, 0xff, 0x03};  // inc qword [r11]
  constexpr unsigned char kJump[] = {0xff, 0x25};          // jmp [rip + disp32]
  const uint64_t* const counter = &counter_->calls;
  size_t at = 0;
  const auto put = [&](const void* bytes, size_t size) {
    std::memcpy(out + at, bytes, size);
    at += size;
  };
  constexpr int kBreakpoint = 0xcc;
  std::memset(out, kBreakpoint, memory_.size());
  put(kMovR11, sizeof kMovR11);
  put(&counter, sizeof counter);
  put(kIncR11, sizeof kIncR11);
  put(kJump, sizeof kJump);
  const auto distance = static_cast<int32_t>(kLine - (at + sizeof(int32_t)));
  put(&distance, sizeof distance);
  lead_to(code);
}

Result<std::unique_ptr<CallMeter>> CallMeter::create(CodeArena& arena, const void* code) {
  HINDSIGHT_ASSIGN(CodeAllocation memory, arena.allocate(2 * kLine, kLine));
  return std::unique_ptr<CallMeter>(new CallMeter(std::move(memory), code));
}

void CallMeter::lead_to(const void* code) {
  // Release, as of every entry slot: the code is complete before a call gets there.
  const CodeWriting writing = memory_.write();
  auto* const slot = reinterpret_cast<const void**>(writing.bytes().data() + kLine);
  std::atomic_ref(*slot).store(code, std::memory_order_release);
}

uint64_t CallMeter::calls() const {
  // Relaxed: a number and nothing else. Generated code writes it with plain adds of eight aligned bytes.
  return std::atomic_ref(counter_->calls).load(std::memory_order_relaxed);
}

}  // namespace hindsight::jit
