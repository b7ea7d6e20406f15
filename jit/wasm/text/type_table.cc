#include "jit/wasm/text/type_table.h"

namespace hindsight::wasm::text {

namespace {

constexpr uint8_t kFunctionForm = 0x60;

}  // namespace

void TypeTable::define_function(const Signature& signature, bool findable) {
  Encoder encoded;
  signature.encode(encoded);
  const auto index = static_cast<uint32_t>(types_.size());
  const Type& type = types_.emplace_back(Type{true, signature.param_count, std::string(encoded.view())});
  if (findable) by_signature_.emplace(type.encoded, index);
}

uint32_t TypeTable::find_or_add(const Signature& signature) {
  Encoder encoded;
  signature.encode(encoded);
  const auto found = by_signature_.find(encoded.view());
  if (found != by_signature_.end()) return found->second;
  added_.u8(kFunctionForm);
  added_.raw(encoded.bytes());
  ++added_count_;
  define_function(signature, true);
  return static_cast<uint32_t>(types_.size() - 1);
}

std::optional<uint32_t> TypeTable::param_count(uint32_t index) const {
  if (index >= types_.size() || !types_[index].function) return std::nullopt;
  return types_[index].param_count;
}

bool TypeTable::is(uint32_t index, const Signature& signature) const {
  if (index >= types_.size() || !types_[index].function) return false;
  Encoder encoded;
  signature.encode(encoded);
  return encoded.view() == types_[index].encoded;
}

}  // namespace hindsight::wasm::text
