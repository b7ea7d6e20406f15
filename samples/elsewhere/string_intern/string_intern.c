/*
 * Interns the identifiers of a generated source text: each different string is kept once, in an arena, and gets a
 * number. The table is probed linearly, compares hash and length before memcmp, and grows when it is two thirds full.
 * A second pass over the text counts symbols and pairs of neighbours through the numbers.
 *
 * Arguments: thousands of different identifiers, megabytes of text, passes.
 */
#include <stdbool.h>

#include "../../common/sample.h"

#define ARENA_BLOCK ((size_t)1 << 20)
#define NO_SYMBOL UINT32_MAX

typedef uint32_t symbol_t;

typedef struct block {
  struct block *next;
  size_t used;
  char data[];
} block_t;

typedef struct {
  const char *text;
  uint32_t length;
  uint32_t uses;
} string_t;

typedef struct {
  uint32_t hash;
  symbol_t symbol;
} slot_t;

typedef struct {
  slot_t *slots;
  size_t capacity; /* a power of two */
  size_t count;
  string_t *strings;
  size_t strings_capacity;
  block_t *blocks;
  uint64_t probes;
} interner_t;

static void die(const char *what) {
  fprintf(stderr, "string_intern: %s\n", what);
  exit(3);
}

static uint32_t hash_bytes(const char *s, size_t n) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < n; i++) {
    h ^= (unsigned char)s[i];
    h *= 16777619u;
  }
  return h ^ (h >> 15);
}

static const char *arena_copy(interner_t *in, const char *s, size_t n) {
  if (in->blocks == NULL || in->blocks->used + n + 1 > ARENA_BLOCK) {
    block_t *b = malloc(sizeof(block_t) + ARENA_BLOCK);
    if (b == NULL) die("out of memory");
    b->used = 0;
    b->next = in->blocks;
    in->blocks = b;
  }
  char *copy = in->blocks->data + in->blocks->used;
  memcpy(copy, s, n);
  copy[n] = '\0';
  in->blocks->used += n + 1;
  return copy;
}

static void grow_slots(interner_t *in) {
  size_t capacity = in->capacity ? in->capacity * 2 : 1024;
  slot_t *slots = malloc(capacity * sizeof(slot_t));
  if (slots == NULL) die("out of memory");
  for (size_t i = 0; i < capacity; i++) slots[i].symbol = NO_SYMBOL;
  for (size_t i = 0; i < in->capacity; i++) {
    if (in->slots[i].symbol == NO_SYMBOL) continue;
    size_t j = in->slots[i].hash & (capacity - 1);
    while (slots[j].symbol != NO_SYMBOL) j = (j + 1) & (capacity - 1);
    slots[j] = in->slots[i];
  }
  free(in->slots);
  in->slots = slots;
  in->capacity = capacity;
}

static symbol_t intern(interner_t *in, const char *s, size_t n) {
  if (in->count * 3 >= in->capacity * 2) grow_slots(in);

  uint32_t hash = hash_bytes(s, n);
  size_t mask = in->capacity - 1;
  size_t i = hash & mask;
  for (; in->slots[i].symbol != NO_SYMBOL; i = (i + 1) & mask) {
    in->probes++;
    if (in->slots[i].hash != hash) continue;
    string_t *known = &in->strings[in->slots[i].symbol];
    if (known->length == n && memcmp(known->text, s, n) == 0) {
      known->uses++;
      return in->slots[i].symbol;
    }
  }

  if (in->count == in->strings_capacity) {
    in->strings_capacity = in->strings_capacity ? in->strings_capacity * 2 : 256;
    in->strings = realloc(in->strings, in->strings_capacity * sizeof(string_t));
    if (in->strings == NULL) die("out of memory");
  }
  symbol_t symbol = (symbol_t)in->count++;
  in->strings[symbol] = (string_t){.text = arena_copy(in, s, n), .length = (uint32_t)n, .uses = 1};
  in->slots[i].hash = hash;
  in->slots[i].symbol = symbol;
  return symbol;
}

static symbol_t lookup(const interner_t *in, const char *s) {
  size_t n = strlen(s);
  uint32_t hash = hash_bytes(s, n);
  for (size_t i = hash & (in->capacity - 1);; i = (i + 1) & (in->capacity - 1)) {
    symbol_t symbol = in->slots[i].symbol;
    if (symbol == NO_SYMBOL) return NO_SYMBOL;
    if (in->slots[i].hash == hash && in->strings[symbol].length == n && !memcmp(in->strings[symbol].text, s, n)) return symbol;
  }
}

static void release(interner_t *in) {
  for (block_t *b = in->blocks, *next; b != NULL; b = next) {
    next = b->next;
    free(b);
  }
  free(in->slots);
  free(in->strings);
}

static inline bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

/* Writes the identifier of a number and returns its end. */
static char *write_name(char *out, uint32_t number) {
  static const char *const verbs[16] = {"get", "set", "make", "find", "is",   "read",  "write",  "parse",
                                        "add", "on",  "to",   "with", "init", "visit", "handle", "update"};
  static const char *const nouns[32] = {"Node",  "Index", "Value", "Table",  "Buffer", "Key",  "List",   "Frame",
                                        "State", "Type",  "Name",  "Cache",  "Entry",  "Page", "Stream", "Block",
                                        "Count", "Size",  "Token", "Symbol", "Scope",  "Expr", "Path",   "File",
                                        "Line",  "Range", "Event", "Queue",  "Map",    "Set",  "Error",  "Context"};
  uint64_t r = (uint64_t)number * 0x9e3779b97f4a7c15u;
  const char *part = verbs[r >> 60];
  while (*part) *out++ = *part++;
  for (uint32_t rest = number; rest != 0; rest /= 32) {
    part = nouns[(rest ^ (r >> 40)) & 31];
    while (*part) *out++ = *part++;
  }
  if ((r >> 32) % 5 == 0) out += sprintf(out, "_%u", number % 1000);
  return out;
}

int main(int argc, char **argv) {
  uint32_t vocabulary = 1000 * argument(argc, argv, 1, 1500);
  uint64_t text_bytes = (uint64_t)argument(argc, argv, 2, 64) << 20;
  uint32_t passes = argument(argc, argv, 3, 2);
  uint64_t seed = 1970;

  char *text = malloc((size_t)text_bytes + 256);
  if (text == NULL) die("out of memory");
  char *end = text;
  while ((uint64_t)(end - text) < text_bytes) {
    static const char between[] = " (). ,\n; = + ";
    double u = random_unit(&seed);
    uint64_t r = next_random(&seed);
    end = write_name(end, (uint32_t)(u * u * u * vocabulary));
    *end++ = between[r % (sizeof between - 1)];
    if ((r >> 32) % 16 == 0) {
      *end++ = '0' + (char)((r >> 40) % 10);
      *end++ = ' ';
    }
  }
  *end = '\0';

  interner_t in = {0};
  uint64_t checksum = 0;
  uint64_t tokens = 0;
  uint32_t *pairs = calloc((size_t)1 << 20, sizeof *pairs);
  if (pairs == NULL) die("out of memory");
  for (uint32_t pass = 0; pass < passes; pass++) {
    symbol_t previous = 0;
    for (const char *s = text; *s;) {
      if (!is_name_start(*s)) {
        s++;
        continue;
      }
      const char *begin = s;
      do s++;
      while (is_name(*s));
      symbol_t symbol = intern(&in, begin, (size_t)(s - begin));
      pairs[(previous * 31 + symbol) & ((1u << 20) - 1)] += pass + 1;
      previous = symbol;
      tokens++;
    }
    checksum = mix(checksum, tokens);
    checksum = mix(checksum, in.count);
    checksum = mix(checksum, in.probes);
  }

  /* Names that may or may not be in the text. */
  uint64_t known = 0;
  for (uint32_t i = 0; i < vocabulary; i++) {
    char name[256];
    *write_name(name, random_below(&seed, 2 * vocabulary)) = '\0';
    symbol_t symbol = lookup(&in, name);
    if (symbol != NO_SYMBOL) known += in.strings[symbol].uses;
  }
  checksum = mix(checksum, known);
  for (size_t i = 0; i < (size_t)1 << 20; i += 97) checksum = mix(checksum, pairs[i]);

  free(pairs);
  free(text);
  release(&in);
  return report("string_intern", checksum);
}
