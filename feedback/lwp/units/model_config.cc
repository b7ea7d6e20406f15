// The words that configure a model.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "feedback/lwp/model/core_model.h"

namespace hindsight::lwp {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t cut = text.find(at);
    parts.push_back(text.substr(0, cut));
    if (cut == std::string_view::npos) return parts;
    text.remove_prefix(cut + 1);
  }
}

// "32", "32K", "1M".
std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > UINT32_MAX) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  if (!unit.empty()) return std::nullopt;
  return value;
}

struct Word {
  std::string_view key;
  std::vector<std::string_view> values;
  bool numbers(size_t least, size_t most, uint64_t (&out)[3]) const {
    if (values.size() < least || values.size() > most) return false;
    for (size_t i = 0; i < values.size() && i < 3; ++i) {
      const auto value = number(values[i]);
      if (!value) return false;
      out[i] = *value;
    }
    return true;
  }
};

std::optional<Replacement> replacement(std::string_view text) {
  if (text == "lru") return Replacement::kLru;
  if (text == "fifo") return Replacement::kFifo;
  if (text == "random") return Replacement::kRandom;
  return std::nullopt;
}

bool apply_cache(ModelConfig& c, size_t level, Word word) {
  auto& levels = c.cache.levels;
  if (word.values.size() == 1 && word.values[0] == "off") {
    if (level == 0 || level > levels.size()) return false;
    levels.resize(level);
    return true;
  }
  CacheLevelConfig config;
  if (word.values.size() == 4) {
    const auto policy = replacement(word.values[3]);
    if (!policy) return false;
    config.replacement = *policy;
    word.values.pop_back();
  }
  uint64_t n[3] = {};
  if (!word.numbers(3, 3, n) || level > levels.size()) return false;
  config.bytes = n[0];
  config.ways = static_cast<uint32_t>(n[1]);
  config.latency = static_cast<uint32_t>(n[2]);
  if (level == levels.size()) levels.emplace_back();
  levels[level] = config;
  return true;
}

bool apply_tlb(ModelConfig& c, size_t level, const Word& word) {
  auto& tlbs = c.cache.tlbs;
  if (word.values.size() == 1 && word.values[0] == "off") {
    if (level <= tlbs.size()) tlbs.resize(level);
    return true;
  }
  uint64_t n[3] = {};
  if (!word.numbers(3, 3, n) || level > tlbs.size()) return false;
  if (level == tlbs.size()) tlbs.emplace_back();
  tlbs[level] = {static_cast<uint32_t>(n[0]), static_cast<uint32_t>(n[1]), static_cast<uint32_t>(n[2])};
  return true;
}

bool apply(ModelConfig& c, const Word& word) {
  const std::string_view key = word.key;
  if (key.size() == 2 && key[0] == 'l' && key[1] >= '1' && key[1] <= '4')
    return apply_cache(c, static_cast<size_t>(key[1] - '1'), word);
  if (key == "tlb1" || key == "tlb2") return apply_tlb(c, static_cast<size_t>(key[3] - '1'), word);
  if (key == "predictor") {
    if (word.values.size() != 1 || !make_branch_predictor(word.values[0])) return false;
    c.predictor = word.values[0];
    return true;
  }
  uint64_t n[3] = {};
  if (key == "memory") {
    if (!word.numbers(1, 2, n)) return false;
    c.cache.memory_latency = static_cast<uint32_t>(n[0]);
    if (word.values.size() == 2) c.cache.memory_interval = static_cast<uint32_t>(n[1]);
    return true;
  }
  if (!word.numbers(1, 1, n)) return false;
  const auto value = static_cast<uint32_t>(n[0]);
  const auto within = [&](uint32_t low, uint32_t high, uint32_t& out) {
    out = value;
    return value >= low && value <= high;
  };
  if (key == "line") return within(8, 4096, c.cache.line_bytes);
  if (key == "page") return within(64, 1u << 30, c.cache.page_bytes);
  if (key == "walk") return within(0, 10'000, c.cache.walk_latency);
  if (key == "prefetch") return within(0, 64, c.cache.prefetch_distance);
  if (key == "width") return within(1, 16, c.width) && 16 % value == 0;
  if (key == "window") return within(1, 4096, c.window);
  if (key == "penalty") return within(0, 1000, c.penalty);
  if (key == "store_buffer") return within(1, 4096, c.store_buffer);
  if (key == "wrong_path") {
    c.wrong_path = value != 0;
    return value <= 1;
  }
  if (key == "forward") return within(0, 100, c.forward);
  return false;
}

}  // namespace

ModelConfig default_model() {
  ModelConfig c;
  c.cache.levels = {{32 << 10, 8, 4, Replacement::kLru},
                    {1 << 20, 8, 14, Replacement::kLru},
                    {32 << 20, 16, 60, Replacement::kLru}};
  c.cache.memory_latency = 500;
  c.cache.memory_interval = 10;
  c.cache.tlbs = {{64, 64, 0}, {2048, 8, 8}};
  c.cache.walk_latency = 60;
  c.cache.prefetch_distance = 16;
  return c;
}

Result<ModelConfig> parse_model(std::string_view text) {
  ModelConfig config = default_model();
  if (text.empty()) return config;
  for (const std::string_view part : split(text, ',')) {
    const size_t cut = part.find('=');
    Word word{part.substr(0, cut), {}};
    if (cut != std::string_view::npos) word.values = split(part.substr(cut + 1), '/');
    if (!apply(config, word)) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("'{}' says nothing about a model; such as l2=1M/8/14, memory=350/10, prefetch=0 or "
                      "predictor=gshare",
                      part));
    }
  }
  HINDSIGHT_TRY(check(config.cache));
  return config;
}

}  // namespace hindsight::lwp
