// The memory that a control block and its ring live in, as software LWP sees it: this process's own, or
// another one's. An address space is a thing one can ask, because a native program may hand over any address.
// An access that fails must become its #PF and not our crash.
//
// All functions are async-signal-safe and allocate nothing. Any thread may call; accesses are ordered as each
// function says.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hindsight::lwp {

class Memory {
 public:
  // Copies out.size() bytes from, bytes.size() bytes to `address`. False if some byte of it is not
  // accessible: what `out` or the memory then holds of the rest is unspecified. An aligned word of 8
  // bytes is written whole, as whoever looks at MissedEvents expects.
  virtual bool read(uint64_t address, std::span<std::byte> out) = 0;
  virtual bool write(uint64_t address, std::span<const std::byte> bytes) = 0;

  // The two words that the ring's ends exchange while both run. What was written before the release store is
  // seen by whoever loads the stored value with acquire. The defaults are read() and write(). That is right
  // where each of them is a system call: x86 keeps stores in order, and the kernel copies four bytes at once.
  virtual bool load_acquire(uint64_t address, uint32_t& word);
  virtual bool store_release(uint64_t address, uint32_t word);

 protected:
  ~Memory() = default;  // nobody owns an address space
};

// This process's memory, accessed directly: an address that is not mapped ends the process as it would
// anywhere else. For blocks that the caller owns.
Memory& own_memory();

// The memory of a process by process_vm_readv and process_vm_writev: about a microsecond an access, and
// wrong addresses are answers. The process may be this one: then it serves a signal handler that was handed
// addresses it does not trust. Needs the rights of ptrace over any other process.
class ProcessMemory final : public Memory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  bool read(uint64_t address, std::span<std::byte> out) override;
  bool write(uint64_t address, std::span<const std::byte> bytes) override;

 private:
  pid_t pid_;
};

}  // namespace hindsight::lwp
