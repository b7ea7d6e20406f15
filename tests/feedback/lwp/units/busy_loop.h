// Guest stand-ins. The first is a loop at known addresses in which every register but rdi (the countdown) and rsp holds
// kMarker + its encoding number.
#pragma once

#include <cstdint>

extern "C" {
void hindsight_test_busy_loop(uint64_t rounds);
extern const char hindsight_test_busy_loop_begin[];
extern const char hindsight_test_busy_loop_end[];
// Gathers from `table`. Its first eight numbers are the indices of a gather of words, the next four of one of doublewords
// in 64 bits. Needs AVX2.
void hindsight_test_gather_loop(uint64_t rounds, const uint32_t* table);
extern const char hindsight_test_gather_loop_begin[];
extern const char hindsight_test_gather_loop_end[];
}

inline constexpr uint64_t kMarker = 0x5A5A00;
