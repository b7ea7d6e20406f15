#include "feedback/monitor/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feedback/lwp/record.h"
#include "feedback/monitor/load_decoder.h"

namespace hindsight::feedback {

namespace {

// A clock sample says that a load stalled, not for how long: the latency field of estimated records stays
// zero.
constexpr uint32_t kUnknownLatency = 0;

void add(lwp::UnitCounters& sum, const lwp::UnitCounters& part) {
  sum.samples += part.samples;
  sum.records += part.records;
  sum.missed += part.missed;
  sum.lost += part.lost;
  sum.throttled += part.throttled;
  sum.overruns += part.overruns;
  sum.non_guest += part.non_guest;
  sum.malformed += part.malformed;
  sum.discarded += part.discarded;
}

void add(std::map<std::string, PmuReading>& sums, const pmu::PmuCounters& counters) {
  pmu::Reading reading = counters.read();
  for (const pmu::CounterAvailability& row : counters.availability()) {
    PmuReading& sum = sums[std::string(pmu::to_string(row.counter))];
    sum.name = pmu::to_string(row.counter);
    const pmu::CounterValue& value = reading[row.counter];
    if (!row.available || !value.present) {
      if (sum.why_not.empty()) sum.why_not = row.available ? "never scheduled" : row.reason;
      continue;
    }
    sum.available = true;
    sum.value += static_cast<double>(value.value);
    sum.scale = std::min(sum.scale, value.coverage);
  }
}

}  // namespace

Monitor::Monitor(const jit::CodeRegistry& registry, Config config)
    : registry_(registry),
      config_(std::move(config)),
      frequency_hz_(config_.frequency_hz),
      last_decay_(std::chrono::steady_clock::now()),
      period_(config_.period) {}

Monitor::~Monitor() {
  stop();
}

void Monitor::start() {
  thread_ = std::thread([this] { run(); });
}

void Monitor::stop() {
  {
    std::lock_guard lock(control_mutex_);
    stop_ = true;
  }
  control_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Monitor::run() {
  std::unique_lock lock(control_mutex_);
  for (bool stopping = false; !stopping;) {
    control_.wait_for(lock, period_, [this] { return stop_; });
    stopping = stop_;  // then this is the last round
    lock.unlock();
    round();
    if (!stopping && config_.on_round) config_.on_round();
    lock.lock();
  }
}

void Monitor::attach(std::shared_ptr<lwp::Unit> unit, std::optional<pmu::PmuCounters> counters) {
  auto watched = std::make_unique<Watched>();
  watched->unit = std::move(unit);
  watched->counters = std::move(counters);
  std::lock_guard lock(mutex_);
  (void)watched->unit->set_frequency(frequency_hz_);
  watched_.push_back(std::move(watched));
}

void Monitor::detach(const lwp::Unit* unit) {
  std::lock_guard lock(mutex_);
  auto found =
      std::find_if(watched_.begin(), watched_.end(), [&](const auto& w) { return w->unit.get() == unit; });
  if (found == watched_.end()) return;
  drain(**found);  // what was sampled before the end counts
  if ((*found)->counters) add(pmu_ended_, *(*found)->counters);
  add(ended_, (*found)->unit->counters());
  watched_.erase(found);
}

void Monitor::set_frequency(uint32_t hz) {
  std::lock_guard lock(mutex_);
  if (hz == frequency_hz_) return;
  frequency_hz_ = hz;
  for (auto& watched : watched_) (void)watched->unit->set_frequency(hz);
}

void Monitor::set_period(std::chrono::microseconds period) {
  std::lock_guard lock(control_mutex_);
  period_ = period;
}

uint32_t Monitor::frequency() const {
  std::lock_guard lock(mutex_);
  return frequency_hz_;
}

void Monitor::with_profiles(const std::function<void(Profiles&)>& look) {
  std::lock_guard lock(mutex_);
  look(profiles_);
}

MonitorCounts Monitor::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

lwp::UnitCounters Monitor::unit_counters() const {
  std::lock_guard lock(mutex_);
  lwp::UnitCounters sum = ended_;
  for (const auto& watched : watched_) add(sum, watched->unit->counters());
  return sum;
}

std::vector<PmuReading> Monitor::pmu() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, PmuReading> sums = pmu_ended_;
  for (const auto& watched : watched_) {
    if (watched->counters) add(sums, *watched->counters);
  }
  std::vector<PmuReading> readings;
  for (auto& [name, reading] : sums) readings.push_back(reading);
  return readings;
}

void Monitor::round() {
  std::lock_guard lock(mutex_);
  counts_.rounds += 1;
  for (auto& watched : watched_) drain(*watched);
  auto now = std::chrono::steady_clock::now();
  double elapsed = std::chrono::duration<double>(now - last_decay_).count();
  if (elapsed >= config_.half_life_seconds / 4) {
    double factor = std::exp2(-elapsed / config_.half_life_seconds);
    for (auto& [module, profile] : profiles_) profile->decay(factor);
    last_decay_ = now;
  }
}

void Monitor::drain(Watched& watched) {
  watched.batch.clear();
  watched.unit->drain(watched.batch);
  for (const lwp::EventRecord& record : watched.batch.records) attribute(record, 0);
  for (const lwp::RawSample& sample : watched.batch.samples) attribute_sample(sample);
}

Profile& Monitor::profile_of(const std::shared_ptr<const wasm::Module>& module) {
  std::unique_ptr<Profile>& profile = profiles_[module.get()];
  if (!profile) {
    profile = std::make_unique<Profile>(module);
    keep_modules_.push_back(module);
  }
  return *profile;
}

// A raw sample becomes the records that a unit with hardware support would have written: event 5 where it
// stood, and event 4 for the load in front of it.
void Monitor::attribute_sample(const lwp::RawSample& sample) {
  attribute(lwp::make_clock_record(sample, /*with_time=*/true), static_cast<double>(sample.period_ns) * 1e-9);
  auto code = registry_.find(reinterpret_cast<const void*>(sample.pc));
  if (!code) return;
  CodeOffset pc(
      static_cast<uint32_t>(reinterpret_cast<const std::byte*>(sample.pc) - code->version->begin()));
  auto load = load_before(*code->version, pc, sample.registers);
  if (!load) return;
  if (load->address && config_.is_guest_memory && !config_.is_guest_memory(*load->address)) {
    counts_.runtime_loads += 1;
    return;
  }
  uint64_t load_pc = reinterpret_cast<uint64_t>(code->version->begin()) + load->instruction.value;
  attribute(lwp::make_dcache_miss_record(sample, load_pc, load->address, kUnknownLatency,
                                         lwp::MissSource::kNone, true),
            0);
}

void Monitor::attribute(const lwp::EventRecord& record, double seconds) {
  auto id = record.id();
  // Records made by a call out of generated code carry its return address: the instruction is the one before.
  bool return_address =
      id == lwp::EventId::kInstructions || id == lwp::EventId::kBranches || id == lwp::EventId::kValue;
  uint64_t address = return_address ? record.address - 1 : record.address;
  auto code = registry_.find(reinterpret_cast<const void*>(address));
  const jit::PcRow* row = nullptr;
  FuncIndex function;
  if (code) {
    CodeOffset at(
        static_cast<uint32_t>(reinterpret_cast<const std::byte*>(address) - code->version->begin()));
    row = code->version->pc_map.find(at);
    // Inlined code is charged to the function that was compiled: it is the one that a decision can change.
    // The wasm offset says which instruction it was, in whatever body.
    function = code->version->function;
  }
  bool located = row && row->wasm != jit::kNoWasmOffset;
  bool optimized = code && code->version->tier == jit::Tier::kOptimized;
  switch (id) {
    case lwp::EventId::kCoreClocks:
      counts_.clock_records += 1;
      if (!code) {
        counts_.clock_unknown_code += 1;
        return;
      }
      ++(located ? counts_.clock_attributed : counts_.clock_no_offset);
      profile_of(code->module)
          .add_sample(function, located ? row->wasm : jit::kNoWasmOffset, optimized, seconds);
      return;
    case lwp::EventId::kDcacheMiss: {
      counts_.stall_records += 1;
      bool has_address = (record.flags & lwp::kMissAddressValid) != 0;
      if (has_address) counts_.stall_addresses += 1;
      if (!located) {
        counts_.stall_no_offset += 1;
        return;
      }
      if (!profile_of(code->module)
               .add_stall(function, row->wasm, optimized, has_address ? &record.data2 : nullptr)) {
        counts_.stall_no_offset += 1;
      }
      return;
    }
    case lwp::EventId::kBranches:
      counts_.branch_records += 1;
      if (!located) {
        counts_.branch_unattributed += 1;
        return;
      }
      profile_of(code->module).add_branch(function, row->wasm, (record.flags & lwp::kBranchTaken) != 0);
      return;
    case lwp::EventId::kInstructions:
      counts_.instruction_records += 1;
      if (!code) {
        counts_.instruction_unattributed += 1;
        return;
      }
      profile_of(code->module).add_instructions(function);
      return;
    case lwp::EventId::kValue:
      counts_.value_records += 1;
      return;
    default:
      counts_.other_records += 1;
      return;
  }
}

}  // namespace hindsight::feedback
