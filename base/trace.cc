#include "base/trace.h"

namespace hindsight {

void TraceDirectory::publish(std::unique_ptr<TraceFunction> function) {
  const std::lock_guard lock(mutex_);
  for (auto& [id, run] : function->runs) {
    run.function = function.get();
    if (id >= runs_.size()) runs_.resize(id + 1);
    runs_[id] = &run;
  }
  functions_.push_back(std::move(function));
}

const TraceRun* TraceDirectory::find(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return id < runs_.size() ? runs_[id] : nullptr;
}

}  // namespace hindsight
