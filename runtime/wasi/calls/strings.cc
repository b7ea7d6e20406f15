// Arguments and environment: two blocks of NUL-terminated strings with a table of pointers each.
#include <string>
#include <vector>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {
namespace {

uint64_t total_size(const std::vector<std::string>& strings) {
  uint64_t size = 0;
  for (const std::string& string : strings) size += string.size() + 1;
  return size;
}

Errno store_sizes(GuestMemory memory, const std::vector<std::string>& strings, uint32_t count,
                  uint32_t size) {
  const uint64_t total = total_size(strings);
  if (total > UINT32_MAX || strings.size() > UINT32_MAX) return Errno::kOverflow;
  if (!memory.store(count, static_cast<uint32_t>(strings.size()))) return Errno::kFault;
  if (!memory.store(size, static_cast<uint32_t>(total))) return Errno::kFault;
  return Errno::kSuccess;
}

Errno store_strings(GuestMemory memory, const std::vector<std::string>& strings, uint32_t pointers,
                    uint32_t bytes) {
  if (!memory.contains(pointers, strings.size() * sizeof(uint32_t))) return Errno::kFault;
  if (!memory.contains(bytes, total_size(strings))) return Errno::kFault;
  uint64_t pointer = pointers;
  uint64_t at = bytes;
  for (const std::string& string : strings) {
    if (!memory.store(pointer, static_cast<uint32_t>(at))) return Errno::kFault;
    if (!memory.store_bytes(at, string.c_str(), string.size() + 1)) return Errno::kFault;
    pointer += sizeof(uint32_t);
    at += string.size() + 1;
  }
  return Errno::kSuccess;
}

}  // namespace

Errno args_get(WasiContext& context, GuestMemory memory, uint32_t pointers, uint32_t bytes) {
  return store_strings(memory, context.args(), pointers, bytes);
}

Errno args_sizes_get(WasiContext& context, GuestMemory memory, uint32_t count, uint32_t size) {
  return store_sizes(memory, context.args(), count, size);
}

Errno environ_get(WasiContext& context, GuestMemory memory, uint32_t pointers, uint32_t bytes) {
  return store_strings(memory, context.env(), pointers, bytes);
}

Errno environ_sizes_get(WasiContext& context, GuestMemory memory, uint32_t count, uint32_t size) {
  return store_sizes(memory, context.env(), count, size);
}

}  // namespace hindsight::wasi::calls
