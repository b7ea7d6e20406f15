// RetireList: versions that are unpublished but may still be running. A version is freed only when every thread that
// was inside the guest at its unpublishing has shown that it holds no address of it. That means in its registers or on
// its stack.
//
// Argument. Unpublishing stores other entries to every slot that led to the version, so after it no thread can *newly*
// load one of its addresses. A thread can only hold one already loaded: in a register, on its stack (return address,
// spill) or as its pc. The scanner (runtime/exec, in a signal handler on the thread itself) looks at all of these
// conservatively. Any word whose value lies in the version's range counts. Threads outside the guest at the time of the
// scan hold none, because entering loads entries afresh.
//
// Parts (move_code.h). A thread in a part jumps into the whole without loading anything. So holding an address of the
// part is as good as holding one of the whole. So a whole is not looked at before its last part is freed, which needs a
// scan that found nobody in it. From then on nobody comes in any more, and a later scan says of the whole what it says
// of any version.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/fork_gate.h"
#include "jit/code/code_version.h"

namespace hindsight::jit {

struct CodeRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

class RetireList {
 public:
  // scan(ranges, live): for every thread inside the guest, sets live[i] = true if the thread may hold an address in
  // ranges[i]. Also true if a thread did not answer in time. Ranges are asked for in order. So what has waited
  // long is freed even where not all of it can be asked for at once.
  using Scan = std::function<void(std::span<const CodeRange> ranges, std::vector<bool>& live)>;

  // The version has been unpublished: no slot leads to it any more.
  void add(std::shared_ptr<CodeVersion> version);
  // Frees what no thread holds. on_free is called for each version before it goes (to unregister it). Returns
  // how many were freed.
  size_t collect(const Scan& scan, const std::function<void(const CodeVersion&)>& on_free);
  size_t pending() const;
  uint64_t freed() const;

 private:
  mutable ForkSafeMutex mutex_;  // protects what follows
  std::vector<std::shared_ptr<CodeVersion>> pending_;
  uint64_t freed_ = 0;
};

}  // namespace hindsight::jit
