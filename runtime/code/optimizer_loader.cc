#include "runtime/code/optimizer_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/code/exit_gate.h"

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

Status refusal() {
  return make_error(ErrorKind::kResource, "abandoned: the process is ending");
}

// The tier as whoever compiles sees it: inside the gate while it works, and not at all once the process ends.
class OptimizerUntilExit final : public jit::Optimizer {
 public:
  explicit OptimizerUntilExit(std::unique_ptr<jit::Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}
  ~OptimizerUntilExit() override {
    const ExitGate::Inside inside;
    // What it would let go of may be gone.
    if (!inside) (void)optimizer_.release();
    optimizer_.reset();
  }

  Result<jit::OptimizeResult> compile(const jit::OptimizeRequest& request, jit::CodeArena& arena) override {
    const ExitGate::Inside inside;
    if (inside) return optimizer_->compile(request, arena);
    if (request.no_code != nullptr) *request.no_code = jit::NoCode::kAbandoned;
    return std::unexpected(refusal().error());
  }
  std::vector<uint32_t> order_by_calls(const jit::CallGraph& graph) override {
    const ExitGate::Inside inside;
    if (inside) return optimizer_->order_by_calls(graph);
    std::vector<uint32_t> as_they_are(graph.functions.size());
    std::iota(as_they_are.begin(), as_they_are.end(), 0u);
    return as_they_are;
  }
  std::string description() const override {
    const ExitGate::Inside inside;
    return inside ? optimizer_->description() : std::string();
  }
  std::vector<std::string> files() const override {
    const ExitGate::Inside inside;
    return inside ? optimizer_->files() : std::vector<std::string>();
  }

 private:
  std::unique_ptr<jit::Optimizer> optimizer_;
};

// One opening at a time. Nobody forks with it: the openers are inside the fork gate (CodeServices::optimizer).
constinit std::mutex g_opening;
bool g_opened = false;  // under it

// As dlopen(). Null without anything in dlerror(): exit() has begun.
void* open_library(const std::string& place) {
  const std::lock_guard lock(g_opening);
  // Before: should exit() come now, the gate's handler is what it comes to first.
  if (!g_opened && !ExitGate::shut_at_exit()) return nullptr;
  void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return nullptr;
  if (!g_opened && !ExitGate::shut_at_exit()) return nullptr;
  g_opened = true;
  return library;
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
  const ExitGate::Inside inside;
  if (!inside) return std::unexpected(refusal().error());
  std::string tried;
  for (const std::string& place : places()) {
    void* library = open_library(place);
    if (library == nullptr) {
      const char* const why = dlerror();
      tried += std::string(tried.empty() ? "" : "; ") + (why != nullptr ? why : "the process is ending");
      continue;
    }
    auto factory = reinterpret_cast<jit::OptimizerFactory>(dlsym(library, jit::kOptimizerFactoryName));
    if (factory == nullptr) {
      tried += (tried.empty() ? "" : "; ") + place + ": not an optimizing tier of Hindsight";
      continue;
    }
    if (ExitGate::shut().load(std::memory_order_relaxed)) return std::unexpected(refusal().error());
    std::unique_ptr<jit::Optimizer> optimizer(factory());
    if (optimizer == nullptr)
      return make_error(ErrorKind::kResource, "the optimizing tier cannot work on this machine", place);
    return std::make_unique<OptimizerUntilExit>(std::move(optimizer));
  }
  return make_error(ErrorKind::kResource, "the optimizing tier cannot be opened: " + tried);
}

}  // namespace hindsight::rt
