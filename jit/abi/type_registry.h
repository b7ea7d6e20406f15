// Canonical signature ids: equal function types of all modules in the process have the same id, so that
// call_indirect compares one integer. Thread-safe (mutex).
//
// An id lasts as long as somebody holds it: a TypeId, or the TypeIds of a module. Then the registry forgets the type, and the number may
// come to stand for another one. Why no two types are ever taken for each other: an id is compared with one in a FuncRef. Whoever compares
// holds the one, and whoever owns the FuncRef holds the other. These compare: an instance (its type_ids), code that has the number in its
// instructions (CodeVersion::types), trampolines, the linker with an instance in its hands. FuncRefs are in instances and in host
// functions. Two ids that are held at the same time are equal exactly if their types are.
//
// A type may refer to others: references to functions of one type. Within a module such a ValType has an index into the module's types.
// What crosses modules, which is every type that this header returns, has the id there. So ValTypes compare as equal, and as subtypes,
// between modules too. A type holds those that it refers to.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jit/wasm/module.h"
#include "jit/wasm/types.h"

namespace hindsight::jit {

// One id, held; or none.
class TypeId {
 public:
  TypeId() = default;
  // Precondition: `type` refers to no other type, or refers to types by ids that are held.
  explicit TypeId(const wasm::FuncType& type);
  // One more hold of an id that somebody holds.
  static TypeId again(uint32_t id);
  TypeId(TypeId&& other) noexcept : id_(std::exchange(other.id_, kNone)) {}
  TypeId& operator=(TypeId&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~TypeId();

  // Not of none.
  uint32_t value() const { return id_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t id_ = kNone;
};

// Holds the ids of all types of a module, in its order.
class TypeIds {
 public:
  TypeIds() = default;
  // Linear. kResource where there are more types in the process than a ValType can name (wasm::kMaxTypeIndex).
  static Result<TypeIds> of(const wasm::Module& module);
  TypeIds(TypeIds&& other) noexcept : ids_(std::exchange(other.ids_, {})) {}
  TypeIds& operator=(TypeIds&& other) noexcept {
    std::swap(ids_, other.ids_);
    return *this;
  }
  ~TypeIds();

  operator std::span<const uint32_t>() const { return ids_; }
  uint32_t operator[](size_t index) const { return ids_[index]; }
  const uint32_t* data() const { return ids_.data(); }

 private:
  std::vector<uint32_t> ids_;
};

// A type of the module whose ids these are, as others see it.
wasm::ValType canonical_type(wasm::ValType type, std::span<const uint32_t> ids);
// Whether its id can be known without the module.
bool refers_to_types(const wasm::FuncType& type);
// The type of an id that is held. The reference stays valid as long as it is.
const wasm::FuncType& type_of_canonical_id(uint32_t id);
// How many types somebody holds.
size_t registered_types();

}  // namespace hindsight::jit
