// The HTML view of a benchmark: one bar a workload with its spread, then every figure that it comes
// from.
#include <fmt/format.h>

#include "runtime/report/bench_results.h"
#include "runtime/report/page.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

// Differences below this are within what a shared machine does by itself.
constexpr double kEven = 0.03;

std::string speedup_section(const BenchResults& results, const char* name, const char* heading) {
  std::vector<Bar> bars;
  for (const auto& workload : results.workloads) {
    const Speedup* speedup = workload.speedup(name);
    if (speedup == nullptr) continue;
    const Spread spread = spread_of(speedup->rounds);
    Bar bar;
    bar.label = workload.answers_ok ? workload.name : workload.name + " (wrong answers)";
    bar.group = workload.suite;
    bar.value = spread.median, bar.low = spread.min, bar.high = spread.max;
    bar.value_text = fmt::format("{:.2f}x", spread.median);
    bar.style = !workload.answers_ok || spread.median < 1 - kEven ? "loss"
                : spread.median > 1 + kEven                       ? "gain"
                                                                  : "even";
    bars.push_back(std::move(bar));
  }
  if (bars.empty()) return {};
  std::string out = fmt::format("<h2>{}</h2>\n", escape_html(heading));
  std::vector<Figure> figures;
  for (const auto& suite : summarize(results, name)) {
    figures.push_back({fmt::format("{:.2f}x", suite.geomean),
                       fmt::format("{}: geomean of {} ({:.2f}x to {:.2f}x)", suite.suite, suite.workloads,
                                   suite.lowest, suite.highest)});
  }
  return out + html_figures(figures) + "<p></p>" + html_bars(bars, 1.0);
}

std::string runs_table(const BenchResults& results) {
  std::string out =
      "<h2>All runs</h2>\n<div class=\"scroll\"><table><tr><th>workload</th><th>mode</th><th "
      "class=\"n\">median "
      "s</th><th class=\"n\">min s</th><th class=\"n\">max s</th><th>seconds by round</th><th>decisions "
      "kept</th><th>answers</th></tr>\n";
  for (const auto& workload : results.workloads) {
    bool first = true;
    for (const auto& runs : workload.modes) {
      const Spread spread = spread_of(runs.seconds);
      std::string rounds, kept;
      for (const double seconds : runs.seconds) rounds += fmt::format("{:.3f} ", seconds);
      for (const uint64_t count : runs.kept) kept += fmt::format("{} ", count);
      out += fmt::format(
          "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"n\">{:.3f}</td><td "
          "class=\"n\">{:.3f}</td><td "
          "class=\"n\">{:.3f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
          first ? escape_html(workload.name) : "", escape_html(runs.mode), spread.median, spread.min,
          spread.max, rounds, runs.mode == "feedback" ? kept : "",
          !first                ? ""
          : workload.answers_ok ? "<span class=\"tag good\">right</span>"
                                : "<span class=\"tag bad\">wrong</span>");
      first = false;
    }
    for (const auto& problem : workload.problems) {
      out += fmt::format("<tr><td></td><td colspan=\"7\" class=\"bad\">{}</td></tr>\n", escape_html(problem));
    }
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string to_html(const BenchResults& results) {
  const Machine& machine = results.machine;
  std::string body = html_figures({
      {std::to_string(results.workloads.size()), "workloads"},
      {std::to_string(results.rounds), "rounds, modes interleaved"},
      {results.answers_ok() ? "all right" : "WRONG", "answers, checked every run"},
      {machine.unit.empty() ? "none" : machine.unit, "LWP unit"},
      {std::to_string(machine.cores), "cores"},
      {seconds_text(results.total_seconds), "measuring"},
  });
  body += speedup_section(results, "feedback_vs_optimized", "Feedback against the optimizer alone");
  body += speedup_section(results, "optimized_vs_baseline", "The optimizer against baseline code");
  if (results.modes.size() == 2) {
    body += speedup_section(results, "feedback_vs_baseline", "Feedback against baseline code");
  }
  body += runs_table(results);
  body +=
      "<h2>How to read this</h2>\n<p class=\"note\">Each run is a fresh process. Its time is wall time from "
      "the start of the engine to the end of the guest, with loading and compiling. A speedup is the ratio "
      "of two runs of the same round. Bars show the median over the rounds, whiskers the lowest and the "
      "highest. Grey bars are within 3 % of even.</p>\n";
  body += fmt::format("<footer>Hindsight {} on {}, kernel {}, pages of {} bytes{}{}</footer>",
                      escape_html(machine.version), escape_html(machine.cpu), escape_html(machine.kernel),
                      machine.page_bytes, results.quick ? ", short inputs" : "",
                      results.pinned          ? ", guest thread pinned"
                      : results.instances > 1 ? fmt::format(", {} instances at once", results.instances)
                                              : "");
  return html_page("Hindsight benchmark", "Time per workload and mode, and what feedback changed", body);
}

}  // namespace hindsight::report
