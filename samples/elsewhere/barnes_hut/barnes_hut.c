// Gravity among many bodies by an octree (Barnes and Hut, 1986): each step builds the tree anew, adds up masses from the leaves to the
// root, and walks it once for each body by recursion. A cell that is small for its distance counts as one mass, so most visits end
// where they are; any other is opened, and its eight children are looked at.
//
// Arguments: thousands of bodies, steps.
#include <math.h>

#include "../../common/sample.h"

typedef struct {
  double at[3], speed[3], pull[3];
  double mass;
} Body;

typedef struct Cell {
  double at[3];  // of its masses together
  double mass;
  double width;
  const Body* body;  // of a leaf
  struct Cell* child[8];
} Cell;

enum { kMostDepth = 40 };
static const double kOpening = 0.6;  // a cell is opened that is wider than this share of its distance
static const double kSoftening = 1e-4;

static Cell* new_cell(double width, const Body* body) {
  Cell* cell = calloc(1, sizeof(Cell));
  if (!cell) abort();
  cell->width = width;
  cell->body = body;
  return cell;
}

// Which child of a cell around `center` a body is in; moves `center` to that of the child.
static int descend(double center[3], double width, const Body* body) {
  int which = 0;
  for (int d = 0; d < 3; ++d) {
    const int is_above = body->at[d] >= center[d];
    which |= is_above << d;
    center[d] += is_above ? width / 4 : -width / 4;
  }
  return which;
}

static void insert(Cell* cell, const double around[3], const Body* body, int depth) {
  double center[3] = {around[0], around[1], around[2]};
  const int which = descend(center, cell->width, body);
  Cell* child = cell->child[which];
  if (!child) {
    cell->child[which] = new_cell(cell->width / 2, body);
    return;
  }
  if (child->body) {
    if (depth == kMostDepth) return;  // so near that they pull as one
    const Body* const other = child->body;
    child->body = NULL;
    insert(child, center, other, depth + 1);
  }
  insert(child, center, body, depth + 1);
}

static void add_up(Cell* cell) {
  if (cell->body) {
    cell->mass = cell->body->mass;
    for (int d = 0; d < 3; ++d) cell->at[d] = cell->body->at[d];
    return;
  }
  for (int i = 0; i < 8; ++i) {
    Cell* const child = cell->child[i];
    if (!child) continue;
    add_up(child);
    cell->mass += child->mass;
    for (int d = 0; d < 3; ++d) cell->at[d] += child->mass * child->at[d];
  }
  for (int d = 0; d < 3; ++d) cell->at[d] /= cell->mass;
}

static void walk(const Cell* cell, Body* body) {
  double away[3], squared = kSoftening;
  for (int d = 0; d < 3; ++d) {
    away[d] = cell->at[d] - body->at[d];
    squared += away[d] * away[d];
  }
  if (cell->body || cell->width * cell->width < kOpening * kOpening * squared) {
    if (cell->body == body) return;
    const double pull = cell->mass / (squared * sqrt(squared));
    for (int d = 0; d < 3; ++d) body->pull[d] += pull * away[d];
    return;
  }
  for (int i = 0; i < 8; ++i)
    if (cell->child[i]) walk(cell->child[i], body);
}

static void free_cells(Cell* cell) {
  for (int i = 0; i < 8; ++i)
    if (cell->child[i]) free_cells(cell->child[i]);
  free(cell);
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 250);
  const uint32_t steps = argument(argc, argv, 2, 1);

  Body* const bodies = calloc(count, sizeof(Body));
  if (!bodies) abort();
  uint64_t seed = 1986;
  for (uint32_t i = 0; i < count; ++i) {
    Body* const body = &bodies[i];
    body->mass = (0.5 + random_unit(&seed)) / count;
    // Half of them crowd around the middle.
    const double spread = i % 2 ? 1 : random_unit(&seed) * random_unit(&seed);
    for (int d = 0; d < 3; ++d) body->at[d] = (random_unit(&seed) - 0.5) * spread;
  }

  const double center[3] = {0, 0, 0};
  const double time = 1e-3;
  uint64_t checksum = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    Cell* const root = new_cell(4, NULL);
    for (uint32_t i = 0; i < count; ++i) insert(root, center, &bodies[i], 0);
    add_up(root);
    for (uint32_t i = 0; i < count; ++i) {
      Body* const body = &bodies[i];
      for (int d = 0; d < 3; ++d) body->pull[d] = 0;
      walk(root, body);
    }
    free_cells(root);
    for (uint32_t i = 0; i < count; ++i) {
      Body* const body = &bodies[i];
      for (int d = 0; d < 3; ++d) {
        body->speed[d] += time * body->pull[d];
        body->at[d] += time * body->speed[d];
        uint64_t bits;
        memcpy(&bits, &body->pull[d], sizeof bits);
        checksum = checksum * 31 + bits;
      }
    }
  }
  printf("barnes_hut %016llx\n", (unsigned long long)checksum);
  return 0;
}
