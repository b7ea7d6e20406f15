// Problem: open a path below a directory without ever letting the kernel follow a link or a `..` on its own.
// Meanwhile other processes, or the guest through another descriptor, change the tree.
//
// Idea: keep the opened directories from the start to the present place on a stack. A name is opened with
// O_PATH|O_NOFOLLOW from the top and then looked at, so what was looked at is what is used. A link's target
// is put in front of the remaining components. `..` pops the stack instead of asking the kernel, which would
// answer with the place the directory has been moved to meanwhile.
//
// Invariants: every descriptor on the stack was reached from the one below by one plain name. The bottom is
// the directory we were given, and popping below it is refused. So the top always was beneath the bottom.
#include "runtime/wasi/path_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/wasi/path_resolver.h"

namespace hindsight::wasi {
namespace {

constexpr int kMaxExpansions = 40;  // as Linux

// Stands in the list of components for a slash at the end of a path; no name is empty.
constexpr std::string_view kTrailingSlash = "";

class Walk {
 public:
  Walk(int root, int flags, uint32_t mode, const OwnFiles* own)
      : root_(root), flags_(flags | O_CLOEXEC), mode_(mode), own_(own) {}

  Answer<OwnedFd> run(const std::string& path) {
    push_components(path);
    while (!pending_.empty()) {
      const std::string name = std::move(pending_.back());
      pending_.pop_back();
      if (name == "." || name == kTrailingSlash) continue;
      if (name == "..") {
        if (stack_.empty()) return std::unexpected(Errno::kNotcapable);
        stack_.pop_back();
        continue;
      }
      auto step = enter(name);
      if (!step) return std::unexpected(step.error());
      if (*step) return std::move(*step);
    }
    return open_present();
  }

 private:
  int top() const { return stack_.empty() ? root_ : stack_.back().get(); }

  // Puts a path in front of what is pending. A trailing slash becomes a component that means what `.` does:
  // the name before it must be a directory, and a link there is followed.
  void push_components(std::string_view path) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < path.size();) {
      const size_t slash = path.find('/', at);
      const size_t end = slash == std::string_view::npos ? path.size() : slash;
      if (end > at) parts.emplace_back(path.substr(at, end - at));
      at = end + 1;
    }
    if (path.ends_with('/')) parts.emplace_back(kTrailingSlash);
    pending_.insert(pending_.end(), std::make_move_iterator(parts.rbegin()),
                    std::make_move_iterator(parts.rend()));
  }

  // One plain name: a directory is entered, a link expanded, the last component opened. Then the descriptor
  // is the answer; an empty one means: go on.
  Answer<OwnedFd> enter(const std::string& name) {
    const bool last = pending_.empty();
    // No file can be made where a directory is named, whether or not there is one.
    if ((flags_ & O_CREAT) && pending_.size() == 1 && pending_.back() == kTrailingSlash)
      return std::unexpected(Errno::kIsdir);
    OwnedFd probe(::openat(top(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!probe) {
      if (errno == ENOENT && last && (flags_ & O_CREAT)) return open_last(name);
      return std::unexpected(last_errno());
    }
    struct stat status;
    if (::fstat(probe.get(), &status) != 0) return std::unexpected(last_errno());
    if (own_ && S_ISDIR(status.st_mode) && own_->is_own_folder(status))
      return std::unexpected(Errno::kNotcapable);
    if (S_ISLNK(status.st_mode)) return expand(name, std::move(probe), last);
    if (!last) {
      if (!S_ISDIR(status.st_mode)) return std::unexpected(Errno::kNotdir);
      stack_.push_back(std::move(probe));
      return OwnedFd();
    }
    if (flags_ & O_PATH) {
      if ((flags_ & O_DIRECTORY) && !S_ISDIR(status.st_mode)) return std::unexpected(Errno::kNotdir);
      return probe;
    }
    return open_last(name);
  }

  Answer<OwnedFd> expand(const std::string& name, OwnedFd link, bool last) {
    if (last && (flags_ & O_CREAT) && (flags_ & O_EXCL)) return std::unexpected(Errno::kExist);
    if (last && (flags_ & O_NOFOLLOW)) {
      if (flags_ & O_DIRECTORY) return std::unexpected(Errno::kNotdir);
      if (flags_ & O_PATH) return link;
      return std::unexpected(Errno::kLoop);
    }
    if (++expansions_ > kMaxExpansions) return std::unexpected(Errno::kLoop);
    auto target = read_link(link.get());
    if (!target) return std::unexpected(target.error());
    if (target->empty()) return std::unexpected(Errno::kNoent);
    if (target->front() == '/') return std::unexpected(Errno::kNotcapable);
    push_components(*target);
    return OwnedFd();
  }

  Answer<OwnedFd> open_last(const std::string& name) {
    OwnedFd opened(::openat(top(), name.c_str(), flags_ | O_NOFOLLOW, mode_));
    if (opened) return opened;
    // The name became a link since we looked: look again, at the price of one expansion.
    if (errno == ELOOP && !(flags_ & O_NOFOLLOW) && ++expansions_ <= kMaxExpansions) {
      pending_.push_back(name);
      return OwnedFd();
    }
    return std::unexpected(last_errno());
  }

  // The path ended in `.`, `..` or a slash: the directory we stand in is what is to be opened.
  Answer<OwnedFd> open_present() {
    if (flags_ & O_CREAT) return std::unexpected(flags_ & O_EXCL ? Errno::kExist : Errno::kIsdir);
    OwnedFd opened(::openat(top(), ".", flags_));
    if (!opened) return std::unexpected(last_errno());
    return opened;
  }

  const int root_;
  const int flags_;
  const uint32_t mode_;
  const OwnFiles* const own_;
  std::vector<OwnedFd> stack_;
  std::vector<std::string> pending_;  // next component last
  int expansions_ = 0;
};

}  // namespace

Answer<OwnedFd> open_by_walking(int directory, const std::string& path, int flags, uint32_t mode,
                                const OwnFiles* own) {
  return Walk(directory, flags, mode, own).run(path);
}

}  // namespace hindsight::wasi
