// The minimum spanning forest of a random graph. Edges are sorted by weight with the C library's qsort. Each is added
// unless a union-find with path compression says that both ends are connected. Random pairs are asked for their component
// afterwards.
//
// Arguments: thousands of vertices, thousands of edges, thousands of questions, repetitions.
#include "../../common/sample.h"

typedef struct edge {
  int from, to;
  int weight;
} edge_t;

typedef struct subset {
  int parent;
  int rank;
} subset_t;

typedef struct graph {
  int V;
  int64_t E;
  edge_t *edges;
} graph_t;

static void *xmalloc(size_t size) {
  void *p = malloc(size);
  if (p == NULL) {
    perror("malloc");
    exit(3);
  }
  return p;
}

static int compare_edges(const void *a, const void *b) {
  const edge_t *x = (const edge_t *)a;
  const edge_t *y = (const edge_t *)b;
  if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static int find(subset_t *subsets, int i) {
  int root = i;
  while (subsets[root].parent != root) root = subsets[root].parent;
  while (subsets[i].parent != root) {
    int next = subsets[i].parent;
    subsets[i].parent = root;
    i = next;
  }
  return root;
}

static int unite(subset_t *subsets, int x, int y) {
  x = find(subsets, x);
  y = find(subsets, y);
  if (x == y) return 0;
  if (subsets[x].rank < subsets[y].rank) {
    subsets[x].parent = y;
  } else if (subsets[x].rank > subsets[y].rank) {
    subsets[y].parent = x;
  } else {
    subsets[y].parent = x;
    subsets[x].rank++;
  }
  return 1;
}

int main(int argc, char *argv[]) {
  graph_t g;
  g.V = 1000 * (int)argument(argc, argv, 1, 2000);
  g.E = 1000 * (int64_t)argument(argc, argv, 2, 5000);
  const int64_t questions = 1000 * (int64_t)argument(argc, argv, 3, 6000);
  const uint32_t repetitions = argument(argc, argv, 4, 1);

  uint64_t seed = 1956;
  uint64_t checksum = 0;
  g.edges = xmalloc((size_t)g.E * sizeof(edge_t));
  subset_t *subsets = xmalloc((size_t)g.V * sizeof(subset_t));
  edge_t *forest = xmalloc((size_t)g.V * sizeof(edge_t));

  for (uint32_t r = 0; r < repetitions; r++) {
    for (int64_t e = 0; e < g.E; e++) {
      edge_t *edge = &g.edges[e];
      edge->from = (int)random_below(&seed, (uint32_t)g.V);
      do {
        edge->to = (int)random_below(&seed, (uint32_t)g.V);
      } while (edge->to == edge->from);
      edge->weight = (int)(next_random(&seed) >> 44);
    }

    qsort(g.edges, (size_t)g.E, sizeof(edge_t), compare_edges);

    for (int v = 0; v < g.V; v++) {
      subsets[v].parent = v;
      subsets[v].rank = 0;
    }
    int taken = 0;
    int64_t cost = 0;
    for (int64_t e = 0; e < g.E && taken < g.V - 1; e++) {
      if (!unite(subsets, g.edges[e].from, g.edges[e].to)) continue;
      forest[taken++] = g.edges[e];
      cost += g.edges[e].weight;
    }

    int64_t connected = 0;
    for (int64_t q = 0; q < questions; q++) {
      int a = (int)random_below(&seed, (uint32_t)g.V);
      int b = (int)random_below(&seed, (uint32_t)g.V);
      if (find(subsets, a) == find(subsets, b)) connected++;
    }

    checksum = mix(checksum, (uint64_t)cost);
    checksum = mix(checksum, (uint64_t)taken);
    checksum = mix(checksum, (uint64_t)connected);
    for (int i = 0; i < taken; i += 1 + taken / 1000) checksum = mix(checksum, (uint64_t)forest[i].weight);
  }

  free(forest);
  free(subsets);
  free(g.edges);
  return report("kruskal", checksum);
}
