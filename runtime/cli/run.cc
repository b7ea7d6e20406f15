#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/messages.h"
#include "runtime/cli/values.h"
#include "runtime/report/run_page.h"
#include "runtime/report/trace_writer.h"

namespace hindsight::cli {
namespace {

Status write_report(const RunPlan& plan, const RunOptions& options, const GuestEnd& end, double seconds,
                    const FeedbackReport& feedback, std::ofstream& file) {
  report::RunSummary summary;
  summary.program = plan.module_path;
  summary.args = plan.guest_args;
  summary.mode = fmt::format("tier {}, feedback {}", options.tier, options.feedback);
  summary.seconds = seconds;
  summary.exit_status = end.exit_status;
  summary.trap = end.trap;
  const std::string page = report::run_page(summary, feedback);
  errno = 0;
  file << page << std::flush;
  if (file) return {};
  return make_error(ErrorKind::kResource,
                    fmt::format("the report could not be written{}{}", errno == 0 ? "" : ": ",
                                errno == 0 ? "" : std::strerror(errno)),
                    plan.report);
}

// The run's trace, if one was asked for. Outlives the engine, which writes to it until it is gone.
class Trace {
 public:
  Status open(RunPlan& plan) {
    if (plan.trace.empty()) return {};
    HINDSIGHT_ASSIGN(const report::TraceFormat format, report::trace_format_of(plan.trace));
    path_ = plan.trace;
    file_.open(path_, std::ios::binary | std::ios::trunc);
    if (!file_)
      return make_error(ErrorKind::kUsage, "the trace's file cannot be written; name another", path_);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC here
    report::TraceHead head;
    head.program = plan.module_path;
    head.start_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
    writer_.emplace(file_, format, std::move(head), plan.trace_limit);
    plan.engine.on_record = [this](const LwpRecord& record) { writer_->add(record); };
    return {};
  }
  // Once the engine is gone.
  Status finish(const FeedbackReport& feedback) {
    if (!writer_) return {};
    const Status written = writer_->finish({.unit = feedback.unit,
                                            .emitted = feedback.counts.emitted,
                                            .missed = feedback.counts.missed,
                                            .lost = feedback.counts.lost});
    if (!written) return make_error(written.error().kind, written.error().message, path_);
    if (writer_->left_out() != 0) {
      say(fmt::format("the trace holds {} records; {} more are left out (--trace-limit)", writer_->written(),
                      writer_->left_out()));
    }
    return {};
  }

 private:
  std::string path_;
  std::ofstream file_;
  std::optional<report::TraceWriter> writer_;
};

}  // namespace

int run_command(const RunOptions& options) {
  auto plan = plan_run(options);
  if (!plan) return fail(plan.error());
  plan->engine.log = options.verbosity > 0 ? stderr_sink() : warning_sink();
  // Opened first: a long run must not end in "cannot write".
  std::ofstream report_file;
  if (!plan->report.empty()) {
    report_file.open(plan->report, std::ios::binary | std::ios::trunc);
    if (!report_file) {
      return fail(
          Error{ErrorKind::kUsage, "the report's file cannot be written; name another", plan->report, {}});
    }
  }

  Trace trace;
  if (const Status opened = trace.open(*plan); !opened) return fail(opened.error());

  const auto start = std::chrono::steady_clock::now();
  auto engine = Engine::create(plan->engine);
  if (!engine) return fail(engine.error());
  auto guest = run_guest(**engine, *plan);
  if (!guest) {
    const FeedbackReport feedback = (*engine)->feedback_report();
    engine->reset();
    (void)trace.finish(feedback);  // the guest's error is what there is to say
    return fail(guest.error());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const GuestEnd& end = guest->end;
  for (const Value& value : end.results) fmt::print("{}\n", value_text(value));
  std::fflush(stdout);
  if (!end.trap.empty()) say(end.trap);

  int status = end.exit_status;
  const auto finish = [&](const Status& written) {
    if (written) return;
    const int failed = fail(written.error());
    if (status == kOk) status = failed;
  };
  if (!plan->profile_out.empty()) finish((*engine)->save_profile(plan->profile_out));
  if (options.verbosity > 0) {
    const FeedbackReport feedback = (*engine)->feedback_report();
    const double least_share = options.verbosity > 1 ? 0 : 0.01;
    for (const std::string& line : feedback.pass_table(least_share))
      plan->engine.log(LogLevel::kInfo, "passes", line);
    if (const std::string line = feedback.late_text(); !line.empty())
      plan->engine.log(LogLevel::kInfo, "baseline", line);
  }
  if (!plan->report.empty() || !plan->trace.empty()) {
    const FeedbackReport feedback = (*engine)->feedback_report();
    if (!plan->report.empty())
      finish(write_report(*plan, options, end, seconds.count(), feedback, report_file));
    // The last records come while the engine goes.
    guest->instance.reset();
    guest->module.reset();
    engine->reset();
    finish(trace.finish(feedback));
  }
  return status;
}

}  // namespace hindsight::cli
