// CodeCache: the optimized code of earlier runs. When a module is loaded, the functions that are kept for it
// are placed at once and published before the first call. The optimizing tier is not opened for that. When
// its code goes, and now and then before, what is current is kept for the next run, with what trials had
// found out.
//
// What is kept is used only under the same key (code_cache_file.h): the same module, options, processor and
// compiler. Nothing about the cache is ever an error. A file that cannot be used is said once, ignored and
// written anew; see cache_directory.h for which files are trusted.
//
// Threads: any; load and save of different modules run side by side.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "jit/code/code_version.h"
#include "jit/wasm/module.h"
#include "runtime/code/code_services.h"
#include "runtime/engine/hindsight.h"
#include "runtime/storage/cache_directory.h"
#include "runtime/storage/code_cache_file.h"

namespace hindsight::rt {

// An optimized version with what is known about it.
struct KeptCode {
  std::shared_ptr<jit::CodeVersion> version;
  std::string reason;  // of the decision to optimize the function
  feedback::ChangeLedger changes;
  CachedCalls calls;
};

class CodeCache {
 public:
  // Null where `config` wants none, or where there is no optimized code to keep. `services` outlives it.
  static std::unique_ptr<CodeCache> create(const EngineConfig& config, CodeServices& services);

  // What is kept for the module: versions that are placed but neither numbered nor published.
  std::vector<KeptCode> load(const wasm::Module& module);
  // Keeps these, and of what was kept before the other functions. Does nothing if all of them are kept as
  // they are.
  void save(const wasm::Module& module, std::span<const KeptCode> codes);

 private:
  CodeCache(const EngineConfig& config, CodeServices& services);
  CacheKey key_of(const wasm::Module& module) const;
  Result<std::vector<KeptCode>> read(const wasm::Module& module, const CacheKey& key);

  CodeServices& services_;
  CacheDirectory directory_;
  const std::string options_;

  // What of a function is kept, to see whether there is news.
  struct Kept {
    std::weak_ptr<jit::CodeVersion> version;  // compared only
    std::map<jit::Site, feedback::ChangeState> changes;
  };
  using KeptFunctions = std::map<uint32_t, Kept>;
  static Kept kept_of(const KeptCode& code);
  static bool same(const Kept& a, const Kept& b);
  std::atomic<uint64_t> failed_saves_{0};      // counts, and orders nothing else
  std::mutex mutex_;                           // protects what follows
  std::map<std::string, KeptFunctions> kept_;  // by file name and function
  std::string llvm_path_;  // of which a file that was used said that it compiled; empty: none was
};

}  // namespace hindsight::rt
