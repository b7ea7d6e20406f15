// Whether small pages get slower once huge pages lie beside them, tried in a place of its own: some of both, whose small pages are
// looked at again and again for a while.
//
// In a virtual machine the host may keep the page tables that the processor walks. Below PVM (Linux 6.18) it forgets all of a GiB's
// small pages when there is a huge page in it, twice a second: some 5 us a page at its next access, in nobody's page faults. With
// 256 MiB on small pages and 32 on huge ones that was 0.3 s each time. All small or all huge is looked up once.
//
// Monitor thread only.
#pragma once

#include <chrono>
#include <cstdint>

namespace hindsight::rt {

class BesideHuge {
 public:
  using Time = std::chrono::steady_clock::time_point;
  BesideHuge() = default;
  ~BesideHuge();
  BesideHuge(const BesideHuge&) = delete;
  BesideHuge& operator=(const BesideHuge&) = delete;

  // Makes the place at the first call, some 2 ms of CPU time, more where a page fault is dear; looks at it at
  // the others, every 20 ms, some 30 us.
  void look(Time now);
  // It has been looked at for long enough, or there is nothing to look at.
  bool is_known() const { return known_; }
  // It mostly will be, soon.
  bool is_awaited() const { return awaited_; }
  bool is_slower() const { return slower_; }

 private:
  void begin(Time now);
  void end();

  void* place_ = nullptr;
  uint64_t small_ = 0;  // address of the small pages
  Time begun_, last_;
  bool known_ = false, slower_ = false, awaited_ = false;
};

}  // namespace hindsight::rt
