#include "runtime/code/machine_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace hindsight::rt {

std::string file_identity(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0) return {};
  return fmt::format("{}:{} {} {}.{}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::string machine_identity(const std::string& optimizer, const std::string& llvm) {
  if (optimizer.empty() || llvm.empty()) return {};
  return fmt::format("{}; optimizer {}; LLVM {}", processor_identity(), optimizer, llvm);
}

}  // namespace hindsight::rt
