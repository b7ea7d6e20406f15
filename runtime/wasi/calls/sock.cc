// Preview 1 has no way to make a socket, and Hindsight preopens none. A guest can only be handed one as a
// standard stream, where fd_read and fd_write serve it. These calls therefore only tell the mistakes apart.
#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {
namespace {

Errno refuse(WasiContext& context, uint32_t fd) {
  const auto entry = context.fds().get(fd);
  if (!entry) return entry.error();
  const Filetype type = (*entry)->filetype;
  const bool socket = type == Filetype::kSocketDgram || type == Filetype::kSocketStream;
  return socket ? Errno::kNotsup : Errno::kNotsock;
}

}  // namespace

Errno sock_accept(WasiContext& context, GuestMemory, uint32_t fd, uint32_t, uint32_t) {
  return refuse(context, fd);
}

Errno sock_recv(WasiContext& context, GuestMemory, uint32_t fd, uint32_t, uint32_t, uint32_t, uint32_t,
                uint32_t) {
  return refuse(context, fd);
}

Errno sock_send(WasiContext& context, GuestMemory, uint32_t fd, uint32_t, uint32_t, uint32_t, uint32_t) {
  return refuse(context, fd);
}

Errno sock_shutdown(WasiContext& context, GuestMemory, uint32_t fd, uint32_t) {
  return refuse(context, fd);
}

}  // namespace hindsight::wasi::calls
