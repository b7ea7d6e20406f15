// An index in memory as a B-tree of 32 children a node. Inserts split full nodes on the way down. Range scans recurse and
// call back for each entry. Within a node keys are compared one after the other.
//
// Arguments: thousands of keys, thousands of searches, thousands of range scans.
#include <stdbool.h>

#include "../../common/sample.h"

#define DEGREE 16
#define MAX_KEYS (2 * DEGREE - 1)
#define MAX_CHILDREN (2 * DEGREE)

typedef uint64_t bt_key;
typedef uint64_t bt_value;

typedef struct bt_node {
  int n;
  bool leaf;
  bt_key keys[MAX_KEYS];
  bt_value values[MAX_KEYS];
  struct bt_node *child[MAX_CHILDREN];
} bt_node;

typedef struct btree {
  bt_node *root;
  uint64_t size;
  uint64_t nodes;
  int height;
} btree;

typedef bool (*bt_visitor)(void *context, bt_key key, bt_value value);

static bt_node *new_node(btree *tree, bool leaf) {
  bt_node *node = malloc(sizeof(*node));
  if (node == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  node->n = 0;
  node->leaf = leaf;
  tree->nodes++;
  return node;
}

static void btree_init(btree *tree) {
  tree->size = tree->nodes = 0;
  tree->height = 1;
  tree->root = new_node(tree, true);
}

static void split_child(btree *tree, bt_node *parent, int index) {
  bt_node *full = parent->child[index];
  bt_node *right = new_node(tree, full->leaf);

  right->n = DEGREE - 1;
  for (int j = 0; j < DEGREE - 1; j++) {
    right->keys[j] = full->keys[j + DEGREE];
    right->values[j] = full->values[j + DEGREE];
  }
  if (!full->leaf)
    for (int j = 0; j < DEGREE; j++) right->child[j] = full->child[j + DEGREE];
  full->n = DEGREE - 1;

  for (int j = parent->n; j > index; j--) parent->child[j + 1] = parent->child[j];
  parent->child[index + 1] = right;
  for (int j = parent->n - 1; j >= index; j--) {
    parent->keys[j + 1] = parent->keys[j];
    parent->values[j + 1] = parent->values[j];
  }
  parent->keys[index] = full->keys[DEGREE - 1];
  parent->values[index] = full->values[DEGREE - 1];
  parent->n++;
}

/* Adds the value to a key that is there already; returns whether it was new. */
static bool btree_insert(btree *tree, bt_key key, bt_value value) {
  bt_node *node = tree->root;
  if (node->n == MAX_KEYS) {
    bt_node *root = new_node(tree, false);
    root->child[0] = node;
    tree->root = root;
    tree->height++;
    split_child(tree, root, 0);
    node = root;
  }
  for (;;) {
    int i = 0;
    while (i < node->n && key > node->keys[i]) i++;
    if (i < node->n && key == node->keys[i]) {
      node->values[i] += value;
      return false;
    }
    if (node->leaf) {
      for (int j = node->n - 1; j >= i; j--) {
        node->keys[j + 1] = node->keys[j];
        node->values[j + 1] = node->values[j];
      }
      node->keys[i] = key;
      node->values[i] = value;
      node->n++;
      tree->size++;
      return true;
    }
    if (node->child[i]->n == MAX_KEYS) {
      split_child(tree, node, i);
      if (key == node->keys[i]) {
        node->values[i] += value;
        return false;
      }
      if (key > node->keys[i]) i++;
    }
    node = node->child[i];
  }
}

static bt_value *btree_search(const btree *tree, bt_key key) {
  bt_node *node = tree->root;
  while (1) {
    int i = 0;
    while (i < node->n && key > node->keys[i]) i++;
    if (i < node->n && key == node->keys[i]) return &node->values[i];
    if (node->leaf) return NULL;
    node = node->child[i];
  }
}

/* Visits the entries with low <= key <= high in order, until the visitor has had enough. */
static bool scan_range(const bt_node *node, bt_key low, bt_key high, bt_visitor visit, void *context) {
  int i = 0;
  while (i < node->n && node->keys[i] < low) i++;
  for (; i < node->n; i++) {
    if (!node->leaf && !scan_range(node->child[i], low, high, visit, context)) return false;
    if (node->keys[i] > high) return true;
    if (!visit(context, node->keys[i], node->values[i])) return false;
  }
  return node->leaf ? true : scan_range(node->child[i], low, high, visit, context);
}

typedef struct {
  int64_t rows;
  int64_t limit;
  uint64_t sum;
} totals;

static bool add_to_totals(void *context, bt_key key, bt_value value) {
  totals *t = context;
  t->sum = t->sum * 31 + (key ^ value);
  return ++t->rows < t->limit;
}

int main(int argc, char **argv) {
  const int64_t keys = 1000 * (int64_t)argument(argc, argv, 1, 2500);
  const int64_t searches = 1000 * (int64_t)argument(argc, argv, 2, 2500);
  const int64_t scans = 1000 * (int64_t)argument(argc, argv, 3, 200);
  uint64_t seed = 1972;

  btree tree;
  btree_init(&tree);
  int64_t repeated = 0;
  for (int64_t i = 0; i < keys; i++) {
    bt_key key = next_random(&seed) >> 24;
    if (!btree_insert(&tree, key, (bt_value)i)) repeated++;
  }

  /* Two searches of three are for a key that was inserted: the same generator gives them again. */
  int64_t hits = 0;
  uint64_t again = 1972;
  uint64_t sum = 0;
  for (int64_t i = 0; i < searches; i++) {
    bt_key key = (i % 3 == 2 ? next_random(&seed) : next_random(&again)) >> 24;
    const bt_value *value = btree_search(&tree, key);
    if (value == NULL) continue;
    hits++;
    sum += *value * (key | 1);
  }

  uint64_t checksum = mix(sum, (uint64_t)hits);
  for (int64_t i = 0; i < scans; i++) {
    totals t = {.rows = 0, .limit = 100, .sum = checksum};
    bt_key low = next_random(&seed) >> 24;
    scan_range(tree.root, low, low + ((uint64_t)1 << 40) / (uint64_t)keys * 60, add_to_totals, &t);
    checksum = mix(t.sum, (uint64_t)t.rows);
  }

  checksum = mix(checksum, tree.size);
  checksum = mix(checksum, tree.nodes * 64 + (uint64_t)tree.height);
  checksum = mix(checksum, (uint64_t)repeated);
  return report("btree_index", checksum);
}
