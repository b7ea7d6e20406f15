// Instantiation: matching imports, allocating, evaluating initializers, writing active segments.
#include <cstring>
#include <new>

#include "base/printable.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/type_words.h"
#include "jit/wasm/validate/const_expr.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {
namespace {

std::string describe(const wasm::Import& import) {
  return "\"" + printable_name(import.module) + "\" \"" + printable_name(import.name) + "\"";
}

std::unexpected<Error> incompatible(const wasm::Import& import, const std::string& why) {
  return make_error(ErrorKind::kLink, "incompatible import type: " + describe(import) + " " + why);
}

// The specification's limit matching; `size` is the present size.
bool limits_match(uint64_t size, const wasm::Limits& actual, const wasm::Limits& wanted) {
  if (size < wanted.min) return false;
  if (!wanted.max) return true;
  return actual.max && *actual.max <= *wanted.max;
}

std::string limits_text(uint64_t min, const std::optional<uint64_t>& max) {
  return std::to_string(min) + ".." + (max ? std::to_string(*max) : std::string());
}

// `type_ids`: of the module's types.
Status match(const wasm::Import& import, const Extern& value, std::span<const uint32_t> type_ids) {
  if (kind_of(value) != import.kind)
    return incompatible(import, std::string("wants a ") + wasm::to_string(import.kind) + ", got a " +
                                    wasm::to_string(kind_of(value)));
  switch (import.kind) {
    case wasm::ExternKind::kFunc: {
      const uint32_t wanted = type_ids[import.func_type.value];
      const uint32_t id = std::get<Func>(value).ref->type_id;
      if (id != wanted)
        return incompatible(import, "wants " + jit::type_text(jit::type_of_canonical_id(wanted)) + ", got " +
                                        jit::type_text(jit::type_of_canonical_id(id)));
      return {};
    }
    case wasm::ExternKind::kTable: {
      Table* table = std::get<Table*>(value);
      const wasm::ValType element = jit::canonical_type(import.table.element, type_ids);
      if (table->type().element != element)
        return incompatible(import, "wants a table of " + jit::type_text(element) + ", got " +
                                        jit::type_text(table->type().element));
      if (!limits_match(table->size(), table->type().limits, import.table.limits))
        return incompatible(
            import, "wants a table of " + limits_text(import.table.limits.min, import.table.limits.max) +
                        " entries, got " + limits_text(table->size(), table->type().limits.max));
      return {};
    }
    case wasm::ExternKind::kMemory: {
      Memory* memory = std::get<Memory*>(value);
      if (memory->type().is64 != import.memory.is64)
        return incompatible(import, import.memory.is64
                                        ? "wants a memory with 64-bit addresses, got one with 32"
                                        : "wants a memory with 32-bit addresses, got one with 64");
      if (memory->type().shared != import.memory.shared)
        return incompatible(import, import.memory.shared
                                        ? "wants a shared memory, got one that is not"
                                        : "wants a memory that is not shared, got one that is");
      if (!limits_match(memory->pages(), memory->type().limits, import.memory.limits))
        return incompatible(
            import, "wants a memory of " + limits_text(import.memory.limits.min, import.memory.limits.max) +
                        " pages, got " + limits_text(memory->pages(), memory->type().limits.max));
      return {};
    }
    case wasm::ExternKind::kGlobal: {
      Global* global = std::get<Global*>(value);
      const wasm::ValType wanted = jit::canonical_type(import.global.type, type_ids);
      // What can be written must be of the very type, or one side would not believe what the other wrote.
      if (global->type().mutable_ != import.global.mutable_ ||
          (import.global.mutable_ ? global->type().type != wanted
                                  : !wasm::is_subtype(global->type().type, wanted)))
        return incompatible(import, std::string("wants a ") + (import.global.mutable_ ? "mutable " : "") +
                                        "global of " + jit::type_text(wanted) + ", got a " +
                                        (global->type().mutable_ ? "mutable " : "") + "global of " +
                                        jit::type_text(global->type().type));
      return {};
    }
    case wasm::ExternKind::kTag: {
      const uint32_t wanted = type_ids[import.func_type.value];
      const Tag* tag = std::get<Tag*>(value);
      if (tag->type_id != wanted)
        return incompatible(import, "wants a tag of " + jit::type_text(jit::type_of_canonical_id(wanted)) +
                                        ", got one of " + jit::type_text(tag->type));
      return {};
    }
  }
  return {};
}

}  // namespace

Status Instance::match_imports(const std::vector<Extern>& imports) const {
  if (imports.size() != module_->imports.size())
    return make_error(ErrorKind::kLink, "unknown import: " + std::to_string(imports.size()) + " values for " +
                                            std::to_string(module_->imports.size()) + " imports");
  for (size_t i = 0; i < imports.size(); i++)
    HINDSIGHT_TRY(match(module_->imports[i], imports[i], type_ids_));
  return {};
}

void Instance::link_function(FuncIndex f, const Func& import) {
  jit::FuncRef* copy = func_ref(f);
  copy->type_id = import.ref->type_id;
  copy->func_index = import.ref->func_index;
  if (import.host != nullptr) {
    copy->callee_context = store_.bind(*import.host, *this);
    copy->owner = nullptr;
    copy->code.store(import.host->code, std::memory_order_release);
    return;
  }
  // A re-exported import leads to its definer, so that publishing knows one list of copies.
  copy->callee_context = import.ref->callee_context;
  copy->owner = import.ref->owner;
  static_cast<Instance*>(import.ref->owner)->add_alias(FuncIndex(import.ref->func_index), copy);
}

Status Instance::allocate(const std::vector<Extern>& imports) {
  const size_t bytes = layout_.total_bytes();
  void* p = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
  if (p == nullptr) return make_error(ErrorKind::kResource, "no memory for an instance's context");
  context_memory_.reset(static_cast<std::byte*>(p));
  std::memset(p, 0, bytes);
  context_ = new (p) jit::VmContext{};
  context_->thread = store_.thread();
  context_->builtins = store_.services().builtins;
  context_->instance = this;

  context_->type_ids = type_ids_.data();

  uint32_t next_func = 0;
  for (size_t i = 0; i < imports.size(); i++) {
    const Extern& value = imports[i];
    switch (kind_of(value)) {
      case wasm::ExternKind::kFunc:
        link_function(FuncIndex(next_func++), std::get<Func>(value));
        break;
      case wasm::ExternKind::kTable:
        tables_.push_back(std::get<Table*>(value));
        break;
      case wasm::ExternKind::kMemory:
        memories_.push_back(std::get<Memory*>(value));
        // It may be another store's, and outlives that one.
        if (memories_.back()->type().shared) store_.keep_memory(memories_.back()->shared_from_this());
        break;
      case wasm::ExternKind::kGlobal:
        globals_.push_back(std::get<Global*>(value));
        imported_globals_.push_back(globals_.back()->cell());
        break;
      case wasm::ExternKind::kTag:
        tags_.push_back(std::get<Tag*>(value));
        break;
    }
  }
  context_->imported_globals = imported_globals_.data();

  for (uint32_t i = module_->imported_functions; i < module_->function_count(); i++) {
    jit::FuncRef* ref = func_ref(FuncIndex(i));
    ref->callee_context = context_;
    ref->type_id = type_ids_[module_->functions[i].value];
    ref->func_index = i;
    ref->owner = this;
  }
  for (uint32_t i = module_->imported_tables; i < module_->tables.size(); i++) {
    wasm::TableType type = module_->tables[i];
    type.element = jit::canonical_type(type.element, type_ids_);
    HINDSIGHT_ASSIGN(Table * table, store_.add_table(type));
    tables_.push_back(table);
  }
  for (const wasm::TableInit& init : module_->table_inits)
    tables_[init.table]->fill(0, tables_[init.table]->size(), reinterpret_cast<void*>(evaluate(init.value)));
  for (Table* table : tables_) table_records_.push_back(table->record());
  context_->tables = table_records_.data();
  for (uint32_t i = module_->imported_memories; i < module_->memories.size(); i++) {
    HINDSIGHT_ASSIGN(Memory * memory, store_.add_memory(module_->memories[i], i));
    memories_.push_back(memory);
  }
  if (!memories_.empty()) {
    context_->memory = memories_[0]->record();
    context_->memory_base = memories_[0]->base();
  }
  for (uint32_t i = 0; i < memories_.size(); i++)
    new (context_memory_.get() + layout_.memory_cell(i)) jit::MemoryCell(memories_[i]->cell());
  for (uint32_t i = module_->imported_tags; i < module_->tags.size(); i++)
    tags_.push_back(store_.add_tag(type_ids_[module_->tags[i].value], module_->tag_name(i)));
  for (uint32_t i = 0; i < tags_.size(); i++)
    *reinterpret_cast<const void**>(context_memory_.get() + layout_.tag(i)) = tags_[i];
  for (uint32_t i = module_->imported_globals; i < module_->globals.size(); i++) {
    auto* cell = reinterpret_cast<jit::GlobalCell*>(context_memory_.get() + layout_.global(i));
    wasm::GlobalType type = module_->globals[i].type;
    type.type = jit::canonical_type(type.type, type_ids_);
    globals_.push_back(store_.add_global(type, cell));
    const wasm::ConstExpr& init = module_->globals[i].init;
    const bool copies = init.kind == wasm::ConstExpr::Kind::kGlobalGet;
    globals_.back()->set_bits(evaluate(init), copies ? globals_[init.index]->high_bits() : init.high);
  }
  elements_.resize(module_->elements.size());
  for (size_t i = 0; i < elements_.size(); i++) {
    const wasm::ElementSegment& segment = module_->elements[i];
    if (segment.mode == wasm::ElementSegment::Mode::kDeclared) continue;  // dropped from the start
    elements_[i].reserve(segment.items.size());
    for (const wasm::ConstExpr& item : segment.items)
      elements_[i].push_back(reinterpret_cast<void*>(evaluate(item)));
  }
  data_sizes_.reserve(module_->data.size());
  for (const wasm::DataSegment& segment : module_->data) data_sizes_.push_back(segment.size);
  return {};
}

uint64_t Instance::evaluate(const wasm::ConstExpr& init) const {
  switch (init.kind) {
    case wasm::ConstExpr::Kind::kI32:
    case wasm::ConstExpr::Kind::kI64:
    case wasm::ConstExpr::Kind::kF32:
    case wasm::ConstExpr::Kind::kF64:
    case wasm::ConstExpr::Kind::kV128:
      return init.bits;
    case wasm::ConstExpr::Kind::kGlobalGet:
      return globals_[init.index]->bits();
    case wasm::ConstExpr::Kind::kRefNull:
      return 0;
    case wasm::ConstExpr::Kind::kRefFunc:
      return reinterpret_cast<uintptr_t>(func_ref(FuncIndex(init.index)));
    case wasm::ConstExpr::Kind::kCode:
      return run_const_ops(std::span(module_->const_ops).subspan(init.index, init.bits));
  }
  return 0;
}

// Arithmetic on constants and globals: its result is an integer.
uint64_t Instance::run_const_ops(std::span<const wasm::ConstOp> ops) const {
  std::vector<uint64_t> stack;
  for (const wasm::ConstOp& op : ops) {
    switch (op.opcode) {
      case wasm::Opcode::kI32Const:
      case wasm::Opcode::kI64Const:
        stack.push_back(op.bits);
        break;
      case wasm::Opcode::kGlobalGet:
        stack.push_back(globals_[op.bits]->bits());
        break;
      default: {
        const uint64_t b = stack.back();
        stack.pop_back();
        stack.back() = wasm::const_arithmetic(op.opcode, stack.back(), b);
      }
    }
  }
  return stack.back();
}

Status Instance::run_segments() {
  const auto trap = [&](jit::TrapCode code, const char* what, size_t index) {
    store_.trap = GuestTrap{
        .code = code, .detail = std::string(what) + " segment " + std::to_string(index), .frames = {}};
    return make_error(ErrorKind::kTrap, jit::to_string(code));
  };
  for (uint32_t i = 0; i < elements_.size(); i++) {
    const wasm::ElementSegment& segment = module_->elements[i];
    if (segment.mode != wasm::ElementSegment::Mode::kActive) continue;
    const auto offset = static_cast<uint32_t>(evaluate(segment.offset));
    if (!table_init(i, segment.table, offset, 0, static_cast<uint32_t>(segment.items.size())))
      return trap(jit::TrapCode::kTableOutOfBounds, "element", i);
    drop_elements(i);
  }
  for (uint32_t i = 0; i < data_sizes_.size(); i++) {
    const wasm::DataSegment& segment = module_->data[i];
    if (!segment.active) continue;
    const uint64_t value = evaluate(segment.offset);
    const uint64_t offset = module_->memories[segment.memory].is64 ? value : static_cast<uint32_t>(value);
    if (!memory_init(i, segment.memory, offset, 0, segment.size))
      return trap(jit::TrapCode::kMemoryOutOfBounds, "data", i);
    drop_data(i);
  }
  return {};
}

Result<Instance*> Instance::instantiate(Store& store, std::shared_ptr<const wasm::Module> module,
                                        std::shared_ptr<CodeSource> code,
                                        const std::vector<Extern>& imports) {
  store.trap.reset();
  HINDSIGHT_TRY(store.budget()->take_types(module));
  std::unique_ptr<Instance> made(new Instance(store, std::move(module), std::move(code)));
  HINDSIGHT_ASSIGN(made->type_ids_, jit::TypeIds::of(*made->module_));
  HINDSIGHT_TRY(made->match_imports(imports));
  HINDSIGHT_TRY(made->allocate(imports));
  HINDSIGHT_TRY(made->code_->attach(*made));
  Instance* instance = store.add_instance(std::move(made));
  HINDSIGHT_TRY(instance->run_segments());
  return instance;
}

}  // namespace hindsight::rt
