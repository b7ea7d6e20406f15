#include "runtime/engine/handles.h"
#include "runtime/engine/values.h"

namespace hindsight::rt {

std::vector<ImportType> ModuleHandle::imports() const {
  std::vector<ImportType> result;
  for (const wasm::Import& import : wasm().imports) {
    ImportType type{import.module, import.name, wasm::to_string(import.kind), std::nullopt};
    if (import.kind == wasm::ExternKind::kFunc)
      type.function = to_public(wasm().types[import.func_type.value]);
    result.push_back(std::move(type));
  }
  return result;
}

std::vector<ExportType> ModuleHandle::exports() const {
  std::vector<ExportType> result;
  for (const wasm::Export& e : wasm().exports) {
    ExportType type{e.name, wasm::to_string(e.kind), std::nullopt};
    if (e.kind == wasm::ExternKind::kFunc) type.function = to_public(wasm().type_of(FuncIndex(e.index)));
    result.push_back(std::move(type));
  }
  return result;
}

std::string ModuleHandle::content_hash_hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (uint8_t byte : wasm().content_hash) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace hindsight::rt
