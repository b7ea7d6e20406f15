// CodeSource: where an instance's code comes from. An instance knows nothing of tiers. It lets its source
// fill its entry slots and asks it to compile what is called for the first time. runtime/engine's ModuleCode
// implements it.
//
// Threads: all functions may be called from several threads at once (instances of one module in different
// stores).
#pragma once

#include "base/ids.h"
#include "base/result.h"

namespace hindsight::rt {

class Instance;

class CodeSource {
 public:
  virtual ~CodeSource() = default;
  // Precondition: the instance's context is allocated and its imports are linked. Stores an entry into the
  // slot of every defined function (present code, or a lazy stub). From now on publishes new code to the
  // instance. Errors: kResource.
  virtual Status attach(Instance& instance) = 0;
  // The instance is about to go; nothing may be published to it after this returns. Safe without attach().
  virtual void detach(Instance& instance) = 0;
  // First call of a defined function, on the calling guest thread: compiles (or finds) code, publishes it and
  // returns its entry. Errors become the guest's trap kOutOfResources.
  virtual Result<const void*> compile_first(Instance& instance, FuncIndex function) = 0;
};

}  // namespace hindsight::rt
