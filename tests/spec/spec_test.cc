// One test a file of the official suite and tier.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "runtime/engine/engine_for_tests.h"
#include "tests/spec/overridden.h"
#include "tests/spec/script.h"

namespace hindsight::spec {
namespace {

struct Case {
  std::filesystem::path wast;
  TierMode tier;
  bool guard_pages;
  bool model = false;  // instrumented baseline code, watched by the model unit
  std::string
      part{};  // of the suites, for the name: a proposal, a folder; empty: the core suite of version 2
  bool draft = false;  // of a proposal's draft
  bool nests = false;  // loops of baseline code enter nests
};

const char* name_of(const Case& c) {
  if (c.model) return c.guard_pages ? "model" : "model_explicit_bounds";
  if (c.nests) return "nests";
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
  if (!info.param.part.empty()) name = info.param.part + "_" + name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

// The folder's files; those of folders in it, too, if `deep`. None if there is no such folder.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, bool deep) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  const auto add = [&](const std::filesystem::path& path) {
    if (path.extension() == ".wast") files.push_back(path);
  };
  if (deep)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
      add(entry.path());
  else
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) add(entry.path());
  return files;
}

// Files of proposals are few: each in every way.
void add_proposal(const std::filesystem::path& folder, const std::string& part, std::vector<Case>& cases) {
  for (const std::filesystem::path& wast : files_of(folder, false)) {
    const bool draft = part != "v3";
    for (TierMode tier : {TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto})
      cases.push_back({wast, tier, true, false, part, draft});
    cases.push_back({wast, TierMode::kBaseline, false, false, part, draft});
    cases.push_back({wast, TierMode::kOptimized, false, false, part, draft});
    cases.push_back({wast, TierMode::kBaseline, true, true, part, draft});
    cases.push_back({wast, TierMode::kOptimized, true, false, part, draft, true});
  }
}

bool begins_with_one_of(const std::string& file, std::initializer_list<const char*> subjects) {
  return std::ranges::any_of(subjects, [&](const char* subject) { return file.starts_with(subject); });
}

void add_core(const std::filesystem::path& wast, const std::string& part, std::vector<Case>& cases) {
  const std::string file = wast.filename();
  for (TierMode tier : {TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto})
    cases.push_back({wast, tier, true, false, part});
  // The files in which bounds matter, with bounds checked in code.
  if (begins_with_one_of(file, {"memory", "address", "load", "store", "data", "align", "bulk", "float_memory",
                                "simd_address", "simd_load", "simd_store"}))
    cases.push_back({wast, TierMode::kBaseline, false, false, part});
  // The files that have loops of more than one kind.
  if (begins_with_one_of(
          file, {"block", "br", "fac", "if", "labels", "loop", "memory_grow", "nop", "return", "select",
                 "stack", "switch", "table", "throw", "try", "unreachable", "unwind"}))
    cases.push_back({wast, TierMode::kOptimized, true, false, part, false, true});
  // The files that have accesses, branches, calls and traps in every shape, with code that reports them all.
  if (begins_with_one_of(
          file,
          {"address",   "block",        "br",         "bulk",  "call",        "data",          "endianness",
           "fac",       "float_memory", "func",       "if",    "labels",      "left-to-right", "load",
           "local",     "loop",         "memory",     "nop",   "return",      "select",        "stack",
           "store",     "switch",       "table_init", "traps", "unreachable", "unwind",        "simd_address",
           "simd_load", "simd_store",   "simd_lane"})) {
    cases.push_back({wast, TierMode::kBaseline, true, true, part});
    if (file.starts_with("memory") || file.starts_with("address"))
      cases.push_back({wast, TierMode::kBaseline, false, true, part});
  }
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  if (const std::filesystem::path suite = HINDSIGHT_SPEC_TESTSUITE; !suite.empty()) {
    for (const std::filesystem::path& wast : files_of(suite, false)) add_core(wast, "", cases);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(suite / "proposals", ignored))
      add_proposal(entry.path(), entry.path().filename().string(), cases);
    add_proposal(suite / "v3", "v3", cases);
  }
  if (const std::filesystem::path suite = HINDSIGHT_SPEC_TESTSUITE_3; !suite.empty()) {
    for (const std::filesystem::path& wast : files_of(suite, true))
      add_core(wast, "wasm3_" + wast.parent_path().lexically_relative(suite).string(), cases);
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return std::tuple(a.wast, a.model, a.tier, a.guard_pages, a.nests) <
           std::tuple(b.wast, b.model, b.tier, b.guard_pages, b.nests);
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
  static void run_once(EngineConfig config, bool out_of_the_cache);
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Spec);

TEST_P(Spec, EveryAssertionOfTheFileHolds) {
  const TemporaryFolder folder;
  if (const char* reason = unreadable_because(GetParam().wast.filename().string());
      reason != nullptr && GetParam().draft)
    GTEST_SKIP() << reason;
  EngineConfig config;
  config.tier = GetParam().tier;
  config.profiling = GetParam().tier == TierMode::kAuto || GetParam().model;
  if (GetParam().model) config.unit = "model";
  config.guard_pages = GetParam().guard_pages;
  const bool cached = GetParam().tier == TierMode::kOptimized && GetParam().guard_pages && !GetParam().nests;
  if (cached) config.code_cache_directory = folder.path() / "code";
  run_once(config, false);
  // Once more, with the code that the first engine kept and without the compiler.
  if (cached) run_once(config, true);
}

void Spec::run_once(EngineConfig config, bool out_of_the_cache) {
  config.log = [](LogLevel level, std::string_view topic, std::string_view line) {
    if (level == LogLevel::kWarning && topic == "cache") ADD_FAILURE() << line;
  };
  auto engine = create_engine_for_tests(config, {.enter_at_nests = GetParam().nests});
  ASSERT_TRUE(engine) << engine.error().describe();
  const Outcome outcome = run_script(**engine, GetParam().wast,
                                     GetParam().draft                        ? Edition::kDraft
                                     : GetParam().part.starts_with("wasm3_") ? Edition::kThird
                                                                             : Edition::kSecond);
  if (!out_of_the_cache)
    for (const std::string& skipped : outcome.skipped) std::printf("skipped: %s\n", skipped.c_str());
  for (const std::string& failure : outcome.failures)
    ADD_FAILURE() << (out_of_the_cache ? "out of the cache: " : "") << failure;
  RecordProperty("assertions", static_cast<int>(outcome.passed));
  EXPECT_GT(outcome.passed + outcome.skipped.size(), 0u);
  if (GetParam().model) {
    EXPECT_EQ((*engine)->model_report()->unknown, 0u);  // every word that the code wrote was understood
  }
  // A function that the optimizer refuses would silently be tested as baseline code.
  if (GetParam().tier == TierMode::kOptimized) {
    const FeedbackReport report = (*engine)->feedback_report();
    if (!GetParam().nests) {
      EXPECT_EQ(report.functions_baseline, 0u);
    }
    if (out_of_the_cache) {
      EXPECT_EQ(report.functions_optimized, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Core, Spec, testing::ValuesIn(cases()), test_name);

TEST(SpecSuite, IsThere) {
  if (cases().empty())
    GTEST_SKIP() << "configure with -DHINDSIGHT_SPEC_TESTSUITE and HINDSIGHT_SPEC_TESTSUITE_3 (folders of "
                    "the official tests) to run them";
}

}  // namespace
}  // namespace hindsight::spec
