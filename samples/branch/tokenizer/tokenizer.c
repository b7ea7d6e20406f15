// A hand-written scanner over generated JSON text: names, strings with escapes, numbers, punctuation and
// blanks, one branch or more for every byte.
//
// Arguments: the text's length in KiB, repetitions.
#include "../../common/sample.h"

typedef struct {
  uint32_t punctuation;
  uint32_t strings;
  uint32_t escapes;
  uint32_t numbers;
  uint32_t words;
  uint32_t deepest;
  uint64_t value;
} Counts;

static inline int is_digit(char c) {
  return c >= '0' && c <= '9';
}
static inline int is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

KERNEL static void scan(const char* at, const char* end, Counts* counts) {
  uint32_t depth = 0;
  while (at < end) {
    const char c = *at++;
    switch (c) {
      case ' ':
      case '\n':
      case '\t':
        break;
      case '{':
      case '[':
        if (++depth > counts->deepest) counts->deepest = depth;
        counts->punctuation++;
        break;
      case '}':
      case ']':
        --depth;
        counts->punctuation++;
        break;
      case ',':
      case ':':
        counts->punctuation++;
        break;
      case '"': {
        uint32_t hash = 0x811c9dc5u;
        while (at < end && *at != '"') {
          char letter = *at++;
          if (letter == '\\' && at < end) {
            letter = *at++;
            if (letter == 'n') letter = '\n';
            if (letter == 't') letter = '\t';
            counts->escapes++;
          }
          hash = (hash ^ (uint8_t)letter) * 0x01000193u;
        }
        ++at;
        counts->strings++;
        counts->value += hash;
        break;
      }
      default:
        if (c == '-' || is_digit(c)) {
          uint64_t whole = is_digit(c) ? (uint64_t)(c - '0') : 0;
          while (at < end && is_digit(*at)) whole = whole * 10 + (uint64_t)(*at++ - '0');
          uint64_t fraction = 0;
          if (at < end && *at == '.') {
            ++at;
            while (at < end && is_digit(*at)) fraction = fraction * 10 + (uint64_t)(*at++ - '0');
          }
          counts->numbers++;
          counts->value += c == '-' ? whole - fraction : whole + fraction;
        } else if (is_letter(c)) {
          while (at < end && is_letter(*at)) ++at;
          counts->words++;
        }
    }
  }
}

typedef struct {
  char* at;
  char* end;
  uint64_t seed;
} Writer;

static void put(Writer* writer, char c) {
  if (writer->at < writer->end) *writer->at++ = c;
}

static void put_text(Writer* writer, const char* text) {
  while (*text) put(writer, *text++);
}

static void put_string(Writer* writer) {
  put(writer, '"');
  const uint32_t length = 2 + random_below(&writer->seed, 14);
  for (uint32_t i = 0; i < length; ++i) {
    if (random_below(&writer->seed, 24) == 0) {
      put(writer, '\\');
      put(writer, "nt\"\\"[random_below(&writer->seed, 4)]);
    } else {
      put(writer, (char)('a' + random_below(&writer->seed, 26)));
    }
  }
  put(writer, '"');
}

static void put_value(Writer* writer, uint32_t depth) {
  const uint32_t kind = random_below(&writer->seed, depth > 5 ? 6 : 10);
  const uint32_t children = random_below(&writer->seed, 6);
  if (kind < 2) {
    put_string(writer);
  } else if (kind < 5) {
    if (random_below(&writer->seed, 4) == 0) put(writer, '-');
    const uint32_t digits = 1 + random_below(&writer->seed, 7);
    const uint32_t point = random_below(&writer->seed, 12);
    for (uint32_t i = 0; i < digits; ++i) {
      put(writer, (char)('0' + random_below(&writer->seed, 10)));
      if (i + 1 == point && point < digits) put(writer, '.');
    }
  } else if (kind == 5) {
    static const char* const words[] = {"true", "false", "null"};
    put_text(writer, words[random_below(&writer->seed, 3)]);
  } else if (kind < 8) {
    put(writer, '[');
    for (uint32_t i = 0; i < children; ++i) {
      if (i != 0) put_text(writer, ", ");
      put_value(writer, depth + 1);
    }
    put(writer, ']');
  } else {
    put(writer, '{');
    for (uint32_t i = 0; i < children; ++i) {
      put_text(writer, i != 0 ? ",\n  " : "\n  ");
      put_string(writer);
      put_text(writer, ": ");
      put_value(writer, depth + 1);
    }
    put(writer, '}');
  }
}

int main(int argc, char** argv) {
  const uint32_t bytes = 1024 * argument(argc, argv, 1, 4096);
  const uint32_t repetitions = argument(argc, argv, 2, 250);

  char* text = allocate(bytes, 1);
  Writer writer = {text, text + bytes, 32};
  while (writer.at < writer.end) {
    put_value(&writer, 0);
    put(&writer, '\n');
  }

  Counts counts = {0};
  for (uint32_t r = 0; r < repetitions; ++r) scan(text, text + bytes - r, &counts);
  uint64_t checksum = mix(counts.value, counts.deepest);
  checksum = mix(checksum, ((uint64_t)counts.punctuation << 32) | counts.strings);
  checksum = mix(checksum, ((uint64_t)counts.escapes << 32) | counts.numbers);
  return report("tokenizer", mix(checksum, counts.words));
}
