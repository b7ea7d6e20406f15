// ProfileStore: what earlier runs of each module saw and decided, in a folder of the user's. When a module is
// loaded, what is known of it is read. When its code goes, what this run found out is put on top of what the
// file says by then (feedback/profile/merge.h). So processes that ran side by side are all in it.
//
// One file holds one module under one set of options and one processor, since what pays depends on all three.
// A run that is killed has written nothing: the file is replaced at the end only, by a rename.
//
// Nothing about the store is ever an error. A file that cannot be used is said once, ignored and written
// anew. See cache_directory.h for which files are trusted, and for how writers take turns. What a file says
// is hostile all the same: it can change what is tried, never what code means.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/code/code_services.h"
#include "runtime/engine/hindsight.h"
#include "runtime/storage/cache_directory.h"

namespace hindsight::rt {

class ProfileStore {
 public:
  // Null where `config` wants none, or where nothing is decided. `services` outlives it.
  static std::unique_ptr<ProfileStore> create(const EngineConfig& config, const CodeServices& services);

  // Nothing if there is nothing that can be used.
  std::optional<feedback::ModuleProfile> load(const wasm::Module& module) const;
  // Adds one run; one in which nothing was decided changes no file. Errors, which have been said: kUsage (the
  // folder is not ours alone), kResource (it cannot be written, or others wrote for too long). Too long is
  // more than a program's end should wait.
  Status add(const wasm::Module& module, feedback::ModuleProfile run,
             const std::map<std::string, double>& policy) const;

  // In the profile's words: what decisions depend on beside the module.
  const std::string& options() const { return options_; }

  // "<module>-<options>.profile", of hexadecimal digits.
  static std::string file_name(const std::string& module_hash_hex, const std::string& options);
  // What a file holds, after its seal. Error kUsage: what is wrong, in words that go on from the file's name.
  static Result<feedback::ProfileFile> parse(std::span<const std::byte> bytes);

 private:
  ProfileStore(const EngineConfig& config, const CodeServices& services);
  Result<feedback::ModuleProfile> module_in(std::span<const std::byte> bytes,
                                            const wasm::Module& module) const;

  const CodeServices& services_;
  CacheDirectory directory_;
  const std::string options_;
};

}  // namespace hindsight::rt
