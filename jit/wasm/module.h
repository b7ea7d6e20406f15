// Module: one decoded and validated WebAssembly module, immutable after decode_module() and shared by all
// instances and all compilers. It owns a copy of its bytes; everything else refers into them by WasmOffset.
//
// Invariant: a Module exists only if the whole binary was valid. Both tiers therefore trust every index, type
// and nesting in it, and never re-check. The decoder is the sandbox's wall.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "jit/wasm/opcodes.h"
#include "jit/wasm/types.h"

namespace hindsight::wasm {

// A constant initializer. `bits` holds the value's bit pattern for the four kinds of numbers and the low half
// of a vector's. What is known only at instantiation and takes more than one instruction is kCode:
// Module::const_ops[index, index + bits).
struct ConstExpr {
  enum class Kind : uint8_t { kI32, kI64, kF32, kF64, kGlobalGet, kRefNull, kRefFunc, kV128, kCode };
  Kind kind = Kind::kI32;
  uint64_t bits = 0;
  uint32_t index = 0;  // of the global or function
  uint64_t high = 0;   // kV128
};

// An instruction of such an initializer, for a stack machine.
struct ConstOp {
  Opcode opcode = Opcode::kI32Const;
  uint64_t bits = 0;  // the constant's bit pattern, or the index of the global or function
  uint64_t high = 0;  // v128.const: the upper half
};

struct Import {
  std::string module;
  std::string name;
  ExternKind kind = ExternKind::kFunc;
  TypeIndex func_type;  // kFunc, kTag
  TableType table;      // kTable
  MemoryType memory;    // kMemory
  GlobalType global;    // kGlobal
  WasmOffset offset;
};

struct Export {
  std::string name;
  ExternKind kind = ExternKind::kFunc;
  uint32_t index = 0;  // in the index space of its kind
};

struct Global {  // of the global index space; imported ones first
  GlobalType type;
  bool imported = false;
  ConstExpr init;  // unless imported
};

// What a table is full of from the start, unless it is null.
struct TableInit {
  uint32_t table = 0;
  ConstExpr value;
};

struct ElementSegment {
  enum class Mode : uint8_t { kActive, kPassive, kDeclared };
  Mode mode = Mode::kActive;
  ValType type = ValType::kFuncRef;
  uint32_t table = 0;
  ConstExpr offset;              // kActive
  std::vector<ConstExpr> items;  // kRefFunc, kRefNull or kGlobalGet
};

struct DataSegment {
  bool active = true;
  uint32_t memory = 0;
  ConstExpr offset;  // active
  WasmOffset begin;  // bytes [begin, begin + size) of the module
  uint32_t size = 0;
};

// One `loop` of a function, in byte order (its place in FunctionBody::loops is its LoopIndex).
struct LoopInfo {
  WasmOffset offset;  // of the `loop` opcode
  WasmOffset end;     // of its `end` opcode
  // Operand-stack values below the loop's parameters. They include the exception of each `catch` around the
  // loop, which stands on the stack below what the catch pushes (see FunctionBody::max_stack).
  uint32_t stack_height = 0;
  uint32_t param_count = 0;  // loop parameters (multi-value); they are on the stack above stack_height
  uint32_t depth = 0;        // 0 = outermost loop
  std::optional<LoopIndex> parent;
  bool reachable = true;  // false: in dead code; compilers skip it
  uint32_t selects = 0;   // in it, and in no loop of it
  uint32_t frame = 0;     // its own, in FunctionBody::loop_frames
  // Bit k: some branch in the loop, in dead code too, goes to the k-th frame around it. Bit 0 is never set. Branches are br, br_if,
  // br_table, br_on_*, return and clauses of try_table; the function's body is among the frames.
  uint64_t targets = 0;
  bool too_deep = false;  // one goes over more than 63 frames: `targets` does not say all
};

// The function's body, or a block, if, loop or handler that contains a loop, or is one.
struct LoopFrame {
  enum class Kind : uint8_t {
    kFunction,
    kBlock,
    kLoop,
    kHandler
  };  // kHandler: try, catch, try_table with clauses
  Kind kind = Kind::kFunction;
  WasmOffset offset;         // of its opcode; of a function's body its first instruction
  uint32_t type_offset = 0;  // of its block type's bytes in the module; of a function's body 0
  uint32_t height = 0;       // operands below its parameters, as LoopInfo::stack_height counts them
  uint32_t parent = ~0u;     // in FunctionBody::loop_frames; of a function's body ~0
};

struct FunctionBody {
  WasmOffset begin;             // first instruction (after the local declarations)
  WasmOffset end;               // one past the final `end`
  std::vector<ValType> locals;  // parameters first, then declared locals
  // Highest operand-stack height, in values. The body of a `catch` or `catch_all` has one more than the
  // program knows of, the caught exception, for `rethrow`.
  uint32_t max_stack = 0;
  uint32_t max_control_depth = 0;  // nesting of blocks
  std::vector<LoopInfo> loops;
  std::vector<LoopFrame> loop_frames;  // each once, parents before children; empty without loops
  bool has_calls = false;              // any call, ref.func, memory.grow or bulk/table operation
  bool has_memory_access = false;
  bool has_tail_calls = false;          // return_call and its kin
  bool uses_v128 = false;               // a local or an operand is a vector
  bool has_handlers = false;            // try, try_table
  uint32_t branches_outside_loops = 0;  // if, br_if, br_table, br_on_*
};

// Advice about an `if` or `br_if` (or about something else, to no effect).
struct BranchHint {
  FuncIndex function;
  WasmOffset offset;    // of its opcode
  bool likely = false;  // the condition mostly holds; otherwise it mostly does not
};

struct CustomSection {
  std::string name;
  WasmOffset begin;  // contents, after the name: bytes [begin, begin + size) of the module
  uint32_t size = 0;
};

// What decoding did, and what it passed over.
struct DecodeStats {
  uint64_t steps = 0;  // units of decoding and validating work; linear in the module's size
  uint64_t instructions = 0;
  uint32_t custom_sections_skipped = 0;  // all but the name section and the one with branch hints
  uint32_t name_errors = 0;              // malformed or contradictory parts of name sections, ignored
  uint32_t branch_hint_errors = 0;       // malformed sections and hints without a place, ignored
};

class Module {
 public:
  std::string name;  // from the file or the name section; for messages
  std::vector<uint8_t> bytes;

  std::vector<FuncType> types;
  std::vector<uint32_t> canonical_types;  // of each type the first one that is equal to it
  std::vector<Import> imports;
  std::vector<TypeIndex> functions;  // function index space, imported ones first
  uint32_t imported_functions = 0;
  std::vector<TableType> tables;  // index spaces, imported ones first
  uint32_t imported_tables = 0;
  std::vector<TableInit> table_inits;
  std::vector<MemoryType> memories;
  uint32_t imported_memories = 0;
  std::vector<Global> globals;
  uint32_t imported_globals = 0;
  std::vector<TypeIndex> tags;  // index space, imported ones first; their types have no results
  uint32_t imported_tags = 0;
  std::vector<ConstOp> const_ops;  // see ConstExpr
  std::vector<Export> exports;
  std::optional<FuncIndex> start;
  std::vector<ElementSegment> elements;
  std::vector<DataSegment> data;
  std::vector<FunctionBody> bodies;            // [i] is function imported_functions + i
  std::vector<bool> declared_function_refs;    // functions that ref.func may name
  std::vector<BranchHint> branch_hints;        // sorted by offset
  std::vector<CustomSection> custom_sections;  // all, in order

  const FuncType& type_of(FuncIndex f) const { return types[functions[f.value].value]; }
  const FuncType& type_of_tag(uint32_t tag) const { return types[tags[tag].value]; }
  bool is_imported(FuncIndex f) const { return f.value < imported_functions; }
  const FunctionBody& body(FuncIndex f) const { return bodies[f.value - imported_functions]; }
  uint32_t function_count() const { return static_cast<uint32_t>(functions.size()); }
  // Which way the module says that the instruction at `offset` goes, if it says so. O(log n).
  std::optional<bool> branch_hint(WasmOffset offset) const;
  const Export* find_export(std::string_view export_name) const;

  // From the name section, else the export name, else "func[12]". Never empty.
  std::string function_name(FuncIndex f) const;
  // From the name section, else the export name, else the import's name, else "tag[12]".
  std::string tag_name(uint32_t tag) const;
  // The SHA-256 of `bytes`: what is kept of a module from one process to the next is found by it. Computed when it is
  // first asked for (half a millisecond a megabyte). Any thread.
  const std::array<uint8_t, 32>& content_hash() const;
  // The same in lower-case hexadecimal digits.
  std::string content_hash_hex() const;
  // What active segments with constant offsets put into a table; nothing if none of them does, or if it is null. What
  // the table holds later, or when it is imported, is another matter. O(segments).
  std::optional<FuncIndex> initial_element(uint32_t table, uint32_t element) const;
  // The function whose body holds `offset`, if any. O(log n).
  std::optional<FuncIndex> function_at(WasmOffset offset) const;

  std::vector<std::pair<uint32_t, std::string>> function_names;  // sorted by index; from the name section
  std::vector<std::pair<uint32_t, std::string>> tag_names;

  // Orders of `exports`: by name (for find_export), and the functions among them by function index.
  std::vector<uint32_t> exports_by_name;
  std::vector<uint32_t> function_exports;

  DecodeStats decode_stats;

 private:
  mutable std::once_flag hashed_;
  mutable std::array<uint8_t, 32> content_hash_{};  // written once, by call_once
};

// Decodes and validates in one streaming pass, linear in the size. `name` is used in messages only.
// Errors: kBadModule or kUnsupported (feature or limit named), always with the byte offset.
Result<std::shared_ptr<const Module>> decode_module(std::span<const uint8_t> bytes, std::string name);

// Text format -> binary: the syntax is judged, the meaning is decode_module's (see text/assembler.h). Any thread may call it.
// Errors: kBadModule; the message begins with line:column.
Result<std::vector<uint8_t>> assemble_text(std::string_view text, std::string_view name);

// True if `bytes` start with the binary magic number.
bool is_binary_module(std::span<const uint8_t> bytes);

// True if `bytes` begin as text does: with a parenthesis or a comment, after blanks.
bool is_text_module(std::span<const uint8_t> bytes);

// decode_module of a binary module, or of what assemble_text makes of text; bytes that are neither are refused with the first
// of them. Errors of text have a line and column in the message, and no offset.
Result<std::shared_ptr<const Module>> read_module(std::span<const uint8_t> bytes, std::string name);

}  // namespace hindsight::wasm
