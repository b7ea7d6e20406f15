#include "runtime/exec/thread_hooks.h"

#include <algorithm>

#include "runtime/instance/store.h"

namespace hindsight::rt {

// One thread's unit in one engine; detached by whichever of the two ends first.
struct ThreadAttachments::Attachment {
  std::mutex mutex;  // protects sink
  std::shared_ptr<LwpSink> sink;

  void detach() {
    // Destroyed with the lock held. If the thread is ending its unit right now, the engine's shut_down()
    // waits here until it has, because units end with the engine's monitor. Nobody who holds a lock of the
    // monitor takes this one.
    const std::lock_guard lock(mutex);
    sink.reset();
  }
};

struct ThreadAttachments::Shared {
  std::mutex mutex;  // protects the rest
  bool closed = false;
  std::vector<std::shared_ptr<Attachment>> all;
};

// The units of one thread, of all engines.
struct ThreadSinks {
  struct Entry {
    std::weak_ptr<ThreadAttachments::Shared> engine;
    std::shared_ptr<ThreadAttachments::Attachment> attachment;
  };
  std::vector<Entry> entries;

  ~ThreadSinks() {
    for (Entry& entry : entries) {
      entry.attachment->detach();
      if (const auto engine = entry.engine.lock()) {
        const std::lock_guard lock(engine->mutex);
        std::erase(engine->all, entry.attachment);
      }
    }
  }
};

static thread_local ThreadSinks t_sinks;

ThreadAttachments::ThreadAttachments() : shared_(std::make_shared<Shared>()) {}

ThreadAttachments::~ThreadAttachments() {
  shut_down();
}

void ThreadAttachments::shut_down() {
  std::vector<std::shared_ptr<Attachment>> all;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
    all.swap(shared_->all);
  }
  for (const auto& attachment : all) attachment->detach();
}

LwpSink* ThreadAttachments::enter(ThreadHooks& hooks, Store& store) {
  std::erase_if(t_sinks.entries, [](const ThreadSinks::Entry& entry) { return entry.engine.expired(); });
  for (const ThreadSinks::Entry& entry : t_sinks.entries) {
    if (entry.engine.lock() != shared_) continue;
    const std::lock_guard lock(entry.attachment->mutex);
    return entry.attachment->sink.get();
  }
  t_sinks.entries.reserve(t_sinks.entries.size() +
                          1);  // a thread's unit that the thread does not know would be one too many
  auto attachment = std::make_shared<Attachment>();
  attachment->sink = hooks.on_first_entry(store);
  LwpSink* sink = attachment->sink.get();
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->closed) return nullptr;
    shared_->all.push_back(attachment);
  }
  t_sinks.entries.push_back({shared_, std::move(attachment)});
  return sink;
}

size_t ThreadAttachments::attached() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->all.size();
}

}  // namespace hindsight::rt
