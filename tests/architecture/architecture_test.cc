// The tree is the diagram: this test reads every #include line and refuses an arrow that the table below does
// not have. Change the table only together with docs/ARCHITECTURE.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace hindsight {
namespace {

namespace fs = std::filesystem;
using source_tree::root, source_tree::sources;

// What all rooms between runtime/exec and the public interface may include.
const std::vector<std::string> kRuntimeParts = {
    "base",
    "jit",
    "jit/wasm",
    "jit/abi",
    "jit/code",
    "jit/baseline",
    "jit/optimizing",
    "feedback/lwp/format",
    "feedback/lwp/units",
    "feedback/pmu",
    "feedback/monitor",
    "feedback/profile",
    "feedback/policy",
    "runtime/instance",
    "runtime/exec",
    "runtime/engine/hindsight.h",
};

// What all rooms of the optimizer may include.
const std::vector<std::string> kOptimizerParts = {
    "base", "jit", "jit/wasm", "jit/abi", "jit/code", "jit/optimizing/optimizer.h",
};

std::vector<std::string> with(std::vector<std::string> rooms, const std::vector<std::string>& more) {
  rooms.insert(rooms.end(), more.begin(), more.end());
  return rooms;
}

// A room, and what its files may include beside its own: rooms, or single files.
const std::map<std::string, std::vector<std::string>>& arrows() {
  static const std::map<std::string, std::vector<std::string>> table = {
      {"base", {}},
      // jit: wasm <- abi <- code <- the two tiers. change.h and compile_options.h are its words for the rooms
      // above.
      {"jit", {"base", "jit/wasm"}},
      {"jit/wasm", {"base"}},
      {"jit/abi", {"base", "jit/change.h", "jit/wasm"}},
      {"jit/code", {"base", "jit/change.h", "jit/wasm", "jit/abi"}},
      {"jit/baseline", {"base", "jit", "jit/wasm", "jit/abi", "jit/code"}},
      // Within the optimizer: ir <- versions <- the passes that make them; generation knows where a loop may be left. optimizer.h is
      // its face, pass_limits.h what a function may be at most.
      {"jit/optimizing/ir", with(kOptimizerParts, {})},
      {"jit/optimizing/versions", with(kOptimizerParts, {"jit/optimizing/ir"})},
      {"jit/optimizing/vectors", with(kOptimizerParts, {"jit/optimizing/ir", "jit/optimizing/versions"})},
      {"jit/optimizing/changes", with(kOptimizerParts, {"jit/optimizing/ir", "jit/optimizing/versions"})},
      {"jit/optimizing/emit", with(kOptimizerParts, {"jit/optimizing/ir"})},
      {"jit/optimizing/generate", with(kOptimizerParts, {"jit/optimizing/ir", "jit/optimizing/versions",
                                                         "jit/optimizing/pass_limits.h"})},
      {"jit/optimizing",
       with(kOptimizerParts, {"jit/optimizing/ir", "jit/optimizing/versions", "jit/optimizing/vectors",
                              "jit/optimizing/changes", "jit/optimizing/emit", "jit/optimizing/generate"})},
      // feedback: what was seen, what it means, what to do. The policy is pure: a profile in, decisions out.
      {"feedback/pmu", {"base"}},
      // The parts of lwp: what a record is; what models say of a stream of them; what this machine is like. Then the
      // instructions in software; and who watches. Beside them, what `hindsight lwp` says and the C interface, which see
      // all of them.
      {"feedback/lwp/format", {"base", "feedback/pmu"}},
      {"feedback/lwp/model", {"base", "feedback/lwp/format"}},
      {"feedback/lwp/calibration", {"base", "feedback/pmu"}},
      {"feedback/lwp/emulation", {"base", "feedback/pmu", "feedback/lwp/format"}},
      {"feedback/lwp/units",
       {"base", "feedback/pmu", "feedback/lwp/format", "feedback/lwp/model",
        "feedback/lwp/emulation/instructions.h", "feedback/lwp/units/hardware/hardware_unit.h"}},
      {"feedback/lwp/units/hardware", {"base", "feedback/pmu", "feedback/lwp/format", "feedback/lwp/units"}},
      {"feedback/lwp",
       {"base", "feedback/pmu", "feedback/lwp/format", "feedback/lwp/calibration", "feedback/lwp/emulation",
        "feedback/lwp/units", "feedback/lwp/units/hardware"}},
      {"feedback/profile", {"base", "jit", "jit/wasm"}},
      {"feedback/policy", {"base", "jit/change.h", "jit/wasm", "feedback/profile"}},
      {"feedback/monitor",
       {"base", "jit", "jit/wasm", "jit/abi", "jit/code", "feedback/lwp/format", "feedback/lwp/model",
        "feedback/lwp/units", "feedback/pmu", "feedback/profile"}},
      // runtime: the only part that knows all others.
      {"runtime/instance", {"base", "jit", "jit/wasm", "jit/abi", "jit/code"}},
      {"runtime/exec", {"base", "jit", "jit/wasm", "jit/abi", "jit/code", "runtime/instance"}},
      {"runtime/wasi", {"base"}},
      // What code there is, and what is kept of it on disk; what decides over it; what reads it; the public interface over all. Each sees
      // of the last its public header alone, whose configuration and reports they fill.
      {"runtime/code", with(kRuntimeParts, {})},
      {"runtime/storage", with(kRuntimeParts, {"runtime/code"})},
      {"runtime/adaptive",
       with(kRuntimeParts, {"feedback/lwp/calibration", "runtime/code", "runtime/storage"})},
      {"runtime/tools", with(kRuntimeParts, {"feedback/lwp", "feedback/lwp/calibration",
                                             "feedback/lwp/emulation", "runtime/code", "runtime/storage"})},
      {"runtime/engine",
       with(kRuntimeParts, {"feedback/lwp/calibration", "feedback/lwp/model", "runtime/code",
                            "runtime/storage", "runtime/adaptive", "runtime/tools", "runtime/wasi"})},
      {"runtime/report", {"base", "runtime/engine/hindsight.h"}},
      {"runtime/capi", {"base", "runtime/engine/hindsight.h", "runtime/report"}},
      {"runtime/cli", {"base", "runtime/engine/hindsight.h", "runtime/report"}},
      {"samples", {"hindsight"}},
  };
  return table;
}

const std::set<std::string> kLlvmRooms = {
    "jit/optimizing",         "jit/optimizing/ir",   "jit/optimizing/versions", "jit/optimizing/vectors",
    "jit/optimizing/changes", "jit/optimizing/emit", "jit/optimizing/generate",
};

// Foreign headers that only some rooms may see, by the beginning of their path.
const std::map<std::string, std::set<std::string>>& foreign() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"llvm/", kLlvmRooms},
      {"llvm-c/", kLlvmRooms},
      {"asmjit/", {"jit/baseline"}},
      {"linux/perf_event.h", {"feedback/lwp/units", "feedback/lwp/units/hardware", "feedback/pmu"}},
      {"wabt/", {}},
      {"CLI/", {"runtime/cli"}},
  };
  return table;
}

struct Include {
  std::string file;  // path from the root
  size_t line = 0;
  std::string target;
  bool quoted = false;
};

std::vector<Include> includes_of(const std::string& file, std::istream& text) {
  std::vector<Include> out;
  size_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    const char closing = line[open] == '<' ? '>' : '"';
    const size_t close = line.find(closing, open + 1);
    if (close == std::string::npos) continue;
    out.push_back({file, number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return out;
}

std::vector<Include> all_includes() {
  std::vector<Include> out;
  for (const std::string& file : sources()) {
    std::ifstream text(root() / file);
    auto found = includes_of(file, text);
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

// The longest room that holds the path; empty for none.
std::string room_of(const std::string& path) {
  std::string best;
  for (const auto& [room, allowed] : arrows()) {
    if (path.starts_with(room + "/") && room.size() > best.size()) best = room;
  }
  return best;
}

// Why this include is refused; empty: it is not.
std::string objection(const Include& include) {
  const std::string room = room_of(include.file);
  if (room.empty()) return "lies in no room of the table";
  for (const auto& [prefix, rooms] : foreign()) {
    if (include.target.starts_with(prefix) && !rooms.contains(room)) return "is not for room " + room;
  }
  if (!include.quoted) return {};
  // Workloads are guests: they share headers among themselves and know nothing of the project.
  if (room == "samples" && room_of(include.target).empty()) return {};
  const std::string target_room = room_of(include.target);
  if (target_room.empty()) return "is quoted, but no path from the root into a room";
  if (target_room == room) return {};
  const auto& allowed = arrows().at(room);
  const bool permitted = std::any_of(allowed.begin(), allowed.end(), [&](const std::string& entry) {
    return entry == target_room || entry == include.target;
  });
  return permitted ? std::string()
                   : "is an arrow from " + room + " to " + target_room + " that the table does not have";
}

TEST(Architecture, EveryIncludeIsAnArrowOfTheTable) {
  const auto includes = all_includes();
  ASSERT_GT(includes.size(), 200u) << "the tree was not found at " << HINDSIGHT_SOURCE_ROOT;
  std::string complaints;
  for (const auto& include : includes) {
    const std::string reason = objection(include);
    if (!reason.empty()) {
      complaints +=
          include.file + ":" + std::to_string(include.line) + ": \"" + include.target + "\" " + reason + "\n";
    }
  }
  EXPECT_EQ(complaints, "");
}

TEST(Architecture, TheTableHasNoCycleBetweenRooms) {
  // Rooms named whole; single headers (change.h, hindsight.h) are contracts and cannot include back.
  std::map<std::string, int> state;  // 1: on the path, 2: done
  std::string cycle;
  const auto visit = [&](auto&& self, const std::string& room) -> void {
    state[room] = 1;
    for (const auto& next : arrows().at(room)) {
      if (!arrows().contains(next)) continue;
      if (state[next] == 1) cycle = room + " -> " + next;
      if (state[next] == 0) self(self, next);
    }
    state[room] = 2;
  };
  for (const auto& [room, allowed] : arrows()) {
    if (state[room] == 0) visit(visit, room);
  }
  EXPECT_EQ(cycle, "");
}

TEST(Architecture, RefusesArrowsThatPointUpward) {
  EXPECT_NE(objection({"base/result.h", 1, "jit/change.h", true}), "");
  EXPECT_NE(objection({"jit/wasm/module.cc", 1, "feedback/profile/profile.h", true}), "");
  EXPECT_NE(objection({"feedback/policy/policy.cc", 1, "feedback/monitor/monitor.h", true}), "");
  EXPECT_NE(objection({"feedback/policy/policy.cc", 1, "jit/compile_options.h", true}), "");
  EXPECT_NE(objection({"runtime/cli/run.cc", 1, "runtime/code/tiers.h", true}), "");
  EXPECT_NE(objection({"runtime/engine/engine.cc", 1, "llvm/IR/Module.h", false}), "");
  EXPECT_NE(objection({"feedback/monitor/monitor.cc", 1, "linux/perf_event.h", false}), "");
  EXPECT_NE(objection({"jit/optimizing/optimizer.cc", 1, "asmjit/asmjit.h", false}), "");
  EXPECT_NE(objection({"feedback/lwp/format/ring.cc", 1, "feedback/lwp/units/unit.h", true}), "");
  EXPECT_NE(objection({"runtime/code/guest_unit.cc", 1, "feedback/lwp/model/core_model.h", true}), "");
  EXPECT_NE(objection({"jit/optimizing/versions/strips.cc", 1, "jit/optimizing/changes/change_set.h", true}),
            "");
  EXPECT_NE(objection({"jit/optimizing/emit/link_code.cc", 1, "jit/optimizing/pipeline.h", true}), "");
  EXPECT_NE(objection({"runtime/cli/run.cc", 1, "options.h", true}), "");
  EXPECT_EQ(objection({"runtime/cli/run.cc", 1, "runtime/engine/hindsight.h", true}), "");
  EXPECT_EQ(objection({"feedback/policy/policy.cc", 1, "jit/change.h", true}), "");
}

TEST(Architecture, EveryRoomSaysWhatItIs) {
  std::string missing;
  for (const auto& [room, allowed] : arrows()) {
    if (room == "jit") continue;  // two headers; its rooms speak for it
    const fs::path folder = fs::path(HINDSIGHT_SOURCE_ROOT) / room;
    if (!fs::is_regular_file(folder / "README.md")) missing += room + " ";
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace hindsight
