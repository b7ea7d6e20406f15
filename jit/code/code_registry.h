// CodeRegistry: pc -> code version. Versions are registered when published and stay until they are retired;
// readers keep what they found alive by shared_ptr.
//
// Threads: find() takes a shared lock, never from a signal handler. Registration takes it exclusively.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/fork_gate.h"
#include "jit/code/code_version.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

struct RegisteredCode {
  std::shared_ptr<const wasm::Module> module;
  std::shared_ptr<CodeVersion> version;
};

class CodeRegistry {
 public:
  void add(std::shared_ptr<const wasm::Module> module, std::shared_ptr<CodeVersion> version);
  void remove(const CodeVersion& version);
  // The version whose code holds `pc`.
  std::optional<RegisteredCode> find(const void* pc) const;
  size_t size() const;
  static VersionId next_version_id();  // process-wide, thread-safe

 private:
  mutable ForkSafeSharedMutex mutex_;  // protects by_end_
  std::map<const std::byte*, RegisteredCode> by_end_;
};

}  // namespace hindsight::jit
