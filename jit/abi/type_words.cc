#include "jit/abi/type_words.h"

#include <string_view>
#include <utility>
#include <vector>

#include "jit/abi/type_registry.h"

namespace hindsight::jit {
namespace {

// A type's words can double with each type that it refers to.
constexpr size_t kMostDepth = 4;
constexpr size_t kMostBytes = 1000;

class Words {
 public:
  void add(wasm::ValType type) {
    if (!wasm::is_typed_ref(type)) {
      text_ += wasm::to_string(type);
      return;
    }
    text_ += wasm::is_non_null(type) ? "(ref " : "(ref null ";
    add_function(wasm::type_index(type));
    text_ += ')';
  }
  void add_list(const std::vector<wasm::ValType>& types) {
    text_ += '(';
    for (size_t i = 0; i < types.size(); i++) {
      if (i != 0) text_ += ", ";
      if (is_full()) {
        text_ += "...";
        break;
      }
      add(types[i]);
    }
    text_ += ')';
  }
  void add(std::string_view words) { text_ += words; }
  std::string take() { return std::move(text_); }

 private:
  bool is_full() const { return text_.size() > kMostBytes; }

  void add_function(uint32_t id) {
    bool inside = inside_.size() >= kMostDepth || is_full();
    for (const uint32_t outer : inside_) inside = inside || outer == id;
    if (inside) {
      text_ += "(func ...)";
      return;
    }
    inside_.push_back(id);
    const wasm::FuncType& type = type_of_canonical_id(id);
    text_ += "(func";
    add_part(" (param", type.params);
    add_part(" (result", type.results);
    text_ += ')';
    inside_.pop_back();
  }
  void add_part(std::string_view head, const std::vector<wasm::ValType>& types) {
    if (types.empty()) return;
    text_ += head;
    for (const wasm::ValType type : types) {
      text_ += ' ';
      if (is_full()) {
        text_ += "...";
        break;
      }
      add(type);
    }
    text_ += ')';
  }

  std::string text_;
  std::vector<uint32_t> inside_;  // ids of the types whose words are under way
};

}  // namespace

std::string type_text(wasm::ValType type) {
  Words words;
  words.add(type);
  return words.take();
}

std::string type_text(const wasm::FuncType& type) {
  Words words;
  words.add_list(type.params);
  words.add(" -> ");
  words.add_list(type.results);
  return words.take();
}

}  // namespace hindsight::jit
