// What is about the descriptor itself and not about what it refers to.
#include <fcntl.h>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {

Errno fd_close(WasiContext& context, GuestMemory, uint32_t fd) {
  return context.fds().close(fd);
}

Errno fd_renumber(WasiContext& context, GuestMemory, uint32_t from, uint32_t to) {
  return context.fds().renumber(from, to);
}

Errno fd_fdstat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t stat) {
  namespace field = layout::fdstat;
  const auto entry = context.fds().get(fd);
  if (!entry) return entry.error();
  const uint8_t zeros[field::kSize] = {};
  if (!memory.store_bytes(stat, zeros, sizeof zeros)) return Errno::kFault;
  const uint64_t at = stat;
  const bool stored = memory.store(at + field::kFiletype, (*entry)->filetype) &&
                      memory.store(at + field::kFlags, (*entry)->flags) &&
                      memory.store(at + field::kRightsBase, (*entry)->rights_base) &&
                      memory.store(at + field::kRightsInheriting, (*entry)->rights_inheriting);
  return stored ? Errno::kSuccess : Errno::kFault;
}

Errno fd_fdstat_set_flags(WasiContext& context, GuestMemory, uint32_t fd, uint32_t flags) {
  if (flags & ~uint32_t{fdflags::kAll}) return Errno::kInval;
  const auto found = context.fds().get(fd, rights::kFdFdstatSetFlags);
  if (!found) return found.error();
  FdEntry& entry = **found;
  const auto wanted = static_cast<uint16_t>(flags);
  const uint16_t changed = entry.flags ^ wanted;
  // Linux cannot change the synchronous modes of an open file.
  if (changed & (fdflags::kDsync | fdflags::kRsync | fdflags::kSync)) return Errno::kNotsup;
  if (changed & fdflags::kAppend) {
    if (entry.kind != FdEntry::Kind::kHost) return Errno::kNotsup;
    // The standard streams share their open file with the embedder's process and others: for them the
    // change would leak out of the sandbox.
    if (entry.shared) return Errno::kNotsup;
    const int present = ::fcntl(entry.fd.get(), F_GETFL);
    if (present < 0) return last_errno();
    const int next = (wanted & fdflags::kAppend) ? present | O_APPEND : present & ~O_APPEND;
    if (::fcntl(entry.fd.get(), F_SETFL, next) != 0) return last_errno();
  }
  // kNonblock is carried out by the transfer calls and never reaches the host, for the same reason.
  entry.flags = wanted;
  return Errno::kSuccess;
}

Errno fd_fdstat_set_rights(WasiContext& context, GuestMemory, uint32_t fd, uint64_t base,
                           uint64_t inheriting) {
  const auto found = context.fds().get(fd);
  if (!found) return found.error();
  FdEntry& entry = **found;
  if ((base & ~entry.rights_base) || (inheriting & ~entry.rights_inheriting)) return Errno::kNotcapable;
  entry.rights_base = base;
  entry.rights_inheriting = inheriting;
  return Errno::kSuccess;
}

// kBadf for what is not preopened: wasi-libc asks for 3, 4, ... until it gets this answer.
Errno fd_prestat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t prestat) {
  namespace field = layout::prestat;
  const auto entry = context.fds().get(fd);
  if (!entry) return entry.error();
  if (!(*entry)->preopen_name) return Errno::kBadf;
  const uint8_t zeros[field::kSize] = {};
  if (!memory.store_bytes(prestat, zeros, sizeof zeros)) return Errno::kFault;
  const uint64_t at = prestat;
  const auto length = static_cast<uint32_t>((*entry)->preopen_name->size());
  const bool stored =
      memory.store(at + field::kTag, kPreopenTypeDir) && memory.store(at + field::kNameLen, length);
  return stored ? Errno::kSuccess : Errno::kFault;
}

// The name is not terminated; the guest knows its length from fd_prestat_get.
Errno fd_prestat_dir_name(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t path,
                          uint32_t length) {
  const auto entry = context.fds().get(fd);
  if (!entry) return entry.error();
  if (!(*entry)->preopen_name) return Errno::kBadf;
  const std::string& name = *(*entry)->preopen_name;
  if (length < name.size()) return Errno::kNametoolong;
  return memory.store_bytes(path, name.data(), name.size()) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace hindsight::wasi::calls
