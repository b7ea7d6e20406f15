// Starts a program under the calling thread's trace. Internal to this room.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace hindsight::lwp {

// The file that `name` means: itself if it has a slash, else the first executable one in the folders of PATH.
// kUsage: there is none; kUnsupported: there is one, but not an executable file.
Result<std::string> find_program(const std::string& name);

// A process that is traced by the calling thread (PTRACE_SEIZE) and waits to become a program.
class Launch {
 public:
  // `ptrace_options`: of PTRACE_SETOPTIONS. kResource: no process, or ptrace is not permitted here.
  static Result<Launch> create(const std::vector<std::string>& command, long ptrace_options);
  Launch(Launch&& other) noexcept;
  Launch& operator=(Launch&&) = delete;
  ~Launch();  // a process that was not let go ends by itself

  pid_t pid() const { return pid_; }
  void go();

  // After the process has ended: why it never became the program; kUsage or kUnsupported.
  Status became_program() const;

 private:
  Launch() = default;

  std::string path_;
  pid_t pid_ = -1;
  int go_ = -1;       // written into to let it go
  int failure_ = -1;  // the errno of a failed exec comes out
};

}  // namespace hindsight::lwp
