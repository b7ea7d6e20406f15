/* Lightweight Profiling for WebAssembly programs: what LWPINS and LWPVAL are to native code. A program marks what it
 * does, and samples the values that matter to it. The records go into the profiling ring of the thread that runs it,
 * among those of the runtime itself. They are seen in `hindsight run --report` and `--trace`.
 *
 *   #include "hindsight_lwp.h"
 *   hindsight_lwp_name_flags(1, "parse", 5);
 *   hindsight_lwp_insert_event(bytes, file_number, 1);   // "parse" begins, with two numbers to remember
 *   hindsight_lwp_value_sample(length, 0, 7);            // what lengths are there?
 *
 * A module that includes this imports module "hindsight_lwp", which `hindsight run` and embedders that set
 * EngineConfig::guest_lwp provide. Functions that are not called are not imported.
 *
 * While nothing listens (no profiling, unit "null") every call does what the instructions do on a processor whose LWP
 * is switched off: nothing. A call then costs some 20 ns, and about 60 ns where its record is written. Each function is
 * as safe to call from anywhere as any host function; nothing but a bad pointer given to name_flags traps. */
#ifndef HINDSIGHT_LWP_H
#define HINDSIGHT_LWP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HINDSIGHT_LWP_FUNCTION(name) __attribute__((import_module("hindsight_lwp"), import_name(name)))

/* LWPINS: writes an event record with EventId 255, the three operands, the time, and the place of this call. `flags`
 * has 16 bits, the rest is ignored: use them to tell kinds of events apart.
 * Returns 1 if the ring was full (the instruction sets the carry flag). The record was then stored in the ring's last
 * slot, counts as missed, and will be overwritten by the next one. Else 0, also while nothing listens. */
HINDSIGHT_LWP_FUNCTION("insert_event")
int32_t hindsight_lwp_insert_event(uint64_t data2, uint32_t data1, uint32_t flags);

/* LWPVAL: counts one value, and writes a record with EventId 1 for every (interval + 1)th of them. While nothing
 * listens values are not counted either. */
HINDSIGHT_LWP_FUNCTION("value_sample")
void hindsight_lwp_value_sample(uint64_t data2, uint32_t data1, uint32_t flags);

/* The interval of value_sample: k - 1 records every k-th value, 0 every one; 0 at the start. As in a control block it
 * has 26 bits with sign, and a negative one is 0. Counting begins anew: the next record is the k-th value from here.
 * Returns the interval before. The instances that one linker makes share it; others have their own. */
HINDSIGHT_LWP_FUNCTION("set_value_interval")
int32_t hindsight_lwp_set_value_interval(int32_t interval);

/* 1 if records of this thread are read by somebody; else 0. For what is dear to compute only to be recorded. */
HINDSIGHT_LWP_FUNCTION("enabled")
int32_t hindsight_lwp_enabled(void);

/* Gives the events and values with these flags a name, for reports and traces: UTF-8, the first 64 bytes count, no
 * terminator. A later name replaces an earlier one; of names for more than 256 different flags, the later ones are
 * ignored. Traps if the text lies outside of memory. */
HINDSIGHT_LWP_FUNCTION("name_flags")
void hindsight_lwp_name_flags(uint32_t flags, const char* text, uint32_t length);

#undef HINDSIGHT_LWP_FUNCTION

#ifdef __cplusplus
}
#endif
#endif
