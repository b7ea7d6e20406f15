// Value types and the names of what we refuse: one place knows which byte belongs to which proposal.
#include <fmt/format.h>

#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

namespace {

const char* feature_of_type(uint8_t byte) {
  switch (byte) {
    case 0x62:
      return "custom descriptors";
    case 0x65:
      return "threads (shared types)";
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

bool read_heap_type(ByteReader& reader, const Module& module, ValType& out) {
  const uint32_t at = reader.offset();
  if (!reader.at_end() && (reader.peek() & 0xc0) == 0x40) {
    const uint8_t byte = reader.peek();
    reader.skip(1);
    out = static_cast<ValType>(byte);
    if (out == ValType::kFuncRef || out == ValType::kExternRef || out == ValType::kExnRef) return true;
    if (const char* feature = feature_of_type(byte)) return reader.unsupported(at, feature);
    return reader.fail(at, fmt::format("malformed heap type 0x{:02x}", byte));
  }
  int64_t index = 0;
  if (!reader.s33(index)) return false;
  if (index < 0) return reader.fail(at, "malformed heap type");
  if (static_cast<uint64_t>(index) >= module.canonical_types.size())
    return reader.fail(at, fmt::format("unknown type {}", index));
  out = typed_ref(module.canonical_types[static_cast<size_t>(index)]);
  return true;
}

bool read_value_type(ByteReader& reader, const Module& module, ValType& out) {
  const uint32_t at = reader.offset();
  uint8_t byte = 0;
  if (!reader.u8(byte)) return false;
  if (byte == kNullableRef) return read_heap_type(reader, module, out);
  if (byte == kNonNullRef) {
    if (!read_heap_type(reader, module, out)) return false;
    out = non_null(out);
    return true;
  }
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

bool read_reference_type(ByteReader& reader, const Module& module, ValType& out) {
  const uint32_t at = reader.offset();
  if (!reader.at_end() && static_cast<ValType>(reader.peek()) >= ValType::kV128)
    return reader.fail(at, fmt::format("malformed reference type 0x{:02x}", reader.peek()));
  return read_value_type(reader, module, out);
}

}  // namespace hindsight::wasm
