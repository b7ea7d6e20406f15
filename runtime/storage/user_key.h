// UserKey: 32 secret bytes of the user's with which kept code and profiles are sealed (sealed_file.h). So what
// only could write their folder cannot have made them.
//
// The problem: code that is kept between runs is executed. That a file belongs to the user and can be written by
// nobody else says nothing about who wrote it. A guest that was given the folder, or one above it, writes with
// the user's rights. So each file carries a code that only who has the key can compute, and no guest can read
// the key.
//
// The key lies in a folder of its own, for its owner alone, in a file of mode 0400. WASI has no call that sets a
// mode: a guest makes files of mode 0666 and folders of mode 0777, less the umask. So it cannot put a key of its
// own in the place of ours, not even where there is none yet. It cannot read one either: WASI opens no file of
// mode 0400 that begins as keys do, wherever it lies (runtime/wasi/own_files.h). While the key is made, its file
// has mode 0 until all of it is written.
//
// A kernel keyring would be out of reach of every folder. But it forgets its keys with the user's last process
// or the next boot, and with them all that is kept. And it is refused in most containers.
//
// Threads: any. Processes that make the key at once agree on one of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hindsight::rt {

class UserKey {
 public:
  // Nothing is touched yet. Empty: there is no key. `owner`: who must own it; another one is for tests.
  explicit UserKey(std::string folder, uid_t owner = ::geteuid())
      : folder_(std::move(folder)), owner_(owner) {}
  ~UserKey();
  UserKey(const UserKey&) = delete;
  UserKey& operator=(const UserKey&) = delete;

  static constexpr std::string_view kFileName = "key";
  // How the file begins.
  static constexpr std::string_view kFileStart = "hindsight-key ";

  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_.empty() ? folder_ : folder_ + "/" + std::string(kFileName); }

  enum class Missing : uint8_t { kMake, kLeave };

  // HMAC-SHA-256 of `name` and of the SHA-256 of `contents`. Nothing: there is no key, and it is not to be made.
  // Errors are remembered, and path() is their place. They are kUsage (others can reach the key, or it is
  // damaged), kResource (it can be neither read nor made). Each says what to do.
  using Code = std::array<uint8_t, 32>;
  Result<std::optional<Code>> code_of(std::string_view name, std::span<const std::byte> contents,
                                      Missing missing) const;

  // Compares in a time that says nothing about where they differ.
  static bool same(const Code& a, const Code& b);

  // True once: for who says that there is no key.
  bool first_complaint() const { return !complained_.exchange(true, std::memory_order_relaxed); }

 private:
  using Key = std::array<uint8_t, 32>;
  Result<std::optional<Key>> get(Missing missing) const;
  Result<std::optional<Key>> obtain(Missing missing) const;
  Result<int> open_folder() const;
  Result<std::optional<Key>> read(int folder) const;
  Status make(int folder) const;
  std::unexpected<Error> bad(ErrorKind kind, const std::string& why) const;
  // Counted, and kResource.
  std::unexpected<Error> failed_call(const std::string& what, int error,
                                     const std::string& advice = "") const;

  const std::string folder_;
  const uid_t owner_;
  mutable std::mutex mutex_;  // protects what follows
  mutable std::optional<Key> key_;
  mutable std::optional<Error> error_;
  // Publishes nothing: who gets `false` knows only that somebody else speaks.
  mutable std::atomic<bool> complained_{false};
};

}  // namespace hindsight::rt
