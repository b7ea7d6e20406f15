// Breadth-first search with a queue over a random graph in compressed rows, from a new root each time
// (Graph500's kernel without its graph generator). Vertices are visited in queue order, so offsets,
// neighbours and the visited state all miss.
//
// Arguments: log2 of the number of vertices, repetitions.
#include "../../common/sample.h"

typedef struct {
  uint32_t parent;
  uint32_t depth;
} Visit;

enum : uint32_t { kUnseen = 0xffffffffu };

KERNEL static uint32_t search(const uint32_t* first_edge, const uint32_t* edges, Visit* visits,
                              uint32_t* queue, uint32_t root) {
  uint32_t tail = 0;
  visits[root].parent = root;
  visits[root].depth = 0;
  queue[tail++] = root;
  for (uint32_t head = 0; head < tail; ++head) {
    const uint32_t vertex = queue[head];
    const uint32_t depth = visits[vertex].depth + 1;
    for (uint32_t e = first_edge[vertex]; e < first_edge[vertex + 1]; ++e) {
      const uint32_t neighbour = edges[e];
      if (visits[neighbour].parent == kUnseen) {
        visits[neighbour].parent = vertex;
        visits[neighbour].depth = depth;
        queue[tail++] = neighbour;
      }
    }
  }
  return tail;
}

int main(int argc, char** argv) {
  const uint32_t vertices = 1u << argument(argc, argv, 1, 23);
  const uint32_t repetitions = argument(argc, argv, 2, 2);

  uint64_t seed = 8;
  uint32_t* first_edge = allocate(vertices + 1, sizeof *first_edge);
  first_edge[0] = 0;
  for (uint32_t v = 0; v < vertices; ++v) first_edge[v + 1] = first_edge[v] + 1 + random_below(&seed, 15);
  const uint32_t edge_count = first_edge[vertices];
  uint32_t* edges = allocate(edge_count, sizeof *edges);
  for (uint32_t e = 0; e < edge_count; ++e) edges[e] = random_below(&seed, vertices);
  Visit* visits = allocate(vertices, sizeof *visits);
  uint32_t* queue = allocate(vertices, sizeof *queue);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    memset(visits, 0xff, vertices * sizeof *visits);
    const uint32_t reached = search(first_edge, edges, visits, queue, random_below(&seed, vertices));
    const uint32_t last = queue[reached - 1];
    checksum = mix(checksum, reached);
    checksum = mix(checksum, ((uint64_t)visits[last].depth << 32) | visits[last].parent);
  }
  return report("bfs", checksum);
}
