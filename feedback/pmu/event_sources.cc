#include "feedback/pmu/event_sources.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <system_error>

#include "feedback/pmu/perf_event.h"

namespace hindsight::pmu {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return trimmed(line);
}

// Not with the standard library's iterator of folders, which ends the process where there is no memory for it. In no order.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), &::closedir);
  if (opened == nullptr) return names;
  while (const dirent* entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

std::map<std::string, std::string> read_folder(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const std::string& name : names_in(folder)) {
    // "mem-loads.unit" and "mem-loads.scale" describe another file.
    if (name.find('.') != std::string::npos) continue;
    if (auto text = read_line(folder / name)) out[name] = std::move(*text);
  }
  return out;
}

SourceKind kind_of(const std::string& name, bool has_cpumask) {
  if (name == "cpu") return SourceKind::kCore;
  if (name.starts_with("cpu_")) return SourceKind::kHybridCore;
  if (name.starts_with("ibs_")) return SourceKind::kIbs;
  if (has_cpumask) return SourceKind::kUncore;
  for (const char* kernel : {"software", "tracepoint", "breakpoint", "kprobe", "uprobe"}) {
    if (name == kernel) return SourceKind::kKernel;
  }
  return SourceKind::kOther;
}

std::optional<uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Takes the part of `text` before `separator` off its front.
std::string_view next_part(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return part;
}

// Spreads `value` over the bit ranges of a format like "config:0-7,32-35", low bits first.
bool place(EventConfig& out, std::string_view format, uint64_t value) {
  const std::string_view word_name = next_part(format, ':');
  uint64_t* word = word_name == "config"    ? &out.config
                   : word_name == "config1" ? &out.config1
                   : word_name == "config2" ? &out.config2
                                            : nullptr;
  if (!word || format.empty()) return false;
  while (!format.empty()) {
    std::string_view range = next_part(format, ',');
    const auto low = number(next_part(range, '-'));
    const auto high = range.empty() ? low : number(range);
    if (!low || !high || *high < *low || *high > 63) return false;
    const uint64_t width = *high - *low + 1;
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    *word |= (value & mask) << *low;
    value = width == 64 ? 0 : value >> width;
  }
  return value == 0;
}

}  // namespace

std::string_view to_string(SourceKind kind) {
  switch (kind) {
    case SourceKind::kCore:
      return "core";
    case SourceKind::kHybridCore:
      return "hybrid core";
    case SourceKind::kIbs:
      return "instruction sampling";
    case SourceKind::kUncore:
      return "uncore";
    case SourceKind::kKernel:
      return "kernel";
    case SourceKind::kOther:
      break;
  }
  return "other";
}

std::vector<EventSource> read_event_sources(SourceDetail detail, const fs::path& devices) {
  std::vector<EventSource> sources;
  for (const std::string& name : names_in(devices)) {
    const fs::path folder = devices / name;
    const auto type_line = read_line(folder / "type");
    const auto type = type_line ? number(*type_line) : std::nullopt;
    if (!type || *type > UINT32_MAX) continue;
    EventSource source;
    source.name = name;
    source.type = static_cast<uint32_t>(*type);
    const auto mask = read_line(folder / "cpumask");
    source.kind = kind_of(source.name, mask.has_value());
    source.cpus = mask ? *mask : read_line(folder / "cpus").value_or("");
    const bool samples = source.kind == SourceKind::kCore || source.kind == SourceKind::kHybridCore ||
                         source.kind == SourceKind::kIbs;
    if (samples || detail == SourceDetail::kAll) {
      source.formats = read_folder(folder / "format");
      source.events = read_folder(folder / "events");
    }
    sources.push_back(std::move(source));
  }
  std::ranges::sort(sources, {}, &EventSource::name);
  return sources;
}

const EventSource* find_source(const std::vector<EventSource>& sources, std::string_view name) {
  const auto it = std::ranges::find(sources, name, &EventSource::name);
  return it == sources.end() ? nullptr : &*it;
}

std::optional<EventConfig> encode_terms(const EventSource& source, std::string_view terms) {
  EventConfig out;
  while (!terms.empty()) {
    std::string_view value_text = next_part(terms, ',');
    const std::string field(next_part(value_text, '='));
    const auto value = value_text.empty() ? std::optional<uint64_t>(1) : number(value_text);
    if (!value) return std::nullopt;
    if (field == "config") {
      out.config |= *value;
    } else if (field == "config1") {
      out.config1 |= *value;
    } else if (field == "config2") {
      out.config2 |= *value;
    } else {
      const auto format = source.formats.find(field);
      if (format == source.formats.end() || !place(out, format->second, *value)) return std::nullopt;
    }
  }
  return out;
}

std::optional<int> first_cpu(std::string_view list) {
  const auto cpu = number(list.substr(0, list.find_first_of(",-")));
  if (!cpu || *cpu > 1u << 20) return std::nullopt;
  return static_cast<int>(*cpu);
}

std::string uncore_refusal(const EventSource& source) {
  const auto cpu = first_cpu(source.cpus);
  if (!cpu) return "no processor of this machine reads it";
  perf_event_attr attr = make_perf_attr(source.type, 0);
  attr.exclude_kernel = attr.exclude_hv = 0;  // uncore counters know no rings, and refuse filters
  // An event that the source names itself, where there is one: 0 may be reserved.
  for (const auto& [name, terms] : source.events) {
    if (const auto config = encode_terms(source, terms)) {
      attr.config = config->config;
      attr.config1 = config->config1;
      attr.config2 = config->config2;
      break;
    }
  }
  int error = 0;
  const auto fd = open_perf_event_on_cpu(attr, source.name, *cpu, &error);
  return fd ? std::string() : explain_perf_errno(error);
}

}  // namespace hindsight::pmu
