#include "feedback/profile/branch_hint_section.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "jit/wasm/branch_hints.h"
#include "jit/wasm/byte_reader.h"
#include "jit/wasm/instr_reader.h"

namespace hindsight::feedback {
namespace {

constexpr uint8_t kCustomSection = 0;
constexpr uint8_t kCodeSection = 10;
constexpr uint32_t kHeader = 8;  // magic number and version

void leb(std::vector<uint8_t>& to, uint32_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<uint8_t>(value | 0x80));
  to.push_back(static_cast<uint8_t>(value));
}

void append(std::vector<uint8_t>& to, const std::vector<uint8_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// A section as it lies in the module: [begin, end) with its head, followed by its contents.
struct Section {
  uint8_t id = 0;
  uint32_t begin = 0, contents = 0, end = 0;
};

// Invariant: the module was decoded, so that everything here can be read. False: our bug.
bool read_sections(const wasm::Module& module, std::vector<Section>& sections) {
  const uint8_t* base = module.bytes.data();
  wasm::ByteReader reader(base, base + kHeader, base + module.bytes.size());
  while (!reader.at_end()) {
    Section section;
    section.begin = reader.offset();
    uint32_t size = 0;
    if (!reader.u8(section.id) || !reader.u32(size) || size > reader.remaining()) return false;
    section.contents = reader.offset();
    section.end = section.contents + size;
    reader.skip(size);
    sections.push_back(section);
  }
  return true;
}

bool holds_hints(const wasm::Module& module, const Section& section) {
  if (section.id != kCustomSection) return false;
  const uint8_t* base = module.bytes.data();
  wasm::ByteReader reader(base, base + section.contents, base + section.end);
  std::string_view name;
  return reader.name(name) && name == wasm::kBranchHintSection;
}

// Where each body begins, local declarations included: what offsets of hints count from.
bool read_body_starts(const wasm::Module& module, const Section& code, std::vector<uint32_t>& starts) {
  const uint8_t* base = module.bytes.data();
  wasm::ByteReader reader(base, base + code.contents, base + code.end);
  uint32_t count = 0;
  if (!reader.u32(count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    if (!reader.u32(size) || size > reader.remaining()) return false;
    starts.push_back(reader.offset());
    reader.skip(size);
  }
  return true;
}

using Hints = std::map<uint32_t, bool>;  // by offset in the module

bool takes_hints(const wasm::Module& module, FuncIndex function, WasmOffset at) {
  if (module.is_imported(function) || function.value >= module.function_count()) return false;
  const wasm::FunctionBody& body = module.body(function);
  if (at < body.begin || at >= body.end) return false;
  // An offset that a file names may lie in the middle of an instruction.
  wasm::InstrReader reader(module, body);
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.offset == at) return instr.opcode == wasm::Opcode::kIf || instr.opcode == wasm::Opcode::kBrIf;
    if (instr.offset > at) return false;
  }
  return false;
}

std::vector<uint8_t> section_of(const std::map<uint32_t, Hints>& by_function, const wasm::Module& module,
                                const std::vector<uint32_t>& starts) {
  std::vector<uint8_t> contents;
  const std::string_view name = wasm::kBranchHintSection;
  leb(contents, static_cast<uint32_t>(name.size()));
  contents.insert(contents.end(), name.begin(), name.end());
  leb(contents, static_cast<uint32_t>(by_function.size()));
  for (const auto& [function, hints] : by_function) {
    leb(contents, function);
    leb(contents, static_cast<uint32_t>(hints.size()));
    for (const auto& [offset, likely] : hints) {
      leb(contents, offset - starts[function - module.imported_functions]);
      leb(contents, 1);
      contents.push_back(likely ? 1 : 0);
    }
  }
  std::vector<uint8_t> section{kCustomSection};
  leb(section, static_cast<uint32_t>(contents.size()));
  append(section, contents);
  return section;
}

}  // namespace

Result<HintedModule> with_branch_hints(const ModuleProfile& profile, const wasm::Module& module) {
  const auto bug = [&](const char* what) {
    return make_error(ErrorKind::kInternal, fmt::format("branch hints: {}", what), module.name);
  };
  if (profile.hash_hex != module.content_hash_hex()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("the profile is of another module: of SHA-256 {}, and this one has {}",
                                  profile.hash_hex.substr(0, 16), module.content_hash_hex().substr(0, 16)),
                      module.name);
  }
  HintedModule out;
  std::vector<Section> sections;
  if (!read_sections(module, sections)) return bug("the sections of a valid module cannot be read");
  std::vector<uint32_t> starts;
  for (const Section& section : sections)
    if (section.id == kCodeSection && !read_body_starts(module, section, starts))
      return bug("the bodies of a valid module cannot be read");

  std::map<uint32_t, Hints> by_function;
  for (const wasm::BranchHint& hint : module.branch_hints)
    by_function[hint.function.value][hint.offset.value] = hint.likely;
  out.kept = static_cast<uint32_t>(module.branch_hints.size());
  for (const FunctionEvidence& e : profile.functions) {
    if (e.function.value >= module.function_count()) continue;
    for (const BranchEvidence& b : e.branches) {
      if (!takes_hints(module, e.function, b.branch)) continue;
      const double share = b.taken_share();
      if (b.outcomes + b.sampled < kMinHintOutcomes || (share < kMinHintShare && share > 1 - kMinHintShare)) {
        ++out.unclear;
        continue;
      }
      const bool likely = share >= kMinHintShare;
      const auto [at, fresh] = by_function[e.function.value].insert_or_assign(b.branch.value, likely);
      if (!fresh) --out.kept;
      ++(likely ? out.likely : out.unlikely);
    }
  }
  std::erase_if(by_function, [](const auto& entry) { return entry.second.empty(); });

  out.bytes.assign(module.bytes.begin(), module.bytes.begin() + kHeader);
  for (const Section& section : sections) {
    if (holds_hints(module, section)) continue;
    if (section.id == kCodeSection && !by_function.empty())
      append(out.bytes, section_of(by_function, module, starts));
    out.bytes.insert(out.bytes.end(), module.bytes.begin() + section.begin,
                     module.bytes.begin() + section.end);
  }
  // What is handed out was read by the reader that everybody's modules pass.
  const auto again = wasm::decode_module(out.bytes, module.name);
  if (!again || (*again)->decode_stats.branch_hint_errors != 0 ||
      (*again)->branch_hints.size() != out.likely + out.unlikely + out.kept)
    return bug("the module with hints does not read as it should");
  return out;
}

}  // namespace hindsight::feedback
