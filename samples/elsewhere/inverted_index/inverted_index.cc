// A small search engine. Documents of generated words become lists of postings, one list a word. Queries of two to four
// words are answered by intersecting the lists, the shortest first. What is found is ranked, and the best ten documents
// of each query are kept in a heap.
//
// Arguments: thousands of documents, words a document on average, thousands of different words, thousands of queries.
#include <algorithm>
#include <vector>

#include "../../common/sample.h"

struct Posting {
  uint32_t document;
  uint32_t frequency;
};

using PostingList = std::vector<Posting>;

struct Hit {
  uint32_t score;
  uint32_t document;
  bool operator<(const Hit& other) const {
    return score != other.score ? score < other.score : document > other.document;
  }
};

class Index {
 public:
  explicit Index(uint32_t words) : lists_(words) {}

  void add(const std::vector<uint32_t>& words) {
    const uint32_t document = static_cast<uint32_t>(lengths_.size());
    for (uint32_t word : words) {
      PostingList& list = lists_[word];
      if (!list.empty() && list.back().document == document) {
        ++list.back().frequency;
      } else {
        list.push_back({document, 1});
      }
    }
    lengths_.push_back(static_cast<uint32_t>(words.size()));
  }

  // The documents with all words, best first; adds to `matches` how many there were.
  std::vector<Hit> search(std::vector<uint32_t> words, size_t most, uint64_t* matches) const {
    std::sort(words.begin(), words.end(),
              [this](uint32_t a, uint32_t b) { return lists_[a].size() < lists_[b].size(); });
    std::vector<Hit> found;
    for (const Posting& posting : lists_[words[0]]) {
      found.push_back({weight(posting, words[0]), posting.document});
    }
    for (size_t w = 1; w < words.size() && !found.empty(); ++w) intersect(&found, words[w]);
    *matches += found.size();

    std::vector<Hit> best;
    for (const Hit& hit : found) {
      auto better = [](const Hit& a, const Hit& b) { return b < a; };
      if (best.size() < most) {
        best.push_back(hit);
        std::push_heap(best.begin(), best.end(), better);
      } else if (best.front() < hit) {
        std::pop_heap(best.begin(), best.end(), better);
        best.back() = hit;
        std::push_heap(best.begin(), best.end(), better);
      }
    }
    std::sort(best.begin(), best.end(), [](const Hit& a, const Hit& b) { return b < a; });
    return best;
  }

  uint64_t postings() const {
    uint64_t count = 0;
    for (const PostingList& list : lists_) count += list.size();
    return count;
  }

 private:
  // Rare words and short documents count more, and a word's tenth occurrence less than its first.
  uint32_t weight(const Posting& posting, uint32_t word) const {
    const uint32_t rarity =
        static_cast<uint32_t>((uint64_t{1024} * lengths_.size()) / (lists_[word].size() + 1));
    const uint32_t saturation =
        220 * posting.frequency / (posting.frequency + 1 + lengths_[posting.document] / 64);
    return std::min<uint32_t>(rarity, 1 << 16) / 64 * saturation;
  }

  // Keeps the hits that are in the word's list as well.
  void intersect(std::vector<Hit>* found, uint32_t word) const {
    const PostingList& list = lists_[word];
    auto kept = found->begin();
    if (list.size() / found->size() < 16) {
      auto posting = list.begin();
      for (auto hit = found->begin(); hit != found->end() && posting != list.end();) {
        if (hit->document < posting->document) {
          ++hit;
        } else if (posting->document < hit->document) {
          ++posting;
        } else {
          kept->document = hit->document;
          kept->score = hit->score + weight(*posting, word);
          ++kept, ++hit, ++posting;
        }
      }
    } else {
      // Galloping: doubles its steps until it is past the document, then searches the last step.
      size_t low = 0;
      for (const Hit& hit : *found) {
        size_t step = 1;
        while (low + step < list.size() && list[low + step].document < hit.document) {
          low += step;
          step *= 2;
        }
        const size_t high = std::min(low + step + 1, list.size());
        const auto at = std::lower_bound(
            list.begin() + low, list.begin() + high, hit.document,
            [](const Posting& posting, uint32_t document) { return posting.document < document; });
        if (at == list.end()) break;
        low = at - list.begin();
        if (at->document != hit.document) continue;
        *kept++ = {hit.score + weight(*at, word), hit.document};
      }
    }
    found->erase(kept, found->end());
  }

  std::vector<PostingList> lists_;
  std::vector<uint32_t> lengths_;
};

int main(int argc, char** argv) {
  const uint32_t documents = 1000 * argument(argc, argv, 1, 200);
  const uint32_t length = argument(argc, argv, 2, 80);
  const uint32_t words = 1000 * argument(argc, argv, 3, 200);
  const uint32_t queries = 1000 * argument(argc, argv, 4, 10);

  uint64_t seed = 1998;
  uint32_t doublings = 0;
  while ((2u << doublings) <= words) ++doublings;
  // Zipf's law: each doubling of the rank is as frequent as the one before.
  auto some_word = [&] {
    const uint32_t first = 1u << random_below(&seed, doublings + 1);
    return std::min(first + random_below(&seed, first), words) - 1;
  };

  Index index(words);
  std::vector<uint32_t> text;
  for (uint32_t d = 0; d < documents; ++d) {
    text.clear();
    const uint32_t count = length / 2 + random_below(&seed, length);
    const uint32_t topic = random_below(&seed, words);
    while (text.size() < count) {
      // Every eighth word is near the document's topic, so that rare words meet.
      text.push_back(random_below(&seed, 8) == 0 ? (topic + random_below(&seed, 16)) % words : some_word());
    }
    std::sort(text.begin(), text.end());
    index.add(text);
  }
  uint64_t checksum = mix(documents, index.postings());

  uint64_t matches = 0;
  for (uint32_t q = 0; q < queries; ++q) {
    std::vector<uint32_t> query;
    const uint32_t count = 2 + random_below(&seed, 3);
    const uint32_t topic = random_below(&seed, words);
    while (query.size() < count) {
      const uint32_t word =
          query.size() < 2 && q % 2 == 0 ? (topic + random_below(&seed, 16)) % words : some_word();
      if (std::find(query.begin(), query.end(), word) == query.end()) query.push_back(word);
    }
    for (const Hit& hit : index.search(query, 10, &matches)) {
      checksum = mix(checksum, uint64_t{hit.document} << 32 | hit.score);
    }
  }
  return report("inverted_index", mix(checksum, matches));
}
