// Gravity between a few bodies, every pair in every step: floating-point latency, division and square root,
// all in registers and the first-level cache.
//
// Arguments: thousands of steps.
#include <math.h>

#include "../../common/sample.h"

enum { kBodies = 8 };

typedef struct {
  double position[3];
  double velocity[3];
  double mass;
} Body;

KERNEL static void advance(Body* bodies, double dt, uint32_t steps) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t i = 0; i < kBodies; ++i) {
      for (uint32_t j = i + 1; j < kBodies; ++j) {
        double distance[3];
        double square = 0.01;  // softened, so that close encounters stay finite
        for (uint32_t k = 0; k < 3; ++k) {
          distance[k] = bodies[i].position[k] - bodies[j].position[k];
          square += distance[k] * distance[k];
        }
        const double magnitude = dt / (square * sqrt(square));
        for (uint32_t k = 0; k < 3; ++k) {
          bodies[i].velocity[k] -= distance[k] * bodies[j].mass * magnitude;
          bodies[j].velocity[k] += distance[k] * bodies[i].mass * magnitude;
        }
      }
    }
    for (uint32_t i = 0; i < kBodies; ++i) {
      for (uint32_t k = 0; k < 3; ++k) bodies[i].position[k] += dt * bodies[i].velocity[k];
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t steps = 1000 * argument(argc, argv, 1, 20000);

  Body bodies[kBodies];
  uint64_t seed = 20;
  for (uint32_t i = 0; i < kBodies; ++i) {
    for (uint32_t k = 0; k < 3; ++k) {
      bodies[i].position[k] = random_unit(&seed) * 20 - 10;
      bodies[i].velocity[k] = random_unit(&seed) * 2 - 1;
    }
    bodies[i].mass = random_unit(&seed) + 0.1;
  }

  for (uint32_t done = 0; done < steps; done += 1000) advance(bodies, 0.001, 1000);

  uint64_t checksum = 0;
  for (uint32_t i = 0; i < kBodies; ++i) {
    for (uint32_t k = 0; k < 3; ++k) checksum = mix(checksum, bits_of(bodies[i].position[k]));
  }
  return report("nbody", checksum);
}
