#include "runtime/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/report/guest_section.h"
#include "runtime/report/page.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

std::string share(uint64_t part, uint64_t whole) {
  if (whole == 0) return fmt::format("{} of 0", part);
  return fmt::format("{} of {} ({:.1f} %)", part, whole,
                     100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

const char* state_class(DecisionState state) {
  if (state == DecisionState::kKept) return "good";
  if (state == DecisionState::kRolledBack || state == DecisionState::kFailed) return "bad";
  return "plain";
}

std::string percent(double gain) {
  return gain == 0 ? "-" : fmt::format("{:+.1f} %", gain * 100);
}

std::string place(const DecisionReport& decision) {
  return decision.wasm_offset ? fmt::format("{} +0x{:x}", decision.function, *decision.wasm_offset)
                              : decision.function;
}

std::string records_section(const FeedbackReport& report) {
  const ProfilingCounts& c = report.counts;
  std::string out = "<h2>Records</h2>\n<div class=\"scroll\"><table>";
  const auto row = [&](const char* name, const std::string& value, const char* meaning) {
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"plain\">{}</td></tr>\n", name,
                       escape_html(value), meaning);
  };
  row("attributed samples", share(c.attributed, c.samples), "with a code version and a WebAssembly offset");
  row("outside the guest", share(c.outside_guest, c.samples),
      "in host functions, the runtime, libraries or the kernel");
  row("unattributed", share(c.unattributed, c.samples), "in guest code memory, but in no known version");
  row("stalls", share(c.stall_records, c.attributed), "samples that stand right after a load (LWP event 4)");
  row("stalls with address", share(c.stall_addresses, c.stall_records),
      "the load's data address was recovered");
  row("branch records", std::to_string(c.branch_records), "LWP event 3");
  row("instruction records", std::to_string(c.instruction_records),
      "LWP event 2, counted where records are handed out");
  row("value records", std::to_string(c.value_records), "LWP event 1, sampled by generated code");
  row("guest's records", std::to_string(c.guest_records), "LWP events 1 and 255 that the guest asked for");
  row("unattributed records", std::to_string(c.records_unattributed),
      "of all records: in code that is gone, or at no instruction of the guest");
  row("written", std::to_string(c.emitted), "written by the threads, the missed ones included");
  row("missed", std::to_string(c.missed), "the ring was full");
  row("lost", std::to_string(c.lost), "by the kernel");
  return out + "</table></div>\n";
}

std::string decisions_section(const FeedbackReport& report) {
  std::string out = "<h2>Decisions</h2>\n";
  if (report.decisions.empty())
    return out + "<p class=\"note\">None: nothing got hot enough for a decision.</p>\n";
  out +=
      "<div class=\"scroll\"><table><tr><th class=\"n\">at</th><th>kind</th><th>place</th><th>state</th><th "
      "class=\"n\">estimated</th><th class=\"n\">measured</th><th>reason and alternatives</th></tr>\n";
  for (const auto& d : report.decisions) {
    std::string alternatives;
    for (const auto& line : d.alternatives) alternatives += "<li>" + escape_html(line) + "</li>";
    if (!alternatives.empty()) alternatives = "<ul>" + alternatives + "</ul>";
    if (!d.outcome.empty()) alternatives += "<div>Outcome: " + escape_html(d.outcome) + "</div>";
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"name\">{}</td><td><span class=\"tag "
        "{}\">{}</span></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}{}</td></tr>\n",
        escape_html(seconds_text(d.seconds)), escape_html(d.kind), escape_html(place(d)),
        state_class(d.state), escape_html(state_text(d.state, d.state_why)), percent(d.estimated_gain),
        percent(d.measured_gain), escape_html(d.reason), alternatives);
  }
  return out + "</table></div>\n";
}

// The report names functions only where something was decided about them.
std::string functions_section(const FeedbackReport& report) {
  struct Counts {
    uint64_t all = 0, kept = 0, rolled_back = 0;
    double best = 0;
  };
  std::map<std::string, Counts> functions;
  for (const auto& d : report.decisions) {
    Counts& counts = functions[d.function];
    ++counts.all;
    counts.kept += d.state == DecisionState::kKept ? 1 : 0;
    counts.rolled_back += d.state == DecisionState::kRolledBack ? 1 : 0;
    counts.best = std::max(counts.best, d.measured_gain);
  }
  if (functions.empty()) return {};
  std::string out =
      "<h2>Functions with decisions</h2>\n<div class=\"scroll\"><table><tr><th>function</th><th "
      "class=\"n\">decisions</th><th class=\"n\">kept</th><th class=\"n\">rolled back</th><th "
      "class=\"n\">best "
      "measured gain</th></tr>\n";
  for (const auto& [name, counts] : functions) {
    out += fmt::format(
        "<tr><td class=\"name\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        escape_html(name), counts.all, counts.kept, counts.rolled_back, percent(counts.best));
  }
  return out + "</table></div>\n";
}

std::string loads_section(const FeedbackReport& report) {
  if (report.loads.empty()) return {};
  std::string out =
      "<h2>Loads by stall samples</h2>\n<div class=\"scroll\"><table><tr><th>place</th><th "
      "class=\"n\">samples that stall on it</th><th class=\"n\">of the function's</th><th>data from "
      "(estimate)</th><th class=\"n\">loads timed</th><th class=\"n\">mean, ticks</th><th "
      "class=\"n\">from memory</th></tr>\n";
  for (const LoadReport& l : report.loads) {
    out += fmt::format(
        "<tr><td class=\"name\">{} at 0x{:x}</td><td class=\"n\">{:.0f}</td><td class=\"n\">{:.0f}</td>",
        escape_html(l.function), l.wasm_offset, l.stall_samples, l.function_samples);
    out += l.timed ? fmt::format(
                         "<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.0f}</td><td "
                         "class=\"n\">{:.0f} %</td></tr>\n",
                         escape_html(l.level), l.timed, l.mean_ticks, l.memory_share * 100)
                   : std::string("<td>not timed</td><td></td><td></td><td></td></tr>\n");
  }
  return out + "</table></div>\n";
}

std::string late_section(const FeedbackReport& report) {
  if (report.late.empty()) return {};
  std::string out = fmt::format(
      "<h2>Baseline code that was hot</h2>\n<p class=\"note\">{:.3f} s of CPU time in {} places after they "
      "were hot, by what each waited for; the worst of them:</p>\n",
      report.late_seconds, report.late_places);
  out += "<div class=\"scroll\"><table><tr><th>place</th><th class=\"n\">seconds</th>";
  for (const LatePart& part : kLateParts) out += fmt::format("<th class=\"n\">{}</th>", part.name);
  out += "<th>why</th></tr>\n";
  for (const LateReport& place : report.late) {
    out += fmt::format(
        "<tr><td class=\"name\">{} {}</td><td class=\"n\">{:.3f}</td>", escape_html(place.function),
        place.in_loop ? fmt::format("at 0x{:x}", place.wasm_offset) : "outside of its loops", place.seconds);
    for (const LatePart& part : kLateParts)
      out += place.*part.seconds > 0 ? fmt::format("<td class=\"n\">{:.3f}</td>", place.*part.seconds)
                                     : std::string("<td class=\"n\">-</td>");
    out += "<td>" + escape_html(place.why) + "</td></tr>\n";
  }
  return out + "</table></div>\n";
}

std::string branches_section(const FeedbackReport& report) {
  if (report.branches.empty()) return {};
  std::string out =
      "<h2>Branches by mispredictions seen</h2>\n<div class=\"scroll\"><table><tr><th>place</th><th "
      "class=\"n\">taken</th><th class=\"n\">of seen</th><th class=\"n\">mispredicted "
      "(estimate)</th><th class=\"n\">of judged</th><th class=\"n\">rate</th></tr>\n";
  for (const BranchReport& r : report.branches) {
    out += fmt::format(
        "<tr><td class=\"name\">{} at 0x{:x}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escape_html(r.function), r.wasm_offset, r.taken + r.sampled_taken, r.outcomes + r.sampled,
        r.mispredicted, r.judged,
        r.judged ? fmt::format("{:.1f} %",
                               100 * static_cast<double>(r.mispredicted) / static_cast<double>(r.judged))
                 : std::string("-"));
  }
  return out + "</table></div>\n";
}

std::string pmu_section(const FeedbackReport& report) {
  if (report.pmu.empty()) return {};
  std::string out =
      "<h2>Processor counts</h2>\n<div class=\"scroll\"><table><tr><th>event</th><th "
      "class=\"n\">count</th><th>remark</th></tr>\n";
  for (const auto& count : report.pmu) {
    const std::string remark =
        !count.available  ? count.why_not
        : count.scale < 1 ? fmt::format("scaled up: counted {:.0f} % of the time, the counter was shared",
                                        100 * count.scale)
                          : "";
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"plain\">{}</td></tr>\n",
                       escape_html(count.name), count.available ? fmt::format("{:.0f}", count.value) : "-",
                       escape_html(remark));
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string run_page(const RunSummary& run, const FeedbackReport& report) {
  uint64_t kept = 0, rolled_back = 0;
  for (const auto& d : report.decisions) {
    kept += d.state == DecisionState::kKept ? 1 : 0;
    rolled_back += d.state == DecisionState::kRolledBack ? 1 : 0;
  }
  std::string body = html_figures({
      {seconds_text(run.seconds), "wall time, compiling included"},
      {std::to_string(run.exit_status), "exit status"},
      {fmt::format("{} / {}", report.functions_optimized, report.functions_baseline),
       "functions optimized / compiled by the baseline tier"},
      {fmt::format("{} of {}", kept, report.decisions.size()), "decisions kept"},
      {std::to_string(rolled_back), "rolled back"},
      {seconds_text(report.baseline_compile_seconds), "baseline compile time"},
      {seconds_text(report.optimized_compile_seconds), "optimizer's compile time, in the background"},
      {fmt::format("{} / {}", report.versions_retired, report.versions_waiting),
       "code versions retired / waiting"},
  });
  if (!run.trap.empty()) body += "<h2>Trap</h2>\n<pre>" + escape_html(run.trap) + "</pre>\n";
  body += decisions_section(report) + functions_section(report) + late_section(report) +
          loads_section(report) + branches_section(report) + guest_section(report.guest, run.seconds) +
          records_section(report) + pmu_section(report);
  body += fmt::format("<footer>LWP unit: {}. {}</footer>",
                      escape_html(report.unit.empty() ? "none" : report.unit), escape_html(run.mode));
  std::string command = run.program;
  for (const auto& arg : run.args) command += " " + arg;
  return html_page("Hindsight run", command, body);
}

}  // namespace hindsight::report
