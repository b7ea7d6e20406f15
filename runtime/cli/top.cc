// `hindsight top`: the guest runs on this thread while another one shows, twice a second, what feedback sees.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/messages.h"
#include "runtime/cli/values.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

constexpr size_t kDecisionsShown = 16;
constexpr size_t kOutputLinesShown = 6;

std::string shortened(std::string text, size_t limit) {
  text = printable(text);
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit) + "...";
}

std::string share(uint64_t part, uint64_t whole) {
  return whole == 0 ? "0 of 0"
                    : fmt::format("{} of {} ({:.0f} %)", part, whole,
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string view(const std::string& program, double seconds, const FeedbackReport& now, uint64_t new_samples,
                 double new_seconds) {
  const ProfilingCounts& c = now.counts;
  std::map<DecisionState, size_t> states;
  for (const auto& d : now.decisions) ++states[d.state];
  std::string by_state;
  for (const auto& [state, count] : states)
    by_state += fmt::format("{}{} {}", by_state.empty() ? "" : ", ", count, to_string(state));

  std::string out = fmt::format("hindsight top - {}   {:.1f} s   unit {}\n", shortened(program, 60), seconds,
                                now.unit.empty() ? "none" : printable(now.unit));
  out += fmt::format("samples    {:.0f}/s, attributed {}, outside the guest {}, unattributed {}\n",
                     new_seconds > 0 ? static_cast<double>(new_samples) / new_seconds : 0.0,
                     share(c.attributed, c.samples), c.outside_guest, c.unattributed);
  out += fmt::format("stalls     {} attributed samples, with address {}; missed {}, lost {}\n",
                     share(c.stall_records, c.attributed), share(c.stall_addresses, c.stall_records),
                     c.missed, c.lost);
  out += fmt::format(
      "code       {} functions baseline ({}), {} optimized ({}), {} from the cache, retired {}\n",
      now.functions_baseline, report::seconds_text(now.baseline_compile_seconds), now.functions_optimized,
      report::seconds_text(now.optimized_compile_seconds), now.functions_cached, now.versions_retired);
  if (const uint64_t none = now.compiles_without_code.sum(); none != 0)
    out += fmt::format("           {} compiles without code, so {} functions stay in baseline code\n",
                       share(none, none + now.functions_optimized), now.functions_left_in_baseline);
  out += fmt::format("decisions  {}{}{}\n", now.decisions.size(), by_state.empty() ? "" : ": ", by_state);
  if (now.decisions.empty()) return out;
  report::TextTable table("rlllrrl");
  table.add({"at s", "kind", "place", "state", "estimated", "measured", "outcome"});
  const size_t first = now.decisions.size() - std::min(now.decisions.size(), kDecisionsShown);
  for (size_t k = first; k < now.decisions.size(); ++k) {
    const DecisionReport& d = now.decisions[k];
    const std::string place =
        d.wasm_offset ? fmt::format("{} +0x{:x}", d.function, *d.wasm_offset) : d.function;
    const auto gain = [](double value) {
      return value == 0 ? std::string("-") : fmt::format("{:+.1f} %", value * 100);
    };
    table.add({fmt::format("{:.2f}", d.seconds), printable(d.kind), shortened(place, 36),
               printable(state_text(d.state, d.state_why)), gain(d.estimated_gain), gain(d.measured_gain),
               shortened(d.outcome.empty() ? d.reason : d.outcome, 48)});
  }
  return out + "\n" + table.text();
}

// The guest's output while the terminal shows the view.
class HeldOutput {
 public:
  void add(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    text_ += text;
  }
  std::string last_lines() const {
    const std::scoped_lock lock(mutex_);
    size_t at = text_.size();
    for (size_t lines = 0; at > 0 && lines <= kOutputLinesShown; ++lines) {
      const size_t newline = text_.rfind('\n', at - 1);
      at = newline == std::string::npos ? 0 : newline;
    }
    return printable(std::string_view(text_).substr(at), true);
  }
  std::string take() {
    const std::scoped_lock lock(mutex_);
    return std::move(text_);
  }

 private:
  mutable std::mutex mutex_;  // protects text_: the guest's thread adds, the viewer's reads
  std::string text_;
};

class Viewer {
 public:
  Viewer(const Engine& engine, std::string program, const HeldOutput* held)
      : engine_(engine), program_(std::move(program)), held_(held), thread_([this] { loop(); }) {}
  ~Viewer() {
    {
      const std::scoped_lock lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
    show();  // the last state, complete
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; })) show();
  }

  void show() {
    const auto now = std::chrono::steady_clock::now();
    const FeedbackReport report = engine_.feedback_report();
    const std::chrono::duration<double> since_start = now - start_, since_last = now - last_time_;
    std::string text = view(program_, since_start.count(), report, report.counts.samples - last_samples_,
                            since_last.count());
    last_samples_ = report.counts.samples;
    last_time_ = now;
    if (held_ != nullptr) {
      const std::string output = held_->last_lines();
      if (!output.empty()) text += "\noutput:\n" + output;
      text = "\x1b[H\x1b[2J" + text;  // home, clear
    } else {
      text += "\n";
    }
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  const Engine& engine_;
  const std::string program_;
  const HeldOutput* const held_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_time_ = start_;
  uint64_t last_samples_ = 0;
  std::mutex mutex_;  // protects done_
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace

int top_command(const RunOptions& options) {
  auto plan = plan_run(options);
  if (!plan) return fail(plan.error());
  HeldOutput held;
  const bool screen = isatty(STDERR_FILENO) != 0;
  const bool hold = screen && isatty(STDOUT_FILENO) != 0;
  if (hold) {
    plan->wasi.stdout_sink = [&held](std::string_view text) { held.add(text); };
    plan->wasi.stderr_sink = plan->wasi.stdout_sink;
  }
  auto engine = Engine::create(plan->engine);
  if (!engine) return fail(engine.error());
  Result<Guest> guest = [&] {
    const Viewer viewer(**engine, plan->module_path, screen ? &held : nullptr);
    return run_guest(**engine, *plan);
  }();
  const std::string output = held.take();
  std::fwrite(output.data(), 1, output.size(), stdout);
  if (!guest) return fail(guest.error());
  for (const Value& value : guest->end.results) fmt::print("{}\n", value_text(value));
  if (!guest->end.trap.empty()) say(guest->end.trap);
  int status = guest->end.exit_status;
  if (!plan->profile_out.empty()) {
    if (const Status saved = (*engine)->save_profile(plan->profile_out); !saved) {
      const int failed = fail(saved.error());
      if (status == kOk) status = failed;
    }
  }
  return status;
}

}  // namespace hindsight::cli
