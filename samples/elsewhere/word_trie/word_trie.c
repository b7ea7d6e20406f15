/*
 * A trie over the words of a generated text. It counts words, says how many begin with a prefix, and finds the most
 * frequent completion by recursion. A node holds one pointer for each letter, most of them null.
 *
 * Arguments: thousands of different words, millions of letters of text, thousands of prefixes to complete.
 */
#include <ctype.h>

#include "../../common/sample.h"

#define ALPHABET 26
#define MAX_WORD 32

struct node {
  struct node *next[ALPHABET];
  uint32_t words;
  uint32_t below;
};

static struct node *root;
static size_t node_count;

static struct node *make_node(void) {
  struct node *p = calloc(1, sizeof(struct node));
  if (!p) {
    fputs("out of memory\n", stderr);
    exit(3);
  }
  ++node_count;
  return p;
}

static void insert(const char *word, int length) {
  struct node *p = root;
  p->below++;
  for (int i = 0; i < length; i++) {
    int c = word[i] - 'a';
    if (p->next[c] == NULL) p->next[c] = make_node();
    p = p->next[c];
    p->below++;
  }
  p->words++;
}

static struct node *walk(const char *prefix) {
  struct node *p = root;
  for (; *prefix; prefix++)
    if ((p = p->next[*prefix - 'a']) == NULL) return NULL;
  return p;
}

struct best {
  char word[MAX_WORD];
  uint32_t words;
};

/* The most frequent word under a node. A subtree with fewer words in all than the best so far is not entered. */
static void complete(const struct node *p, char *word, int length, struct best *best) {
  if (p->words > best->words) {
    best->words = p->words;
    memcpy(best->word, word, length);
    best->word[length] = '\0';
  }
  for (int c = 0; c < ALPHABET; c++) {
    const struct node *q = p->next[c];
    if (!q || q->below <= best->words) continue;
    word[length] = 'a' + c;
    complete(q, word, length + 1, best);
  }
}

static void release(struct node *p) {
  for (int c = 0; c < ALPHABET; c++)
    if (p->next[c]) release(p->next[c]);
  free(p);
}

/* Spells the word of a number, from syllables with more or less usual ones among them. */
static int spell(uint64_t number, char *out) {
  static const char onset[] = "bcdfghjklmnpqrstvwzstrnl";
  static const char nucleus[] = "aeiouaeioeaiea";
  static const char coda[] = "nrslt";
  uint64_t state = number;
  int length = 0;
  int syllables = 2 + (int)(next_random(&state) % 4);
  while (syllables-- > 0) {
    uint64_t r = next_random(&state);
    out[length++] = onset[r % (sizeof onset - 1)];
    out[length++] = nucleus[(r >> 16) % (sizeof nucleus - 1)];
    if ((r >> 32) % 3 == 0) out[length++] = coda[(r >> 40) % (sizeof coda - 1)];
  }
  return length;
}

int main(int argc, char **argv) {
  uint32_t vocabulary = 1000 * argument(argc, argv, 1, 600);
  size_t letters = (size_t)1000000 * argument(argc, argv, 2, 16);
  uint32_t prefixes = 1000 * argument(argc, argv, 3, 400);
  uint64_t seed = 1960;

  /* The text, with capitals and punctuation, as if read from a file. */
  char *text = malloc(letters + 2 * MAX_WORD);
  if (!text) return 3;
  size_t end = 0;
  int sentence = 0;
  while (end < letters) {
    double u = random_unit(&seed);
    int length = spell((uint64_t)(u * u * vocabulary), text + end);
    if (sentence == 0) text[end] = (char)toupper((unsigned char)text[end]);
    end += length;
    if (++sentence > 9 && (next_random(&seed) & 3) == 0) {
      text[end++] = '.';
      sentence = 0;
    }
    text[end++] = sentence == 5 ? '\n' : ' ';
  }
  text[end] = '\0';

  root = make_node();
  char word[MAX_WORD];
  int length = 0;
  uint64_t total = 0;
  for (const char *s = text;; s++) {
    int c = (unsigned char)*s;
    if (isalpha(c) && length < MAX_WORD - 1) {
      word[length++] = (char)tolower(c);
      continue;
    }
    if (length > 0) {
      insert(word, length);
      total++;
      length = 0;
    }
    if (c == '\0') break;
  }
  uint64_t checksum = mix(total, node_count);

  /* How many words begin like these, and how many are these. */
  uint64_t begin = 0, whole = 0, unknown = 0;
  for (uint32_t i = 0; i < prefixes * 4; i++) {
    int n = spell(random_below(&seed, vocabulary + vocabulary / 8), word);
    if (i & 1) n = n > 4 ? 4 + (int)(i % 3) : n;
    word[n] = '\0';
    const struct node *p = walk(word);
    if (p == NULL) {
      unknown++;
    } else {
      begin += p->below;
      whole += p->words;
    }
  }
  checksum = mix(checksum, begin);
  checksum = mix(checksum, whole);
  checksum = mix(checksum, unknown);

  for (uint32_t i = 0; i < prefixes; i++) {
    int n = spell(random_below(&seed, vocabulary), word);
    if (n > 6) n = 4 + (int)(i & 1);
    word[n] = '\0';
    const struct node *p = walk(word);
    if (p == NULL) continue;
    struct best best = {"", 0};
    complete(p, word, n, &best);
    for (const char *s = best.word; *s; s++) checksum = checksum * 31 + (unsigned char)*s;
    checksum = mix(checksum, best.words);
  }

  release(root);
  free(text);
  return report("word_trie", checksum);
}
