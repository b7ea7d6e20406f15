// Short-range forces over neighbour lists, as molecular dynamics computes them. Each particle gathers the
// positions of 40 others, and those within the cutoff pull or push. The particles are not sorted by place. So
// each neighbour is a miss, followed by a dependent chain of floating point and an unpredictable branch. Sums
// keep their order, so no compiler may turn the loop into vectors.
//
// Arguments: log2 of the number of particles, thousands of particles whose forces are computed, repetitions.
#include <math.h>

#include "../../common/sample.h"

enum { kNeighbours = 40 };

typedef struct {
  double x, y, z;
  double charge;
} Particle;

typedef struct {
  double x, y, z;
} Force;

KERNEL static void compute_forces(const Particle* particles, const uint32_t* neighbours, uint32_t count,
                                  Force* forces, double cutoff) {
  for (uint32_t i = 0; i < count; ++i) {
    const Particle me = particles[i];
    Force force = forces[i];
    for (uint32_t k = 0; k < kNeighbours; ++k) {
      const Particle* other = &particles[neighbours[i * kNeighbours + k]];
      const double dx = me.x - other->x;
      const double dy = me.y - other->y;
      const double dz = me.z - other->z;
      const double square = dx * dx + dy * dy + dz * dz;
      if (square > cutoff) continue;
      const double inverse = 1.0 / (square + 0.01);
      const double sixth = inverse * inverse * inverse;
      const double pull = me.charge * other->charge * inverse * sqrt(inverse);
      const double strength = sixth * (sixth - 0.5) * 1e-6 + pull;
      force.x += strength * dx;
      force.y += strength * dy;
      force.z += strength * dz;
    }
    forces[i] = force;
  }
}

int main(int argc, char** argv) {
  const uint32_t particle_count = 1u << argument(argc, argv, 1, 23);
  const uint32_t computed = 1000 * argument(argc, argv, 2, 250);
  const uint32_t repetitions = argument(argc, argv, 3, 8);

  Particle* particles = allocate(particle_count, sizeof *particles);
  uint64_t seed = 15;
  for (uint32_t i = 0; i < particle_count; ++i) {
    const uint64_t random = next_random(&seed);
    particles[i].x = (double)(random & 0xfffff) * 0x1p-20;
    particles[i].y = (double)(random >> 20 & 0xfffff) * 0x1p-20;
    particles[i].z = (double)(random >> 40 & 0xfffff) * 0x1p-20;
    particles[i].charge = (random >> 60 & 1) != 0 ? 1 : -1;
  }
  uint32_t* neighbours = allocate((size_t)computed * kNeighbours, sizeof *neighbours);
  for (uint32_t i = 0; i < computed * kNeighbours; ++i) neighbours[i] = random_below(&seed, particle_count);
  Force* forces = allocate(computed, sizeof *forces);
  for (uint32_t i = 0; i < computed; ++i) forces[i] = (Force){0, 0, 0};

  // The cutoff keeps most of a list, as one with a safety margin does.
  for (uint32_t r = 0; r < repetitions; ++r)
    compute_forces(particles, neighbours, computed, forces, 0.6 - 0.01 * (r % 8));

  uint64_t checksum = 0;
  for (uint32_t i = 0; i < computed; ++i) {
    checksum = mix(mix(mix(checksum, bits_of(forces[i].x)), bits_of(forces[i].y)), bits_of(forces[i].z));
  }
  return report("neighbour_forces", checksum);
}
