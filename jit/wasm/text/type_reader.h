// Reads types of every kind and writes them as the binary format has them.
#pragma once

#include <cstdint>

#include "jit/wasm/text/module_parts.h"

namespace hindsight::wasm::text {

// What a reference refers to: an abstract heap type by its code, or a type of the module.
struct HeapType {
  bool concrete = false;
  uint32_t value = 0;
};

struct ReferenceType {
  bool nullable = true;
  HeapType heap;

  bool is(unsigned code) const { return nullable && !heap.concrete && heap.value == code; }
};

inline constexpr unsigned kFuncCode = 0x70;  // of the heap type func, and of funcref

void encode(HeapType type, Encoder& out);
void encode(const ReferenceType& type, Encoder& out);

// A (type $t), parameters and results, any of which may be missing.
struct TypeUse {
  uint32_t index = 0;
  uint32_t param_count = 0;
  bool explicit_index = false;
  Signature spelled;
};

class TypeReader {
 public:
  explicit TypeReader(ModuleParts& parts) : parts_(parts), in_(parts.in) {}

  bool value_type(Encoder& out);
  bool heap_type(HeapType& out);
  bool reference_type(ReferenceType& out);
  // Whether the next tokens begin a reference type.
  bool at_reference_type();
  // (param ...)* (result ...)*, appended. `names`: a space for the parameters. Without it they can have no names, or, in the
  // definition of a type, names that nothing can use.
  bool signature(Signature& out, IndexSpace* names, bool unused_names = false);
  bool results(Signature& out);
  // The same after an optional (type $t). Resolves to an index at once: all types must be defined.
  bool type_use(TypeUse& out, IndexSpace* names);
  // What stands in front of a block: empty, one value type, or a type's index.
  bool block_type(Encoder& out);

  bool global_type(Encoder& out);
  // Addresses, minimum and maximum; `shareable`: `shared` may follow.
  bool limits(bool shareable, Encoder& out);
  // As limits, with a size that the contents of an inline segment give in place of a number.
  static void fixed_limits(bool is64, uint64_t size, Encoder& out);
  // An address type if there is one. True if it is i64.
  bool optional_address_type();

  // The contents of (type ...), after the identifier: structure, array or function, and what it is a subtype of. `alone`: it stands in no
  // group with others. Adds it to the table of types.
  bool definition(uint32_t index, bool alone, Encoder& out);

 private:
  bool composite(uint32_t index, bool findable, Encoder& out);
  bool field_type(Encoder& out);
  bool structure(uint32_t index, Encoder& out);

  ModuleParts& parts_;
  Cursor& in_;
};

}  // namespace hindsight::wasm::text
