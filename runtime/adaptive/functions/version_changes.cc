#include "runtime/adaptive/functions/version_changes.h"

#include <algorithm>

namespace hindsight::rt {
namespace {

bool has_changed_loops(const Watch& watch) {
  return std::ranges::any_of(watch.version->answers, &jit::Answer::is_applied);
}

}  // namespace

std::vector<jit::ChangeKind> version_changes(const Watch& watch) {
  if (watch.cached) return watch.cached_changes;
  std::vector<jit::ChangeKind> there;
  for (const jit::ChangeKind kind : jit::kVersionChanges) {
    const bool split = kind == jit::ChangeKind::kSplitCold;
    const bool parted = watch.version->hot_bytes.value != 0 || watch.version->whole != nullptr;
    if (split ? parted && feedback::find(watch.told, feedback::version_site(kind)) != nullptr
              : feedback::has(watch.told, kind))
      there.push_back(kind);
  }
  return there;
}

bool is_changed(const Watch& watch) {
  return has_changed_loops(watch) || !version_changes(watch).empty();
}

bool has_no_change_but(const Watch& watch, jit::ChangeKind kind) {
  return !has_changed_loops(watch) && version_changes(watch) == std::vector{kind};
}

}  // namespace hindsight::rt
