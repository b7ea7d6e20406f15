// One test a file of the official suite and tier.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "tests/spec/overridden.h"
#include "tests/spec/script.h"
#include "tests/spec/wast_assembler.h"

namespace hindsight::spec {
namespace {

// A proposal's folder of the suite, and what wast2json must be told to read it.
struct Proposal {
  const char* folder;
  const char* flags;
};
constexpr Proposal kProposals[] = {
    {"extended-const", "--enable-extended-const"}, {"tail-call", "--enable-tail-call"},
    {"multi-memory", "--enable-multi-memory"},     {"memory64", "--enable-memory64"},
    {"relaxed-simd", "--enable-relaxed-simd"},     {"threads", "--enable-threads"},
    {"exception-handling", "--enable-exceptions"},
};

// The files of the language's third version that say something about what is supported, in a folder of their
// own. wast2json cannot read them (wast_assembler.h can).
constexpr Proposal kVersion3 = {"v3", nullptr};
constexpr const char* kVersion3Files[] = {
    "call_ref",   "return_call_ref", "br_on_null", "br_on_non_null", "ref_as_non_null",
    "local_init", "throw",           "throw_ref",  "try_table",
};

struct Case {
  std::filesystem::path wast;
  TierMode tier;
  bool guard_pages;
  bool model = false;                  // instrumented baseline code, watched by the model unit
  const Proposal* proposal = nullptr;  // null: the core suite
};

const char* name_of(const Case& c) {
  if (c.model) return c.guard_pages ? "model" : "model_explicit_bounds";
  if (!c.guard_pages)
    return c.tier == TierMode::kOptimized ? "optimized_explicit_bounds" : "baseline_explicit_bounds";
  return c.tier == TierMode::kBaseline ? "baseline" : c.tier == TierMode::kOptimized ? "optimized" : "auto";
}

// What the test's listing shows of its parameter.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.wast.filename().string() << ' ' << name_of(c);
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.wast.stem().string() + "_" + name_of(info.param);
  if (info.param.proposal != nullptr) name = std::string(info.param.proposal->folder) + "_" + name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

// Files of proposals are few: each in every way.
void add_all(const std::filesystem::path& wast, const Proposal& proposal, std::vector<Case>& cases) {
  for (TierMode tier : {TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto})
    cases.push_back({wast, tier, true, false, &proposal});
  cases.push_back({wast, TierMode::kBaseline, false, false, &proposal});
  cases.push_back({wast, TierMode::kOptimized, false, false, &proposal});
  cases.push_back({wast, TierMode::kBaseline, true, true, &proposal});
}

void add_proposals(const std::filesystem::path& suite, std::vector<Case>& cases) {
  for (const Proposal& proposal : kProposals) {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(suite / "proposals" / proposal.folder, ignored)) {
      if (entry.path().extension() != ".wast") continue;
      if (entry.path().filename() == "memory-multi.wast") continue;  // uses SIMD, which is refused
      add_all(entry.path(), proposal, cases);
    }
  }
  for (const std::string name : kVersion3Files) {
    const std::filesystem::path wast = suite / kVersion3.folder / (name + ".wast");
    if (std::filesystem::exists(wast)) add_all(wast, kVersion3, cases);
  }
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  const std::filesystem::path suite = HINDSIGHT_SPEC_TESTSUITE;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(suite, ignored)) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".wast")) continue;
    for (TierMode tier : {TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto})
      cases.push_back({entry.path(), tier, true});
    // The files in which bounds matter, with bounds checked in code.
    for (const char* subject : {"memory", "address", "load", "store", "data", "align", "bulk", "float_memory",
                                "simd_address", "simd_load", "simd_store"})
      if (file.starts_with(subject)) {
        cases.push_back({entry.path(), TierMode::kBaseline, false});
        break;
      }
    // The files that have accesses, branches, calls and traps in every shape, with code that reports them
    // all.
    for (const char* subject :
         {"address",   "block",        "br",         "bulk",  "call",        "data",          "endianness",
          "fac",       "float_memory", "func",       "if",    "labels",      "left-to-right", "load",
          "local",     "loop",         "memory",     "nop",   "return",      "select",        "stack",
          "store",     "switch",       "table_init", "traps", "unreachable", "unwind",        "simd_address",
          "simd_load", "simd_store",   "simd_lane"})
      if (file.starts_with(subject)) {
        cases.push_back({entry.path(), TierMode::kBaseline, true, true});
        if (file.starts_with("memory") || file.starts_with("address"))
          cases.push_back({entry.path(), TierMode::kBaseline, false, true});
        break;
      }
  }
  add_proposals(suite, cases);
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return std::tuple(a.wast, a.model, a.tier, a.guard_pages) <
           std::tuple(b.wast, b.model, b.tier, b.guard_pages);
  });
  return cases;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hindsight-spec-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class Spec : public testing::TestWithParam<Case> {
 protected:
  static void run(const std::filesystem::path& json);
  static void run_once(const std::filesystem::path& json, EngineConfig config, bool out_of_the_cache);
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Spec);

TEST_P(Spec, EveryAssertionOfTheFileHolds) {
  const TemporaryFolder folder;
  const auto json = folder.path() / "script.json";
  if (GetParam().proposal == &kVersion3) {
    ASSERT_EQ(assemble_script(GetParam().wast, json), "");
    return run(json);
  }
  if (std::string(HINDSIGHT_WAST2JSON).find("NOTFOUND") != std::string::npos)
    GTEST_SKIP() << "wast2json (package wabt) is not installed";
  if (const char* reason = unreadable_because(GetParam().wast.filename().string())) GTEST_SKIP() << reason;
  const std::string flags = GetParam().proposal != nullptr ? GetParam().proposal->flags : "";
  const std::string command = std::string(HINDSIGHT_WAST2JSON) + " " + flags + " '" +
                              GetParam().wast.string() + "' -o '" + json.string() + "' 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  run(json);
}

void Spec::run(const std::filesystem::path& json) {
  EngineConfig config;
  config.tier = GetParam().tier;
  config.profiling = GetParam().tier == TierMode::kAuto || GetParam().model;
  if (GetParam().model) config.unit = "model";
  config.guard_pages = GetParam().guard_pages;
  const bool cached = GetParam().tier == TierMode::kOptimized && GetParam().guard_pages;
  if (cached) config.code_cache_directory = json.parent_path() / "code";
  run_once(json, config, false);
  // Once more, with the code that the first engine kept and without the compiler.
  if (cached) run_once(json, config, true);
}

void Spec::run_once(const std::filesystem::path& json, EngineConfig config, bool out_of_the_cache) {
  config.log = [](LogLevel level, std::string_view topic, std::string_view line) {
    if (level == LogLevel::kWarning && topic == "cache") ADD_FAILURE() << line;
  };
  auto engine = Engine::create(config);
  ASSERT_TRUE(engine) << engine.error().describe();
  const Outcome outcome = run_script(**engine, json);
  if (!out_of_the_cache)
    for (const std::string& skipped : outcome.skipped) std::printf("skipped: %s\n", skipped.c_str());
  for (const std::string& failure : outcome.failures)
    ADD_FAILURE() << (out_of_the_cache ? "out of the cache: " : "") << failure;
  RecordProperty("assertions", static_cast<int>(outcome.passed));
  EXPECT_GT(outcome.passed, 0u);
  if (GetParam().model) {
    EXPECT_EQ((*engine)->model_report()->unknown, 0u);  // every word that the code wrote was understood
  }
  // A function that the optimizer refuses would silently be tested as baseline code.
  if (GetParam().tier == TierMode::kOptimized) {
    const FeedbackReport report = (*engine)->feedback_report();
    EXPECT_EQ(report.functions_baseline, 0u);
    if (out_of_the_cache) {
      EXPECT_EQ(report.functions_optimized, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Core, Spec, testing::ValuesIn(cases()), test_name);

TEST(SpecSuite, IsThere) {
  if (cases().empty())
    GTEST_SKIP() << "configure with -DHINDSIGHT_SPEC_TESTSUITE=<folder of the official tests> to run them";
}

}  // namespace
}  // namespace hindsight::spec
