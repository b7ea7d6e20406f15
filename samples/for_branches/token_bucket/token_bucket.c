// A token bucket over a stream of packets. It fills by each packet's delay, is drained by each packet that finds
// enough in it, and is hardly ever full or empty. What it holds goes from packet to packet through three choices
// that nearly always go the same way.
//
// Arguments: thousands of packets, repetitions.
#include "../../common/sample.h"

typedef struct {
  uint32_t delay;
  uint32_t bytes;
} Packet;

KERNEL static uint64_t police(const Packet* packets, uint32_t count, uint32_t depth, uint32_t* level) {
  uint32_t tokens = *level;
  uint64_t passed = 0;
  for (uint32_t i = 0; i < count; ++i) {
    tokens += packets[i].delay;
    tokens = tokens > depth ? depth : tokens;
    const uint32_t cost = packets[i].bytes;
    const uint32_t charged = cost <= tokens ? cost : 0;
    tokens -= charged;
    passed += charged;
  }
  *level = tokens;
  return passed;
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 100);
  const uint32_t repetitions = argument(argc, argv, 2, 24000);

  Packet* packets = allocate(count, sizeof *packets);
  uint64_t seed = 36;
  // As much comes in as goes out, in the mean.
  for (uint32_t i = 0; i < count; ++i) {
    packets[i].delay = random_below(&seed, 1500);
    packets[i].bytes = random_below(&seed, 1500);
  }
  uint64_t checksum = 0;
  uint32_t level = 20000;
  for (uint32_t r = 0; r < repetitions; ++r)
    checksum = mix(checksum, police(packets, count, 40000 + r % 64, &level));
  return report("token_bucket", mix(checksum, level));
}
