/* Breadth-first searches over a Kronecker graph, after the Graph500 benchmark (Murphy, Wheeler, Barrett, Ang 2010).
   An edge list is generated, and a graph in compressed rows is built of it. Searches start from random roots, and each
   tree of parents is validated against the edge list. The search keeps a queue and a bitmap of the vertices it has seen.

   Arguments: log2 of the vertices, edges a vertex, searches.  */
#include "../../common/sample.h"

#define GRAPH_SEED 0x4753303023u
#define WORD_BITS 64
#define NOT_REACHED (-1)

/* the initiator's probabilities A, A + B and A + B + C, of 65536 */
#define UP_TO_A 37356u
#define UP_TO_B 49807u
#define UP_TO_C 62259u

struct packed_edge {
  int32_t v0, v1;
};

static int64_t nvtx, nedge;
static struct packed_edge *IJ;
static int64_t *xoff;
static int32_t *xadj;
static int64_t *bfs_tree;
static int32_t *queue;
static uint64_t *seen;
static int32_t *level;

static inline int test_and_set(int64_t v) {
  const uint64_t bit = (uint64_t)1 << (v % WORD_BITS);
  if (seen[v / WORD_BITS] & bit) return 1;
  seen[v / WORD_BITS] |= bit;
  return 0;
}

/* Returns the number of edges in the searched component, or what is wrong as a negative number.  */
static int64_t verify_bfs_tree(int64_t root) {
  int64_t traversed = 0;

  if (bfs_tree[root] != root) return -1;
  for (int64_t k = 0; k < nvtx; ++k) level[k] = bfs_tree[k] < 0 ? -1 : -2;
  level[root] = 0;

  for (int64_t k = 0; k < nvtx; ++k) {
    /* up to a vertex whose level is known, then down again */
    if (level[k] != -2) continue;
    int32_t depth = 0;
    int64_t ancestor = k;
    for (; level[ancestor] == -2; ancestor = bfs_tree[ancestor]) {
      if (++depth >= nvtx) return -2; /* a cycle */
    }
    if (level[ancestor] == -1) return -3;
    depth += level[ancestor];
    for (int64_t at = k; level[at] == -2; at = bfs_tree[at]) level[at] = depth--;
  }

  /* Each edge spans one level at most, and either both its ends are reached or neither.  */
  for (int64_t k = 0; k < nvtx; ++k) seen[k / WORD_BITS] = 0;
  for (int64_t k = 0; k < nedge; ++k) {
    const int64_t i = IJ[k].v0, j = IJ[k].v1;
    int32_t difference;
    if (i < 0 || j < 0) return -4;
    if (level[i] < 0 && level[j] < 0) continue;
    if (level[i] < 0 || level[j] < 0) return -5;
    ++traversed;
    if (bfs_tree[i] == j) test_and_set(i);
    if (bfs_tree[j] == i) test_and_set(j);
    difference = level[i] - level[j];
    if (difference > 1 || difference < -1) return -6;
  }
  /* Each edge of the tree is one of the graph.  */
  for (int64_t k = 0; k < nvtx; ++k) {
    if (k == root || bfs_tree[k] < 0) continue;
    if (!test_and_set(k)) return -7;
    if (level[k] != level[bfs_tree[k]] + 1) return -8;
  }
  return traversed;
}

int main(int argc, char **argv) {
  const uint32_t scale = argument(argc, argv, 1, 18);
  const uint32_t edgefactor = argument(argc, argv, 2, 16);
  const uint32_t nbfs = argument(argc, argv, 3, 2);
  uint64_t prng = GRAPH_SEED;
  uint64_t checksum = 0;
  int status = 0;

  nvtx = (int64_t)1 << scale;
  nedge = nvtx * edgefactor;

  /* the edge list */
  IJ = allocate((size_t)nedge, sizeof(*IJ));
  for (int64_t e = 0; e < nedge; ++e) {
    uint32_t v0 = 0, v1 = 0;
    uint64_t bits = 0;
    for (uint32_t lvl = 0; lvl < scale; ++lvl) {
      if (lvl % 4 == 0) bits = next_random(&prng);
      const uint32_t chance = bits & 0xffff;
      bits >>= 16;
      v0 <<= 1;
      v1 <<= 1;
      if (chance < UP_TO_A) continue;
      if (chance < UP_TO_B)
        v1 |= 1;
      else if (chance < UP_TO_C)
        v0 |= 1;
      else
        v0 |= 1, v1 |= 1;
    }
    IJ[e].v0 = (int32_t)scatter(v0, scale);
    IJ[e].v1 = (int32_t)scatter(v1, scale);
  }

  /* the graph: degrees, offsets, both directions of each edge that is no loop */
  xoff = allocate((size_t)nvtx + 2, sizeof(*xoff));
  memset(xoff, 0, ((size_t)nvtx + 2) * sizeof(*xoff));
  for (int64_t e = 0; e < nedge; ++e) {
    if (IJ[e].v0 == IJ[e].v1) continue;
    ++xoff[IJ[e].v0 + 2];
    ++xoff[IJ[e].v1 + 2];
  }
  for (int64_t k = 2; k < nvtx + 2; ++k) xoff[k] += xoff[k - 1];
  xadj = allocate((size_t)xoff[nvtx + 1] + 1, sizeof(*xadj));
  for (int64_t e = 0; e < nedge; ++e) {
    const int32_t i = IJ[e].v0, j = IJ[e].v1;
    if (i == j) continue;
    xadj[xoff[i + 1]++] = j;
    xadj[xoff[j + 1]++] = i;
  }

  bfs_tree = allocate((size_t)nvtx, sizeof(*bfs_tree));
  queue = allocate((size_t)nvtx, sizeof(*queue));
  level = allocate((size_t)nvtx, sizeof(*level));
  seen = allocate((size_t)(nvtx + WORD_BITS - 1) / WORD_BITS, sizeof(*seen));

  for (uint32_t m = 0; m < nbfs; ++m) {
    int64_t root, traversed;
    int64_t head = 0, tail = 0;

    do {
      root = random_below(&prng, (uint32_t)nvtx);
    } while (xoff[root] == xoff[root + 1]);

    /* the search: queue[head .. tail) is the level that is gone through */
    for (int64_t k = 0; k < nvtx; ++k) bfs_tree[k] = NOT_REACHED;
    memset(seen, 0, (size_t)(nvtx + WORD_BITS - 1) / WORD_BITS * sizeof(*seen));
    queue[tail++] = (int32_t)root;
    bfs_tree[root] = root;
    test_and_set(root);
    while (head < tail) {
      const int64_t end_of_level = tail;
      for (; head < end_of_level; ++head) {
        const int64_t v = queue[head];
        for (int64_t e = xoff[v]; e < xoff[v + 1]; ++e) {
          const int64_t w = xadj[e];
          if (test_and_set(w)) continue;
          bfs_tree[w] = v;
          queue[tail++] = (int32_t)w;
        }
      }
    }

    traversed = verify_bfs_tree(root);
    if (traversed < 0) {
      fprintf(stderr, "the search from %lld failed validation (%lld)\n", (long long)root, (long long)traversed);
      status = 1;
      goto done;
    }
    checksum = mix(mix(checksum, (uint64_t)tail), (uint64_t)traversed);
    for (int64_t k = 0; k < nvtx; k += 61) checksum = mix(checksum, (uint64_t)bfs_tree[k]);
  }

done:
  free(seen);
  free(level);
  free(queue);
  free(bfs_tree);
  free(xadj);
  free(xoff);
  free(IJ);
  if (status != 0) return status;
  return report("graph500_bfs", checksum);
}
