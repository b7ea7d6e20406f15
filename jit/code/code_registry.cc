#include "jit/code/code_registry.h"

#include <mutex>
#include <shared_mutex>

namespace hindsight::jit {

void CodeRegistry::add(std::shared_ptr<const wasm::Module> module, std::shared_ptr<CodeVersion> version) {
  const std::byte* end = version->end();
  const std::unique_lock lock(mutex_);
  by_end_.insert_or_assign(end, RegisteredCode{std::move(module), std::move(version)});
}

void CodeRegistry::remove(const CodeVersion& version) {
  RegisteredCode removed;  // destroyed after the lock is released: it may own the version
  const std::unique_lock lock(mutex_);
  const auto it = by_end_.find(version.end());
  if (it == by_end_.end() || it->second.version.get() != &version) return;
  removed = std::move(it->second);
  by_end_.erase(it);
}

std::optional<RegisteredCode> CodeRegistry::find(const void* pc) const {
  const auto* address = static_cast<const std::byte*>(pc);
  const std::shared_lock lock(mutex_);
  const auto it = by_end_.upper_bound(address);
  if (it == by_end_.end() || address < it->second.version->begin()) return std::nullopt;
  return it->second;
}

size_t CodeRegistry::size() const {
  const std::shared_lock lock(mutex_);
  return by_end_.size();
}

VersionId CodeRegistry::next_version_id() {
  // Publishes nothing: only uniqueness matters, so relaxed suffices.
  static std::atomic<uint64_t> next{1};
  return VersionId(next.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace hindsight::jit
