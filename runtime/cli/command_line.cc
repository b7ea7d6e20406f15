#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"

namespace hindsight::cli {
namespace {

constexpr const char* kExitStatuses =
    "Exit status: the guest's own. After a trap 134, with its name and WebAssembly backtrace on stderr. 2 "
    "for "
    "wrong usage, 1 for a module that cannot be loaded.";

// CLI11 knows nothing of what follows the path of a module.
class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "emulate")
      return fmt::format("Usage: {} [OPTIONS] PROGRAM [ARGUMENTS...]\n", name);
    if (app->get_name() != "run" && app->get_name() != "top") return CLI::Formatter::make_usage(app, name);
    return fmt::format("Usage: {} [OPTIONS] MODULE [ARGUMENTS...]\n", name);
  }
};

// Everything from the first word that is no option of ours belongs to the guest, whatever it looks like.
void add_run_options(CLI::App* command, RunOptions& options) {
  command
      ->add_option("--invoke", options.invoke,
                   "Call this exported function with the arguments after the path, instead of _start")
      ->type_name("FUNCTION");
  command
      ->add_option("--dir", options.directories,
                   "Give the guest this directory, optionally under another name; repeatable")
      ->type_name("HOST[::GUEST]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("--env", options.environment, "Set a variable of the guest's environment; repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("--timeout", options.timeout, "Trap the guest after this time")
      ->type_name("SECONDS|500ms");
  command
      ->add_option("--max-memory", options.max_memory,
                   "Cap on the linear memories together, such as 64M or 2G; tables together, and exceptions, "
                   "may take as much again each")
      ->type_name("SIZE");
  command
      ->add_option("--limit", options.limits,
                   "Another cap: memory-bytes, table-bytes, table-elements (of each table), types, threads, "
                   "descriptors, exception-bytes, code-bytes; repeatable")
      ->type_name("NAME=NUMBER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("--feedback", options.feedback, "Decisions beyond hotness (default on)")
      ->type_name("on|off");
  command->add_option("--without", options.without, "Without this decision; repeatable")
      ->type_name(fmt::to_string(fmt::join(decision_names(), "|")))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("--unit", options.unit, "LWP unit (default auto)")
      ->type_name("auto|native|hardware|clock|clock-timer|model");
  command
      ->add_option("--model", options.model,
                   "With --unit model: changes to the modelled processor, such as l3=8M/16/50,memory=300; "
                   "first of them may be machine, the caches of this machine as measured")
      ->type_name("WORDS");
  command
      ->add_option(
          "--tier", options.tier,
          "Baseline code first and the optimizer for what is hot, or one of them alone (default auto)")
      ->type_name("auto|baseline|optimized");
  command
      ->add_option(
          "--optimize-only", options.optimize_only,
          "Functions of other indices stay in baseline code: to find one that the optimizer gets wrong")
      ->type_name("FIRST-LAST");
  command->add_option("--profile-in", options.profile_in, "Start from a saved profile")->type_name("FILE");
  command
      ->add_option("--profile-out", options.profile_out,
                   "Save the profile at the end (see `hindsight explain`)")
      ->type_name("FILE");
  options.code_cache = code_cache_of_environment();
  command
      ->add_option("--code-cache", options.code_cache,
                   "Keep optimized code in this folder, for the next start of the program (default "
                   "$HINDSIGHT_CODE_CACHE, else in the user's cache)")
      ->type_name("DIR");
  command->add_option("--code-cache-size", options.code_cache_size, "What the folder may hold (default 256M)")
      ->type_name("SIZE");
  command->add_flag("--no-code-cache", options.no_code_cache, "Neither keep code nor use what was kept");
  options.profile_directory = profile_directory_of_environment();
  command
      ->add_option(
          "--profile-dir", options.profile_directory,
          "Keep what was seen and decided in this folder, for the next start of the program (default "
          "$HINDSIGHT_PROFILE_DIR, else in the user's cache)")
      ->type_name("DIR");
  command->add_flag("--no-profile", options.no_profile, "Neither keep a profile nor use one that was kept");
  command->add_flag("--no-guard-pages", options.no_guard_pages,
                    "Explicit bounds checks instead of 8 GiB of reserved addresses");
  command->prefix_command();
  command->footer(std::string("Options after the module's path belong to the guest.\n") + kExitStatuses);
}

std::vector<std::string> between_commas(const std::string& list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool is_command(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == word; });
}

}  // namespace

int command_line(int argc, char** argv) {
  CLI::App app{"Hindsight: a WebAssembly runtime that watches its own running code and re-optimizes it.",
               "hindsight"};
  app.set_version_flag("--version", std::string("hindsight ") + version());
  app.formatter(std::make_shared<Formatter>());
  app.require_subcommand(1);
  app.footer("`hindsight COMMAND --help` shows a command's options.");

  RunOptions run;
  CLI::App* run_app = app.add_subcommand("run", "Run a WebAssembly program (.wasm or .wat)");
  add_run_options(run_app, run);
  run_app->add_option("--report", run.report, "Write a page about the run: records, decisions, outcomes")
      ->type_name("FILE.html");
  run_app
      ->add_option("--trace", run.trace,
                   "Write every LWP record: .json for Perfetto, .jsonl for `hindsight lwp records`, .lwp for "
                   "the bare records")
      ->type_name("FILE");
  run_app
      ->add_option("--trace-limit", run.trace_limit,
                   "Records written at most; the rest is counted (default 1000000)")
      ->type_name("N");
  run_app->add_flag("-v,--verbose", run.verbosity, "One line an event on stderr; -vv with details");

  CLI::App* top_app = app.add_subcommand("top", "Run a program and watch what feedback sees and decides");
  RunOptions top;
  add_run_options(top_app, top);

  BenchOptions bench;
  CLI::App* bench_app =
      app.add_subcommand("bench", "Measure workloads in several modes, interleaved, with answers checked");
  bench_app
      ->add_option("what", bench.selection,
                   "Suites, workloads or .wasm files; nothing: all bundled workloads")
      ->type_name("SUITE|NAME|FILE");
  CLI::Option* const split = bench_app->add_flag(
      "--split", bench.split,
      "Modes in which one family of decisions after the other is added, and what each adds to the gain");
  // Split here: a list option of the library would take the following positional arguments too.
  bench_app
      ->add_option_function<std::string>(
          "--modes", [&bench](const std::string& list) { bench.modes = between_commas(list); },
          "Any of baseline, plain, optimized, feedback, families of decisions joined by '+', and "
          "feedback-NAME "
          "without one; separated by commas (default baseline,plain,feedback)")
      ->type_name("MODE,MODE")
      ->excludes(split);
  bench_app->add_option("--without", bench.without, "Without this decision in every mode; repeatable")
      ->type_name(fmt::to_string(fmt::join(decision_names(), "|")))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  bench_app->add_option("--runs", bench.runs, "Rounds (default 5; 3 with --quick)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  CLI::Option* const quick = bench_app->add_flag("--quick", bench.quick, "Short inputs and three rounds");
  bench_app
      ->add_option_function<std::string>(
          "--lengths",
          [&bench](const std::string& list) {
            for (const std::string& word : between_commas(list)) {
              double seconds = 0;
              const char* const end = word.data() + word.size();
              const auto read = std::from_chars(word.data(), end, seconds);
              if (read.ec != std::errc() || read.ptr != end || !(seconds > 0) || seconds > 300)
                throw CLI::ValidationError("--lengths", "'" + word + "' is no length of 0 to 300 seconds");
              bench.lengths.push_back(seconds);
            }
          },
          "Lengths in seconds of mode plain: each workload is given as many repetitions as take so long")
      ->type_name("S,S")
      ->excludes(split)
      ->excludes(quick);
  bench_app->add_flag("--list", bench.list, "List the workloads and stop");
  CLI::Option* const pin = bench_app->add_flag(
      "--pin", bench.pin, "Keep the guest's thread on one processor and the others off it");
  bench_app
      ->add_option("--instances", bench.instances,
                   "Instances of the workload that run at once, a thread each, in one process (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->excludes(pin);
  bench_app->add_option("--json", bench.json, "Write all figures")->type_name("FILE");
  bench_app->add_option("--html", bench.html, "Write a page with bars")->type_name("FILE");
  bench_app->add_option("--unit", bench.unit, "LWP unit (default auto)")->type_name("UNIT");
  bench_app->add_option("--manifest", bench.manifest, "List of workloads, if not the bundled one")
      ->type_name("FILE");
  bench_app
      ->add_option("--time", bench.time,
                   "What is compared: wall time, or CPU time of the guest's thread where others use the "
                   "machine (default wall)")
      ->type_name("wall|cpu");
  bench_app->footer("Exit status: 0; 1 if any run gave a wrong answer; 2 for wrong usage.");

  std::string profile;
  CLI::App* explain_app =
      app.add_subcommand("explain", "Say what a saved profile leads to: decisions, reasons, alternatives");
  std::string profile_folder = profile_directory_of_environment();
  const auto add_profile = [](CLI::App* command, const char* name, std::string& path) {
    command
        ->add_option(name, path,
                     "A file of `hindsight run --profile-out`, or a module whose kept profile is meant")
        ->required()
        ->type_name("PROFILE|MODULE");
  };
  const auto add_folder = [&profile_folder](CLI::App* command) {
    command
        ->add_option("--profile-dir", profile_folder,
                     "Where profiles are kept (default $HINDSIGHT_PROFILE_DIR, else in the user's cache)")
        ->type_name("DIR");
  };
  add_profile(explain_app, "profile", profile);
  add_folder(explain_app);

  CLI::App* profile_app =
      app.add_subcommand("profile", "What runs have seen and decided: show, compare, put together, export");
  profile_app->require_subcommand(1);
  CLI::App* profile_show_app = profile_app->add_subcommand("show", "What a profile knows");
  add_profile(profile_show_app, "profile", profile);
  add_folder(profile_show_app);
  std::string profile_after;
  CLI::App* profile_diff_app =
      profile_app->add_subcommand("diff", "What a second profile decided and saw otherwise");
  add_profile(profile_diff_app, "before", profile);
  add_profile(profile_diff_app, "after", profile_after);
  add_folder(profile_diff_app);
  std::vector<std::string> profiles;
  std::string merged;
  CLI::App* profile_merge_app = profile_app->add_subcommand(
      "merge", "Put profiles together, as those of runs are: the first is the oldest and fades most");
  profile_merge_app->add_option("profiles", profiles, "Two or more")
      ->required()
      ->expected(2, 1000)
      ->type_name("PROFILE|MODULE");
  profile_merge_app->add_option("-o,--output", merged, "The profile to write")->required()->type_name("FILE");
  add_folder(profile_merge_app);
  ExportOptions exported;
  CLI::App* profile_export_app =
      profile_app->add_subcommand("export", "For other tools: pprof, LLVM, engines that read branch hints");
  add_profile(profile_export_app, "profile", exported.profile);
  profile_export_app
      ->add_option("--format", exported.format,
                   "pprof: gzipped, for `pprof`; llvm: a sample profile in text; branch-hints: a copy of the "
                   "module with section metadata.code.branch_hint (default pprof)")
      ->check(CLI::IsMember({"pprof", "llvm", "branch-hints"}))
      ->type_name("pprof|llvm|branch-hints");
  profile_export_app
      ->add_option("--module", exported.module, "The module that was profiled, if the profile is a file")
      ->type_name("MODULE");
  profile_export_app->add_option("-o,--output", exported.out, "The file to write; - for stdout")
      ->required()
      ->type_name("FILE");
  add_folder(profile_export_app);
  CLI::App* profile_list_app = profile_app->add_subcommand("list", "The profiles that are kept");
  add_folder(profile_list_app);
  CLI::App* profile_clear_app = profile_app->add_subcommand("clear", "Remove all of them");
  add_folder(profile_clear_app);

  std::string inspected;
  bool inspect_json = false;
  CLI::App* inspect_app = app.add_subcommand(
      "inspect", "Show a module's imports, exports, size and hash, and what its tools wrote about it");
  inspect_app->add_option("module", inspected, "A .wasm or .wat file")->required()->type_name("MODULE");
  inspect_app->add_flag("--json", inspect_json, "As JSON");

  std::string cache_folder = code_cache_of_environment();
  bool cache_json = false;
  CLI::App* cache_app = app.add_subcommand("cache", "The optimized code that is kept between runs");
  cache_app->require_subcommand(1);
  CLI::App* cache_info_app =
      cache_app->add_subcommand("info", "Which modules' code is kept, and what is not used and why");
  cache_info_app->add_flag("--json", cache_json, "As JSON");
  CLI::App* cache_clear_app = cache_app->add_subcommand("clear", "Remove all of it");
  for (CLI::App* command : {cache_info_app, cache_clear_app}) {
    command->add_option("--code-cache", cache_folder, "The folder (default as for `hindsight run`)")
        ->type_name("DIR");
  }

  bool lwp_json = false;
  CLI::App* lwp_app = app.add_subcommand("lwp", "Lightweight Profiling on this machine");
  lwp_app->require_subcommand(1);
  CLI::App* lwp_info_app =
      lwp_app->add_subcommand("info", "What this machine offers, which unit is used, and why not the others");
  lwp_info_app->add_flag("--json", lwp_json, "As JSON");
  bool calibrate = false;
  lwp_info_app->add_flag("--calibrate", calibrate,
                         "Measure cache and branch latencies again instead of reading them from the cache");

  RecordsOptions records;
  CLI::App* lwp_records_app =
      lwp_app->add_subcommand("records", "Show the LWP records of a trace or of a dump of 32-byte records");
  lwp_records_app
      ->add_option("file", records.path, "A file of `hindsight run --trace`, or bare records; - for stdin")
      ->required()
      ->type_name("FILE");
  lwp_records_app
      ->add_option(
          "--layout", records.layout,
          "Layout of bare records: the final specification's, or the 2007 proposal's (default final)")
      ->type_name("final|2007");
  lwp_records_app->add_option("--limit", records.limit, "Lines printed at most; the summary counts all")
      ->type_name("N");
  lwp_records_app->add_flag("--summary", records.summary, "Only how many records there are of which kind");

  EmulateOptions emulate;
  CLI::App* lwp_emulate_app = lwp_app->add_subcommand(
      "emulate", "Run a native program with the LWP instructions that this processor lacks");
  lwp_emulate_app->add_flag("-v,--summary", emulate.summary, "Say on stderr what was emulated");
  lwp_emulate_app->prefix_command();
  lwp_emulate_app->footer(
      "Options after the program belong to it. Threads and child processes are followed.\n"
      "Exit status: the program's, or 128+N after signal N. 127 if it is not found, 126 if it cannot be "
      "executed, 125 if tracing is forbidden here.");

  AccuracyOptions accuracy;
  CLI::App* lwp_accuracy_app = lwp_app->add_subcommand(
      "accuracy",
      "Compare the clock unit with the model unit: loads that stall, addresses, branches, hot functions");
  lwp_accuracy_app
      ->add_option("what", accuracy.selection,
                   "Suites, workloads or .wasm files; nothing: all bundled workloads")
      ->type_name("SUITE|NAME|FILE");
  lwp_accuracy_app->add_flag("--quick", accuracy.quick, "Short inputs");
  lwp_accuracy_app->add_option("--hz", accuracy.hz, "Samples of the clock unit a second (default 1000)")
      ->type_name("N")
      ->check(CLI::Range(10, 10'000));
  lwp_accuracy_app->add_option("--runs", accuracy.runs, "Runs under the clock unit, put together (default 3)")
      ->check(CLI::Range(uint32_t{1}, uint32_t{100}));
  lwp_accuracy_app
      ->add_option("--model", accuracy.model,
                   "The modelled processor: machine, its caches as measured here (default); generic; changes "
                   "to either, such as machine,window=320 or l3=8M/16/50,memory=300")
      ->type_name("WORDS");
  lwp_accuracy_app
      ->add_option("--json", accuracy.json, "Write all figures, with both sides' share of every load")
      ->type_name("FILE");
  lwp_accuracy_app->add_option("--manifest", accuracy.manifest, "List of workloads, if not the bundled one")
      ->type_name("FILE");

  BenchChildOptions child;
  CLI::App* child_app = app.add_subcommand("bench-child", "")->group("");  // hidden: `bench` starts it
  child_app->add_option("--descriptor", child.descriptor)->required();
  child_app->add_option("--mode", child.mode)->required();
  child_app->add_option("--unit", child.unit);
  child_app->add_option("--without", child.without)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  child_app->add_flag("--pin", child.pin);
  child_app->add_option("--instances", child.instances)->check(CLI::Range(1, 64));
  child_app->prefix_command();

  // CLI11 would only say that a command is required.
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) {
    say(fmt::format("unknown command '{}'; `hindsight --help` lists the commands", printable_name(argv[1])));
    return kUsageError;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::string command = "hindsight";
    for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
    say(fmt::format("{}; `{} --help` shows what can be written", printable_line(error.what()), command));
    return kUsageError;
  }
  run.program = run_app->remaining();
  top.program = top_app->remaining();
  child.program = child_app->remaining();
  if (*run_app) return run_command(run);
  if (*top_app) return top_command(top);
  if (*bench_app) return bench_command(bench);
  if (*explain_app) return explain_command(profile, profile_folder);
  if (*profile_show_app) return profile_show_command(profile, profile_folder);
  if (*profile_diff_app) return profile_diff_command(profile, profile_after, profile_folder);
  if (*profile_merge_app) return profile_merge_command(profiles, merged, profile_folder);
  if (*profile_export_app) {
    exported.directory = profile_folder;
    return profile_export_command(exported);
  }
  if (*profile_list_app) return profile_list_command(profile_folder);
  if (*profile_clear_app) return profile_clear_command(profile_folder);
  if (*inspect_app) return inspect_command(inspected, inspect_json);
  if (*child_app) return bench_child_command(child);
  if (*cache_info_app) return cache_info_command(cache_folder, cache_json);
  if (*cache_clear_app) return cache_clear_command(cache_folder);
  if (*lwp_records_app) return lwp_records_command(records);
  if (*lwp_accuracy_app) return lwp_accuracy_command(accuracy);
  emulate.program = lwp_emulate_app->remaining();
  if (*lwp_emulate_app) return lwp_emulate_command(emulate);
  return lwp_info_command(lwp_json, calibrate);
}

}  // namespace hindsight::cli
