#include "feedback/lwp/info_pmu.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "feedback/lwp/units/perf_kernel.h"
#include "feedback/pmu/user_counter.h"

namespace hindsight::lwp {
namespace {

using nlohmann::json;
using pmu::ArchitecturalEvent;

// Why an event of this source cannot be counted; empty if it can.
std::string refusal_of(const pmu::EventSource& source) {
  switch (source.kind) {
    case pmu::SourceKind::kUncore:
      return pmu::uncore_refusal(source);
    case pmu::SourceKind::kCore:
    case pmu::SourceKind::kHybridCore: {
      int error = 0;
      const auto fd =
          pmu::open_perf_event(pmu::make_perf_attr(source.type, 0xC0), source.name, 0, -1, &error);
      return fd ? std::string() : pmu::explain_perf_errno(error);
    }
    case pmu::SourceKind::kIbs: {
      perf_event_attr attr = pmu::make_perf_attr(source.type, 0);
      attr.sample_period = 0x100000;
      if (source.has_format("swfilt")) {
        attr.config2 = 1;
      } else {
        attr.exclude_kernel = attr.exclude_hv = 0;
      }
      int error = 0;
      const auto fd = pmu::open_perf_event(attr, source.name, 0, -1, &error);
      return fd ? std::string() : pmu::explain_perf_errno(error);
    }
    case pmu::SourceKind::kKernel:
    case pmu::SourceKind::kOther:
      break;
  }
  return {};
}

std::string source_note(const SourceState& s) {
  if (!s.refusal.empty()) return s.refusal;
  switch (s.source.kind) {
    case pmu::SourceKind::kUncore:
      return "can be counted for whole processors, never for a thread";
    case pmu::SourceKind::kKernel:
    case pmu::SourceKind::kOther:
      return "the kernel's own";
    default:
      return "usable";
  }
}

void add_architectural(const PmuInfo& i, std::string& out) {
  const pmu::ArchitecturalPmu& p = i.architectural;
  if (p.version == 0) {
    out += i.amd ? "architectural performance monitoring: none (CPUID leaf 0AH is Intel's)\n"
                 : "architectural performance monitoring: none\n";
    return;
  }
  out += fmt::format("architectural performance monitoring: version {}, {} general counters of {} bits",
                     p.version, p.general_counters, p.general_width);
  if (p.version >= 2) {
    out += fmt::format(", {} fixed of {} bits (mask {:#x})", std::popcount(p.fixed_mask), p.fixed_width,
                       p.fixed_mask);
  }
  out += p.has_any_thread() ? ", AnyThread" : p.any_thread_deprecated ? ", AnyThread deprecated" : "";
  out += "\n";
  for (unsigned c = 0; c < 32; ++c) {
    if (!((p.fixed_mask >> c) & 1)) continue;
    const std::string_view name = pmu::fixed_counter_name(c);
    out += fmt::format("  fixed counter {}: {}\n", c, name.empty() ? "not architectural" : name);
  }
}

void add_amd(const pmu::AmdPmu& a, std::string& out) {
  out += fmt::format("AMD performance monitoring: version {}, {} core counters", a.version, a.core_counters);
  if (a.northbridge_counters) out += fmt::format(", {} data fabric", a.northbridge_counters);
  if (a.memory_counters) out += fmt::format(", {} memory controller", a.memory_counters);
  out += a.branch_stack      ? fmt::format("; branch stack: LBRv2 of {}", a.branch_stack)
         : a.branch_sampling ? "; branch stack: BRS of 16"
                             : "; branch stack: none";
  out += a.ibs ? fmt::format("; IBS: features {:#x}\n", a.ibs_features) : "; IBS: none\n";
}

struct Encoding {
  ArchitecturalEvent event;
  bool promised;  // by CPUID
  pmu::EventSelect select;
  uint64_t raw;
};

std::vector<Encoding> encodings(const PmuInfo& i) {
  std::vector<Encoding> out;
  for (unsigned n = 0; n < pmu::kArchitecturalEventCount; ++n) {
    const auto event = static_cast<ArchitecturalEvent>(n);
    if (i.amd) {
      if (const auto select = pmu::amd_event(event))
        out.push_back({event, true, *select, encode_amd_raw(*select)});
    } else if (i.architectural.version > 0) {
      const pmu::EventSelect select = pmu::architectural_event(event);
      out.push_back({event, i.architectural.has(event), select, encode_intel_raw(select)});
    }
  }
  return out;
}

// AMD's register has the event's high bits at 35:32, like the kernel's word.
uint64_t register_of(const PmuInfo& i, const Encoding& e) {
  return encode_perfevtsel(e.select) | (i.amd ? uint64_t{e.select.event >> 8 & 0xFu} << 32 : 0);
}

json outcome_json(const HardwareOutcome& o) {
  json delivered = json::array(), refused = json::array();
  for (const auto& d : o.delivered) {
    delivered.push_back({{"id", static_cast<unsigned>(d.event)}, {"by", d.by}, {"how", d.how}});
  }
  for (const auto& r : o.refused)
    refused.push_back({{"id", static_cast<unsigned>(r.event)}, {"reason", r.why}});
  return {{"delivered", std::move(delivered)}, {"refused", std::move(refused)}};
}

}  // namespace

PmuInfo pmu_info(const pmu::ProcessorInfo& processor) {
  PmuInfo i;
  // The leaf is Intel's, and Zhaoxin's; other vendors leave it reserved.
  if (processor.vendor == pmu::Vendor::kIntel || processor.vendor == pmu::Vendor::kZhaoxin) {
    i.architectural = pmu::decode_architectural_pmu(pmu::cpuid(0x0A));
  }
  const HardwareMachine machine = detect_hardware_machine();
  if (processor.vendor == pmu::Vendor::kAmd || processor.vendor == pmu::Vendor::kHygon) i.amd = machine.amd;
  i.perf_event_paranoid = pmu::perf_event_paranoid();
  i.counters = pmu::PmuCounters::open().availability();
  i.rdpmc = pmu::rdpmc_state();
  for (pmu::EventSource& source : pmu::read_event_sources(pmu::SourceDetail::kAll)) {
    std::string refusal = refusal_of(source);
    i.sources.push_back({std::move(source), std::move(refusal)});
  }
  i.hardware = probe_hardware(linux_perf_kernel(), plan_hardware(machine, kDefaultFrequency));
  return i;
}

std::string to_text(const PmuInfo& i) {
  std::string out;
  add_architectural(i, out);
  if (i.amd) add_amd(*i.amd, out);
  if (const auto list = encodings(i); !list.empty()) {
    out += "event encodings (counting ring 3):\n";
    for (const Encoding& e : list) {
      out += fmt::format("  {:<28} event {:03x}h umask {:02x}h  PERFEVTSEL {:#011x}  raw config {:#x}{}\n",
                         to_string(e.event), e.select.event, e.select.unit_mask, register_of(i, e), e.raw,
                         e.promised ? "" : "  (not available, CPUID says)");
    }
  }
  out += i.perf_event_paranoid
             ? fmt::format("kernel.perf_event_paranoid: {}\n", *i.perf_event_paranoid)
             : std::string("kernel.perf_event_paranoid: absent, this kernel has no perf events\n");
  out += "counters of a thread:\n";
  for (const pmu::CounterAvailability& c : i.counters) {
    out += fmt::format("  {:<17} {}\n", to_string(c.counter), c.available ? "available" : c.reason);
  }
  out += "RDPMC: " + i.rdpmc + "\n";
  out += i.sources.empty() ? "event sources: none (sysfs lists none)\n" : "event sources:\n";
  bool uncore = false;
  for (const SourceState& s : i.sources) {
    uncore |= s.source.kind == pmu::SourceKind::kUncore;
    out += fmt::format("  {:<17} {:<20} type {:<4} {}{}\n", s.source.name, to_string(s.source.kind),
                       s.source.type, s.source.cpus.empty() ? "" : "on cpu " + s.source.cpus + ": ",
                       source_note(s));
  }
  if (!uncore) out += "  no uncore source: the kernel offers none on this machine\n";
  out += "events by the hardware's own sampling:\n";
  for (const auto& d : i.hardware.delivered) {
    out +=
        fmt::format("  {} {:<20} {}: {}\n", static_cast<unsigned>(d.event), to_string(d.event), d.by, d.how);
  }
  for (const auto& r : i.hardware.refused) {
    out +=
        fmt::format("  {} {:<20} none      {}\n", static_cast<unsigned>(r.event), to_string(r.event), r.why);
  }
  return out;
}

json to_json(const PmuInfo& i) {
  const pmu::ArchitecturalPmu& p = i.architectural;
  json events = json::object();
  for (unsigned n = 0; n < pmu::kArchitecturalEventCount; ++n) {
    const auto event = static_cast<ArchitecturalEvent>(n);
    events[std::string(to_string(event))] = p.has(event);
  }
  json j;
  j["architectural"] = {{"version", p.version},
                        {"general_counters", p.general_counters},
                        {"general_width", p.general_width},
                        {"fixed_counters", p.fixed_counters},
                        {"fixed_width", p.fixed_width},
                        {"fixed_mask", p.fixed_mask},
                        {"any_thread", p.has_any_thread()},
                        {"any_thread_deprecated", p.any_thread_deprecated},
                        {"events", std::move(events)}};
  j["amd"] = nullptr;
  if (i.amd) {
    j["amd"] = {{"version", i.amd->version},
                {"core_counters", i.amd->core_counters},
                {"northbridge_counters", i.amd->northbridge_counters},
                {"memory_counters", i.amd->memory_counters},
                {"branch_stack", i.amd->branch_stack},
                {"branch_sampling", i.amd->branch_sampling},
                {"ibs", i.amd->ibs},
                {"ibs_features", i.amd->ibs_features}};
  }
  j["encodings"] = json::array();
  for (const Encoding& e : encodings(i)) {
    j["encodings"].push_back({{"event", to_string(e.event)},
                              {"promised", e.promised},
                              {"select", e.select.event},
                              {"unit_mask", e.select.unit_mask},
                              {"perfevtsel", register_of(i, e)},
                              {"raw_config", e.raw}});
  }
  j["perf_event_paranoid"] = i.perf_event_paranoid ? json(*i.perf_event_paranoid) : json(nullptr);
  j["counters"] = json::array();
  for (const pmu::CounterAvailability& c : i.counters) {
    j["counters"].push_back(
        {{"name", to_string(c.counter)}, {"available", c.available}, {"reason", c.reason}});
  }
  j["rdpmc"] = i.rdpmc;
  j["sources"] = json::array();
  for (const SourceState& s : i.sources) {
    j["sources"].push_back({{"name", s.source.name},
                            {"kind", to_string(s.source.kind)},
                            {"type", s.source.type},
                            {"cpus", s.source.cpus},
                            {"usable", s.refusal.empty()},
                            {"reason", s.refusal},
                            {"events", s.source.events.size()}});
  }
  j["hardware_events"] = outcome_json(i.hardware);
  return j;
}

}  // namespace hindsight::lwp
