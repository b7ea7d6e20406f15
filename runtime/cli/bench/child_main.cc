// The child's side: one engine, one guest, one clock around both.
#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cli/bench/child.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/messages.h"

namespace hindsight::cli {
namespace {

// Keeps the guest's thread on the first allowed processor and every other thread of the process off it.
// Threads inherit the mask of the thread that starts them, and compile threads are started late. So a third
// thread, never pinned itself, puts newcomers right a few times a second.
class Pinning {
 public:
  Pinning() : guest_(::gettid()) {
    CPU_ZERO(&allowed_);
    if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0 || CPU_COUNT(&allowed_) < 2) return;
    int first = 0;
    while (!CPU_ISSET(first, &allowed_)) ++first;
    others_ = allowed_;
    CPU_CLR(first, &others_);
    thread_ = std::thread([this] { loop(); });
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~Pinning() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    do {
      std::error_code ended;
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ended)) {
        const pid_t id = static_cast<pid_t>(std::atoi(task.path().filename().c_str()));
        if (id != guest_) ::sched_setaffinity(id, sizeof others_, &others_);
      }
    } while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; }));
  }

  const pid_t guest_;
  cpu_set_t allowed_{}, others_{};
  std::mutex mutex_;  // protects done_
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// One instance of several, on a thread of its own.
struct Share {
  RunPlan plan;
  std::string output;
  std::optional<Result<Guest>> guest;
  double cpu_seconds = 0;
};

// Instances of one module, all at once. The first answer, if the others gave the same.
Result<GuestEnd> run_at_once(Engine& engine, std::vector<Share>& shares, double& cpu_seconds) {
  HINDSIGHT_ASSIGN(const std::shared_ptr<const Module> module,
                   load_module(engine, shares.front().plan.module_path));
  std::vector<std::thread> threads;
  for (Share& share : shares) {
    threads.emplace_back([&engine, &module, &share] {
      const double start = thread_cpu_seconds();
      share.guest = run_guest(engine, module, share.plan);
      share.cpu_seconds = thread_cpu_seconds() - start;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (!*shares[i].guest) return std::unexpected(shares[i].guest->error());
    const GuestEnd& end = (*shares[i].guest)->end;
    const GuestEnd& first = (*shares.front().guest)->end;
    if (shares[i].output != shares.front().output || end.exit_status != first.exit_status ||
        end.trap != first.trap)
      return make_error(ErrorKind::kInternal,
                        fmt::format("instance {} of {} answered other than the first", i + 1, shares.size()));
    cpu_seconds += shares[i].cpu_seconds;
  }
  return (*shares.front().guest)->end;
}

Result<RunPlan> plan_child(const BenchChildOptions& options, std::string* output) {
  RunOptions run;
  run.unit = options.unit;
  run.program = options.program;
  if (options.mode == "baseline") run.tier = "baseline";
  run.feedback = options.mode == "feedback" ? "on" : "off";
  HINDSIGHT_ASSIGN(RunPlan plan, plan_run(run));
  if (options.mode == "baseline") {
    plan.engine.profiling = false;  // a fixed tier needs none
  } else if (options.mode != "optimized" && options.mode != "feedback") {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is no mode", options.mode));
  }
  // The guest sees the same first argument wherever the file lies.
  plan.wasi.args.front() = std::filesystem::path(plan.module_path).filename().string();
  plan.wasi.stdin_text = "";
  plan.wasi.stdout_sink = [output](std::string_view text) {
    output->append(text.substr(0, std::min(text.size(), kMaxOutput - std::min(kMaxOutput, output->size()))));
  };
  return plan;
}

}  // namespace

int bench_child_command(const BenchChildOptions& options) {
  std::vector<Share> shares(options.instances);
  for (Share& share : shares) {
    auto plan = plan_child(options, &share.output);
    if (!plan) return fail(plan.error());
    share.plan = std::move(*plan);
  }
  std::optional<Pinning> pinning;
  if (options.pin) pinning.emplace();

  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = thread_cpu_seconds();
  auto engine = Engine::create(shares.front().plan.engine);
  if (!engine) return fail(engine.error());
  Result<GuestEnd> end;
  double cpu_seconds = 0;
  if (shares.size() > 1) {
    end = run_at_once(**engine, shares, cpu_seconds);
  } else if (auto guest = run_guest(**engine, shares.front().plan)) {
    end = std::move(guest->end);
  } else {
    end = std::unexpected(guest.error());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  cpu_seconds += thread_cpu_seconds() - cpu_start;
  if (!end) return fail(end.error());

  const FeedbackReport feedback = (*engine)->feedback_report();
  ChildResult result;
  result.seconds = seconds.count();
  result.cpu_seconds = cpu_seconds;
  result.exit_status = end->exit_status;
  result.output = std::move(shares.front().output);
  result.trap = end->trap;
  result.unit = feedback.unit;
  result.decisions = feedback.decisions.size();
  for (const auto& decision : feedback.decisions) {
    result.kept += decision.state == DecisionState::kKept ? 1 : 0;
    result.rolled_back += decision.state == DecisionState::kRolledBack ? 1 : 0;
  }
  result.late_seconds = feedback.late_seconds;
  result.late = feedback.late;
  std::string json = to_json(result);
  for (std::string_view rest = json; !rest.empty();) {
    const ssize_t written = ::write(options.descriptor, rest.data(), rest.size());
    if (written <= 0) return fail(Error{ErrorKind::kResource, "the result's pipe is closed", "", {}});
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return kOk;
}

}  // namespace hindsight::cli
