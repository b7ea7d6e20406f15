// Look-ups of random keys in a balanced binary search tree whose nodes lie scattered over memory: an ordered
// map. The upper levels stay cached; the lower ones miss one after another, but the look-ups are independent.
//
// Arguments: log2 of the number of nodes, thousands of look-ups a repetition, repetitions.
#include "../../common/sample.h"

typedef struct Node {
  struct Node* left;
  struct Node* right;
  uint32_t key;
  uint32_t pad;
  uint64_t value;
  uint64_t version;
} Node;

static Node* build(Node* nodes, uint32_t bits, uint32_t low, uint32_t high) {
  if (low >= high) return NULL;
  const uint32_t middle = low + (high - low) / 2;
  Node* node = &nodes[scatter(middle, bits)];
  node->key = middle * 2 + 1;
  node->value = middle * 0x9e3779b97f4a7c15u;
  node->version = middle;
  node->left = build(nodes, bits, low, middle);
  node->right = build(nodes, bits, middle + 1, high);
  return node;
}

KERNEL static uint64_t look_up(const Node* root, const uint32_t* keys, uint32_t count, uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t key = keys[i];
    const Node* node = root;
    while (node != NULL && node->key != key) node = key < node->key ? node->left : node->right;
    if (node != NULL) sum += node->value;
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t bits = argument(argc, argv, 1, 22);
  const uint32_t lookups = 1000 * argument(argc, argv, 2, 500);
  const uint32_t repetitions = argument(argc, argv, 3, 7);

  const uint32_t count = 1u << bits;
  Node* nodes = allocate(count, sizeof *nodes);
  Node* root = build(nodes, bits, 0, count);
  uint32_t* keys = allocate(lookups, sizeof *keys);
  uint64_t seed = 10;
  // Odd keys are in the tree; one in eight look-ups asks for an even one, which is not.
  for (uint32_t i = 0; i < lookups; ++i)
    keys[i] = random_below(&seed, count) * 2 + (random_below(&seed, 8) != 0);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(r, look_up(root, keys, lookups, checksum));
  return report("bst_lookup", checksum);
}
