// Which functions the loops of a function call by name, and could have in place of the call: a table made once of the body.
#pragma once

#include <vector>

#include "base/ids.h"
#include "feedback/profile/function_loops.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

class CallsInLoops {
 public:
  struct Call {
    FuncIndex callee;
    LoopIndex loop;  // the innermost one around the call
    friend auto operator<=>(const Call&, const Call&) = default;
  };
  // Linear in the body, and in those of the callees once more.
  CallsInLoops(const wasm::Module& module, FuncIndex function, const FunctionLoops& loops);
  // Each callee with each of its loops once, by callee. None that may not be inlined for its loads
  // (jit/wasm/loop_nests.h), nor one that calls itself, which would be inlined for its first call alone.
  const std::vector<Call>& calls() const { return calls_; }
  // Whether the function itself does, in a loop or not.
  bool calls_itself() const { return calls_itself_; }

 private:
  std::vector<Call> calls_;
  bool calls_itself_ = false;
};

}  // namespace hindsight::feedback
