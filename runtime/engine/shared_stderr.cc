// Some distributions' static asmjit is built for executables only: its one reference to external data, stderr
// in an assertion, cannot be linked into a shared library. The link wraps the symbol (see CMakeLists.txt), so
// that the reference finds this variable inside the library.
#include <cstdio>

extern "C" {
extern FILE* __real_stderr;
[[gnu::visibility("hidden")]] FILE* __wrap_stderr = nullptr;
}

namespace {
[[gnu::constructor]] void copy_stderr() {
  __wrap_stderr = __real_stderr;
}
}  // namespace
