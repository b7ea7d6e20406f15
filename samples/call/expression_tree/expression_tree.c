// An evaluator that walks expression trees by calling each node's own function. It is recursion through
// pointers, with several targets at one call site, as in query engines and spreadsheets.
//
// Arguments: the number of expressions, the rows each is evaluated for, repetitions.
#include "../../common/sample.h"

typedef struct Node Node;
typedef int64_t (*Evaluate)(const Node* node, const int64_t* row);

struct Node {
  Evaluate evaluate;
  const Node* left;
  const Node* right;
  int64_t constant;
};

enum { kColumns = 8 };

static inline int64_t value_of(const Node* node, const int64_t* row) {
  return node->evaluate(node, row);
}

static int64_t constant(const Node* node, const int64_t* row) {
  (void)row;
  return node->constant;
}
static int64_t column(const Node* node, const int64_t* row) {
  return row[node->constant];
}
static int64_t add(const Node* node, const int64_t* row) {
  return (int64_t)((uint64_t)value_of(node->left, row) + (uint64_t)value_of(node->right, row));
}
static int64_t subtract(const Node* node, const int64_t* row) {
  return (int64_t)((uint64_t)value_of(node->left, row) - (uint64_t)value_of(node->right, row));
}
static int64_t multiply(const Node* node, const int64_t* row) {
  return (int64_t)((uint64_t)value_of(node->left, row) * (uint64_t)value_of(node->right, row));
}
static int64_t greater(const Node* node, const int64_t* row) {
  const int64_t left = value_of(node->left, row), right = value_of(node->right, row);
  return left > right ? left : right;
}
static int64_t if_positive(const Node* node, const int64_t* row) {
  return value_of(node->left, row) > 0 ? value_of(node->right, row) : node->constant;
}

static Node* grow(uint64_t* seed, uint32_t depth) {
  static const Evaluate inner[] = {add, add, add, subtract, multiply, multiply, greater, if_positive};
  Node* node = allocate(1, sizeof *node);
  const uint64_t random = next_random(seed);
  if (depth == 0 || random % 8 == 0) {
    const int is_column = (random >> 8) % 4 != 0;
    node->evaluate = is_column ? column : constant;
    node->constant =
        is_column ? (int64_t)((random >> 16) % kColumns) : (int64_t)((random >> 16) % 1000) - 500;
    return node;
  }
  node->evaluate = inner[(random >> 8) % 8];
  node->constant = (int64_t)((random >> 16) % 100);
  node->left = grow(seed, depth - 1);
  node->right = grow(seed, depth - 1);
  return node;
}

KERNEL static uint64_t evaluate_rows(const Node* root, const int64_t* rows, uint32_t count,
                                     uint64_t checksum) {
  for (uint32_t i = 0; i < count; ++i)
    checksum = mix(checksum, (uint64_t)value_of(root, rows + (size_t)i * kColumns));
  return checksum;
}

int main(int argc, char** argv) {
  const uint32_t expressions = argument(argc, argv, 1, 16);
  const uint32_t row_count = argument(argc, argv, 2, 10000);
  const uint32_t repetitions = argument(argc, argv, 3, 50);

  uint64_t seed = 43;
  const Node** roots = allocate(expressions, sizeof *roots);
  for (uint32_t e = 0; e < expressions; ++e) roots[e] = grow(&seed, 6);
  int64_t* rows = allocate((size_t)row_count * kColumns, sizeof *rows);
  for (uint32_t i = 0; i < row_count * kColumns; ++i) rows[i] = (int64_t)random_below(&seed, 2000) - 1000;

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    for (uint32_t e = 0; e < expressions; ++e) checksum = evaluate_rows(roots[e], rows, row_count, checksum);
  }
  return report("expression_tree", checksum);
}
