// Machines that forbid, made real in a process of its own: filters and limits cannot be taken back. What a
// guest sees of it is tested in tests/runtime/engine.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "feedback/lwp/info.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/pmu/counters.h"
#include "feedback/pmu/perf_event.h"
#include "tests/feedback/lwp/units/busy_loop.h"
#include "tests/forbidding.h"
#include "tests/patience.h"
#include "tests/sanitizers.h"

namespace hindsight::lwp {
namespace {

// Runs `body` in a forked process; it returns what went wrong, empty for nothing. "skip: ..." skips.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const std::string text = body();
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status)) + " " + text;
  return text;
}

#define EXPECT_IN_CHILD(...)                                        \
  do {                                                              \
    const std::string said = in_child(__VA_ARGS__);                 \
    if (said.starts_with("skip: ")) GTEST_SKIP() << said.substr(6); \
    EXPECT_EQ(said, "");                                            \
  } while (false)

const UnitProbe* probe(const Selection& selection, std::string_view name) {
  for (const UnitProbe& p : selection.probes) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

CodeRange busy_range() {
  return {reinterpret_cast<uint64_t>(hindsight_test_busy_loop_begin),
          reinterpret_cast<uint64_t>(hindsight_test_busy_loop_end)};
}

// Attaches a unit of the selection to this thread and samples its busy loop. Empty if that worked, and by
// the unit named `expected`.
std::string samples(const Selection& selection, std::string_view expected) {
  auto unit = selection.factory->create({.frequency_hz = 2000, .guest_code = busy_range()});
  if (!unit) return "create: " + unit.error().message;
  if (Status status = (*unit)->attach(); !status) return "attach: " + status.error().message;
  if ((*unit)->name() != expected) return "attached to " + std::string((*unit)->name());
  Batch batch;
  const Patience patience;
  while (batch.samples.size() < 5) {
    if (!patience.lasts()) return "no samples came";
    hindsight_test_busy_loop(50'000);
    (*unit)->drain(batch);
  }
  (*unit)->detach();
  return {};
}

// Where perf is refused with `error` the timer samples, and the reason names the errno.
std::string timer_instead(unsigned error, std::string_view name) {
  if (!forbid_perf(error)) return "cannot install a filter";
  const auto selection = select_unit("auto");
  if (!selection) return selection.error().describe();
  for (const char* refused : {"clock/perf", "hardware"}) {
    const UnitProbe* p = probe(*selection, refused);
    if (p->available) return std::string(refused) + " is available";
    // The hardware's own gaps come first where the processor has them; the clock has none.
    if (p->name == "clock/perf" && p->reason.find(name) == std::string::npos) return p->reason;
  }
  const UnitProbe* timer = probe(*selection, "clock/timer");
  if (!timer->available) return "skip: " + timer->reason;
  if (!timer->selected) return "the timer was not chosen";
  return samples(*selection, "clock/timer");
}

TEST(Refusals, ForbiddenPerfLeavesTheTimerAndTheReasonNamesTheErrno) {
  EXPECT_IN_CHILD([] { return timer_instead(EPERM, "EPERM"); });
  EXPECT_IN_CHILD([] { return timer_instead(EACCES, "EACCES"); });
}

TEST(Refusals, APerfThatAFilterHidesLeavesTheTimerToo) {
  EXPECT_IN_CHILD([] { return timer_instead(ENOSYS, "ENOSYS"); });
}

TEST(Refusals, APerfThatIsForbiddenAfterTheChoiceIsReplacedAtAttach) {
  EXPECT_IN_CHILD([]() -> std::string {
    const auto selection = select_unit("auto");
    if (!selection) return selection.error().describe();
    if (!probe(*selection, "clock/perf")->selected) return "skip: clock/perf is not this machine's choice";
    if (!forbid_perf(EPERM)) return "cannot install a filter";
    return samples(*selection, "clock/timer");
  });
}

TEST(Refusals, WithoutPerfAndTimersTheUnitThatOnlyCountsIsTakenAndBothReasonsAreThere) {
  EXPECT_IN_CHILD([]() -> std::string {
    if (!forbid_perf(EPERM) || !forbid_timers()) return "cannot forbid";
    const auto selection = select_unit("auto");
    if (!selection) return selection.error().describe();
    if (selection->factory->name() != "null") return std::string(selection->factory->name());
    if (probe(*selection, "clock/perf")->reason.find("EPERM") == std::string::npos) return "no EPERM";
    if (probe(*selection, "clock/timer")->reason.find("EAGAIN") == std::string::npos) return "no EAGAIN";
    auto unit = selection->factory->create({});
    if (!unit || !(*unit)->attach()) return "the null unit refuses";
    return {};
  });
}

TEST(Refusals, EveryCounterSaysThatItIsForbidden) {
  EXPECT_IN_CHILD([]() -> std::string {
    if (!forbid_perf(EPERM)) return "cannot install a filter";
    const pmu::PmuCounters counters = pmu::PmuCounters::open();
    for (const pmu::CounterAvailability& c : counters.availability()) {
      if (c.available) return std::string(to_string(c.counter)) + " is available";
      if (!c.reason.starts_with("EPERM: ")) return c.reason;
    }
    const auto i = info();
    if (!i) return i.error().describe();
    if (to_text(*i).find("EPERM") == std::string::npos) return to_text(*i);
    return {};
  });
}

// The real sysctl, which only root could change: without CAP_PERFMON, 2 forbids whatever happens in the
// kernel.
TEST(Refusals, ParanoiaForbidsKernelEventsToOrdinaryUsersAndTheReasonSaysSo) {
  EXPECT_IN_CHILD([]() -> std::string {
    const auto paranoid = pmu::perf_event_paranoid();
    if (!paranoid || *paranoid < 2) return "skip: this kernel is not paranoid";
    if (geteuid() == 0 && setuid(65534) != 0) return "skip: cannot become an ordinary user";
    const pmu::PmuCounters counters = pmu::PmuCounters::open();
    const pmu::CounterAvailability& switches =
        counters.availability()[static_cast<unsigned>(pmu::Counter::kContextSwitches)];
    if (switches.available) return "skip: this process may profile the kernel";
    if (!switches.reason.starts_with("EACCES: kernel.perf_event_paranoid is ")) return switches.reason;
    // Its own user-mode time it may sample, or with the timer.
    const auto selection = select_unit("auto");
    if (!selection) return selection.error().describe();
    for (const UnitProbe& p : selection->probes) {
      if (p.selected && p.name.starts_with("clock/")) return samples(*selection, p.name);
    }
    return "skip: no clock for ordinary users here";
  });
}

// kernel.perf_event_mlock_kb is a budget for all rings of a user.
TEST(Refusals, WhenTheMemoryForRingsIsUsedUpTheTimerSamples) {
  EXPECT_IN_CHILD([]() -> std::string {
    if (geteuid() == 0 && setuid(65534) != 0) return "skip: cannot become an ordinary user";
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return "cannot limit";
    const auto perf = select_unit("clock/perf");
    if (!perf) return "skip: " + perf.error().message;
    const auto any = select_unit("clock");
    if (!any) return any.error().describe();
    const rlimit files{8192, 8192};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    std::vector<std::unique_ptr<Unit>> attached;
    std::string refusal;
    while (refusal.empty()) {
      auto unit = perf->factory->create({.ring = {.records = 2}});
      if (!unit) return unit.error().describe();
      const Status status = (*unit)->attach();
      if (!status) {
        refusal = status.error().message;
      } else if (attached.size() > 4000) {
        return "skip: this machine's budget for rings is too large";
      }
      attached.push_back(std::move(*unit));
    }
    if (refusal.find("EMFILE") != std::string::npos) return "skip: descriptors ran out first";
    if (refusal.find("perf_event_mlock_kb") == std::string::npos) return refusal;
    auto unit = any->factory->create({});
    if (!unit) return unit.error().describe();
    if (Status status = (*unit)->attach(); !status) return status.error().message;
    return (*unit)->name() == "clock/timer" ? "" : std::string((*unit)->name());
  });
}

TEST(Refusals, WithoutMemoryForARingThereIsAnErrorAndNoUnit) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "the sanitizer needs the address space";
  EXPECT_IN_CHILD([]() -> std::string {
    const auto selection = select_unit("auto");
    if (!selection) return selection.error().describe();
    const rlimit little{256u << 20, 256u << 20};
    if (setrlimit(RLIMIT_AS, &little) != 0) return "cannot limit";
    const auto unit = selection->factory->create({.ring = {.records = (1u << 28) / kRecordSize - 1}});
    if (unit) return "a unit with a ring of 256 MiB";
    if (unit.error().kind != ErrorKind::kResource) return unit.error().describe();
    return unit.error().message.find("no memory") == std::string::npos ? unit.error().message : "";
  });
}

}  // namespace
}  // namespace hindsight::lwp
