// What it takes to touch memory for the first time, measured now and in a place of its own: on small pages, and on a huge one. A
// guest that is given other pages cannot be asked what the ones before would have taken it.
#pragma once

namespace hindsight::rt {

// CPU seconds of 2 MiB, with the page faults.
struct PageCosts {
  double small_seconds = 0;
  double huge_seconds = 0;  // 0: there was no huge page to be had
};

// About 2 ms, or 20 where a virtual machine has to be given the memory. Nothing is left of it. Any thread.
PageCosts measure_page_costs();

}  // namespace hindsight::rt
