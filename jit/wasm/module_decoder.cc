// decode_module: the sections in their order, each item checked as it is read. Code is typed by
// FunctionValidator while it is decoded; nothing is read twice and nothing recurses.
//
// Invariant: before a vector is reserved, its length was compared with the bytes that are left, so that
// memory stays proportional to the input.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "base/printable.h"
#include "jit/wasm/branch_hints.h"
#include "jit/wasm/byte_reader.h"
#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "jit/wasm/name_section.h"
#include "jit/wasm/validate/const_expr.h"
#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

namespace {

constexpr uint8_t kMagic[4] = {0x00, 0x61, 0x73, 0x6d};
constexpr uint8_t kVersion[4] = {0x01, 0x00, 0x00, 0x00};

enum SectionId : uint8_t {
  kCustomSection = 0,
  kTypeSection = 1,
  kImportSection = 2,
  kFunctionSection = 3,
  kTableSection = 4,
  kMemorySection = 5,
  kGlobalSection = 6,
  kExportSection = 7,
  kStartSection = 8,
  kElementSection = 9,
  kCodeSection = 10,
  kDataSection = 11,
  kDataCountSection = 12,
  kTagSection = 13,
};

constexpr const char* kSectionNames[] = {"custom", "type",   "import",     "function", "table",
                                         "memory", "global", "export",     "start",    "element",
                                         "code",   "data",   "data count", "tag"};

constexpr uint8_t kTableWithInit = 0x40;

// Place of a section in the required order; 0 for an unknown one.
constexpr int section_order(uint8_t id) {
  if (id >= kTypeSection && id <= kMemorySection) return id;
  if (id == kTagSection) return 6;
  if (id >= kGlobalSection && id <= kElementSection) return id + 1;
  if (id == kDataCountSection) return 11;
  if (id == kCodeSection) return 12;
  if (id == kDataSection) return 13;
  return 0;
}

class ModuleDecoder {
 public:
  explicit ModuleDecoder(Module& module)
      : module_(module),
        reader_(module.bytes.data(), module.bytes.data(), module.bytes.data() + module.bytes.size()) {}

  bool decode();
  const DecodeFailure& failure() const { return *reader_.failure(); }
  // The function whose body failed, if one did.
  std::optional<uint32_t> failed_function() const { return current_function_; }

 private:
  bool header();
  bool section(uint8_t id, uint32_t start);
  bool custom_section();
  bool type_section();
  bool import_section();
  bool function_section();
  bool table_section();
  bool memory_section();
  bool tag_section();
  bool global_section();
  bool export_section();
  bool start_section();
  bool element_section();
  bool data_count_section();
  bool code_section();
  bool data_section();
  bool finish();

  bool import_item(Import& import);
  bool element_segment(ElementSegment& segment);
  bool function_body(uint32_t index);
  bool locals(FunctionBody& body, const FuncType& type);
  void equate_type(uint32_t index);
  bool types_list(std::vector<ValType>& out, uint32_t limit, const char* what);
  bool limits(Limits& out, MemoryType* memory);
  bool table_type(TableType& out);
  bool memory_type(MemoryType& out);
  bool global_type(GlobalType& out);
  bool tag_type(TypeIndex& out);
  bool add_tag(uint32_t at, TypeIndex type);
  bool const_expr(ValType expected, ConstExpr& out) { return const_exprs_.read(expected, out); }
  bool function_index(uint32_t& out);
  bool add_memory(uint32_t at, const MemoryType& type);
  void declare_ref(const ConstExpr& init);
  void step() { ++module_.decode_stats.steps; }

  Module& module_;
  ByteReader reader_;
  ConstExprReader const_exprs_{module_, reader_};
  std::unordered_map<std::string, uint32_t> type_keys_;  // of the types so far
  std::optional<uint32_t> data_count_;
  bool has_code_ = false;
  bool has_data_ = false;
  std::vector<uint32_t> body_starts_;  // of function bodies, if there are branch hints
  uint64_t total_locals_ = 0;
  std::optional<uint32_t> current_function_;
};

bool ModuleDecoder::decode() {
  if (!header()) return false;
  const uint32_t module_end = reader_.end_offset();
  int last = 0;
  while (!reader_.at_end()) {
    const uint32_t start = reader_.offset();
    uint8_t id = 0;
    uint32_t size = 0;
    step();
    if (!reader_.u8(id)) return false;
    if (id > kTagSection) return reader_.fail(start, fmt::format("malformed section id {}", id));
    const uint32_t size_at = reader_.offset();
    if (!reader_.u32(size)) return false;
    if (size > reader_.remaining())
      return reader_.fail(size_at, fmt::format("unexpected end: length out of bounds: the {} section has {} "
                                               "bytes, {} are left",
                                               kSectionNames[id], size, reader_.remaining()));
    if (id != kCustomSection) {
      const int order = section_order(id);
      if (order <= last)
        return reader_.fail(start, fmt::format("unexpected content after last section: the {} section is "
                                               "repeated or out of order",
                                               kSectionNames[id]));
      last = order;
    }
    const uint32_t end = reader_.offset() + size;
    reader_.set_end(end);
    if (!section(id, start)) return false;
    if (!reader_.at_end())
      return reader_.fail(reader_.offset(),
                          fmt::format("section size mismatch: {} bytes left in the {} section",
                                      reader_.remaining(), kSectionNames[id]));
    reader_.set_end(module_end);
  }
  return finish();
}

bool ModuleDecoder::header() {
  for (unsigned i = 0; i < sizeof(kMagic); ++i) {
    uint8_t byte = 0;
    if (!reader_.u8(byte)) return false;
    if (byte != kMagic[i]) return reader_.fail(0, "magic header not detected");
  }
  uint8_t version[4] = {};
  for (uint8_t& byte : version)
    if (!reader_.u8(byte)) return false;
  if (std::ranges::equal(version, kVersion)) return true;
  if (version[2] == 1 && version[3] == 0) return reader_.unsupported(4, "the component model");
  return reader_.fail(4, "unknown binary version");
}

bool ModuleDecoder::section(uint8_t id, uint32_t start) {
  switch (id) {
    case kCustomSection:
      return custom_section();
    case kTypeSection:
      return type_section();
    case kImportSection:
      return import_section();
    case kFunctionSection:
      return function_section();
    case kTableSection:
      return table_section();
    case kMemorySection:
      return memory_section();
    case kGlobalSection:
      return global_section();
    case kExportSection:
      return export_section();
    case kStartSection:
      return start_section();
    case kElementSection:
      return element_section();
    case kCodeSection:
      return code_section();
    case kDataSection:
      return data_section();
    case kDataCountSection:
      return data_count_section();
    case kTagSection:
      return tag_section();
    default:
      return reader_.fail(start, "malformed section id");
  }
}

bool ModuleDecoder::custom_section() {
  std::string_view name;
  if (!reader_.name(name)) return false;
  module_.custom_sections.push_back({std::string(name), WasmOffset(reader_.offset()), reader_.remaining()});
  if (name == "name") {
    read_name_section(module_, reader_.offset(), reader_.end_offset());
  } else if (name == kBranchHintSection) {
    if (has_code_ || !module_.branch_hints.empty())
      ++module_.decode_stats.branch_hint_errors;  // it belongs in front of the code, once
    else
      read_branch_hints(module_, reader_.offset(), reader_.end_offset());
  } else {
    ++module_.decode_stats.custom_sections_skipped;
  }
  reader_.skip(reader_.remaining());
  return true;
}

// ---- types ---------------------------------------------------------------------------------------------

bool ModuleDecoder::types_list(std::vector<ValType>& out, uint32_t limit, const char* what) {
  uint32_t count = 0;
  if (!reader_.count(count, limit, what)) return false;
  out.resize(count);
  for (ValType& type : out) {
    step();
    if (!read_value_type(reader_, module_, type)) return false;
  }
  return true;
}

// Types are equal if they are built in the same way from equal types, where a type that refers to itself
// refers to "this type". They refer to themselves and to earlier ones only.
void ModuleDecoder::equate_type(uint32_t index) {
  FuncType& type = module_.types[index];
  std::string key;
  key.reserve(sizeof(ValType) * (type.params.size() + type.results.size() + 1));
  const auto is_self = [index](ValType t) { return is_typed_ref(t) && type_index(t) == index; };
  const auto add = [&](ValType t) {
    if (is_self(t)) t = is_non_null(t) ? non_null(typed_ref(kMaxTypeIndex)) : typed_ref(kMaxTypeIndex);
    key.append(reinterpret_cast<const char*>(&t), sizeof(t));
  };
  static_assert(kMaxTypes < kMaxTypeIndex);
  std::ranges::for_each(type.params, add);
  add(ValType{});
  std::ranges::for_each(type.results, add);
  const auto [found, inserted] = type_keys_.try_emplace(std::move(key), index);
  if (inserted) return;
  module_.canonical_types[index] = found->second;
  for (std::vector<ValType>* list : {&type.params, &type.results})
    for (ValType& t : *list)
      if (is_self(t)) t = is_non_null(t) ? non_null(typed_ref(found->second)) : typed_ref(found->second);
}

bool ModuleDecoder::type_section() {
  uint32_t count = 0;
  // Types of later versions may take two bytes, and are to be refused by name.
  if (!reader_.count(count, kMaxTypes, "types", 2)) return false;
  module_.types.resize(count);
  module_.canonical_types.reserve(count);
  for (FuncType& type : module_.types) {
    const auto index = static_cast<uint32_t>(module_.canonical_types.size());
    module_.canonical_types.push_back(index);
    const uint32_t at = reader_.offset();
    uint8_t form = 0;
    step();
    if (!reader_.u8(form)) return false;
    if (form == 0x4e || form == 0x4f || form == 0x50 || form == 0x5e || form == 0x5f)
      return reader_.unsupported(at, "garbage collection (struct, array and recursive types)");
    if (form == 0x5d) return reader_.unsupported(at, "stack switching");
    if (form == 0x65) return reader_.unsupported(at, "threads (shared types)");
    if (form == 0x4c || form == 0x4d) return reader_.unsupported(at, "custom descriptors");
    if (form != 0x60) return reader_.fail(at, fmt::format("malformed function type: form 0x{:02x}", form));
    if (!types_list(type.params, kMaxParams, "parameters")) return false;
    if (!types_list(type.results, kMaxResults, "results")) return false;
    equate_type(index);
  }
  type_keys_.clear();
  return true;
}

// `memory`: null for a table's limits.
bool ModuleDecoder::limits(Limits& out, MemoryType* memory) {
  constexpr uint8_t kHasMax = 1;
  constexpr uint8_t kShared = 2;
  constexpr uint8_t kIs64 = 4;
  const uint32_t at = reader_.offset();
  uint8_t flags = 0;
  if (!reader_.u8(flags)) return false;
  if (flags & 0x80) return reader_.fail(at, "integer representation too long: limits flags");
  if (flags > 0x0f) return reader_.fail(at, "integer too large: malformed limits flags");
  if (flags & 0x08) return reader_.unsupported(at, "custom page sizes");
  if ((flags & kShared) && !memory) return reader_.unsupported(at, "threads (shared tables)");
  if ((flags & kShared) && !(flags & kHasMax)) return reader_.fail(at, "shared memory must have maximum");
  if ((flags & kIs64) && !memory) return reader_.unsupported(at, "memory64 (tables with 64-bit indices)");
  const bool is64 = (flags & kIs64) != 0;
  if (memory) {
    memory->is64 = is64;
    memory->shared = (flags & kShared) != 0;
  }
  const auto read = [&](uint64_t& value) {
    if (is64) return reader_.u64(value);
    uint32_t narrow = 0;
    if (!reader_.u32(narrow)) return false;
    value = narrow;
    return true;
  };
  if (!read(out.min)) return false;
  if ((flags & kHasMax) == 0) return true;
  uint64_t max = 0;
  if (!read(max)) return false;
  out.max = max;
  if (max < out.min) return reader_.fail(at, "size minimum must not be greater than maximum");
  return true;
}

bool ModuleDecoder::table_type(TableType& out) {
  if (!read_reference_type(reader_, module_, out.element)) return false;
  const uint32_t at = reader_.offset();
  if (!limits(out.limits, nullptr)) return false;
  if (out.limits.min > kMaxTableElements)
    return reader_.too_many(at, out.limits.min, "table elements", kMaxTableElements);
  return true;
}

bool ModuleDecoder::memory_type(MemoryType& out) {
  const uint32_t at = reader_.offset();
  if (!limits(out.limits, &out)) return false;
  if (out.limits.min > out.most_pages() || out.limits.max.value_or(0) > out.most_pages())
    return reader_.fail(at, out.is64 ? "memory size must be at most 2^48 pages"
                                     : "memory size must be at most 65536 pages (4GiB)");
  return true;
}

bool ModuleDecoder::global_type(GlobalType& out) {
  if (!read_value_type(reader_, module_, out.type)) return false;
  const uint32_t at = reader_.offset();
  uint8_t mutability = 0;
  if (!reader_.u8(mutability)) return false;
  if (mutability == 2 || mutability == 3) return reader_.unsupported(at, "threads (shared globals)");
  if (mutability > 1) return reader_.fail(at, "malformed mutability");
  out.mutable_ = mutability == 1;
  return true;
}

bool ModuleDecoder::add_memory(uint32_t at, const MemoryType& type) {
  if (module_.memories.size() >= kMaxMemories)
    return reader_.too_many(at, module_.memories.size() + 1, "memories", kMaxMemories);
  module_.memories.push_back(type);
  return true;
}

bool ModuleDecoder::tag_type(TypeIndex& out) {
  const uint32_t at = reader_.offset();
  uint8_t attribute = 0;
  if (!reader_.u8(attribute)) return false;
  if (attribute != 0)
    return reader_.fail(at, fmt::format("malformed tag attribute 0x{:02x}: only exceptions (0)", attribute));
  const uint32_t type_at = reader_.offset();
  if (!reader_.u32(out.value)) return false;
  if (out.value >= module_.types.size())
    return reader_.fail(type_at, fmt::format("unknown type {}", out.value));
  if (!module_.types[out.value].results.empty())
    return reader_.fail(type_at, "non-empty tag result type: an exception has parameters only");
  return true;
}

bool ModuleDecoder::add_tag(uint32_t at, TypeIndex type) {
  if (module_.tags.size() >= kMaxTags) return reader_.too_many(at, module_.tags.size() + 1, "tags", kMaxTags);
  module_.tags.push_back(type);
  return true;
}

// ---- imports and declarations --------------------------------------------------------------------------

bool ModuleDecoder::import_item(Import& import) {
  import.offset = WasmOffset(reader_.offset());
  std::string_view module_name;
  std::string_view name;
  if (!reader_.name(module_name) || !reader_.name(name)) return false;
  import.module = module_name;
  import.name = name;
  const uint32_t at = reader_.offset();
  uint8_t kind = 0;
  if (!reader_.u8(kind)) return false;
  import.kind = static_cast<ExternKind>(kind);
  switch (import.kind) {
    case ExternKind::kFunc: {
      const uint32_t type_at = reader_.offset();
      if (!reader_.u32(import.func_type.value)) return false;
      if (import.func_type.value >= module_.types.size())
        return reader_.fail(type_at, fmt::format("unknown type {}", import.func_type.value));
      module_.functions.push_back(import.func_type);
      return true;
    }
    case ExternKind::kTable:
      if (!table_type(import.table)) return false;
      module_.tables.push_back(import.table);
      return true;
    case ExternKind::kMemory:
      return memory_type(import.memory) && add_memory(at, import.memory);
    case ExternKind::kGlobal:
      if (!global_type(import.global)) return false;
      module_.globals.push_back({.type = import.global, .imported = true, .init = {}});
      return true;
    case ExternKind::kTag:
      return tag_type(import.func_type) && add_tag(at, import.func_type);
  }
  return reader_.fail(at, fmt::format("malformed import kind {}", kind));
}

bool ModuleDecoder::import_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxImports, "imports", 4)) return false;
  module_.imports.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    step();
    if (!import_item(module_.imports.emplace_back())) return false;
  }
  module_.imported_functions = static_cast<uint32_t>(module_.functions.size());
  module_.imported_tables = static_cast<uint32_t>(module_.tables.size());
  module_.imported_memories = static_cast<uint32_t>(module_.memories.size());
  module_.imported_globals = static_cast<uint32_t>(module_.globals.size());
  module_.imported_tags = static_cast<uint32_t>(module_.tags.size());
  return true;
}

bool ModuleDecoder::function_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxFunctions - module_.imported_functions, "functions")) return false;
  module_.functions.reserve(module_.functions.size() + count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = reader_.offset();
    TypeIndex type;
    step();
    if (!reader_.u32(type.value)) return false;
    if (type.value >= module_.types.size())
      return reader_.fail(at, fmt::format("unknown type {}", type.value));
    module_.functions.push_back(type);
  }
  return true;
}

bool ModuleDecoder::table_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxTables - std::min(kMaxTables, module_.imported_tables), "tables", 3))
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = reader_.offset();
    TableType type;
    step();
    const bool has_init = !reader_.at_end() && reader_.peek() == kTableWithInit;
    if (has_init) {
      uint8_t reserved = 0;
      reader_.skip(1);
      if (!reader_.u8(reserved)) return false;
      if (reserved != 0) return reader_.fail(at + 1, "zero byte expected in front of a table's type");
    }
    if (!table_type(type)) return false;
    if (has_init) {
      TableInit init{.table = static_cast<uint32_t>(module_.tables.size()), .value = {}};
      if (!const_expr(type.element, init.value)) return false;
      declare_ref(init.value);
      module_.table_inits.push_back(init);
    } else if (is_non_null(type.element)) {
      return reader_.fail(
          at, fmt::format("type mismatch: a table of {} must have an initializer", to_string(type.element)));
    }
    module_.tables.push_back(type);
  }
  return true;
}

bool ModuleDecoder::memory_section() {
  uint32_t count = 0;
  if (!reader_.count(count, UINT32_MAX, "memories", 2)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = reader_.offset();
    MemoryType type;
    step();
    if (!memory_type(type) || !add_memory(at, type)) return false;
  }
  return true;
}

bool ModuleDecoder::tag_section() {
  uint32_t count = 0;
  if (!reader_.count(count, UINT32_MAX, "tags", 2)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = reader_.offset();
    TypeIndex type;
    step();
    if (!tag_type(type) || !add_tag(at, type)) return false;
  }
  return true;
}

bool ModuleDecoder::function_index(uint32_t& out) {
  const uint32_t at = reader_.offset();
  if (!reader_.u32(out)) return false;
  if (out >= module_.functions.size()) return reader_.fail(at, fmt::format("unknown function {}", out));
  return true;
}

// A reference outside of function bodies declares its function for ref.func.
void ModuleDecoder::declare_ref(const ConstExpr& init) {
  if (init.kind != ConstExpr::Kind::kRefFunc) return;
  module_.declared_function_refs.resize(module_.functions.size());
  module_.declared_function_refs[init.index] = true;
}

bool ModuleDecoder::global_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxGlobals - module_.imported_globals, "globals", 4)) return false;
  module_.globals.reserve(module_.globals.size() + count);
  for (uint32_t i = 0; i < count; ++i) {
    Global global;
    step();
    if (!global_type(global.type) || !const_expr(global.type.type, global.init)) return false;
    declare_ref(global.init);
    module_.globals.push_back(global);
  }
  return true;
}

bool ModuleDecoder::export_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxExports, "exports", 3)) return false;
  std::vector<uint32_t> offsets;
  offsets.reserve(count);
  module_.exports.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    offsets.push_back(reader_.offset());
    Export item;
    std::string_view name;
    uint8_t kind = 0;
    step();
    if (!reader_.name(name)) return false;
    item.name = name;
    const uint32_t kind_at = reader_.offset();
    if (!reader_.u8(kind)) return false;
    if (kind > 4) return reader_.fail(kind_at, fmt::format("malformed export kind {}", kind));
    item.kind = static_cast<ExternKind>(kind);
    const uint32_t index_at = reader_.offset();
    if (!reader_.u32(item.index)) return false;
    const size_t sizes[] = {module_.functions.size(), module_.tables.size(), module_.memories.size(),
                            module_.globals.size(), module_.tags.size()};
    if (item.index >= sizes[kind])
      return reader_.fail(index_at, fmt::format("unknown {} {}", to_string(item.kind), item.index));
    if (item.kind == ExternKind::kFunc)
      declare_ref({.kind = ConstExpr::Kind::kRefFunc, .bits = 0, .index = item.index});
    module_.exports.push_back(std::move(item));
  }

  const auto& exports = module_.exports;
  module_.exports_by_name.resize(count);
  std::iota(module_.exports_by_name.begin(), module_.exports_by_name.end(), 0u);
  std::ranges::sort(module_.exports_by_name, [&](uint32_t a, uint32_t b) {
    const int order = exports[a].name.compare(exports[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  for (uint32_t i = 1; i < count; ++i) {
    const uint32_t a = module_.exports_by_name[i - 1];
    const uint32_t b = module_.exports_by_name[i];
    if (exports[a].name == exports[b].name)
      return reader_.fail(offsets[b],
                          fmt::format("duplicate export name \"{}\"", printable_name(exports[b].name)));
  }
  for (uint32_t i = 0; i < count; ++i)
    if (exports[i].kind == ExternKind::kFunc) module_.function_exports.push_back(i);
  std::ranges::stable_sort(module_.function_exports, {}, [&](uint32_t i) { return exports[i].index; });
  return true;
}

bool ModuleDecoder::start_section() {
  const uint32_t at = reader_.offset();
  uint32_t index = 0;
  if (!function_index(index)) return false;
  const FuncType& type = module_.types[module_.functions[index].value];
  if (!type.params.empty() || !type.results.empty())
    return reader_.fail(at, "start function must have no parameters and no results");
  module_.start = FuncIndex(index);
  return true;
}

// ---- segments ------------------------------------------------------------------------------------------

bool ModuleDecoder::element_segment(ElementSegment& segment) {
  constexpr uint32_t kNotActive = 1;
  constexpr uint32_t kExplicit = 2;  // active: with a table index; else: declared
  constexpr uint32_t kExpressions = 4;
  const uint32_t at = reader_.offset();
  uint32_t flags = 0;
  if (!reader_.u32(flags)) return false;
  if (flags > 7) return reader_.fail(at, fmt::format("malformed elements segment kind {}", flags));
  if (flags & kNotActive) {
    segment.mode = (flags & kExplicit) ? ElementSegment::Mode::kDeclared : ElementSegment::Mode::kPassive;
  } else {
    const uint32_t table_at = reader_.offset();
    if ((flags & kExplicit) && !reader_.u32(segment.table)) return false;
    if (segment.table >= module_.tables.size())
      return reader_.fail(table_at, fmt::format("unknown table {}", segment.table));
    if (!const_expr(ValType::kI32, segment.offset)) return false;
  }
  const uint32_t type_at = reader_.offset();
  if (!(flags & kExpressions)) segment.type = non_null(ValType::kFuncRef);
  if (flags & (kNotActive | kExplicit)) {
    if (flags & kExpressions) {
      if (!read_reference_type(reader_, module_, segment.type)) return false;
    } else {
      uint8_t kind = 0;
      if (!reader_.u8(kind)) return false;
      if (kind != 0) return reader_.fail(type_at, fmt::format("malformed element kind {}", kind));
    }
  }
  if (segment.mode == ElementSegment::Mode::kActive &&
      !is_subtype(segment.type, module_.tables[segment.table].element))
    return reader_.fail(
        type_at, fmt::format("type mismatch: elements of type {} for a table of {}", to_string(segment.type),
                             to_string(module_.tables[segment.table].element)));
  uint32_t count = 0;
  if (!reader_.count(count, kMaxTableElements, "elements", (flags & kExpressions) ? 3 : 1)) return false;
  segment.items.resize(count);
  for (ConstExpr& item : segment.items) {
    step();
    if (flags & kExpressions) {
      if (!const_expr(segment.type, item)) return false;
    } else {
      item.kind = ConstExpr::Kind::kRefFunc;
      if (!function_index(item.index)) return false;
    }
    declare_ref(item);
  }
  return true;
}

bool ModuleDecoder::element_section() {
  uint32_t count = 0;
  if (!reader_.count(count, kMaxElementSegments, "element segments", 3)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    step();
    if (!element_segment(module_.elements.emplace_back())) return false;
  }
  return true;
}

bool ModuleDecoder::data_count_section() {
  const uint32_t at = reader_.offset();
  uint32_t count = 0;
  if (!reader_.u32(count)) return false;
  if (count > kMaxDataSegments) return reader_.too_many(at, count, "data segments", kMaxDataSegments);
  data_count_ = count;
  return true;
}

bool ModuleDecoder::data_section() {
  has_data_ = true;
  const uint32_t at = reader_.offset();
  uint32_t count = 0;
  if (!reader_.count(count, kMaxDataSegments, "data segments", 2)) return false;
  if (data_count_ && *data_count_ != count)
    return reader_.fail(at, fmt::format("data count and data section have inconsistent lengths: {} and {}",
                                        *data_count_, count));
  module_.data.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    DataSegment segment;
    const uint32_t flags_at = reader_.offset();
    uint32_t flags = 0;
    step();
    if (!reader_.u32(flags)) return false;
    if (flags > 2) return reader_.fail(flags_at, fmt::format("malformed data segment kind {}", flags));
    segment.active = flags != 1;
    if (segment.active) {
      const uint32_t memory_at = reader_.offset();
      if (flags == 2 && !reader_.u32(segment.memory)) return false;
      if (segment.memory >= module_.memories.size())
        return reader_.fail(memory_at, fmt::format("unknown memory {}", segment.memory));
      if (!const_expr(module_.memories[segment.memory].address(), segment.offset)) return false;
    }
    const uint32_t size_at = reader_.offset();
    if (!reader_.u32(segment.size)) return false;
    if (segment.size > reader_.remaining())
      return reader_.fail(size_at, fmt::format("unexpected end: a data segment of {} bytes, {} are left",
                                               segment.size, reader_.remaining()));
    segment.begin = WasmOffset(reader_.offset());
    reader_.skip(segment.size);
    module_.data.push_back(segment);
  }
  return true;
}

// ---- code ----------------------------------------------------------------------------------------------

bool ModuleDecoder::locals(FunctionBody& body, const FuncType& type) {
  const uint32_t at = reader_.offset();
  uint32_t groups = 0;
  if (!reader_.count(groups, UINT32_MAX, "groups of locals", 2)) return false;
  body.locals = type.params;
  uint64_t total = type.params.size();
  for (uint32_t i = 0; i < groups; ++i) {
    const uint32_t group_at = reader_.offset();
    uint32_t count = 0;
    ValType local{};
    step();
    if (!reader_.u32(count) || !read_value_type(reader_, module_, local)) return false;
    total += count;
    if (total > UINT32_MAX) return reader_.fail(group_at, "too many locals");
    if (total > kMaxLocals) return reader_.too_many(group_at, total, "locals", kMaxLocals);
    body.locals.insert(body.locals.end(), count, local);
  }
  total_locals_ += total;
  const uint64_t limit = max_total_locals(module_.bytes.size());
  if (total_locals_ > limit)
    return reader_.too_many(at, total_locals_, "locals in all functions together", limit);
  return true;
}

bool ModuleDecoder::code_section() {
  has_code_ = true;
  const uint32_t at = reader_.offset();
  uint32_t count = 0;
  if (!reader_.count(count, kMaxFunctions, "function bodies")) return false;
  const auto declared = static_cast<uint32_t>(module_.functions.size()) - module_.imported_functions;
  if (count != declared)
    return reader_.fail(
        at, fmt::format("function and code section have inconsistent lengths: {} and {}", declared, count));
  module_.declared_function_refs.resize(module_.functions.size());
  module_.bodies.resize(count);
  const uint32_t section_end = reader_.end_offset();
  FunctionValidator validator(module_, data_count_, reader_);
  for (uint32_t i = 0; i < count; ++i) {
    current_function_ = module_.imported_functions + i;
    const uint32_t size_at = reader_.offset();
    uint32_t size = 0;
    if (!reader_.u32(size)) return false;
    if (size > reader_.remaining())
      return reader_.fail(size_at, fmt::format("unexpected end: a function body of {} bytes, {} are left",
                                               size, reader_.remaining()));
    if (size > kMaxBodyBytes)
      return reader_.too_many(size_at, size, "bytes in a function body", kMaxBodyBytes);
    if (!module_.branch_hints.empty()) body_starts_.push_back(reader_.offset());
    reader_.set_end(reader_.offset() + size);
    FunctionBody& body = module_.bodies[i];
    const FuncType& type = module_.types[module_.functions[*current_function_].value];
    if (!locals(body, type) || !validator.validate(body, type)) return false;
    reader_.set_end(section_end);
  }
  current_function_.reset();
  module_.decode_stats.steps += validator.steps();
  module_.decode_stats.instructions = validator.instructions();
  return true;
}

bool ModuleDecoder::finish() {
  const uint32_t end = reader_.offset();
  const auto declared = static_cast<uint32_t>(module_.functions.size()) - module_.imported_functions;
  if (!has_code_ && declared != 0)
    return reader_.fail(
        end, fmt::format("function and code section have inconsistent lengths: {} and 0", declared));
  if (!has_data_ && data_count_.value_or(0) != 0)
    return reader_.fail(
        end, fmt::format("data count and data section have inconsistent lengths: {} and 0", *data_count_));
  module_.declared_function_refs.resize(module_.functions.size());
  finish_names(module_);
  finish_branch_hints(module_, body_starts_);
  return true;
}

}  // namespace

bool is_binary_module(std::span<const uint8_t> bytes) {
  return bytes.size() >= sizeof(kMagic) && std::ranges::equal(bytes.first(sizeof(kMagic)), kMagic);
}

Result<std::shared_ptr<const Module>> decode_module(std::span<const uint8_t> bytes, std::string name) {
  if (bytes.size() > kMaxModuleBytes)
    return make_error(
        ErrorKind::kUnsupported,
        fmt::format("the module has {} bytes, the implementation limit is {}", bytes.size(), kMaxModuleBytes),
        std::move(name), kMaxModuleBytes);
  auto module = std::make_shared<Module>();
  module->bytes.assign(bytes.begin(), bytes.end());
  module->name = std::move(name);
  ModuleDecoder decoder(*module);
  if (!decoder.decode()) {
    const DecodeFailure& failure = decoder.failure();
    std::string message = failure.message;
    if (const auto function = decoder.failed_function())
      message += fmt::format(" (in function {})", *function);
    return make_error(failure.kind, std::move(message), std::move(module->name), failure.offset);
  }
  return std::shared_ptr<const Module>(std::move(module));
}

}  // namespace hindsight::wasm
