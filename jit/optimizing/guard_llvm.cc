#include "jit/optimizing/guard_llvm.h"

#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/PrettyStackTrace.h>
#include <llvm/Support/TargetSelect.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace hindsight::jit::optimizing {
namespace {

struct Wall {
  std::jmp_buf back;
  char reason[512] = {};
  bool no_memory = false;
  bool in_llvm = false;
  // Given back where memory ends, so that there is some to say so with.
  void* reserve = nullptr;
};
constexpr size_t kReserveBytes = size_t{1} << 20;
thread_local Wall* t_innermost_wall = nullptr;

void on_fatal_error(void*, const char* reason, bool) {
  Wall* wall = t_innermost_wall;
  // Without a wall this thread is not compiling for us: another user of the library owns the error.
  if (!wall) return;
  std::snprintf(wall->reason, sizeof wall->reason, "%s", reason);
  std::longjmp(wall->back, 1);
}

[[noreturn]] void leave_without_memory(Wall* wall) {
  std::free(std::exchange(wall->reserve, nullptr));
  wall->no_memory = true;
  std::longjmp(wall->back, 1);
}

void on_bad_alloc(void*, const char*, bool) {
  Wall* wall = t_innermost_wall;
  if (wall) leave_without_memory(wall);
}

std::new_handler g_handler_before = nullptr;  // written once, before compiles

void on_new_without_memory() {
  Wall* wall = t_innermost_wall;
  if (wall && wall->in_llvm) leave_without_memory(wall);
  // As if there were none of ours.
  if (g_handler_before == nullptr) throw std::bad_alloc();
  g_handler_before();
}

}  // namespace

LlvmWork::LlvmWork() : before_(t_innermost_wall && t_innermost_wall->in_llvm) {
  if (t_innermost_wall) t_innermost_wall->in_llvm = true;
}
LlvmWork::~LlvmWork() {
  if (t_innermost_wall) t_innermost_wall->in_llvm = before_;
}

Status initialize_llvm() {
  static std::once_flag once;
  static bool usable = false;
  std::call_once(once, [] {
    usable = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
    llvm::install_fatal_error_handler(on_fatal_error, nullptr);
    llvm::install_bad_alloc_error_handler(on_bad_alloc, nullptr);
    g_handler_before = std::set_new_handler(on_new_without_memory);
  });
  if (!usable) return make_error(ErrorKind::kUnsupported, "LLVM has no back end for this processor");
  return {};
}

bool WayOut::run(const std::function<void()>& work) {
  // LLVM keeps a list of what it is doing, for its own words about a crash, on the stack.
  const void* const doing = llvm::SavePrettyStackState();
  if (setjmp(back_) != 0) {
    llvm::RestorePrettyStackState(doing);
    return false;
  }
  work();
  return true;
}

void WayOut::leave() {
  std::longjmp(back_, 1);
}

Status guarded_by_llvm_wall(const std::function<Status()>& work, bool& no_memory) {
  Wall wall;
  wall.reserve = std::malloc(kReserveBytes);
  Wall* const outer = t_innermost_wall;
  t_innermost_wall = &wall;
  if (setjmp(wall.back) != 0) {
    Wall* const failed = t_innermost_wall;
    t_innermost_wall = outer;
    std::free(failed->reserve);
    no_memory = failed->no_memory;
    if (no_memory) return make_error(ErrorKind::kResource, "abandoned: no memory was left to compile it");
    return make_error(ErrorKind::kInternal, std::string("LLVM gave up: ") + failed->reason);
  }
  // Exceptions (of memory, of the standard library's containers) leave by here as well.
  const struct Leaving {
    Wall& wall;
    Wall* outer;
    ~Leaving() {
      t_innermost_wall = outer;
      std::free(wall.reserve);
    }
  } leaving{wall, outer};
  return work();
}

}  // namespace hindsight::jit::optimizing
