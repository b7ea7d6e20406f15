// PassTimes: what the passes of the optimizing tier took, over all compilations of an engine.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "jit/code/code_version.h"

namespace hindsight::rt {

// Any thread.
class PassTimes {
 public:
  void add(const std::vector<jit::PassCost>& compilation) {
    const std::lock_guard lock(mutex_);
    for (const jit::PassCost& pass : compilation) {
      jit::PassCost& sum = sums_[pass.name];
      sum.runs += pass.runs;
      sum.seconds += pass.seconds;
    }
  }
  // By descending time.
  std::vector<jit::PassCost> sums() const;

 private:
  mutable std::mutex mutex_;  // protects what follows
  std::map<std::string, jit::PassCost> sums_;
};

}  // namespace hindsight::rt
