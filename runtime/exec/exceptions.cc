#include "runtime/exec/exceptions.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/fork_gate.h"
#include "jit/abi/call_layout.h"
#include "jit/abi/type_words.h"
#include "runtime/exec/enter.h"
#include "runtime/exec/x86_64.h"

namespace hindsight::rt {
namespace {

using jit::ExceptionRecord;

// Up to where the stacks of all entries are to be marked from `here` on. 0: there is no such place.
//
// Values of the host's may hold references, in frames between two entries. Where entries are on several stacks nobody
// knows up to where the host has left each. So all has to be in one range, from `here` up. Argument that it is, if each
// entry's frame is: what is in use of a stack is one range of addresses, and ours begins with `here`. So `here` is in no
// other stack's, and one that has something above has all there.
uintptr_t end_of_marking(const GuestThread& thread, uintptr_t here) {
  uintptr_t end = 0;
  const Activation* entry = thread.entries.load(std::memory_order_relaxed);
  const bool is_one = entry != nullptr && entry->previous.load(std::memory_order_relaxed) == nullptr;
  for (; entry != nullptr; entry = entry->previous.load(std::memory_order_relaxed)) {
    if (entry->frame < here) return 0;
    end = std::max(end, entry->frame);
  }
  if (is_one || (here >= thread.own_stack_begin && end < thread.own_stack_end)) return end;
  return is_one_mapping(here, end) ? end : 0;
}

// Marks what any frame between its own and `end` may refer to. They are read as words, whatever a sanitizer
// thinks of the objects there.
[[gnu::noinline, gnu::no_sanitize("address", "thread")]] void mark_stack(ExceptionHeap& heap, uintptr_t end) {
  auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t))
    heap.mark(*reinterpret_cast<const volatile uint64_t*>(at));
}

// References of frames further out may be in callee-saved registers. Each of these may still hold what it
// held when this function was called, and is then looked at here. Else it was saved in this function's frame
// or one further out.
//
// Nothing is collected where the stacks are not to be looked through: the store's limit holds all the same.
[[gnu::noinline]] void collect(Store& store, const Tag& tag) {
  const uintptr_t end =
      end_of_marking(this_guest_thread(), reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  if (end == 0) return;
  uint64_t registers[x86_64::kKeptRegisters];
  x86_64::read_kept_registers(registers);
  ExceptionHeap& heap = store.exceptions();
  heap.begin_marking();
  heap.mark(registers);
  heap.mark(std::span<const uint64_t>(store.thread()->arguments, jit::words_of(tag.type.params)));
  store.mark_exceptions();
  mark_stack(heap, end);
  heap.finish_marking();
}

std::string value_text(wasm::ValType type, const uint64_t* value) {
  const uint64_t bits = *value;
  char text[48];
  switch (type) {
    case wasm::ValType::kI32:
      return std::to_string(static_cast<int32_t>(bits));
    case wasm::ValType::kI64:
      return std::to_string(static_cast<int64_t>(bits));
    case wasm::ValType::kF32:
      std::snprintf(text, sizeof text, "%g",
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
      return text;
    case wasm::ValType::kF64:
      std::snprintf(text, sizeof text, "%g", std::bit_cast<double>(bits));
      return text;
    case wasm::ValType::kV128:
      std::snprintf(text, sizeof text, "0x%016llx%016llx", static_cast<unsigned long long>(value[1]),
                    static_cast<unsigned long long>(bits));
      return text;
    default:
      return bits == 0 ? "null" : "ref";
  }
}

// "oops (i32 5, f64 0.5)"
std::string describe(ExceptionRecord& exception) {
  constexpr size_t kMostValues = 8;
  const Tag& tag = tag_of(exception);
  std::string text = tag.name;
  const auto& types = tag.type.params;
  if (types.empty()) return text;
  text += " (";
  const uint64_t* value = jit::exception_values(&exception);
  for (size_t i = 0; i < types.size() && i < kMostValues; ++i) {
    if (i != 0) text += ", ";
    text += jit::type_text(types[i]) + ' ' + value_text(types[i], value);
    value += jit::words_of(types[i]);
  }
  if (types.size() > kMostValues) text += ", ...";
  return text + ')';
}

std::string why_not(const Store& store) {
  const ExceptionHeap& heap = store.exceptions();
  if (!heap.is_beyond_limit()) return "no memory for an exception";
  return "exceptions take " + std::to_string(heap.bytes()) + " bytes; the limit exception-bytes allows " +
         std::to_string(heap.limit());
}

void record_uncaught(Store& store, ExceptionRecord& exception) {
  ExceptionInfo& info = info_of(exception);
  GuestTrap trap;
  trap.code = jit::TrapCode::kUncaughtException;
  trap.detail = describe(exception);
  trap.frames = info.trace;
  trap.frames_left_out = info.frames_left_out;
  trap.exception = &exception;
  walk_stack(store, {}, trap);  // after the entry
  store.thread()->pending_trap = trap.code;
  store.trap = std::move(trap);
}

// Walks outwards from `frame` to the first frame that catches, and notes in the trace what it comes through.
Landing search(Store& store, ExceptionInfo& info, uintptr_t frame) {
  const GuestThread& thread = this_guest_thread();
  const InsideForkGate inside;  // once, not for each version that is looked up
  const uint64_t limit = store.thread()->entry_sp.load(std::memory_order_relaxed);
  // Thrown on by the function that caught it last: its place in the trace is where it was called from, which
  // is there already.
  bool again = info.landed != 0;
  std::optional<jit::RegisteredCode> found;
  uintptr_t fp = frame;
  // Invariant: frames ascend, as in walk_stack.
  while (fp >= thread.stack_begin && fp < limit && fp % 8 == 0) {
    uintptr_t words[2];  // rbp of the frame further out, return address into its code
    std::memcpy(words, reinterpret_cast<const void*>(fp), sizeof words);
    const auto* const return_address = reinterpret_cast<const std::byte*>(words[1]);
    const std::byte* const call = return_address - 1;
    // Looking a version up takes a lock; recursion asks for the same one again and again.
    if (!found || call < found->version->begin() || call >= found->version->end())
      found = store.services().registry->find(call);
    if (found) {
      if ((!again || info.landed != words[0]) && !goes_on_in_callee(*found, words[1]))
        add_frames(*found, words[1] - 1, info.trace, info.frames_left_out);
      again = false;
      // Nothing is passed on the stack: after the call rsp is what it was before it.
      if (const void* landing = found->version->landing_of(return_address))
        return {landing, fp + sizeof words, words[0]};
    }
    if (words[0] <= fp) break;
    fp = words[0];
  }
  return {};
}

}  // namespace

[[gnu::noinline]] ExceptionRecord* make_exception(Store& store, const Tag& tag, void* frame) {
  if (store.exceptions().is_full()) collect(store, tag);
  ExceptionRecord* exception = store.exceptions().make(tag, store.thread()->arguments);
  if (exception == nullptr)
    record_trap_at(store, jit::TrapCode::kOutOfResources, why_not(store).c_str(), frame);
  return exception;
}

[[gnu::noinline]] Landing find_landing(Store& store, ExceptionRecord& exception, uintptr_t frame) {
  ExceptionInfo& info = info_of(exception);
  const size_t before = info.total_bytes();
  const Landing landing = search(store, info, frame);
  store.exceptions().grew(info.total_bytes() - before);
  info.landed = landing.fp;
  if (landing.pc != nullptr)
    store.trap.reset();  // of a nested entry through which it may have come
  else
    record_uncaught(store, exception);
  return landing;
}

std::unexpected<Error> throw_from_host(Store& store, const Tag& tag, const uint64_t* values) {
  // Those of the call that led here were read by it.
  std::copy_n(values, jit::words_of(tag.type.params), store.thread()->arguments);
  ExceptionRecord* const exception = make_exception(store, tag, __builtin_frame_address(0));
  if (exception == nullptr) return make_error(ErrorKind::kResource, why_not(store));
  store.trap = GuestTrap{.code = jit::TrapCode::kUncaughtException,
                         .detail = describe(*exception),
                         .frames = {},
                         .exception = exception};
  return std::unexpected(to_error(*store.trap));
}

HINDSIGHT_UNWOUND void go_on(Store& store, const Landing& landing, ExceptionRecord* exception) {
  if (landing.pc == nullptr) leave_guest(store);
  x86_64::jump_into_frame(landing.pc, landing.sp, landing.fp, exception);
}

}  // namespace hindsight::rt
