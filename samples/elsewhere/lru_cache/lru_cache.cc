// A cache that forgets what was used the longest time ago: a chained hash table finds entries, a doubly linked list
// keeps their order. Few keys are asked for often. Every hit moves an entry to the front, and every miss past the
// capacity drops the last one.
//
// Arguments: thousands of entries that the cache holds, thousands of different keys, thousands of requests.
#include <functional>
#include <vector>

#include "../../common/sample.h"

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {
    size_t buckets = 16;
    while (buckets < capacity) buckets *= 2;
    table_.resize(buckets, nullptr);
    head_.next = head_.previous = &head_;
  }

  ~LruCache() {
    for (Link* link = head_.next; link != &head_;) {
      Link* next = link->next;
      delete static_cast<Entry*>(link);
      link = next;
    }
  }

  LruCache(const LruCache&) = delete;
  LruCache& operator=(const LruCache&) = delete;

  bool get(const Key& key, Value* value) {
    Entry* entry = *place_of(key);
    if (entry == nullptr) {
      ++misses_;
      return false;
    }
    ++hits_;
    touch(entry);
    *value = entry->value;
    return true;
  }

  void put(const Key& key, const Value& value) {
    Entry** place = place_of(key);
    if (*place != nullptr) {
      (*place)->value = value;
      touch(*place);
      return;
    }
    if (size_ == capacity_) {
      evict();
      place = place_of(key);
    }
    Entry* entry = new Entry;
    entry->key = key;
    entry->value = value;
    entry->chain = nullptr;
    *place = entry;
    push_front(entry);
    ++size_;
  }

  bool erase(const Key& key) {
    Entry** place = place_of(key);
    if (*place == nullptr) return false;
    remove(place);
    return true;
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Link* link = head_.next; link != &head_; link = link->next) {
      const Entry* entry = static_cast<const Entry*>(link);
      visit(entry->key, entry->value);
    }
  }

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  uint64_t evictions() const { return evictions_; }
  size_t size() const { return size_; }

 private:
  struct Link {
    Link* previous;
    Link* next;
  };

  struct Entry : Link {
    Entry* chain;
    Key key;
    Value value;
  };

  // Where the pointer to a key's entry stands, or where it would have to be written.
  Entry** place_of(const Key& key) {
    Entry** place = &table_[Hash()(key) & (table_.size() - 1)];
    while (*place != nullptr && !((*place)->key == key)) place = &(*place)->chain;
    return place;
  }

  static void unlink(Link* link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
  }

  void push_front(Link* link) {
    link->previous = &head_;
    link->next = head_.next;
    head_.next->previous = link;
    head_.next = link;
  }

  void touch(Entry* entry) {
    if (head_.next == entry) return;
    unlink(entry);
    push_front(entry);
  }

  void remove(Entry** place) {
    Entry* entry = *place;
    *place = entry->chain;
    unlink(entry);
    delete entry;
    --size_;
  }

  void evict() {
    remove(place_of(static_cast<Entry*>(head_.previous)->key));
    ++evictions_;
  }

  const size_t capacity_;
  size_t size_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
  uint64_t evictions_ = 0;
  std::vector<Entry*> table_;
  Link head_;
};

struct PageKey {
  uint32_t file;
  uint32_t page;
  bool operator==(const PageKey& other) const { return file == other.file && page == other.page; }
};

struct PageHash {
  size_t operator()(const PageKey& key) const {
    uint64_t h = (static_cast<uint64_t>(key.file) << 32 | key.page) * 0xff51afd7ed558ccdu;
    return static_cast<size_t>(h >> 33);
  }
};

struct Page {
  uint32_t version;
  uint32_t words[7];
};

// What reading the page from elsewhere would give.
static Page load_page(const PageKey& key) {
  Page page;
  page.version = 0;
  uint64_t state = static_cast<uint64_t>(key.file) << 32 | key.page;
  for (uint32_t& word : page.words) word = static_cast<uint32_t>(next_random(&state));
  return page;
}

int main(int argc, char** argv) {
  const uint32_t capacity = 1000 * argument(argc, argv, 1, 1500);
  const uint32_t keys = 1000 * argument(argc, argv, 2, 6000);
  const uint32_t requests = 1000 * argument(argc, argv, 3, 12000);

  LruCache<PageKey, Page, PageHash> cache(capacity);
  uint64_t seed = 13;
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < requests; ++i) {
    // Squared twice: half of all requests go to a sixteenth of the keys.
    double u = random_unit(&seed);
    u *= u;
    const uint32_t index = static_cast<uint32_t>(u * u * keys);
    const PageKey key{index % 37, index / 37};

    const uint32_t what = static_cast<uint32_t>(next_random(&seed) >> 56);
    if (what == 0) {
      checksum += cache.erase(key);
      continue;
    }
    Page page;
    if (!cache.get(key, &page)) {
      page = load_page(key);
      cache.put(key, page);
    } else if (what < 24) {
      ++page.version;
      page.words[page.version % 7] ^= i;
      cache.put(key, page);
    }
    checksum = checksum * 5 + page.words[i % 7] + page.version;
  }

  checksum = mix(checksum, cache.hits());
  checksum = mix(checksum, cache.misses());
  checksum = mix(checksum, cache.evictions());
  checksum = mix(checksum, cache.size());
  uint64_t order = 0;
  cache.for_each(
      [&order](const PageKey& key, const Page& page) { order = order * 3 + key.page + page.version; });
  return report("lru_cache", mix(checksum, order));
}
