// The names of one kind of thing (functions, a function's locals, a structure's fields) and their indices, in the order of
// definition.
//
// Names are in a balanced tree, not in a hash table. So no choice of names makes a look-up cost more than the logarithm of their number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hindsight::wasm::text {

class IndexSpace {
 public:
  // Adds one; `name` may be empty. False: the name is taken. `name` must outlive the space.
  bool add(std::string_view name) {
    const uint32_t index = size_++;
    if (name.empty()) return true;
    names_.emplace_back(index, name);
    return indices_.emplace(name, index).second;
  }
  void add_unnamed(uint32_t count) { size_ += count; }

  std::optional<uint32_t> find(std::string_view name) const {
    const auto found = indices_.find(name);
    if (found == indices_.end()) return std::nullopt;
    return found->second;
  }
  uint32_t size() const { return size_; }

  // What the name section calls `index` instead of its identifier.
  void call(uint32_t index, std::string name) { called_.insert_or_assign(index, std::move(name)); }
  const std::map<uint32_t, std::string>& called() const { return called_; }
  // Identifiers, ascending by index.
  const std::vector<std::pair<uint32_t, std::string_view>>& names() const { return names_; }

 private:
  uint32_t size_ = 0;
  std::map<std::string_view, uint32_t> indices_;
  std::vector<std::pair<uint32_t, std::string_view>> names_;
  std::map<uint32_t, std::string> called_;
};

}  // namespace hindsight::wasm::text
