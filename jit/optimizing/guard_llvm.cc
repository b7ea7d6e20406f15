#include "jit/optimizing/guard_llvm.h"

#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>

#include <csetjmp>
#include <cstdio>
#include <mutex>

namespace hindsight::jit::optimizing {
namespace {

struct Wall {
  std::jmp_buf back;
  char reason[512] = {};
};
thread_local Wall* t_innermost_wall = nullptr;

void on_fatal_error(void*, const char* reason, bool) {
  Wall* wall = t_innermost_wall;
  // Without a wall this thread is not compiling for us: another user of the library owns the error.
  if (!wall) return;
  std::snprintf(wall->reason, sizeof wall->reason, "%s", reason);
  std::longjmp(wall->back, 1);
}

}  // namespace

Status initialize_llvm() {
  static std::once_flag once;
  static bool usable = false;
  std::call_once(once, [] {
    usable = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
    llvm::install_fatal_error_handler(on_fatal_error, nullptr);
  });
  if (!usable) return make_error(ErrorKind::kUnsupported, "LLVM has no back end for this processor");
  return {};
}

Status guarded_by_llvm_wall(const std::function<Status()>& work) {
  Wall wall;
  Wall* const outer = t_innermost_wall;
  t_innermost_wall = &wall;
  if (setjmp(wall.back) != 0) {
    Wall* const failed = t_innermost_wall;
    t_innermost_wall = outer;
    return make_error(ErrorKind::kInternal, std::string("LLVM gave up: ") + failed->reason);
  }
  Status status = work();
  t_innermost_wall = outer;
  return status;
}

}  // namespace hindsight::jit::optimizing
