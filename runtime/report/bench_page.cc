// The HTML view of a benchmark: one bar a workload with its spread, then every figure that it comes
// from.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/report/bench_results.h"
#include "runtime/report/page.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

// Differences below this are within what a shared machine does by itself.
constexpr double kEven = 0.03;

// "Feedback against plain": a comparison's name as a heading.
std::string heading_of(const std::string& comparison) {
  std::string words = comparison;
  if (const size_t cut = words.find("_vs_"); cut != std::string::npos) words.replace(cut, 4, " against ");
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

// What runs gave whose length was chosen: a line a workload, over what the run took without what is measured.
std::string lengths_section(const BenchResults& results) {
  const std::string name = headline(results);
  const size_t cut = name.find("_vs_");
  if (cut == std::string::npos) return {};
  std::vector<Line> lines;
  for (const auto& workload : results.workloads) {
    const Speedup* speedup = workload.speedup(name);
    const ModeRuns* slower = workload.mode(name.substr(cut + 4));
    if (workload.length_seconds == 0 || !workload.answers_ok || speedup == nullptr || slower == nullptr)
      continue;
    auto line = std::ranges::find(lines, workload.name, &Line::label);
    if (line == lines.end()) line = lines.insert(lines.end(), Line{workload.name, {}});
    const Spread spread = spread_of(speedup->rounds);
    line->points.push_back({spread_of(slower->seconds).median, spread.median, spread.min, spread.max});
  }
  if (lines.empty()) return {};
  for (Line& line : lines) std::ranges::sort(line.points, {}, &LinePoint::x);
  return fmt::format("<h2>{}, by the length of the run</h2>\n", escape_html(heading_of(name))) +
         html_lines(lines, 1.0, fmt::format("seconds that the run takes in mode {}", name.substr(cut + 4)),
                    "times as fast");
}

std::string split_section(const BenchResults& results) {
  if (results.split.empty()) return {};
  std::string out =
      "<h2>What each family of decisions adds</h2>\n<div class=\"scroll\"><table><tr><th>workload</th>"
      "<th>suite</th>";
  for (const SplitStep& step : results.split)
    out += fmt::format("<th class=\"n\">{}</th>", escape_html(step.label));
  out += "<th class=\"n\">together</th></tr>\n";
  for (const SplitRow& row : split_rows(results)) {
    out += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td>", escape_html(row.name),
                       row.suite.empty() ? "<b>geomean</b>" : escape_html(row.suite));
    for (const double factor : row.factors)
      out += fmt::format("<td class=\"n\">{}</td>", factor > 0 ? fmt::format("{:.2f}", factor) : "–");
    out += "</tr>\n";
  }
  return out +
         "</table></div>\n<p class=\"note\">A column is what it adds to those left of it: time before over "
         "time "
         "after, within each round, the median over the rounds. Medians need not multiply to the last "
         "column.</p>\n";
}

std::string speedup_section(const BenchResults& results, const std::string& name) {
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
  std::string out = fmt::format("<h2>{}</h2>\n", escape_html(heading_of(name)));
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
      "s</th><th class=\"n\">min s</th><th class=\"n\">max s</th><th class=\"n\">CPU s</th><th>seconds by "
      "round</th><th>decisions "
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
          "class=\"n\">{:.3f}</td><td class=\"n\">{:.3f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
          first ? escape_html(workload.name) : "", escape_html(runs.mode), spread.median, spread.min,
          spread.max, spread_of(runs.process_seconds).median, rounds, runs.mode == "feedback" ? kept : "",
          !first                ? ""
          : workload.answers_ok ? "<span class=\"tag good\">right</span>"
                                : "<span class=\"tag bad\">wrong</span>");
      first = false;
    }
    for (const auto& problem : workload.problems) {
      out += fmt::format("<tr><td></td><td colspan=\"8\" class=\"bad\">{}</td></tr>\n", escape_html(problem));
    }
  }
  return out + "</table></div>\n";
}

// What has bars: the comparison that people come for, what the optimizer gives, and what being watched costs. A gain that
// is split has bars for all of it, and runs of chosen lengths have their lines.
std::vector<std::string> headings(const BenchResults& results) {
  std::vector<std::string> out;
  const std::string first = headline(results);
  if (first.empty()) return out;
  out.push_back(first);
  if (!results.split.empty()) return out;
  for (const Comparison& pair : comparisons(results.modes, results.split)) {
    const bool compiler = pair.slower == "baseline" && (pair.faster == "plain" || pair.faster == "optimized");
    const bool decisions =
        pair.faster == "feedback" && pair.slower != "baseline" && pair.slower != "optimized";
    if (pair.name() != first && (compiler || decisions || pair.name() == "optimized_vs_plain"))
      out.push_back(pair.name());
  }
  return out;
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
  body += lengths_section(results);
  body += split_section(results);
  for (const std::string& name : headings(results)) body += speedup_section(results, name);
  body += runs_table(results);
  body +=
      "<h2>How to read this</h2>\n<p class=\"note\">Each run is a fresh process. Its time is wall time from "
      "the start of the engine to the end of the guest, with loading and compiling. A speedup is the ratio "
      "of two runs of the same round. Bars show the median over the rounds, whiskers the lowest and the "
      "highest. Grey bars are within 3 % of even. CPU s is the time of all threads of the process, those "
      "that "
      "compile and watch included.</p>\n";
  body += fmt::format("<footer>Hindsight {} on {}, kernel {}, pages of {} bytes{}{}</footer>",
                      escape_html(machine.version), escape_html(machine.cpu), escape_html(machine.kernel),
                      machine.page_bytes, results.quick ? ", short inputs" : "",
                      results.pinned          ? ", guest thread pinned"
                      : results.instances > 1 ? fmt::format(", {} instances at once", results.instances)
                                              : "");
  return html_page("Hindsight benchmark", "Time per workload and mode, and what feedback changed", body);
}

}  // namespace hindsight::report
