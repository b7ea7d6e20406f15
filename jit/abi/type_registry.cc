#include "jit/abi/type_registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace hindsight::jit {
namespace {

struct Registry {
  std::mutex mutex;  // protects all members
  std::map<std::string, uint32_t> ids;
  std::deque<wasm::FuncType> types;  // a deque: references survive growth
};

// Never destroyed: generated code and detached threads may outlive static destructors.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

// What stands for a type in its own definition. No id reaches it.
constexpr uint32_t kThisType = wasm::kMaxTypeIndex;

wasm::ValType with_index(wasm::ValType type, uint32_t index) {
  const wasm::ValType changed = wasm::typed_ref(index);
  return wasm::is_non_null(type) ? wasm::non_null(changed) : changed;
}

std::string key_of(const wasm::FuncType& type) {
  std::string key;
  key.reserve(sizeof(wasm::ValType) * (type.params.size() + type.results.size() + 1));
  const auto add = [&](wasm::ValType t) { key.append(reinterpret_cast<const char*>(&t), sizeof(t)); };
  std::ranges::for_each(type.params, add);
  add(wasm::ValType{});
  std::ranges::for_each(type.results, add);
  return key;
}

template <typename Change>
void change_references(wasm::FuncType& type, const Change& change) {
  for (std::vector<wasm::ValType>* list : {&type.params, &type.results})
    for (wasm::ValType& t : *list)
      if (wasm::is_typed_ref(t)) t = with_index(t, change(wasm::type_index(t)));
}

}  // namespace

uint32_t canonical_type_id(const wasm::FuncType& type) {
  std::string key = key_of(type);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto [it, inserted] = r.ids.try_emplace(std::move(key), static_cast<uint32_t>(r.types.size()));
  if (inserted) {
    const uint32_t id = it->second;
    change_references(r.types.emplace_back(type),
                      [id](uint32_t index) { return index == kThisType ? id : index; });
  }
  return it->second;
}

Result<std::vector<uint32_t>> canonical_type_ids(const wasm::Module& module) {
  std::vector<uint32_t> ids;
  ids.reserve(module.types.size());
  for (uint32_t i = 0; i < module.types.size(); ++i) {
    const uint32_t first = module.canonical_types[i];
    if (first != i) {
      ids.push_back(ids[first]);
      continue;
    }
    if (!refers_to_types(module.types[i])) {
      ids.push_back(canonical_type_id(module.types[i]));
      continue;
    }
    // Invariant: a type refers to itself and to earlier ones.
    wasm::FuncType type = module.types[i];
    bool fits = true;
    change_references(type, [&](uint32_t index) {
      if (index == i) return kThisType;
      fits = fits && ids[index] < kThisType;
      return ids[index];
    });
    ids.push_back(fits ? canonical_type_id(type) : kThisType);
    if (ids.back() >= kThisType)
      return make_error(ErrorKind::kResource, "the process has had too many function types", module.name);
  }
  return ids;
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
  return r.types[id];
}

}  // namespace hindsight::jit
