#include "feedback/lwp/emulation/memory.h"

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace hindsight::lwp {
namespace {

class OwnMemory final : public Memory {
 public:
  bool read(uint64_t address, std::span<std::byte> out) override {
    std::memcpy(out.data(), reinterpret_cast<const void*>(address), out.size());
    return true;
  }
  bool write(uint64_t address, std::span<const std::byte> bytes) override {
    if (bytes.size() == sizeof(uint64_t) && address % sizeof(uint64_t) == 0) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof word);
      // Orders nothing: read as a statistic.
      std::atomic_ref(*reinterpret_cast<uint64_t*>(address)).store(word, std::memory_order_relaxed);
      return true;
    }
    std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
    return true;
  }
  bool load_acquire(uint64_t address, uint32_t& word) override {
    if (address % alignof(uint32_t) != 0) return Memory::load_acquire(address, word);
    word = std::atomic_ref(*reinterpret_cast<uint32_t*>(address)).load(std::memory_order_acquire);
    return true;
  }
  bool store_release(uint64_t address, uint32_t word) override {
    if (address % alignof(uint32_t) != 0) return Memory::store_release(address, word);
    std::atomic_ref(*reinterpret_cast<uint32_t*>(address)).store(word, std::memory_order_release);
    return true;
  }
};

}  // namespace

bool Memory::load_acquire(uint64_t address, uint32_t& word) {
  return read(address, std::as_writable_bytes(std::span(&word, 1)));
}

bool Memory::store_release(uint64_t address, uint32_t word) {
  return write(address, std::as_bytes(std::span(&word, 1)));
}

Memory& own_memory() {
  // Without state and destructor, so that signal handlers and ending threads may use it.
  static constinit OwnMemory memory;
  return memory;
}

bool ProcessMemory::read(uint64_t address, std::span<std::byte> out) {
  const int saved = errno;  // a signal handler's interrupted code must not see ours
  const iovec local{out.data(), out.size()};
  const iovec remote{reinterpret_cast<void*>(address), out.size()};
  const bool all = process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(out.size());
  errno = saved;
  return all;
}

bool ProcessMemory::write(uint64_t address, std::span<const std::byte> bytes) {
  const int saved = errno;
  const iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  const bool all = process_vm_writev(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes.size());
  errno = saved;
  return all;
}

}  // namespace hindsight::lwp
