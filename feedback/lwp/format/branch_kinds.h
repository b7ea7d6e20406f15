// Which kinds of branches a processor's branch stack is asked to hold.
#pragma once

namespace hindsight::lwp {

// All of them: what LWP's event 3 counts.
struct BranchKinds {
  bool conditional = true;
  bool calls = true;
  bool returns = true;
  bool indirect_jumps = true;
  bool others = true;  // direct jumps; the kernel has no name for them alone, so others implies all
};

}  // namespace hindsight::lwp
