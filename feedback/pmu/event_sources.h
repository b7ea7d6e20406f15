// The event sources that this kernel offers, as sysfs lists them. There is the core PMU or, on hybrid
// processors, one a core type, and AMD's sampling unit. There are uncore counters (memory controllers,
// last-level caches, fabrics, energy), and the kernel's own. Each with the type number that perf_event_open
// wants, its named events and the places of their fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hindsight::pmu {

enum class SourceKind : uint8_t {
  kCore,        // "cpu": counts for a thread
  kHybridCore,  // "cpu_core", "cpu_atom", "cpu_lowpower": counts while the thread is on such a core
  kIbs,         // "ibs_op", "ibs_fetch"
  kUncore,      // counts for a package or die, never for a thread
  kKernel,      // software, trace points, breakpoints, probes
  kOther,
};
std::string_view to_string(SourceKind kind);

struct EventSource {
  std::string name;
  SourceKind kind = SourceKind::kOther;
  uint32_t type = 0;  // perf_event_attr::type
  std::string cpus;  // a list like "0-7,16": where an uncore source is read, or a hybrid one counts; or empty
  std::map<std::string, std::string> formats;  // field -> "config:0-7"
  std::map<std::string, std::string> events;   // name -> "event=0xcd,umask=0x1,ldlat=3"

  bool has_event(const std::string& event) const { return events.contains(event); }
  bool has_format(const std::string& field) const { return formats.contains(field); }
};

// How much to read: a server has dozens of uncore sources with hundreds of files.
enum class SourceDetail : uint8_t {
  kSamplers,  // formats and events of core and IBS sources only
  kAll,
};

// Never fails: what cannot be read is not there. In order of name.
std::vector<EventSource> read_event_sources(
    SourceDetail detail, const std::filesystem::path& devices = "/sys/bus/event_source/devices");

const EventSource* find_source(const std::vector<EventSource>& sources, std::string_view name);

// The three configuration words of an event.
struct EventConfig {
  uint64_t config = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  friend bool operator==(const EventConfig&, const EventConfig&) = default;
};

// Puts the terms of "event=0xcd,umask=0x1,ldlat=3" where the source's formats say; a term without value is 1.
// Empty where a term has no format or a value does not fit into its field.
std::optional<EventConfig> encode_terms(const EventSource& source, std::string_view terms);

// The first processor of a list like "0-7,16".
std::optional<int> first_cpu(std::string_view list);

// Why the calling process cannot count with an uncore source, or empty if it can. Opens one event on the
// first of its processors and closes it. An answer like "EACCES: kernel.perf_event_paranoid is 2, ...".
std::string uncore_refusal(const EventSource& source);

}  // namespace hindsight::pmu
