// Value types and the names of what we refuse: one place knows which byte belongs to which proposal.
#include <fmt/format.h>

#include "jit/wasm/function_validator.h"

namespace hindsight::wasm {

namespace {

const char* feature_of_type(uint8_t byte) {
  switch (byte) {
    case 0x64:
    case 0x63:
    case 0x62:
      return "typed function references";
    case 0x74:
      return "exception handling (noexn)";
    case 0x68:
    case 0x75:
      return "stack switching";
    case 0x6a:
    case 0x6b:
    case 0x6c:
    case 0x6d:
    case 0x6e:
    case 0x71:
    case 0x72:
    case 0x73:
      return "garbage collection (reference types)";
    default:
      return nullptr;
  }
}

}  // namespace

const char* feature_of_opcode(uint8_t code) {
  switch (code) {
    case 0x14:
    case 0x15:
    case 0xd4:
    case 0xd5:
    case 0xd6:
      return "typed function references";
    case 0xd3:
    case 0xfb:
      return "garbage collection";
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xe4:
    case 0xe5:
      return "stack switching";
    default:
      return nullptr;
  }
}

bool read_value_type(ByteReader& reader, ValType& out) {
  const uint32_t at = reader.offset();
  uint8_t byte = 0;
  if (!reader.u8(byte)) return false;
  switch (static_cast<ValType>(byte)) {
    case ValType::kI32:
    case ValType::kI64:
    case ValType::kF32:
    case ValType::kF64:
    case ValType::kV128:
    case ValType::kFuncRef:
    case ValType::kExternRef:
    case ValType::kExnRef:
      out = static_cast<ValType>(byte);
      return true;
    default:
      break;
  }
  if (const char* feature = feature_of_type(byte)) return reader.unsupported(at, feature);
  return reader.fail(at, fmt::format("malformed value type 0x{:02x}", byte));
}

bool read_reference_type(ByteReader& reader, ValType& out) {
  const uint32_t at = reader.offset();
  uint8_t byte = 0;
  if (!reader.u8(byte)) return false;
  const auto type = static_cast<ValType>(byte);
  if (is_reference(type)) {
    out = type;
    return true;
  }
  const char* feature = feature_of_type(byte);
  if (feature != nullptr) return reader.unsupported(at, feature);
  return reader.fail(at, fmt::format("malformed reference type 0x{:02x}", byte));
}

}  // namespace hindsight::wasm
