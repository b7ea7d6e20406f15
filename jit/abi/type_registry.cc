#include "jit/abi/type_registry.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <queue>
#include <set>

#include "base/fork_gate.h"

namespace hindsight::jit {
namespace {

// What stands for a type in its own definition. No id reaches it.
constexpr uint32_t kThisType = wasm::kMaxTypeIndex;

// A type with references by ids; its own is kThisType in what is looked for, and its id in what is kept.
constexpr uint32_t kNobody = ~uint32_t{0};

struct Kept {
  wasm::FuncType type;
  uint32_t id = 0;
  mutable uint32_t holds = 0;
  mutable uint32_t next_to_go = kNobody;  // while it goes (let_go)
};

// Orders kept types and those that are looked for: any order in which equal ones are equal. Trees are no
// slower for types that somebody chose.
struct Less {
  using is_transparent = void;
  struct Key {
    const wasm::FuncType& type;
    uint32_t id;
  };
  static Key key(const Kept& kept) { return {kept.type, kept.id}; }
  static Key key(const wasm::FuncType& type) { return {type, kThisType}; }

  static int compare(const std::vector<wasm::ValType>& a, uint32_t id_of_a,
                     const std::vector<wasm::ValType>& b, uint32_t id_of_b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    const auto word = [](wasm::ValType type, uint32_t id) {
      const bool own = wasm::is_typed_ref(type) && wasm::type_index(type) == id;
      return uint64_t{own} << 32 | static_cast<uint32_t>(own ? wasm::kind_of(type) : type) |
             uint64_t{own && wasm::is_non_null(type)} << 33;
    };
    for (size_t i = 0; i < a.size(); i++) {
      const uint64_t x = word(a[i], id_of_a), y = word(b[i], id_of_b);
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  }
  template <typename A, typename B>
  bool operator()(const A& left, const B& right) const {
    const Key a = key(left), b = key(right);
    if (const int params = compare(a.type.params, a.id, b.type.params, b.id)) return params < 0;
    return compare(a.type.results, a.id, b.type.results, b.id) < 0;
  }
};

wasm::ValType with_index(wasm::ValType type, uint32_t index) {
  const wasm::ValType changed = wasm::typed_ref(index);
  return wasm::is_non_null(type) ? wasm::non_null(changed) : changed;
}

template <typename Type, typename Visit>
void visit_references(Type& type, const Visit& visit) {
  for (auto* list : {&type.params, &type.results})
    for (auto& t : *list)
      if (wasm::is_typed_ref(t)) visit(t);
}

struct Registry {
  ForkSafeMutex mutex;             // protects all members
  std::set<Kept, Less> types;      // its nodes stay where they are
  std::vector<const Kept*> by_id;  // null: free
  // Lowest first, so that by_id can shrink. Some may be in use again, or lie beyond its end.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;

  uint32_t hold(const wasm::FuncType& type) {
    auto it = types.find(type);
    if (it == types.end()) {
      const uint32_t id = new_id();
      Kept kept{.type = type, .id = id};
      visit_references(kept.type, [&](wasm::ValType& t) {
        if (wasm::type_index(t) == kThisType) t = with_index(t, id);
      });
      it = types.insert(std::move(kept)).first;
      by_id[id] = &*it;
      // After everything that there may be no memory for.
      visit_references(it->type, [&](wasm::ValType t) {
        if (wasm::type_index(t) != id) by_id[wasm::type_index(t)]->holds++;
      });
    }
    it->holds++;
    return it->id;
  }

  // Types go in destructors, also where there is no memory: nothing is made for that.
  void let_go(uint32_t first) noexcept {
    // Those that it refers to go in their turn; a chain of them may be long.
    uint32_t going = kNobody;
    const auto drop = [&](uint32_t id) {
      if (--by_id[id]->holds != 0) return;
      by_id[id]->next_to_go = going;
      going = id;
    };
    drop(first);
    while (going != kNobody) {
      const uint32_t id = going;
      const Kept& kept = *by_id[id];
      going = kept.next_to_go;
      visit_references(kept.type, [&](wasm::ValType t) {
        if (wasm::type_index(t) != id) drop(wasm::type_index(t));
      });
      types.erase(types.find(kept));
      by_id[id] = nullptr;
      try {
        free.push(id);
      } catch (const std::bad_alloc&) {  // found again by shrink(), or not used again
      }
    }
  }

  // After some have gone. Time in proportion to them, taken over many calls.
  void shrink() noexcept {
    while (!by_id.empty() && by_id.back() == nullptr) by_id.pop_back();
    if (by_id.size() < by_id.capacity() / 2) by_id.shrink_to_fit();
    if (free.size() <= 2 * by_id.size()) return;
    free = {};
    try {
      for (uint32_t id = 0; id < by_id.size(); id++)
        if (by_id[id] == nullptr) free.push(id);
    } catch (const std::bad_alloc&) {  // those that are missing are not used again
    }
  }

 private:
  uint32_t new_id() {
    while (!free.empty()) {
      const uint32_t id = free.top();
      free.pop();
      if (id < by_id.size() && by_id[id] == nullptr) return id;
    }
    by_id.push_back(nullptr);
    return static_cast<uint32_t>(by_id.size() - 1);
  }
};

// Never destroyed: generated code and detached threads may outlive static destructors.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

}  // namespace

TypeId::TypeId(const wasm::FuncType& type) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  id_ = r.hold(type);
}

TypeId TypeId::again(uint32_t id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.by_id[id]->holds++;
  TypeId held;
  held.id_ = id;
  return held;
}

TypeId::~TypeId() {
  if (id_ == kNone) return;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.let_go(id_);
  r.shrink();
}

Result<TypeIds> TypeIds::of(const wasm::Module& module) {
  TypeIds made;
  std::vector<uint32_t>& ids = made.ids_;
  ids.reserve(module.types.size());
  const auto too_many = [&] {
    return make_error(ErrorKind::kResource, "the process has too many function types", module.name);
  };
  Registry& r = registry();
  for (uint32_t i = 0; i < module.types.size(); ++i) {
    // Each by itself: others, and forks, need not wait for a million.
    const std::lock_guard lock(r.mutex);
    const uint32_t first = module.canonical_types[i];
    if (first != i) {
      r.by_id[ids[first]]->holds++;
      ids.push_back(ids[first]);
    } else if (!refers_to_types(module.types[i])) {
      ids.push_back(r.hold(module.types[i]));
    } else {
      // Invariant: a type refers to itself and to earlier ones.
      wasm::FuncType type = module.types[i];
      bool fits = true;
      visit_references(type, [&](wasm::ValType& t) {
        const uint32_t index = wasm::type_index(t);
        if (index != i) fits = fits && ids[index] < kThisType;
        t = with_index(t, index == i || !fits ? kThisType : ids[index]);
      });
      if (!fits) return too_many();
      ids.push_back(r.hold(type));
      if (ids.back() >= kThisType) return too_many();
    }
  }
  return made;
}

TypeIds::~TypeIds() {
  if (ids_.empty()) return;
  Registry& r = registry();
  // Some at a time: others, and forks, need not wait for a million.
  constexpr size_t kAtOnce = 1024;
  for (size_t begin = 0; begin < ids_.size(); begin += kAtOnce) {
    const std::lock_guard lock(r.mutex);
    for (size_t i = begin; i < std::min(begin + kAtOnce, ids_.size()); i++) r.let_go(ids_[i]);
  }
  const std::lock_guard lock(r.mutex);
  r.shrink();
}

wasm::ValType canonical_type(wasm::ValType type, std::span<const uint32_t> ids) {
  return wasm::is_typed_ref(type) ? with_index(type, ids[wasm::type_index(type)]) : type;
}

bool refers_to_types(const wasm::FuncType& type) {
  return std::ranges::any_of(type.params, wasm::is_typed_ref) ||
         std::ranges::any_of(type.results, wasm::is_typed_ref);
}

const wasm::FuncType& type_of_canonical_id(uint32_t id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.by_id[id]->type;
}

size_t registered_types() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.types.size();
}

}  // namespace hindsight::jit
