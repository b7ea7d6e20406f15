#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "runtime/cli/commands.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/messages.h"
#include "runtime/cli/values.h"
#include "runtime/report/run_page.h"

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
  file << report::run_page(summary, feedback) << std::flush;
  if (!file) return make_error(ErrorKind::kResource, "the report could not be written", plan.report);
  return {};
}

}  // namespace

int run_command(const RunOptions& options) {
  auto plan = plan_run(options);
  if (!plan) return fail(plan.error());
  if (options.verbosity > 0) plan->engine.log = stderr_sink();
  // Opened first: a long run must not end in "cannot write".
  std::ofstream report_file;
  if (!plan->report.empty()) {
    report_file.open(plan->report, std::ios::binary | std::ios::trunc);
    if (!report_file) {
      return fail(
          Error{ErrorKind::kUsage, "the report's file cannot be written; name another", plan->report, {}});
    }
  }

  const auto start = std::chrono::steady_clock::now();
  auto engine = Engine::create(plan->engine);
  if (!engine) return fail(engine.error());
  auto guest = run_guest(**engine, *plan);
  if (!guest) return fail(guest.error());
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
  if (!plan->report.empty()) {
    finish(write_report(*plan, options, end, seconds.count(), (*engine)->feedback_report(), report_file));
  }
  return status;
}

}  // namespace hindsight::cli
