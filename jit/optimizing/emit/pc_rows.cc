#include "jit/optimizing/emit/pc_rows.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

Result<PcMap> make_pc_map(std::span<const char> object, const LinkedCode& code,
                          std::vector<InlineSite> sites) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "hindsight"));
  if (!file) return make_error(ErrorKind::kInternal, "debug info: " + llvm::toString(file.takeError()));
  // Texts of the sections of instructions, by their numbers in the object.
  std::unordered_map<uint64_t, LinkedCode::Text> texts;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    auto name = section.getName();
    if (!name) return make_error(ErrorKind::kInternal, "debug info: " + llvm::toString(name.takeError()));
    if (const auto text = code.texts.find(name->str()); text != code.texts.end())
      texts.emplace(section.getIndex(), text->second);
  }
  std::string problem;
  const auto note = [&problem](llvm::Error error) { problem = llvm::toString(std::move(error)); };
  const std::unique_ptr<llvm::DWARFContext> debug = llvm::DWARFContext::create(
      **file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", note, note);
  std::vector<PcRow> rows = {{CodeOffset(0), kNoWasmOffset, kNoInlineSite}};
  for (const auto& unit : debug->compile_units()) {
    const llvm::DWARFDebugLine::LineTable* table = debug->getLineTableForUnit(unit.get());
    if (!table) continue;
    WasmOffset wasm = kNoWasmOffset;
    uint32_t site = kNoInlineSite;
    for (const llvm::DWARFDebugLine::Row& row : table->Rows) {
      if (row.EndSequence) {
        wasm = kNoWasmOffset;
        site = kNoInlineSite;
        continue;
      }
      if (row.Line != 0) {
        wasm = WasmOffset(row.Line);
        site = row.Column == 0                             ? kNoInlineSite
               : row.Column == IrModule::kLoopGoesOnColumn ? kLoopGoesOn
                                                           : row.Column - 1u;
      }
      const auto text = texts.find(row.Address.SectionIndex);
      if (text == texts.end()) continue;
      rows.push_back(
          {CodeOffset(text->second.offset + static_cast<uint32_t>(row.Address.Address)), wasm, site});
    }
  }
  // Before what the next section says of the same place.
  for (const auto& [name, text] : code.texts)
    rows.insert(rows.begin(), {CodeOffset(text.offset + text.bytes), kNoWasmOffset, kNoInlineSite});
  // One sequence follows the other in the table, whatever their addresses; where one ends the next may begin.
  std::ranges::stable_sort(rows, {},
                           [](const PcRow& row) { return std::pair(row.code, row.wasm != kNoWasmOffset); });
  PcMapBuilder map;
  for (const PcRow& row : rows) map.add_row(row);
  if (!problem.empty()) return make_error(ErrorKind::kInternal, "debug info: " + problem);
  return map.finish(std::move(sites));
}

}  // namespace hindsight::jit::optimizing
