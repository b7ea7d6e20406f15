#include "tests/jit/optimizing/shape_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/harness.h"

namespace hindsight::jit::testing {
namespace {

using wasm::Opcode;

// What places are counted by; empty: none that anybody asks about.
std::string_view class_of(Opcode opcode) {
  const wasm::OpcodeInfo* const info = wasm::find_opcode(static_cast<uint16_t>(opcode));
  const std::string_view name = info != nullptr ? info->name : "";
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (opcode == Opcode::kIf || opcode == Opcode::kBrIf) return "branch";
  if (opcode == Opcode::kSelect) return "choice";
  if (opcode == Opcode::kLoop) return "loop";
  if (opcode == Opcode::kCallIndirect || opcode == Opcode::kCallRef) return "call";
  if (opcode == Opcode::kMemoryCopy || opcode == Opcode::kMemoryFill) return "copy";
  if (has(".load")) return "load";
  if (has(".store")) return "store";
  if (name.starts_with("i") && !has("x") && (has(".div_") || has(".rem_"))) return "division";
  return {};
}

template <typename Visit>
void for_each_place(const wasm::Module& module, FuncIndex function, Visit visit) {
  std::vector<std::pair<std::string_view, uint32_t>> counts;
  wasm::InstrReader reader(module, module.body(function));
  for (wasm::Instr instr; !reader.at_end();) {
    reader.next(instr);
    const std::string_view what = class_of(instr.opcode);
    if (what.empty()) continue;
    auto count = std::ranges::find(counts, what, &std::pair<std::string_view, uint32_t>::first);
    if (count == counts.end()) count = counts.insert(counts.end(), {what, 0});
    visit(what, count->second++, instr.offset);
  }
}

class HeadReader {
 public:
  explicit HeadReader(const std::string& text) : text_(text) {}

  ShapeProgram read() {
    program_.module = TestInstance::module_of(text_);
    if (program_.module == nullptr) return std::move(program_);
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line) && line.starts_with(";;");) {
      line_ = line;
      rest_.clear();
      rest_.str(line.substr(2));
      const std::string verb = word();
      if (verb == "change:") {
        read_change();
      } else if (verb == "fill:") {
        read_fill();
      } else if (verb == "call:") {
        program_.calls.push_back({.function = word(), .arguments = words()});
      } else if (verb == "compile:") {
        compile(function(word()));
      } else if (verb == "enter:") {
        read_entry();
      } else if (verb == "bounds:") {
        expect("explicit");
        program_.bounds = BoundsChecks::kExplicit;
      } else if (verb == "show:") {
        expect("weights");
        program_.shows_weights = true;
      } else if (verb.ends_with(':')) {
        complain("no such line");
      }
    }
    return std::move(program_);
  }

 private:
  void complain(const std::string& what) const { ADD_FAILURE() << line_ << ": " << what; }

  std::string word() {
    std::string one;
    rest_ >> one;
    return one;
  }
  std::vector<std::string> words() {
    std::vector<std::string> all;
    for (std::string one = word(); !one.empty(); one = word()) all.push_back(one);
    return all;
  }
  void expect(std::string_view wanted) {
    if (const std::string got = word(); got != wanted)
      complain("\"" + got + "\" for \"" + std::string(wanted) + "\"");
  }
  double number(const std::string& text) const {
    try {
      return std::stod(text);
    } catch (const std::exception&) {
      complain("\"" + text + "\" is no number");
      return 0;
    }
  }
  uint32_t integer() { return static_cast<uint32_t>(number(word())); }

  FuncIndex function(const std::string& name) const {
    const wasm::Export* const found = program_.module->find_export(name);
    if (found != nullptr && found->kind == wasm::ExternKind::kFunc) return FuncIndex(found->index);
    complain("no function \"" + name + "\"");
    return FuncIndex(program_.module->imported_functions);
  }
  void compile(FuncIndex one) {
    if (std::ranges::find(program_.compiled, one) == program_.compiled.end())
      program_.compiled.push_back(one);
  }

  // "load 1 of f"
  std::pair<FuncIndex, WasmOffset> place() {
    const std::string what = word();
    const uint32_t wanted = integer();
    expect("of");
    const FuncIndex in = function(word());
    std::optional<WasmOffset> found;
    for_each_place(*program_.module, in, [&](std::string_view one, uint32_t n, WasmOffset at) {
      if (one == what && n == wanted) found = at;
    });
    if (!found) complain("no such place");
    return {in, found.value_or(WasmOffset())};
  }

  void read_entry() {
    const auto [in, at] = place();
    const auto& loops = program_.module->body(in).loops;
    for (uint32_t i = 0; i < loops.size(); ++i)
      if (loops[i].offset == at) program_.entered.emplace_back(in, LoopIndex(i));
    compile(in);
  }

  void read_change() {
    const std::string name = word();
    const std::optional<ChangeKind> kind = change_kind_of(name);
    if (!kind) return complain("no change \"" + name + "\"");
    const auto [in, at] = place();
    Request request{.site = {*kind, at}, .weight = 0.5};
    if (*kind == ChangeKind::kValue) request.what = UsualValue{.value = 0, .share = 0.9};
    if (*kind == ChangeKind::kInlineCalls) request.what = CallTargets{};
    if (is_of_branch(*kind) || *kind == ChangeKind::kWeighBranches || *kind == ChangeKind::kSplitCold)
      request.what = BranchCounts{.taken = 500, .not_taken = 500};
    for (std::string part = word(); !part.empty(); part = word()) read_detail(request, part);
    program_.changes.emplace_back(in, std::move(request));
    compile(in);
  }

  void read_detail(Request& request, const std::string& name) {
    const double value = number(word());
    auto* const counts = std::get_if<BranchCounts>(&request.what);
    auto* const usual = std::get_if<UsualValue>(&request.what);
    auto* const targets = std::get_if<CallTargets>(&request.what);
    if (is_tuned(request.site.kind) && name == traits_of(request.site.kind).knob.name) {
      request.setting = static_cast<uint32_t>(value);
    } else if (name == "weight") {
      request.weight = value;
    } else if (counts != nullptr && name == "taken") {
      counts->taken = static_cast<uint64_t>(value);
    } else if (counts != nullptr && name == "not-taken") {
      counts->not_taken = static_cast<uint64_t>(value);
    } else if (counts != nullptr && name == "mispredicted") {
      counts->mispredicted = value;
    } else if (usual != nullptr && name == "usually") {
      usual->value = static_cast<uint64_t>(value);
    } else if (targets != nullptr && name == "target") {
      targets->targets.push_back({.element = static_cast<uint32_t>(value), .share = 0.3});
    } else {
      complain("nothing that goes with this change: " + name);
    }
  }

  // "words 0 to 4096 below 1000 times 4 plus 64", "words 0 to 4096 rising by 7", "chain 64 to 4096 by 16 length 8",
  // "word 64 is 7"
  void read_fill() {
    const std::string what = word();
    Fill fill;
    fill.from = integer();
    if (what == "word") {
      expect("is");
      fill.number = integer();
      fill.to = fill.from + 4;
      program_.fills.push_back(fill);
      return;
    }
    expect("to");
    fill.to = integer();
    for (std::string part = word(); !part.empty(); part = word()) {
      if (part == "below" || part == "by") fill.number = integer();
      if (part == "below") fill.kind = Fill::Kind::kBelow;
      if (part == "rising") fill.kind = Fill::Kind::kRising;
      if (part == "times") fill.times = integer();
      if (part == "plus") fill.plus = integer();
      if (part == "length") fill.length = integer();
    }
    if (what == "chain") fill.kind = Fill::Kind::kChain;
    if (fill.to <= fill.from || fill.number == 0) return complain("nothing to fill");
    program_.fills.push_back(fill);
  }

  const std::string& text_;
  ShapeProgram program_;
  std::string line_;
  std::istringstream rest_;
};

}  // namespace

void Fill::make(uint8_t* memory) const {
  const auto set = [&](uint32_t at, uint32_t word) { std::memcpy(memory + at, &word, sizeof word); };
  std::mt19937 random(from + to);
  switch (kind) {
    case Kind::kIs:
      return set(from, number);
    case Kind::kBelow:
      for (uint32_t at = from; at < to; at += 4)
        set(at, plus + times * static_cast<uint32_t>(random() % number));
      return;
    case Kind::kRising:
      for (uint32_t at = from; at < to; at += 4) set(at, (at - from) / 4 * number);
      return;
    case Kind::kChain: {
      std::vector<uint32_t> nodes((to - from) / number);
      std::iota(nodes.begin(), nodes.end(), 0);
      // The first node stays the first.
      for (size_t i = nodes.size() - 1; i > 1; --i) std::swap(nodes[i], nodes[1 + random() % i]);
      for (size_t i = 0; i < nodes.size(); ++i) {
        const bool is_last = i + 1 == nodes.size() || (length != 0 && (i + 1) % length == 0);
        set(from + number * nodes[i], is_last ? 0 : from + number * nodes[i + 1]);
      }
      return;
    }
  }
}

ShapeProgram read_shape_program(const std::string& text) {
  return HeadReader(text).read();
}

std::string place_name(const wasm::Module& module, WasmOffset at) {
  const std::optional<FuncIndex> function = module.function_at(at);
  std::string name = "an unknown place";
  if (!function || module.is_imported(*function)) return name;
  if (at.value + 1 == module.body(*function).end.value) return "all of " + module.function_name(*function);
  for_each_place(module, *function, [&](std::string_view what, uint32_t n, WasmOffset place) {
    if (place == at)
      name = std::string(what) + " " + std::to_string(n) + " of " + module.function_name(*function);
  });
  return name;
}

}  // namespace hindsight::jit::testing
