#include "jit/optimizing/pc_rows.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>

namespace hindsight::jit::optimizing {

Status add_pc_rows(std::span<const char> object, const LinkedCode& code, PcMap& map) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "hindsight"));
  if (!file) return make_error(ErrorKind::kInternal, "debug info: " + llvm::toString(file.takeError()));
  std::string problem;
  const auto note = [&problem](llvm::Error error) { problem = llvm::toString(std::move(error)); };
  const std::unique_ptr<llvm::DWARFContext> debug = llvm::DWARFContext::create(
      **file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", note, note);
  map.add_row({CodeOffset(0), kNoWasmOffset, kNoInlineSite});
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
        site = row.Column == 0 ? kNoInlineSite : row.Column - 1u;
      }
      map.add_row({CodeOffset(code.text_offset + static_cast<uint32_t>(row.Address.Address)), wasm, site});
    }
  }
  map.add_row({CodeOffset(code.text_offset + code.text_bytes), kNoWasmOffset, kNoInlineSite});
  map.finish();
  if (!problem.empty()) return make_error(ErrorKind::kInternal, "debug info: " + problem);
  return {};
}

}  // namespace hindsight::jit::optimizing
