// ThreadWatch: which LWP unit watches this engine's guest threads, and its attaching to each of them.
//
// Concurrency: attach() on guest threads, several at a time. `failed_` is relaxed: it only keeps a line from being
// said twice.
#pragma once

#include <atomic>
#include <memory>

#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/monitor.h"
#include "runtime/code/code_services.h"
#include "runtime/exec/lwp_sink.h"

namespace hindsight::rt {

class ThreadWatch {
 public:
  // Both outlive this, and the units that are attached.
  ThreadWatch(CodeServices& services, feedback::Monitor& monitor, lwp::Selection selection)
      : services_(services), monitor_(monitor), selection_(std::move(selection)) {}

  // The calling thread is watched until its sink goes. Null: it cannot be, which is said once.
  std::shared_ptr<LwpSink> attach();

  std::string_view unit() const { return selection_.factory->name(); }
  // Which unit was taken, and where it could not be a better one, why; `profiling`: one was asked for.
  void say_selection(bool profiling) const;

 private:
  CodeServices& services_;
  feedback::Monitor& monitor_;
  const lwp::Selection selection_;
  std::atomic<bool> failed_{false};
};

}  // namespace hindsight::rt
