// The calls by family, each in the file named above it. Parameters are those of the specification in order.
// A pointer is an offset into guest memory, and a call writes its results through the last of them. Every
// call checks where its results go before it does anything that cannot be taken back.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/wasi/abi.h"
#include "runtime/wasi/functions.h"
#include "runtime/wasi/guest_memory.h"
#include "runtime/wasi/wasi_context.h"

namespace hindsight::wasi::calls {

// For calls that may return or may end the guest.
struct ErrnoOrExit {
  Errno error = Errno::kSuccess;
  std::optional<uint32_t> exit_code;
};

// strings.cc
Errno args_get(WasiContext&, GuestMemory, uint32_t pointers, uint32_t bytes);
Errno args_sizes_get(WasiContext&, GuestMemory, uint32_t count, uint32_t size);
Errno environ_get(WasiContext&, GuestMemory, uint32_t pointers, uint32_t bytes);
Errno environ_sizes_get(WasiContext&, GuestMemory, uint32_t count, uint32_t size);

// clock.cc
Errno clock_res_get(WasiContext&, GuestMemory, uint32_t id, uint32_t resolution);
Errno clock_time_get(WasiContext&, GuestMemory, uint32_t id, uint64_t precision, uint32_t time);

// random.cc
Errno random_get(WasiContext&, GuestMemory, uint32_t buffer, uint32_t length);

// process.cc
Outcome proc_exit(WasiContext&, GuestMemory, uint32_t code);
ErrnoOrExit proc_raise(WasiContext&, GuestMemory, uint32_t signal);
Errno sched_yield(WasiContext&, GuestMemory);

// descriptor.cc
Errno fd_close(WasiContext&, GuestMemory, uint32_t fd);
Errno fd_renumber(WasiContext&, GuestMemory, uint32_t from, uint32_t to);
Errno fd_fdstat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t stat);
Errno fd_fdstat_set_flags(WasiContext&, GuestMemory, uint32_t fd, uint32_t flags);
Errno fd_fdstat_set_rights(WasiContext&, GuestMemory, uint32_t fd, uint64_t base, uint64_t inheriting);
Errno fd_prestat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t prestat);
Errno fd_prestat_dir_name(WasiContext&, GuestMemory, uint32_t fd, uint32_t path, uint32_t length);

// file.cc
Errno fd_advise(WasiContext&, GuestMemory, uint32_t fd, uint64_t offset, uint64_t length, uint32_t advice);
Errno fd_allocate(WasiContext&, GuestMemory, uint32_t fd, uint64_t offset, uint64_t length);
Errno fd_datasync(WasiContext&, GuestMemory, uint32_t fd);
Errno fd_sync(WasiContext&, GuestMemory, uint32_t fd);
Errno fd_filestat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t stat);
Errno fd_filestat_set_size(WasiContext&, GuestMemory, uint32_t fd, uint64_t size);
Errno fd_filestat_set_times(WasiContext&, GuestMemory, uint32_t fd, uint64_t atim, uint64_t mtim,
                            uint32_t flags);
Errno fd_seek(WasiContext&, GuestMemory, uint32_t fd, uint64_t delta, uint32_t whence, uint32_t position);
Errno fd_tell(WasiContext&, GuestMemory, uint32_t fd, uint32_t position);

// transfer.cc
Errno fd_read(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint32_t done);
Errno fd_pread(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint64_t offset,
               uint32_t done);
Errno fd_write(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint32_t done);
Errno fd_pwrite(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint64_t offset,
                uint32_t done);

// readdir.cc
Errno fd_readdir(WasiContext&, GuestMemory, uint32_t fd, uint32_t buffer, uint32_t length, uint64_t cookie,
                 uint32_t used);

// path_open.cc
Errno path_open(WasiContext&, GuestMemory, uint32_t fd, uint32_t lookup, uint32_t path, uint32_t path_length,
                uint32_t open_flags, uint64_t base, uint64_t inheriting, uint32_t fd_flags, uint32_t opened);

// path.cc
Errno path_create_directory(WasiContext&, GuestMemory, uint32_t fd, uint32_t path, uint32_t path_length);
Errno path_filestat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t lookup, uint32_t path,
                        uint32_t path_length, uint32_t stat);
Errno path_filestat_set_times(WasiContext&, GuestMemory, uint32_t fd, uint32_t lookup, uint32_t path,
                              uint32_t path_length, uint64_t atim, uint64_t mtim, uint32_t flags);
Errno path_link(WasiContext&, GuestMemory, uint32_t old_fd, uint32_t old_lookup, uint32_t old_path,
                uint32_t old_length, uint32_t new_fd, uint32_t new_path, uint32_t new_length);
Errno path_readlink(WasiContext&, GuestMemory, uint32_t fd, uint32_t path, uint32_t path_length,
                    uint32_t buffer, uint32_t buffer_length, uint32_t used);
Errno path_remove_directory(WasiContext&, GuestMemory, uint32_t fd, uint32_t path, uint32_t path_length);
Errno path_rename(WasiContext&, GuestMemory, uint32_t old_fd, uint32_t old_path, uint32_t old_length,
                  uint32_t new_fd, uint32_t new_path, uint32_t new_length);
Errno path_symlink(WasiContext&, GuestMemory, uint32_t old_path, uint32_t old_length, uint32_t fd,
                   uint32_t new_path, uint32_t new_length);
Errno path_unlink_file(WasiContext&, GuestMemory, uint32_t fd, uint32_t path, uint32_t path_length);

// poll.cc
Errno poll_oneoff(WasiContext&, GuestMemory, uint32_t subscriptions, uint32_t events, uint32_t count,
                  uint32_t happened);

// Those of wasi_unstable (functions.h) that are others, beside their successors.
Errno unstable_fd_filestat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t stat);
Errno unstable_fd_seek(WasiContext&, GuestMemory, uint32_t fd, uint64_t delta, uint32_t whence,
                       uint32_t position);
Errno unstable_path_filestat_get(WasiContext&, GuestMemory, uint32_t fd, uint32_t lookup, uint32_t path,
                                 uint32_t path_length, uint32_t stat);
Errno unstable_poll_oneoff(WasiContext&, GuestMemory, uint32_t subscriptions, uint32_t events, uint32_t count,
                           uint32_t happened);

// sock.cc
Errno sock_accept(WasiContext&, GuestMemory, uint32_t fd, uint32_t flags, uint32_t accepted);
Errno sock_recv(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint32_t flags,
                uint32_t done, uint32_t flags_out);
Errno sock_send(WasiContext&, GuestMemory, uint32_t fd, uint32_t iovs, uint32_t count, uint32_t flags,
                uint32_t done);
Errno sock_shutdown(WasiContext&, GuestMemory, uint32_t fd, uint32_t how);

}  // namespace hindsight::wasi::calls
