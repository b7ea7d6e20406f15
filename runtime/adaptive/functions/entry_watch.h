// EntryWatch: whether functions that are about to become hot are called again. What a compile has to offer running
// loops depends on it. Watching costs nothing until the call (ModuleCode::watch_entry).
//
// Monitor thread only.
#pragma once

#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/loaded_modules.h"

namespace hindsight::rt {

class EntryWatch {
 public:
  // Both outlive this.
  EntryWatch(const LoadedModules& modules, feedback::Monitor& monitor)
      : modules_(modules), monitor_(monitor) {}

  void round();

 private:
  struct Watched {
    std::weak_ptr<ModuleCode> code;
    FuncIndex function;
  };

  const LoadedModules& modules_;
  feedback::Monitor& monitor_;
  std::vector<Watched> watched_;  // not seen entered yet
};

}  // namespace hindsight::rt
