// limited [no-perf] [no-timers] [address-space=KIB] [file-size=KIB] -- PROGRAM ARGUMENTS. Runs a program where
// perf_event_open says EPERM and timers are used up, as containers do, and under the limits of ulimit -v and -f.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>

int main(int argc, char** argv) {
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view option(argv[i]);
    if (option == "no-perf") {
      sock_filter filter[] = {
          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      };
      const sock_fprog program{.len = std::size(filter), .filter = filter};
      if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        std::perror("seccomp");
        return 125;
      }
    } else if (option == "no-timers") {
      const rlimit none{0, 0};
      if (setrlimit(RLIMIT_SIGPENDING, &none) != 0) {
        std::perror("setrlimit");
        return 125;
      }
    } else if (const bool space = option.starts_with("address-space=");
               space || option.starts_with("file-size=")) {
      const rlim_t bytes = std::strtoull(option.data() + option.find('=') + 1, nullptr, 10) * 1024;
      const rlimit limit{bytes, bytes};
      if (setrlimit(space ? RLIMIT_AS : RLIMIT_FSIZE, &limit) != 0) {
        std::perror("setrlimit");
        return 125;
      }
    } else {
      std::fprintf(stderr, "unknown limit %s\n", argv[i]);
      return 125;
    }
  }
  if (i + 1 >= argc) return 125;
  execv(argv[i + 1], argv + i + 1);
  std::perror(argv[i + 1]);
  return 125;
}
