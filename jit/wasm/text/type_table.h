// The types of a module in the making. First are those that the text defines. After them come those of functions,
// blocks and calls that spell a type out which no definition gives.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/wasm/text/encoder.h"
#include "jit/wasm/text/index_space.h"

namespace hindsight::wasm::text {

// Encoded value types one after the other, and how many they are.
struct Signature {
  Encoder params;
  Encoder results;
  uint32_t param_count = 0;
  uint32_t result_count = 0;

  bool empty() const { return param_count == 0 && result_count == 0; }
  // The binary format's parameters and results of a function type.
  void encode(Encoder& out) const {
    out.unsigned_leb(param_count);
    out.raw(params.bytes());
    out.unsigned_leb(result_count);
    out.raw(results.bytes());
  }
};

class TypeTable {
 public:
  // The next type that the text defines. `findable`: it stands for its signature wherever one is spelled out. That
  // holds for function types that are alone in their group, final, and without a supertype.
  void define_function(const Signature& signature, bool findable);
  void define_other() { types_.push_back({}); }

  // After all definitions: the type of that signature, the first one, or one that is added after all others.
  uint32_t find_or_add(const Signature& signature);

  // The number of parameters of a function type; nothing for other types and those that do not exist.
  std::optional<uint32_t> param_count(uint32_t index) const;
  // Whether type `index` is a function type of exactly this signature.
  bool is(uint32_t index, const Signature& signature) const;

  // Names of the fields of type `index`, a structure.
  IndexSpace& fields_of(uint32_t index) { return fields_[index]; }
  const std::map<uint32_t, IndexSpace>& fields() const { return fields_; }

  // The types that find_or_add added, each encoded as a type section has it.
  const Encoder& added() const { return added_; }
  uint32_t added_count() const { return added_count_; }

 private:
  struct Type {
    bool function = false;
    uint32_t param_count = 0;
    std::string encoded;  // Signature::encode
  };

  std::deque<Type> types_;
  std::map<std::string_view, uint32_t> by_signature_;  // into types_, whose elements stay where they are
  std::map<uint32_t, IndexSpace> fields_;
  Encoder added_;
  uint32_t added_count_ = 0;
};

}  // namespace hindsight::wasm::text
