// Counts how often each ID occurs in a stream with std::unordered_map, then looks IDs up, forgets some of them and
// lists the frequent ones. Each element is a node of its own, and the standard library's chains lead from one to the
// next. The map grows by rehashing all that it holds.
//
// Arguments: thousands of different IDs, thousands of IDs in the stream, rounds of look-ups and forgetting.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../common/sample.h"

using Counts = std::unordered_map<uint64_t, uint32_t>;

static uint64_t id_of(uint32_t index) {
  uint64_t state = index;
  return next_random(&state);
}

int main(int argc, char** argv) {
  const uint32_t distinct = 1000 * argument(argc, argv, 1, 3000);
  const uint32_t length = 1000 * argument(argc, argv, 2, 8000);
  const uint32_t rounds = argument(argc, argv, 3, 2);

  // Low indices are more frequent than high ones, as users and words are.
  uint64_t seed = 2024;
  std::vector<uint64_t> stream;
  for (uint32_t i = 0; i < length; ++i) {
    const double u = random_unit(&seed);
    stream.push_back(id_of(static_cast<uint32_t>(u * u * distinct)));
  }

  Counts counts;
  for (const uint64_t id : stream) ++counts[id];
  uint64_t checksum = mix(1, counts.size());

  for (uint32_t round = 0; round < rounds; ++round) {
    // Half of what is asked for never occurred.
    uint32_t known = 0;
    uint64_t occurrences = 0;
    for (uint32_t i = 0; i < length / 2; ++i) {
      const auto it = counts.find(id_of(random_below(&seed, 2 * distinct)));
      if (it == counts.end()) continue;
      ++known;
      occurrences += it->second;
    }

    // A part of the stream leaves the window; what is down to nothing is erased, and what was erased may return.
    size_t erased = 0;
    const size_t begin = random_below(&seed, length - length / 4);
    for (size_t i = begin; i < begin + length / 4; ++i) {
      auto [it, inserted] = counts.insert({stream[i], 1});
      if (inserted) continue;
      if (--it->second == 0) {
        counts.erase(it);
        ++erased;
      }
    }
    for (uint32_t i = 0; i < length / 16; ++i) erased += counts.erase(id_of(random_below(&seed, distinct)));

    checksum = mix(checksum, known);
    checksum = mix(checksum, occurrences);
    checksum = mix(checksum, erased);
    checksum = mix(checksum, counts.size());
  }

  // The most frequent IDs; among equals the lower ID first, because the map's own order is not to be relied on.
  std::vector<std::pair<uint64_t, uint32_t>> top(counts.begin(), counts.end());
  const size_t listed = std::min<size_t>(1000, top.size());
  std::partial_sort(top.begin(), top.begin() + listed, top.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (size_t i = 0; i < listed; ++i) checksum = mix(checksum, top[i].first + top[i].second);
  return report("unordered_count", checksum);
}
