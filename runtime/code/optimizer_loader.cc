#include "runtime/code/optimizer_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace hindsight::rt {
namespace {

constexpr const char* kSoname = "libhindsight-optimizing.so";

std::filesystem::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_optimizer), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code ignored;
  auto path = std::filesystem::canonical(info.dli_fname, ignored);
  // A program's own name may be relative to where it was started.
  if (ignored) path = std::filesystem::canonical("/proc/self/exe", ignored);
  return path;
}

std::vector<std::string> places() {
  std::vector<std::string> places;
  const std::filesystem::path own = own_file();
  if (!own.empty()) {
    places.push_back(own.parent_path() / kSoname);
    places.push_back(own.parent_path().parent_path() / "lib" / kSoname);
  }
  if (const char* given = std::getenv("HINDSIGHT_OPTIMIZER"); given != nullptr && *given != '\0')
    places.push_back(given);
  places.push_back(kSoname);
  return places;
}

}  // namespace

std::string optimizer_file() {
  for (const std::string& place : places()) {
    std::error_code ignored;
    if (place.find('/') != std::string::npos && std::filesystem::is_regular_file(place, ignored))
      return place;
  }
  return {};
}

Result<std::unique_ptr<jit::Optimizer>> load_optimizer() {
  std::string tried;
  for (const std::string& place : places()) {
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      tried += std::string(tried.empty() ? "" : "; ") + dlerror();
      continue;
    }
    auto factory = reinterpret_cast<jit::OptimizerFactory>(dlsym(library, jit::kOptimizerFactoryName));
    if (factory == nullptr) {
      tried += (tried.empty() ? "" : "; ") + place + ": not an optimizing tier of Hindsight";
      continue;
    }
    std::unique_ptr<jit::Optimizer> optimizer(factory());
    if (optimizer == nullptr)
      return make_error(ErrorKind::kResource, "the optimizing tier cannot work on this machine", place);
    return optimizer;
  }
  return make_error(ErrorKind::kResource, "the optimizing tier cannot be opened: " + tried);
}

}  // namespace hindsight::rt
