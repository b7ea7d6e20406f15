// PageRank by pulling: each vertex adds up what its in-neighbours contribute. A random graph in compressed
// rows, 8 in-edges a vertex on average, contributions in an array larger than any cache.
//
// Arguments: log2 of the number of vertices, iterations.
#include "../../common/sample.h"

KERNEL static void pull(const uint32_t* first_edge, const uint32_t* sources, const double* contribution,
                        double* rank, uint32_t vertices, double base) {
  for (uint32_t v = 0; v < vertices; ++v) {
    double sum = 0;
    for (uint32_t e = first_edge[v]; e < first_edge[v + 1]; ++e) sum += contribution[sources[e]];
    rank[v] = base + 0.85 * sum;
  }
}

KERNEL static void contribute(const double* rank, const uint32_t* out_degree, double* contribution,
                              uint32_t vertices) {
  for (uint32_t v = 0; v < vertices; ++v) contribution[v] = rank[v] / (double)(out_degree[v] + 1);
}

int main(int argc, char** argv) {
  const uint32_t bits = argument(argc, argv, 1, 23);
  const uint32_t vertices = 1u << bits;
  const uint32_t iterations = argument(argc, argv, 2, 5);

  uint64_t seed = 9;
  uint32_t* first_edge = allocate(vertices + 1, sizeof *first_edge);
  first_edge[0] = 0;
  for (uint32_t v = 0; v < vertices; ++v) first_edge[v + 1] = first_edge[v] + 1 + random_below(&seed, 15);
  const uint32_t edge_count = first_edge[vertices];
  uint32_t* sources = allocate(edge_count, sizeof *sources);
  uint32_t* out_degree = allocate(vertices, sizeof *out_degree);
  // Every run of `vertices` edges starts once at each vertex, in another order each time. So nearly all
  // vertices have the same out-degree and only the last, incomplete run has to be counted.
  for (uint32_t v = 0; v < vertices; ++v) out_degree[v] = edge_count >> bits;
  uint32_t salt = 0;
  for (uint32_t e = 0; e < edge_count; ++e) {
    const uint32_t position = e & (vertices - 1);
    if (position == 0) salt = random_below(&seed, vertices);
    sources[e] = scatter(position ^ salt, bits);
  }
  for (uint32_t e = edge_count & ~(vertices - 1); e < edge_count; ++e) out_degree[sources[e]]++;
  double* rank = allocate(vertices, sizeof *rank);
  double* contribution = allocate(vertices, sizeof *contribution);
  for (uint32_t v = 0; v < vertices; ++v) rank[v] = 1.0 / vertices;

  for (uint32_t i = 0; i < iterations; ++i) {
    contribute(rank, out_degree, contribution, vertices);
    pull(first_edge, sources, contribution, rank, vertices, 0.15 / vertices);
  }

  uint64_t checksum = 0;
  for (uint32_t v = 0; v < vertices; v += 64) checksum = mix(checksum, bits_of(rank[v]));
  return report("pagerank", checksum);
}
