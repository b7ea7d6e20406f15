#include "runtime/storage/user_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file_size_guard.h"
#include "base/files.h"
#include "base/system_failures.h"
#include "jit/wasm/sha256.h"
#include "runtime/storage/descriptor.h"

namespace hindsight::rt {
namespace {

// "hindsight-key 1 ", 64 hexadecimal digits, a line break.
constexpr std::string_view kKeyVersion = "1 ";
constexpr size_t kDigits = 64;
constexpr size_t kFileBytes = UserKey::kFileStart.size() + kKeyVersion.size() + kDigits + 1;
constexpr mode_t kKeyFileMode = 0400;

bool fill_with_random_bytes(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

UserKey::~UserKey() {
  if (key_) sodium_memzero(key_->data(), key_->size());
}

bool UserKey::same(const Code& a, const Code& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The contents go in by their digest. Our own SHA-256 takes it with the processor's instructions for it, as the module's
// name needs them anyway: the library's takes six times as long. What is left for it is short. A collision of SHA-256
// would be one of the seal, as it would be with the contents themselves.
Result<std::optional<UserKey::Code>> UserKey::code_of(std::string_view name,
                                                      std::span<const std::byte> contents,
                                                      Missing missing) const {
  static_assert(std::tuple_size_v<Key> == crypto_auth_hmacsha256_KEYBYTES);
  static_assert(std::tuple_size_v<Code> == crypto_auth_hmacsha256_BYTES);
  HINDSIGHT_ASSIGN(const auto key, get(missing));
  if (!key) return std::nullopt;
  const auto digest = wasm::sha256({reinterpret_cast<const uint8_t*>(contents.data()), contents.size()});
  std::string message = fmt::format("hindsight kept file 1\n{}\n{}\n", name.size(), name);
  message.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  Code code;
  crypto_auth_hmacsha256(code.data(), reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                         key->data());
  return code;
}

Result<std::optional<UserKey::Key>> UserKey::get(Missing missing) const {
  const std::lock_guard lock(mutex_);
  if (error_) return std::unexpected(*error_);
  if (key_) return key_;
  auto key = obtain(missing);
  if (!key)
    error_ = key.error();
  else
    key_ = *key;
  return key;
}

std::unexpected<Error> UserKey::bad(ErrorKind kind, const std::string& why) const {
  return make_error(kind, "is no key that kept code and profiles can be sealed with: " + why, path());
}

std::unexpected<Error> UserKey::failed_call(const std::string& what, int error,
                                            const std::string& advice) const {
  count_system_failure(SystemFailure::kKeptFiles, error);
  return bad(ErrorKind::kResource, what + ": " + std::strerror(error) + advice);
}

Result<std::optional<UserKey::Key>> UserKey::obtain(Missing missing) const {
  if (folder_.empty()) {
    return make_error(
        ErrorKind::kUsage,
        "there is no place for the key that kept code and profiles are sealed with: no home is set; "
        "name a folder with HINDSIGHT_KEY_DIR",
        "key");
  }
  HINDSIGHT_ASSIGN(int opened, open_folder());
  if (opened < 0) {
    if (missing == Missing::kLeave) return std::nullopt;
    const int error = make_folders(folder_);
    HINDSIGHT_ASSIGN(opened, open_folder());
    if (opened < 0)
      return failed_call("its folder cannot be made", error, "; name another with HINDSIGHT_KEY_DIR");
  }
  const Descriptor folder(opened);
  HINDSIGHT_ASSIGN(auto key, read(folder.get()));
  if (key || missing == Missing::kLeave) return key;
  HINDSIGHT_TRY(make(folder.get()));
  HINDSIGHT_ASSIGN(key, read(folder.get()));
  if (!key) return bad(ErrorKind::kResource, "it was removed as soon as it was made");
  return key;
}

Result<int> UserKey::open_folder() const {
  const int opened = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) {
    if (errno == ENOENT) return -1;
    return failed_call("its folder cannot be opened", errno);
  }
  Descriptor folder(opened);
  struct stat status {};
  if (::fstat(opened, &status) != 0) return failed_call("its folder cannot be looked at", errno);
  if (status.st_uid != owner_)
    return bad(ErrorKind::kUsage,
               fmt::format("its folder belongs to user {}, not to {}; name another with HINDSIGHT_KEY_DIR",
                           status.st_uid, owner_));
  if (status.st_mode & 077)
    return bad(
        ErrorKind::kUsage,
        fmt::format(
            "others can enter its folder (mode {:o}); make it yours alone (chmod 700), or name another "
            "with HINDSIGHT_KEY_DIR",
            status.st_mode & 07777));
  return folder.release();
}

Result<std::optional<UserKey::Key>> UserKey::read(int folder) const {
  // Not blocking, so that a pipe in its place holds nobody up.
  const Descriptor file(
      ::openat(folder, std::string(kFileName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  constexpr const char* kRemove =
      "; remove it: a new one is made at the next start, and what was kept is kept anew";
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) return bad(ErrorKind::kUsage, std::string("it is a link") + kRemove);
    return failed_call("it cannot be opened", errno, kRemove);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed_call("it cannot be looked at", errno);
  if (!S_ISREG(status.st_mode)) return bad(ErrorKind::kUsage, std::string("it is no regular file") + kRemove);
  if (status.st_uid != owner_)
    return bad(ErrorKind::kUsage,
               fmt::format("it belongs to user {}, not to {}{}", status.st_uid, owner_, kRemove));
  // Exactly: no guest of ours can have made a file of this mode.
  if ((status.st_mode & 07777) != kKeyFileMode)
    return bad(
        ErrorKind::kUsage,
        fmt::format("its mode is {:o}, and not {:o}, so that others, or a guest, may have made or read it{}",
                    status.st_mode & 07777, kKeyFileMode, kRemove));
  std::array<char, kFileBytes + 1> text;
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + length, text.size() - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed_call("it cannot be read", errno);
    if (n == 0) break;
    length += static_cast<size_t>(n);
  }
  const auto key = [&]() -> std::optional<Key> {
    std::string_view line(text.data(), length);
    if (length != kFileBytes || !line.starts_with(kFileStart) || line.back() != '\n') return std::nullopt;
    line.remove_prefix(kFileStart.size());
    if (!line.starts_with(kKeyVersion)) return std::nullopt;
    line.remove_prefix(kKeyVersion.size());
    Key bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) {
      const char* const digits = line.data() + 2 * i;
      if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return std::nullopt;
    }
    return bytes;
  }();
  sodium_memzero(text.data(), text.size());
  if (!key) return bad(ErrorKind::kUsage, std::string("it is damaged") + kRemove);
  return key;
}

// Written whole under another name, then given its own. Whoever comes later finds all of it or nothing, and whoever else
// makes one at the same time finds ours or we theirs.
Status UserKey::make(int folder) const {
  const auto failed = [&](const char* step) {
    const int error = errno;
    return failed_call(std::string("it cannot ") + step, error,
                       "; name another folder with HINDSIGHT_KEY_DIR");
  };
  const FileSizeGuard guard;
  Key key;
  uint64_t number = 0;
  if (!fill_with_random_bytes(key) ||
      !fill_with_random_bytes({reinterpret_cast<uint8_t*>(&number), sizeof number}))
    return failed("be drawn");
  const std::string name(kFileName);
  const std::string temporary = fmt::format("{}.{:016x}.tmp", name, number);
  const Descriptor file(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0));
  if (!file) return failed("be created");
  std::string text = std::string(kFileStart) + std::string(kKeyVersion);
  for (const uint8_t byte : key) text += fmt::format("{:02x}", byte);
  text += '\n';
  // Synced, once for all time: a key that a power failure tears would take all that is kept with it.
  bool placed =
      write_all(file.get(), text) && ::fchmod(file.get(), kKeyFileMode) == 0 && ::fsync(file.get()) == 0;
  sodium_memzero(text.data(), text.size());
  sodium_memzero(key.data(), key.size());
  if (placed && ::linkat(folder, temporary.c_str(), folder, name.c_str(), 0) != 0 && errno != EEXIST) {
    // Not all file systems have hard links.
    placed = ::renameat2(folder, temporary.c_str(), folder, name.c_str(), RENAME_NOREPLACE) == 0 ||
             errno == EEXIST;
  }
  const int error = errno;
  // Where it was renamed there is nothing left to remove; what is left over otherwise harms nobody.
  if (::unlinkat(folder, temporary.c_str(), 0) != 0 && errno != ENOENT)
    count_system_failure(SystemFailure::kKeptFiles, errno);
  errno = error;
  if (!placed) return failed("be written");
  return {};
}

}  // namespace hindsight::rt
