#include "jit/wasm/types.h"

namespace hindsight::wasm {

namespace {

const char* short_name(ValType type) {
  switch (type) {
    case ValType::kI32:
      return "i32";
    case ValType::kI64:
      return "i64";
    case ValType::kF32:
      return "f32";
    case ValType::kF64:
      return "f64";
    case ValType::kV128:
      return "v128";
    case ValType::kFuncRef:
      return "funcref";
    case ValType::kExternRef:
      return "externref";
    case ValType::kExnRef:
      return "exnref";
    default:
      return nullptr;
  }
}

// The name of what a reference refers to.
std::string heap_name(ValType type) {
  if (is_typed_ref(type)) return std::to_string(type_index(type));
  std::string name = to_string(nullable(type));
  return name.substr(0, name.size() - 3);  // without "ref"
}

}  // namespace

std::string to_string(ValType type) {
  if (const char* name = short_name(type)) return name;
  if (!is_reference(type)) return "unknown";
  return std::string(is_non_null(type) ? "(ref " : "(ref null ") + heap_name(type) + ")";
}

const char* to_string(ExternKind kind) {
  switch (kind) {
    case ExternKind::kFunc:
      return "function";
    case ExternKind::kTable:
      return "table";
    case ExternKind::kMemory:
      return "memory";
    case ExternKind::kGlobal:
      return "global";
    case ExternKind::kTag:
      return "tag";
  }
  return "unknown";
}

namespace {

void append_list(std::string& out, const std::vector<ValType>& types) {
  out += '(';
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0) out += ", ";
    out += to_string(types[i]);
  }
  out += ')';
}

}  // namespace

std::string to_string(const FuncType& type) {
  std::string out;
  append_list(out, type.params);
  out += " -> ";
  append_list(out, type.results);
  return out;
}

}  // namespace hindsight::wasm
