#include "feedback/lwp/info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hindsight::lwp {
namespace {

using nlohmann::json;

std::string processor_line(const pmu::ProcessorInfo& p) {
  std::string line = p.brand.empty() ? std::string(to_string(p.vendor)) : p.brand;
  line += fmt::format(", family {:x}h model {:x}h stepping {}", p.signature.family, p.signature.model,
                      p.signature.stepping);
  line += p.microarchitecture.empty() ? ", microarchitecture not in the table" : ", " + p.microarchitecture;
  if (p.virtualized) line += ", in a virtual machine (" + p.hypervisor + ")";
  return line;
}

std::string features_text(const FeatureSet& f) {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (on) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(f.value, "value samples");
  add(f.instructions, "instructions");
  add(f.branches, "branches");
  add(f.dcache_misses, "DCache misses");
  add(f.core_clocks, "core clocks");
  add(f.reference_clocks, "reference clocks");
  add(f.continuous, "continuous mode");
  add(f.timestamps, "time stamps");
  add(f.interrupt, "threshold interrupt");
  return text.empty() ? "none" : text;
}

json features_json(const FeatureSet& f) {
  return {{"available", f.available},
          {"value", f.value},
          {"instructions", f.instructions},
          {"branches", f.branches},
          {"dcache_misses", f.dcache_misses},
          {"core_clocks", f.core_clocks},
          {"reference_clocks", f.reference_clocks},
          {"continuous", f.continuous},
          {"timestamps", f.timestamps},
          {"interrupt", f.interrupt}};
}

}  // namespace

Result<Info> info(std::string_view unit_name) {
  HINDSIGHT_ASSIGN(Selection selection, select_unit(unit_name));
  Info i;
  i.processor = pmu::identify_processor();
  i.lwp = detect_capabilities();
  // The leaf is Intel's; other vendors leave it reserved.
  if (i.processor.vendor == pmu::Vendor::kIntel)
    i.architectural_pmu = pmu::decode_architectural_pmu(pmu::cpuid(0x0A));
  i.perf_event_paranoid = pmu::perf_event_paranoid();
  i.counters = pmu::PmuCounters::open().availability();
  for (const UnitProbe& p : selection.probes) {
    if (p.selected) i.selected = p.name;
  }
  i.units = std::move(selection.probes);
  const auto events = selection.factory->events();
  i.events.assign(events.begin(), events.end());
  return i;
}

std::string to_text(const Info& i) {
  std::string out;
  const auto line = [&](std::string_view text) { out.append(text).append("\n"); };
  line("processor: " + processor_line(i.processor));
  if (!i.lwp.present) {
    line("lightweight profiling: not in this processor");
  } else {
    line(fmt::format("lightweight profiling: version {}, {}; hardware: {}; usable: {}", i.lwp.version,
                     i.lwp.usable.available ? "enabled" : "not enabled by the operating system",
                     features_text(i.lwp.hardware), features_text(i.lwp.usable)));
  }
  if (i.architectural_pmu.version == 0) {
    line("architectural performance monitoring: none");
  } else {
    const pmu::ArchitecturalPmu& p = i.architectural_pmu;
    line(
        fmt::format("architectural performance monitoring: version {}, {} general counters of {} bits, {} "
                    "fixed of {} bits",
                    p.version, p.general_counters, p.general_width, p.fixed_counters, p.fixed_width));
  }
  line(i.perf_event_paranoid
           ? fmt::format("kernel.perf_event_paranoid: {}", *i.perf_event_paranoid)
           : std::string("kernel.perf_event_paranoid: absent, this kernel has no perf events"));
  line("counters:");
  for (const pmu::CounterAvailability& c : i.counters) {
    line(fmt::format("  {:<17} {}", to_string(c.counter), c.available ? "available" : c.reason));
  }
  line("units:");
  for (const UnitProbe& p : i.units) {
    line(fmt::format("{} {:<12} {}", p.selected ? " *" : "  ", p.name, p.selected ? "selected" : p.reason));
  }
  line(i.events.empty() ? "events of the selected unit: none" : "events of the selected unit:");
  for (const EventInfo& e : i.events) {
    line(fmt::format("  {} {:<20} {:<9} {}", static_cast<unsigned>(e.id), to_string(e.id),
                     to_string(e.accuracy), e.how));
  }
  return out;
}

json to_json(const Info& i) {
  json j;
  j["processor"] = {
      {"vendor", to_string(i.processor.vendor)},    {"brand", i.processor.brand},
      {"family", i.processor.signature.family},     {"model", i.processor.signature.model},
      {"stepping", i.processor.signature.stepping}, {"microarchitecture", i.processor.microarchitecture},
      {"virtualized", i.processor.virtualized},     {"hypervisor", i.processor.hypervisor}};
  j["lwp"] = {{"present", i.lwp.present},
              {"usable", features_json(i.lwp.usable)},
              {"hardware", features_json(i.lwp.hardware)},
              {"version", i.lwp.version},
              {"control_block_bytes", i.lwp.control_block_bytes},
              {"record_bytes", i.lwp.record_bytes},
              {"max_event_id", i.lwp.max_event_id}};
  json architectural = {{"version", i.architectural_pmu.version},
                        {"general_counters", i.architectural_pmu.general_counters},
                        {"general_width", i.architectural_pmu.general_width},
                        {"fixed_counters", i.architectural_pmu.fixed_counters},
                        {"fixed_width", i.architectural_pmu.fixed_width}};
  json counters = json::array();
  for (const pmu::CounterAvailability& c : i.counters) {
    counters.push_back({{"name", to_string(c.counter)}, {"available", c.available}, {"reason", c.reason}});
  }
  j["pmu"] = {{"architectural", std::move(architectural)},
              {"perf_event_paranoid", i.perf_event_paranoid ? json(*i.perf_event_paranoid) : json(nullptr)},
              {"counters", std::move(counters)}};
  j["units"] = json::array();
  for (const UnitProbe& p : i.units) {
    j["units"].push_back(
        {{"name", p.name}, {"available", p.available}, {"selected", p.selected}, {"reason", p.reason}});
  }
  j["selected"] = i.selected;
  j["events"] = json::array();
  for (const EventInfo& e : i.events) {
    j["events"].push_back({{"id", static_cast<unsigned>(e.id)},
                           {"name", to_string(e.id)},
                           {"accuracy", to_string(e.accuracy)},
                           {"how", e.how}});
  }
  return j;
}

}  // namespace hindsight::lwp
