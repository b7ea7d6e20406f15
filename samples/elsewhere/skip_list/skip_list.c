/*
 * A skip list: a set of numbers with values that is searched, grows and shrinks. A search goes along the pointers of
 * the highest level, then down a level wherever the next key would be too large.
 *
 * Arguments: thousands of items at first, thousands of operations afterwards.
 */
#include "../../common/sample.h"

#define MAX_LEVELS 16

struct item {
  uint64_t key;
  uint64_t value;
  int levels;
  struct item *next[]; /* one for each level */
};

struct skip_list {
  struct item *head; /* has all levels and no key */
  int levels;        /* how many are in use */
  size_t size;
  uint64_t random_state;
};

static struct item *new_item(int levels, uint64_t key, uint64_t value) {
  struct item *item = malloc(sizeof *item + (size_t)levels * sizeof item->next[0]);
  if (item == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  item->key = key;
  item->value = value;
  item->levels = levels;
  for (int i = 0; i < levels; i++) item->next[i] = NULL;
  return item;
}

static void create(struct skip_list *list) {
  list->head = new_item(MAX_LEVELS, 0, 0);
  list->levels = 1;
  list->size = 0;
  list->random_state = 1990;
}

/* One item in four has a second level, one in four of those a third one, and so on. */
static int random_levels(struct skip_list *list) {
  int levels = 1;
  for (uint64_t bits = next_random(&list->random_state); (bits & 3) == 3 && levels < MAX_LEVELS; bits >>= 2) levels++;
  return levels;
}

/* The last item before a key on each level in use; returns the item with the key, or NULL. */
static struct item *locate(const struct skip_list *list, uint64_t key, struct item **before) {
  struct item *at = list->head;
  for (int level = list->levels - 1; level >= 0; level--) {
    while (at->next[level] != NULL && at->next[level]->key < key) at = at->next[level];
    before[level] = at;
  }
  at = at->next[0];
  return at != NULL && at->key == key ? at : NULL;
}

static int search(const struct skip_list *list, uint64_t key, uint64_t *value) {
  const struct item *at = list->head;
  for (int level = list->levels - 1; level >= 0; level--) {
    const struct item *next;
    while ((next = at->next[level]) != NULL) {
      if (next->key >= key) {
        if (next->key > key) break;
        *value = next->value;
        return 1;
      }
      at = next;
    }
  }
  return 0;
}

/* A key that is there gets the value and keeps its place. */
static int insert(struct skip_list *list, uint64_t key, uint64_t value) {
  struct item *before[MAX_LEVELS];
  struct item *item = locate(list, key, before);
  if (item != NULL) {
    item->value = value;
    return 0;
  }
  int levels = random_levels(list);
  while (list->levels < levels) before[list->levels++] = list->head;
  item = new_item(levels, key, value);
  for (int level = 0; level < levels; level++) {
    item->next[level] = before[level]->next[level];
    before[level]->next[level] = item;
  }
  list->size++;
  return 1;
}

static int delete(struct skip_list *list, uint64_t key) {
  struct item *before[MAX_LEVELS];
  struct item *item = locate(list, key, before);
  if (item == NULL) return 0;
  for (int level = 0; level < item->levels; level++) before[level]->next[level] = item->next[level];
  free(item);
  while (list->levels > 1 && list->head->next[list->levels - 1] == NULL) list->levels--;
  list->size--;
  return 1;
}

int main(int argc, char **argv) {
  const uint32_t at_first = 1000 * argument(argc, argv, 1, 1200);
  const uint32_t operations = 1000 * argument(argc, argv, 2, 1500);
  uint64_t seed = 33;
  uint64_t checksum = 0;
  struct skip_list list;

  /* Keys come from a range four times as large as the set, so that a search finds one of four. */
  const uint32_t range = at_first * 4;
  create(&list);
  for (uint32_t i = 0; i < at_first; i++) insert(&list, 1 + random_below(&seed, range), i);
  checksum = mix(checksum, list.size);

  uint32_t found = 0, inserted = 0, deleted = 0;
  for (uint32_t i = 0; i < operations; i++) {
    uint64_t r = next_random(&seed);
    uint64_t key = 1 + (r >> 16) % range;
    uint64_t value = 0;
    switch (r & 7) {
      case 0:
        inserted += insert(&list, key, i);
        break;
      case 1: case 2:
        deleted += delete(&list, key);
        break;
      default:
        if (!search(&list, key, &value)) break;
        found++;
        checksum += value ^ key;
    }
    if ((i & 0xffff) == 0) checksum = mix(checksum, list.size);
  }
  checksum = mix(checksum, found);
  checksum = mix(checksum, inserted);
  checksum = mix(checksum, deleted);

  uint64_t in_order = 0;
  for (struct item *item = list.head->next[0], *next; item != NULL; item = next) {
    next = item->next[0];
    in_order = in_order * 3 + item->key + item->value;
    free(item);
  }
  free(list.head);
  return report("skip_list", mix(checksum, in_order));
}
