#include "jit/abi/type_registry.h"

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

std::string key_of(const wasm::FuncType& type) {
  std::string key;
  key.reserve(type.params.size() + type.results.size() + 1);
  for (const wasm::ValType param : type.params) key.push_back(static_cast<char>(param));
  key.push_back(':');
  for (const wasm::ValType result : type.results) key.push_back(static_cast<char>(result));
  return key;
}

}  // namespace

uint32_t canonical_type_id(const wasm::FuncType& type) {
  std::string key = key_of(type);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto [it, inserted] = r.ids.try_emplace(std::move(key), static_cast<uint32_t>(r.types.size()));
  if (inserted) r.types.push_back(type);
  return it->second;
}

const wasm::FuncType& type_of_canonical_id(uint32_t id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.types[id];
}

}  // namespace hindsight::jit
