// A recursive-descent calculator that reports mistakes by throwing. It has destructors on the way, base
// classes, types that are no classes, exceptions that are thrown again, and many of them. Prints one line:
// counts and a checksum.
//
// Arguments: number of expressions.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

namespace {

int g_alive = 0;  // guards that were made and not destroyed

struct Guard {
  Guard() { ++g_alive; }
  Guard(const Guard&) { ++g_alive; }
  ~Guard() { --g_alive; }
};

struct Mistake {
  explicit Mistake(size_t where) : at(where) {}
  virtual ~Mistake() = default;
  virtual int code() const { return 1; }
  size_t at;
  Guard guard;
};
struct MissingParenthesis : Mistake {
  using Mistake::Mistake;
  int code() const override { return 2; }
};
struct Named {
  virtual ~Named() = default;
  std::string name = "division";
};
struct DivisionByZero final : Named, Mistake {
  using Mistake::Mistake;
  int code() const override { return static_cast<int>(name.size()); }
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  int64_t sum() {
    Guard guard;
    int64_t value = product();
    while (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      const bool plus = text_[at_++] == '+';
      const int64_t other = product();
      value = plus ? value + other : value - other;
    }
    return value;
  }

 private:
  int64_t product() {
    Guard guard;
    int64_t value = factor();
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/')) {
      const bool times = text_[at_++] == '*';
      const int64_t other = factor();
      if (!times && other == 0) throw DivisionByZero(at_);
      value = times ? value * other : value / other;
    }
    return value;
  }
  int64_t factor() {
    std::string held = text_.substr(at_ < text_.size() ? at_ : 0, 40);  // has something to free
    if (at_ == text_.size()) throw "end";
    if (text_[at_] == '(') {
      ++at_;
      int64_t value = 0;
      try {
        value = sum();
      } catch (const char*) {
        throw MissingParenthesis(at_);  // instead of what was caught
      } catch (Mistake& mistake) {
        mistake.at += 1000;
        throw;
      }
      if (at_ == text_.size() || text_[at_] != ')') throw MissingParenthesis(at_);
      ++at_;
      return value;
    }
    if (text_[at_] < '0' || text_[at_] > '9') throw static_cast<int>(text_[at_]);
    return text_[at_++] - '0';
  }

  const std::string& text_;
  size_t at_ = 0;
};

uint64_t g_state = 12345;
uint32_t random_below(uint32_t bound) {
  g_state = g_state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>((g_state >> 33) % bound);
}

std::string expression() {
  static constexpr char kSymbols[] = "0123456789012345678900(((()))++--***//x";
  std::string text;
  const uint32_t length = 1 + random_below(12);
  for (uint32_t i = 0; i < length; ++i) {
    if (i % 2 == 0)
      text += static_cast<char>('0' + random_below(10));
    else
      text += kSymbols[random_below(sizeof kSymbols - 1)];
  }
  if (random_below(50) == 0) text[0] = 'x';
  if (random_below(4) == 0) text = "(" + text;
  return text;
}

uint64_t mix(uint64_t checksum, uint64_t value) {
  checksum = (checksum ^ value) * 0x9fb21c651e98df25u;
  return checksum ^ (checksum >> 32);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 20000;
  int counts[5] = {};
  uint64_t checksum = 0;
  for (int i = 0; i < count; ++i) {
    const std::string text = expression();
    try {
      checksum = mix(checksum, static_cast<uint64_t>(Parser(text).sum()));
      ++counts[0];
    } catch (const DivisionByZero& mistake) {
      checksum = mix(checksum, 0x100 + mistake.at + static_cast<uint64_t>(mistake.code()));
      ++counts[1];
    } catch (const Mistake& mistake) {
      checksum = mix(checksum, 0x200 + mistake.at + static_cast<uint64_t>(mistake.code()));
      ++counts[2];
    } catch (int symbol) {
      checksum = mix(checksum, static_cast<uint64_t>(symbol));
      ++counts[3];
    } catch (...) {
      ++counts[4];
    }
    if (g_alive != 0) return 5;
  }
  printf("throwing %d %d %d %d %d %016llx\n", counts[0], counts[1], counts[2], counts[3], counts[4],
         static_cast<unsigned long long>(checksum));
  return 0;
}
