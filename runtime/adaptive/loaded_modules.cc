#include "runtime/adaptive/loaded_modules.h"

#include <algorithm>
#include <utility>

namespace hindsight::rt {

void LoadedModules::add(const std::shared_ptr<ModuleCode>& code) {
  const std::lock_guard lock(mutex_);
  modules_.push_back({.code = code, .module = code->module(), .ended = {}});
}

void LoadedModules::end(const ModuleCode& code) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : modules_) {
    if (entry.module != code.module() || entry.gone) continue;
    entry.ended = code.counts();
    entry.gone = true;
    return;
  }
}

std::shared_ptr<ModuleCode> LoadedModules::find(const wasm::Module* module) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : modules_)
    if (entry.module.get() == module && !entry.gone) return entry.code.lock();
  return nullptr;
}

std::vector<std::shared_ptr<ModuleCode>> LoadedModules::alive() const {
  std::vector<std::shared_ptr<ModuleCode>> alive;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : modules_)
    if (std::shared_ptr<ModuleCode> code = entry.gone ? nullptr : entry.code.lock())
      alive.push_back(std::move(code));
  return alive;
}

std::vector<std::shared_ptr<const wasm::Module>> LoadedModules::all() const {
  std::vector<std::shared_ptr<const wasm::Module>> all;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : modules_) all.push_back(entry.module);
  return all;
}

void LoadedModules::add_compilations(ModuleCodeCounts& counts) const {
  std::vector<std::shared_ptr<ModuleCode>> held;  // let go of after the lock
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : modules_) {
    std::shared_ptr<ModuleCode> code = entry.gone ? nullptr : entry.code.lock();
    counts.add_compilations(code ? code->counts() : entry.ended);
    if (code) held.push_back(std::move(code));
  }
}

std::vector<std::shared_ptr<const wasm::Module>> LoadedModules::take_old(
    const std::set<const wasm::Module*>& needed) {
  std::vector<std::shared_ptr<const wasm::Module>> old;
  const std::lock_guard lock(mutex_);
  auto gone = static_cast<size_t>(
      std::count_if(modules_.begin(), modules_.end(), [](const Entry& entry) { return entry.gone; }));
  for (Entry& entry : modules_) {
    if (gone <= kTold) break;
    if (!entry.gone) continue;
    --gone;
    if (needed.contains(entry.module.get()) || std::exchange(entry.taken, true)) continue;
    old.push_back(entry.module);
  }
  return old;
}

ModuleCodeCounts LoadedModules::forget(const wasm::Module* module) {
  const std::lock_guard lock(mutex_);
  const auto entry = std::find_if(modules_.begin(), modules_.end(),
                                  [&](const Entry& other) { return other.module.get() == module; });
  if (entry == modules_.end()) return {};
  const ModuleCodeCounts ended = entry->ended;
  modules_.erase(entry);
  return ended;
}

}  // namespace hindsight::rt
