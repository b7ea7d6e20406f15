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
  if (p.core_type != pmu::CoreType::kUniform) {
    line += fmt::format(", hybrid; this core is of the {} type{}{}", to_string(p.core_type),
                        p.core.empty() ? "" : ", ", p.core);
  }
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

// "exact 1 2 3, estimated 4 5", by event number.
std::string delivered(const UnitProbe& p) {
  std::string text;
  for (const Accuracy accuracy : {Accuracy::kExact, Accuracy::kEstimated}) {
    std::string ids;
    for (const auto& [id, is] : p.delivers)
      if (is == accuracy) ids += fmt::format(" {}", static_cast<unsigned>(id));
    if (!ids.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", to_string(accuracy), ids);
  }
  return text.empty() ? "no event" : text;
}

void find_calibration(Info& i, Calibrate calibrate) {
  if (calibrate == Calibrate::kNever) {
    i.calibration = known_calibration(i.why_not_calibrated);
    if (!i.calibration && i.why_not_calibrated.empty()) i.why_not_calibrated = "not measured yet";
    return;
  }
  auto found = machine_calibration(calibrate == Calibrate::kAnew);
  if (found) {
    i.calibration = *std::move(found);
  } else {
    i.why_not_calibrated = found.error().message;
  }
}

void add_calibration(const Info& i, std::string& out) {
  if (!i.calibration) {
    out += "latencies: " + i.why_not_calibrated + "\n";
    return;
  }
  const Calibration& c = i.calibration->values;
  out += i.calibration->measured ? fmt::format("latencies, measured in {:.0f} ms", c.seconds * 1e3)
                                 : std::string("latencies, from the cache");
  if (!i.calibration->file.empty()) out += " (" + i.calibration->file + ")";
  out += ":\n";
  for (const MemoryLevel level :
       {MemoryLevel::kL1, MemoryLevel::kL2, MemoryLevel::kL3, MemoryLevel::kMemory}) {
    const LevelTiming& t = c[level];
    out += fmt::format("  {:<8}", to_string(level));
    if (t.bytes != 0) out += fmt::format(" {:>6} KiB", t.bytes >> 10);
    if (t.bytes == 0) out += std::string(11, ' ');
    if (!t.measured()) {
      out += "  not measured\n";
      continue;
    }
    out += fmt::format("  {:>6.1f} ns, {:>4.0f} cycles; a timed load shows {:.0f} ticks\n", t.latency_ns,
                       t.latency_ns * c.core_ghz, t.timed_load_ticks);
  }
  out += fmt::format(
      "  clocks: time-stamp counter {:.3f} GHz, core {:.2f} GHz; a single timed load over {:.0f} ticks came "
      "from memory\n  a mispredicted branch: {:.1f} ns, {:.0f} cycles\n",
      c.tsc_ghz, c.core_ghz, c.memory_threshold_ticks(), c.mispredict_ns, c.mispredict_cycles());
  if (!i.calibration->note.empty()) out += "  note: " + i.calibration->note + "\n";
}

json calibration_json(const Info& i) {
  if (!i.calibration) return {{"available", false}, {"reason", i.why_not_calibrated}};
  const Calibration& c = i.calibration->values;
  json j = {{"available", true},
            {"measured", i.calibration->measured},
            {"file", i.calibration->file},
            {"note", i.calibration->note},
            {"seconds", c.seconds},
            {"tsc_ghz", c.tsc_ghz},
            {"core_ghz", c.core_ghz},
            {"mispredict_ns", c.mispredict_ns},
            {"mispredict_cycles", c.mispredict_cycles()},
            {"memory_threshold_ticks", c.memory_threshold_ticks()}};
  j["levels"] = json::array();
  for (const MemoryLevel level :
       {MemoryLevel::kL1, MemoryLevel::kL2, MemoryLevel::kL3, MemoryLevel::kMemory}) {
    const LevelTiming& t = c[level];
    j["levels"].push_back({{"name", to_string(level)},
                           {"bytes", t.bytes},
                           {"measured", t.measured()},
                           {"latency_ns", t.latency_ns},
                           {"timed_load_ticks", t.timed_load_ticks}});
  }
  return j;
}

}  // namespace

Result<Info> info(std::string_view unit_name, Calibrate calibrate) {
  HINDSIGHT_ASSIGN(Selection selection, select_unit(unit_name));
  Info i;
  i.processor = pmu::identify_processor();
  i.lwp = detect_capabilities();
  i.pmu = pmu_info(i.processor);
  for (const UnitProbe& p : selection.probes) {
    if (p.selected) i.selected = p.name;
  }
  i.units = std::move(selection.probes);
  const auto events = selection.factory->events();
  i.events.assign(events.begin(), events.end());
  i.factory = std::move(selection.factory);
  find_calibration(i, calibrate);
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
  out += to_text(i.pmu);
  line("units:");
  for (const UnitProbe& p : i.units) {
    line(fmt::format("{} {:<12} {}", p.selected ? " *" : "  ", p.name, p.selected ? "selected" : p.reason));
    line(fmt::format("{:16}{}: {}", "", p.available ? "delivers" : "would deliver", delivered(p)));
  }
  line(i.events.empty() ? "events of the selected unit: none" : "events of the selected unit:");
  for (const EventInfo& e : i.events) {
    line(fmt::format("  {} {:<20} {:<9} {}{}{}", static_cast<unsigned>(e.id), to_string(e.id),
                     to_string(e.accuracy), e.by, e.by.empty() ? "" : ": ", e.how));
    if (!e.why.empty()) line(fmt::format("{:34}not by the hardware: {}", "", e.why));
  }
  add_calibration(i, out);
  return out;
}

json to_json(const Info& i) {
  json j;
  j["processor"] = {
      {"vendor", to_string(i.processor.vendor)},       {"brand", i.processor.brand},
      {"family", i.processor.signature.family},        {"model", i.processor.signature.model},
      {"stepping", i.processor.signature.stepping},    {"microarchitecture", i.processor.microarchitecture},
      {"core_type", to_string(i.processor.core_type)}, {"core", i.processor.core},
      {"virtualized", i.processor.virtualized},        {"hypervisor", i.processor.hypervisor}};
  j["lwp"] = {{"present", i.lwp.present},
              {"usable", features_json(i.lwp.usable)},
              {"hardware", features_json(i.lwp.hardware)},
              {"version", i.lwp.version},
              {"control_block_bytes", i.lwp.control_block_bytes},
              {"record_bytes", i.lwp.record_bytes},
              {"max_event_id", i.lwp.max_event_id}};
  j["pmu"] = to_json(i.pmu);
  j["units"] = json::array();
  for (const UnitProbe& p : i.units) {
    json delivers = json::array();
    for (const auto& [id, accuracy] : p.delivers)
      delivers.push_back({{"id", static_cast<unsigned>(id)}, {"accuracy", to_string(accuracy)}});
    j["units"].push_back({{"name", p.name},
                          {"available", p.available},
                          {"selected", p.selected},
                          {"reason", p.reason},
                          {"delivers", std::move(delivers)}});
  }
  j["selected"] = i.selected;
  j["events"] = json::array();
  for (const EventInfo& e : i.events) {
    j["events"].push_back({{"id", static_cast<unsigned>(e.id)},
                           {"name", to_string(e.id)},
                           {"accuracy", to_string(e.accuracy)},
                           {"how", e.how},
                           {"by", e.by},
                           {"why", e.why}});
  }
  j["calibration"] = calibration_json(i);
  return j;
}

}  // namespace hindsight::lwp
