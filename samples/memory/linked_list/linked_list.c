// One long list whose nodes lie scattered over memory, walked again and again with some work on each node.
// The next address is known only when the node has arrived, so nothing overlaps; the order is the same each
// time.
//
// Arguments: log2 of the number of nodes (64 bytes each), repetitions.
#include "../../common/sample.h"

typedef struct Node {
  _Alignas(64) struct Node* next;
  uint32_t visits;
  uint32_t fields[12];
} Node;

_Static_assert(sizeof(Node) == 64, "a node is one cache line");

KERNEL static uint64_t walk(Node* node, uint64_t sum) {
  for (; node != NULL; node = node->next) {
    uint32_t value = ++node->visits;
    for (uint32_t i = 0; i < 12; ++i) value = (value ^ node->fields[i]) * 0x01000193u;
    sum += value;
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t bits = argument(argc, argv, 1, 22);
  const uint32_t count = 1u << bits;
  const uint32_t repetitions = argument(argc, argv, 2, 5);

  Node* nodes = allocate(count, sizeof *nodes);
  for (uint32_t i = 0; i < count; ++i) {
    Node* node = &nodes[scatter(i, bits)];
    node->next = i + 1 < count ? &nodes[scatter(i + 1, bits)] : NULL;
    node->visits = i;
    for (uint32_t f = 0; f < 12; ++f) node->fields[f] = i * 2654435761u + f;
  }

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(r, walk(&nodes[scatter(0, bits)], checksum));
  return report("linked_list", checksum);
}
