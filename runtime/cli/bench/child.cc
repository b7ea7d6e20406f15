// The parent's side: start, feed nothing, read both pipes until they close, reap.
#include "runtime/cli/bench/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

extern char** environ;

#include "runtime/report/late_json.h"

namespace hindsight::cli {
namespace {

constexpr int kResultDescriptor = 3;
constexpr size_t kMaxMessage = 4096;

class Pipe {
 public:
  Pipe() { open_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool is_open() const { return open_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_end(size_t which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool open_ = false;
};

struct Collected {
  std::string result, message;
  bool timed_out = false;
};

// Reads both pipes until the child has closed them or the limit has passed.
Collected collect(Pipe& result, Pipe& message, std::chrono::steady_clock::time_point end) {
  Collected out;
  std::array<pollfd, 2> wait{{{result.read_end(), POLLIN, 0}, {message.read_end(), POLLIN, 0}}};
  std::array<char, 16384> chunk{};
  while (wait[0].fd >= 0 || wait[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      out.timed_out = true;
      return out;
    }
    const int ready = ::poll(wait.data(), wait.size(), static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR) return out;
    if (ready <= 0) continue;
    for (size_t k = 0; k < wait.size(); ++k) {
      if (wait[k].fd < 0 || wait[k].revents == 0) continue;
      const ssize_t got = ::read(wait[k].fd, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        wait[k].fd = -1;
        continue;
      }
      std::string& target = k == 0 ? out.result : out.message;
      target.append(chunk.data(), static_cast<size_t>(got));
      // The end of stderr says why it died.
      if (k == 1 && target.size() > 2 * kMaxMessage) target.erase(0, target.size() - kMaxMessage);
    }
  }
  return out;
}

}  // namespace

std::string to_json(const ChildResult& result) {
  nlohmann::json late = nlohmann::json::array();
  for (const LateReport& place : result.late) late.push_back(nlohmann::json(report::late_json(place)));
  const nlohmann::json all{{"seconds", result.seconds},
                           {"cpu_seconds", result.cpu_seconds},
                           {"exit_status", result.exit_status},
                           {"output", result.output},
                           {"trap", result.trap},
                           {"unit", result.unit},
                           {"decisions", result.decisions},
                           {"kept", result.kept},
                           {"rolled_back", result.rolled_back},
                           {"late_seconds", result.late_seconds},
                           {"late", std::move(late)}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<ChildResult> parse_child_result(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto number = [&](const char* key) { return json.contains(key) && json[key].is_number(); };
  const auto string = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !number("seconds") || !number("cpu_seconds") || !number("exit_status") ||
      !number("decisions") || !number("kept") || !number("rolled_back") || !string("output") ||
      !string("trap") || !string("unit") || !number("late_seconds") || !json.contains("late") ||
      !json["late"].is_array()) {
    return make_error(ErrorKind::kInternal, "the measuring process sent no usable result");
  }
  ChildResult result;
  result.seconds = json["seconds"];
  result.cpu_seconds = json["cpu_seconds"];
  result.exit_status = json["exit_status"];
  result.output = json["output"];
  result.trap = json["trap"];
  result.unit = json["unit"];
  result.decisions = json["decisions"];
  result.kept = json["kept"];
  result.rolled_back = json["rolled_back"];
  result.late_seconds = json["late_seconds"];
  for (const auto& place : json["late"]) {
    LateReport& late = result.late.emplace_back();
    if (!report::read_late_json(place, late))
      return make_error(ErrorKind::kInternal, "the measuring process sent a place that is none");
  }
  return result;
}

Result<ChildResult> run_in_child(const ChildRun& run) {
  Pipe result, message;
  if (!result.is_open() || !message.is_open()) {
    return make_error(ErrorKind::kResource, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  std::vector<std::string> words{
      "hindsight", "bench-child", "--descriptor", std::to_string(kResultDescriptor),
      "--mode",    run.mode,      "--unit",       run.unit};
  if (run.pin) words.push_back("--pin");
  if (run.instances != 1) {
    words.push_back("--instances");
    words.push_back(std::to_string(run.instances));
  }
  words.push_back(run.wasm);
  words.push_back("--");
  words.insert(words.end(), run.args.begin(), run.args.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, message.write_end(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, result.write_end(), kResultDescriptor);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return make_error(ErrorKind::kResource, fmt::format("no process for a run: {}", std::strerror(failed)));
  }
  result.close_end(1);
  message.close_end(1);
  const Collected collected = collect(result, message, std::chrono::steady_clock::now() + run.limit);
  if (collected.timed_out) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string said = collected.message;
  while (said.ends_with('\n')) said.pop_back();
  if (collected.timed_out) {
    return make_error(ErrorKind::kResource,
                      fmt::format("killed after {} s without an end", run.limit.count()));
  }
  if (WIFSIGNALED(status)) {
    return make_error(ErrorKind::kInternal,
                      fmt::format("the measuring process died of signal {} ({}){}{}", WTERMSIG(status),
                                  strsignal(WTERMSIG(status)), said.empty() ? "" : ": ", said));
  }
  if (WEXITSTATUS(status) != 0) {
    return make_error(
        ErrorKind::kResource,
        said.empty() ? fmt::format("the measuring process ended with status {}", WEXITSTATUS(status)) : said);
  }
  return parse_child_result(collected.result);
}

}  // namespace hindsight::cli
