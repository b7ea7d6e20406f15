// Wasm backtraces. Both tiers and the trampolines keep rbp frames. So the frames of one entry are a chain
// from the trapping builtin (or the interrupted registers) up to the entry's sp. Host frames between nested
// entries need not have frame pointers (an embedder's code may not). The chain continues at the dispatch
// function that the outer guest called, which is ours.
#include <cstring>

#include "runtime/exec/trap.h"

namespace hindsight::rt {
namespace {

class Collector {
 public:
  Collector(const jit::CodeRegistry& registry, GuestTrap& trap) : registry_(registry), trap_(trap) {}

  void add_exact(uintptr_t pc) {
    if (const auto found = find(pc)) add_frames(*found, pc, trap_.frames, trap_.frames_left_out);
  }
  // The call ended just before its return address, which may already belong to the next row or version.
  void add_return(uintptr_t pc) {
    const auto found = find(pc - 1);
    if (found && !goes_on_in_callee(*found, pc))
      add_frames(*found, pc - 1, trap_.frames, trap_.frames_left_out);
  }

 private:
  // Empty: a trampoline, or C++.
  std::optional<jit::RegisteredCode> find(uintptr_t pc) const {
    return registry_.find(reinterpret_cast<const void*>(pc));
  }

  const jit::CodeRegistry& registry_;
  GuestTrap& trap_;
};

// Frames from fp, not below `lowest`, up to (not including) `limit`. Invariant: frames ascend; anything else ends the
// walk.
void walk_entry(Collector& collector, uintptr_t fp, uintptr_t lowest, uintptr_t limit) {
  while (fp >= lowest && fp < limit && fp % 8 == 0) {
    uintptr_t words[2];
    std::memcpy(words, reinterpret_cast<const void*>(fp), sizeof words);
    collector.add_return(words[1]);
    if (words[0] <= fp) return;
    fp = words[0];
  }
}

}  // namespace

void add_frames(const jit::RegisteredCode& code, uintptr_t pc, std::vector<GuestFrame>& frames,
                uint64_t& left_out) {
  const auto push = [&](GuestFrame frame) {
    if (frames.size() < kMaxBacktraceFrames)
      frames.push_back(std::move(frame));
    else
      left_out++;
  };
  const jit::CodeVersion& version = *code.version;
  const auto offset = static_cast<uint32_t>(pc - reinterpret_cast<uintptr_t>(version.begin()));
  const auto row = version.pc_map.find(CodeOffset(offset));
  std::optional<WasmOffset> wasm;
  uint32_t site = jit::kNoInlineSite;
  if (row) {
    if (row->wasm != jit::kNoWasmOffset) wasm = row->wasm;
    site = row->inline_site;
  }
  const auto& sites = version.pc_map.inline_sites();
  while (site != jit::kNoInlineSite && site < sites.size()) {
    push({code.module, sites[site].callee, wasm, true});
    // Whoever called at its tail is gone; so, if there is no other, is the compiled function itself.
    while (sites[site].tail) {
      site = sites[site].caller_site;
      if (site >= sites.size()) return;
    }
    wasm = sites[site].call_site;
    site = sites[site].caller_site;
  }
  push({code.module, version.function, wasm, false});
}

bool goes_on_in_callee(const jit::RegisteredCode& code, uintptr_t return_pc) {
  const jit::CodeVersion& version = *code.version;
  const auto row = version.pc_map.find(
      CodeOffset(static_cast<uint32_t>(return_pc - 1 - reinterpret_cast<uintptr_t>(version.begin()))));
  return row && row->inline_site == jit::kLoopGoesOn;
}

void walk_stack(Store& store, const WalkStart& start, GuestTrap& trap) {
  if (store.services().registry == nullptr) return;
  GuestThread& thread = this_guest_thread();
  Collector collector(*store.services().registry, trap);
  if (start.exact_pc != 0) collector.add_exact(start.exact_pc);
  if (start.return_pc != 0) collector.add_return(start.return_pc);
  const Activation* activation = thread.activation.load(std::memory_order_relaxed);
  if (activation == nullptr) return;
  walk_entry(collector, start.fp, thread.stack_begin,
             store.thread()->entry_sp.load(std::memory_order_relaxed));
  // On whichever stack. Those that are in no function of the host's have called none.
  while ((activation = activation->previous.load(std::memory_order_relaxed)) != nullptr &&
         activation->host_frame != 0)
    walk_entry(collector, activation->host_frame, activation->low.load(std::memory_order_relaxed),
               activation->entry_sp);
}

}  // namespace hindsight::rt
