#include "base/thread_processor.h"

#include <sched.h>
#include <sys/rseq.h>

#include <algorithm>
#include <memory>

namespace hindsight {
namespace {

// As large as the machine wants it: the calls fail with a set that is too small.
class ProcessorSet {
 public:
  // Those that the calling thread may use; empty: the system does not say.
  static ProcessorSet usable() {
    for (int count = 1024; count <= 1 << 20; count *= 4) {
      ProcessorSet set(count);
      if (set.set_ == nullptr) break;
      if (::sched_getaffinity(0, set.bytes_, set.set_.get()) == 0) return set;
    }
    return ProcessorSet(0);
  }
  unsigned count() const {
    return set_ == nullptr ? 0 : static_cast<unsigned>(CPU_COUNT_S(bytes_, set_.get()));
  }
  void remove(int processor) {
    if (processor >= 0) CPU_CLR_S(static_cast<size_t>(processor), bytes_, set_.get());
  }
  bool use() const { return ::sched_setaffinity(0, bytes_, set_.get()) == 0; }

 private:
  explicit ProcessorSet(int count) {
    if (count == 0) return;
    set_.reset(CPU_ALLOC(static_cast<size_t>(count)));
    bytes_ = CPU_ALLOC_SIZE(static_cast<size_t>(count));
  }
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
  size_t bytes_ = 0;
};

}  // namespace

ThreadProcessor ThreadProcessor::of_this_thread() {
  // The C library says 0 where it registered nothing, and leaves the area alone for the thread's life where it did.
  if (__rseq_size == 0) return ThreadProcessor(nullptr);
  const auto* const area = reinterpret_cast<const struct rseq*>(
      static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
  return ThreadProcessor(&area->cpu_id);
}

int ThreadProcessor::get() const {
  if (cpu_id_ == nullptr) return kUnknownProcessor;
  // Relaxed: written by the kernel, and true for a moment whatever the order. Negative numbers say that there is none.
  const uint32_t id = __atomic_load_n(cpu_id_, __ATOMIC_RELAXED);
  return std::max(static_cast<int>(id), kUnknownProcessor);
}

bool leave_processors(std::span<const int> others) {
  const ProcessorSet all = ProcessorSet::usable();
  ProcessorSet rest = ProcessorSet::usable();
  if (rest.count() == 0) return false;
  for (const int processor : others) rest.remove(processor);
  if (rest.count() == 0 || !rest.use()) return false;
  // Not refused: it is what was had before.
  (void)all.use();
  return true;
}

unsigned usable_processors() {
  return std::max(1u, ProcessorSet::usable().count());
}

}  // namespace hindsight
