#include "feedback/monitor/monitor.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "base/host_signals.h"
#include "base/monotonic_clock.h"
#include "base/system_failures.h"
#include "feedback/lwp/format/record.h"
#include "feedback/monitor/branch_bursts.h"
#include "feedback/monitor/load_decoder.h"
#include "jit/abi/builtins.h"
#include "jit/wasm/opcodes.h"

namespace hindsight::feedback {

namespace {

// CPU time of a thread of this process, which need not be the calling one; 0 if it is gone. The clock's
// number is the kernel's way to name it (pthread_getcpuclockid, without a pthread_t).
double seconds_of(pid_t thread) {
  constexpr clockid_t kSchedulerOfThread = 6;
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kSchedulerOfThread);
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Generated code names its own place in the value records that it makes (jit/abi/builtins.h). The flags are the
// kind of site, and data1 is its wasm offset. Anything else is a value of the guest's own. A guest that
// imitates a site spoils what is known of that site of its own, and nothing else. Where the code is gone, only
// the guest's own records have a time.
bool made_by_generated_code(const lwp::EventRecord& record, const std::optional<jit::PcRow>& row) {
  if (!row) return record.timestamp == 0;
  return record.flags >= jit::kValueSiteCallIndirect && record.flags <= jit::kLastValueSite &&
         row->wasm.value == record.data1;
}

void add(std::map<std::string, PmuReading>& sums, const pmu::PmuCounters& counters) {
  pmu::Reading reading = counters.read();
  for (const pmu::CounterAvailability& row : counters.availability()) {
    PmuReading& sum = sums[std::string(pmu::to_string(row.counter))];
    sum.name = pmu::to_string(row.counter);
    const pmu::CounterValue& value = reading[row.counter];
    if (!row.available || !value.present || value.coverage == 0) {
      if (sum.why_not.empty()) sum.why_not = row.available ? "never scheduled" : row.reason;
      continue;
    }
    sum.available = true;
    sum.value += static_cast<double>(value.value);
    sum.scale = std::min(sum.scale, value.coverage);
  }
}

}  // namespace

Monitor::Watched::Watched(GuestProcessors& all) : processor(all) {}

Monitor::Monitor(const jit::CodeRegistry& registry, Config config)
    : registry_(registry),
      config_(std::move(config)),
      frequency_hz_(config_.frequency_hz),
      last_decay_(std::chrono::steady_clock::now()),
      period_(config_.period) {}

Monitor::~Monitor() {
  stop();
}

Status Monitor::start() {
  const HostSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception& refused) {
    return make_error(ErrorKind::kResource,
                      fmt::format("no thread to watch guests from: {}; allow more threads (ulimit -u, or a "
                                  "container's limit of pids), or run without profiling",
                                  refused.what()));
  }
  return {};
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
  // Invariant: its priority is a guest's. Threads that compile what is hot are started from here, and have what it has.
  std::unique_lock lock(control_mutex_);
  for (bool stopping = false; !stopping;) {
    control_.wait_for(lock, period_, [this] { return stop_; });
    stopping = stop_;  // then this is the last round
    lock.unlock();
    // Whatever there was none of, what this round had in hand is lost, and the guest runs on.
    try {
      guest_processors_.make_way();
      round();
      if (!stopping) open_counters();
      if (!stopping && config_.on_round) config_.on_round();
    } catch (const std::exception& failed) {
      note_broken_off(failed.what());
    }
    lock.lock();
  }
}

void Monitor::note_broken_off(const char* why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (counts_.rounds_broken_off++ != 0) return;
  }
  try {
    if (config_.log)
      config_.log(LogLevel::kWarning, "monitor",
                  fmt::format("a round was broken off, and what it had in hand is lost: {}; said once", why));
  } catch (const std::exception&) {  // there is no memory for it; it is counted
  }
}

void Monitor::attach(std::shared_ptr<lwp::Unit> unit, std::optional<pmu::PmuCounters> counters) {
  auto watched = std::make_unique<Watched>(guest_processors_);
  watched->unit = std::move(unit);
  watched->counters = std::move(counters);
  watched->thread = ::gettid();
  watched->seconds_at_attach = seconds_of(watched->thread);
  if (config_.branch_bursts) watched->branches = std::make_unique<ThreadBranches>(watched->unit.get());
  std::lock_guard lock(mutex_);
  if (!watched->unit->set_frequency(frequency_hz_)) count_system_failure(SystemFailure::kSamplingRate, 0);
  watched_.push_back(std::move(watched));
}

void Monitor::detach(const lwp::Unit* unit) {
  std::lock_guard lock(mutex_);
  auto found =
      std::find_if(watched_.begin(), watched_.end(), [&](const auto& w) { return w->unit.get() == unit; });
  if (found == watched_.end()) return;
  // Threads end in destructors, also where there is no memory: then what was sampled before the end is lost.
  try {
    drain(**found);  // counts
  } catch (const std::bad_alloc&) {
    const lwp::Batch& batch = (*found)->batch;
    ended_.lost += std::max<uint64_t>(1, batch.records.size() + batch.samples.size() + batch.hardware.size());
  }
  if ((*found)->counters) {
    add(pmu_ended_, *(*found)->counters);
    // Closing takes long as well. More than a few threads end in a round only where they are short. Then each
    // closes its own, so that descriptors do not run out.
    constexpr size_t kMostClosing = 16;
    try {
      if (closing_.size() < kMostClosing) closing_.push_back(std::move(*(*found)->counters));
    } catch (const std::bad_alloc&) {  // closed below
    }
  }
  ended_ += (*found)->unit->counters();
  if ((*found)->branches) counts_.burst_rates += (*found)->branches->rates.rest();
  ended_bursts_ += (*found)->unit->branch_bursts().begun();
  ended_refused_ += (*found)->unit->branch_bursts().refused();
  ended_emitted_ += (*found)->unit->ring().emitted();
  ended_seconds_ += seconds_run(**found);
  watched_.erase(found);
}

size_t Monitor::guest_threads() const {
  const std::lock_guard lock(mutex_);
  return watched_.size();
}

double Monitor::seconds_run(const Watched& watched) {
  return std::max(0.0, seconds_of(watched.thread) - watched.seconds_at_attach);
}

void Monitor::set_frequency(uint32_t hz) {
  std::lock_guard lock(mutex_);
  if (hz == frequency_hz_) return;
  frequency_hz_ = hz;
  for (auto& watched : watched_)
    if (!watched->unit->set_frequency(hz)) count_system_failure(SystemFailure::kSamplingRate, 0);
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

void Monitor::forget(const wasm::Module* module) {
  std::shared_ptr<const wasm::Module> kept;  // let go of after the lock is released
  std::lock_guard lock(mutex_);
  if (const auto profile = profiles_.find(module); profile != profiles_.end()) {
    forgotten_late_.add(profile->second->late());
    profiles_.erase(profile);
  }
  for (auto& keep : keep_modules_)
    if (keep.get() == module) kept = std::move(keep);
}

LateSummary Monitor::late() const {
  std::lock_guard lock(mutex_);
  LateSummary all = forgotten_late_;
  for (const auto& [module, profile] : profiles_)
    if (profile != nullptr) all.add(profile->late());
  return all;
}

MonitorCounts Monitor::counts() const {
  std::lock_guard lock(mutex_);
  MonitorCounts counts = counts_;
  counts.branch_bursts = ended_bursts_;
  counts.bursts_refused = ended_refused_;
  for (const auto& watched : watched_) {
    counts.branch_bursts += watched->unit->branch_bursts().begun();
    counts.bursts_refused += watched->unit->branch_bursts().refused();
    if (watched->branches) counts.burst_rates += watched->branches->rates.rest();
  }
  return counts;
}

lwp::UnitCounters Monitor::unit_counters() const {
  std::lock_guard lock(mutex_);
  lwp::UnitCounters sum = ended_;
  for (const auto& watched : watched_) sum += watched->unit->counters();
  return sum;
}

uint64_t Monitor::emitted() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = ended_emitted_;
  for (const auto& watched : watched_) sum += watched->unit->ring().emitted();
  return sum;
}

double Monitor::guest_seconds() const {
  std::lock_guard lock(mutex_);
  double sum = ended_seconds_;
  for (const auto& watched : watched_) sum += seconds_run(*watched);
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

// The slow calls are made without the lock, which attaching threads wait for.
void Monitor::open_counters() {
  if (!config_.count_events) return;
  std::vector<std::pair<const lwp::Unit*, pid_t>> without;
  {
    std::lock_guard lock(mutex_);
    for (const auto& watched : watched_)
      if (!watched->counters) without.emplace_back(watched->unit.get(), watched->thread);
  }
  for (const auto& [unit, thread] : without) {
    pmu::PmuCounters counters = pmu::PmuCounters::open(thread);
    std::lock_guard lock(mutex_);
    // Still watched: so it was alive, and the number its own, while its counters were opened.
    auto found = std::find_if(watched_.begin(), watched_.end(), [&](const auto& w) {
      return w->unit.get() == unit && w->thread == thread && !w->counters;
    });
    if (found != watched_.end()) (*found)->counters = std::move(counters);
  }
}

void Monitor::round() {
  std::vector<pmu::PmuCounters> closing;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  closing.swap(closing_);
  counts_.rounds += 1;
  for (auto& watched : watched_) drain(*watched);
  ask_for_bursts();
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
  attribute_bursts(watched);
  const lwp::Batch& batch = watched.batch;
  if (batch.records.empty() && batch.samples.empty() && batch.hardware.empty() &&
      batch.taken_branches.empty()) {
    return;
  }
  draining_ = watched.thread;
  drain_time_ = monotonic_ns();
  for (const lwp::EventRecord& record : watched.batch.records) attribute(record, nullptr);
  for (const lwp::RawSample& sample : watched.batch.samples) attribute_sample(sample);
  for (const lwp::EventRecord& record : batch.hardware) attribute_hardware(record);
  for (const lwp::EventRecord& record : batch.taken_branches) attribute_hardware(record);
}

Profile& Monitor::profile_of(const std::shared_ptr<const wasm::Module>& module) {
  std::unique_ptr<Profile>& profile = profiles_[module.get()];
  if (!profile) {
    profile = make_profile(module);
    const auto place = std::find(keep_modules_.begin(), keep_modules_.end(), nullptr);
    (place != keep_modules_.end() ? *place : keep_modules_.emplace_back()) = module;
  }
  return *profile;
}

// A clock sample says that a load stalled, not for how long. Where the load was timed, its level's latency is
// the estimate; elsewhere the fields stay zero.
std::pair<uint32_t, lwp::MissSource> Monitor::estimate(const jit::RegisteredCode& code,
                                                       CodeOffset instruction) {
  const auto profile = profiles_.find(code.module.get());
  const auto row = code.version->pc_map.find(instruction);
  if (profile == profiles_.end() || !row || row->wasm == jit::kNoWasmOffset)
    return {0, lwp::MissSource::kNone};
  const LoadLatency* latency = profile->second->latency(code.version->function, row->wasm);
  if (!latency) return {0, lwp::MissSource::kNone};
  switch (latency->level) {
    case MemoryLevel::kMemory:
      return {latency->cycles, lwp::MissSource::kDram};
    case MemoryLevel::kL3:
      return {latency->cycles, lwp::MissSource::kLocalL3};
    case MemoryLevel::kL2:  // the field has no value of its own for it
      return {latency->cycles, lwp::MissSource::kOther};
    case MemoryLevel::kL1:
      return {latency->cycles, lwp::MissSource::kNone};
    case MemoryLevel::kUnknown:
      break;
  }
  return {0, lwp::MissSource::kNone};
}

// A raw sample becomes the records that a unit with hardware support would have written. They are event 5 where
// it stood, and event 4 for the load in front of it.
void Monitor::attribute_sample(const lwp::RawSample& sample) {
  attribute(lwp::make_clock_record(sample, /*with_time=*/true), &sample);
  auto code = registry_.find(reinterpret_cast<const void*>(sample.pc));
  if (!code) return;
  CodeOffset pc(
      static_cast<uint32_t>(reinterpret_cast<const std::byte*>(sample.pc) - code->version->begin()));
  auto load = access_before(*code->version, pc, sample.registers, sample.vector_index);
  if (!load) return;
  const auto in_guest_memory = [&](uint64_t address) {
    return !config_.is_guest_memory || config_.is_guest_memory(address);
  };
  if (load->is_store) {
    // No record says so: event 4 is about loads.
    const auto row = code->version->pc_map.find(load->instruction);
    if (!load->address || !in_guest_memory(*load->address) || !row || row->wasm == jit::kNoWasmOffset) return;
    if (profile_of(code->module)
            .add_store_stall(code->version->function, row->wasm, code->version->tier == jit::Tier::kOptimized,
                             *load->address))
      counts_.store_stalls += 1;
    return;
  }
  // A lane may have been masked off: then its index leads nowhere.
  if (load->has_lanes && load->address && !in_guest_memory(*load->address)) load->address.reset();
  // A load whose address is lost because it overwrote it may also load the runtime's own data: a jump table, a
  // callee's address, a global.
  const auto row = code->version->pc_map.find(load->instruction);
  const bool of_runtime = load->address ? !in_guest_memory(*load->address)
                                        : row && row->wasm != jit::kNoWasmOffset &&
                                              row->wasm.value < code->module->bytes.size() &&
                                              code->module->bytes[row->wasm.value] < wasm::kFirstMemoryOpcode;
  if (of_runtime) {
    counts_.runtime_loads += 1;
    return;
  }
  uint64_t load_pc = reinterpret_cast<uint64_t>(code->version->begin()) + load->instruction.value;
  const auto [latency, source] = estimate(*code, load->instruction);
  attribute(lwp::make_dcache_miss_record(sample, load_pc, load->address, latency, source, true), &sample);
}

// What the processor sampled by itself is shown, and adds data addresses to loads whose stalls the clock found.
// More does not follow from it. Samples of loads say how often one missed, not what that cost, because
// latencies overlap. The direction of a machine's branch is not that of the guest's, which generated code may
// have turned round.
void Monitor::attribute_hardware(const lwp::EventRecord& record) {
  counts_.hardware_records += 1;
  auto code = registry_.find(reinterpret_cast<const void*>(record.address));
  std::optional<jit::PcRow> row;
  if (code) {
    CodeOffset at(
        static_cast<uint32_t>(reinterpret_cast<const std::byte*>(record.address) - code->version->begin()));
    row = code->version->pc_map.find(at);
  }
  tell(record, nullptr, code ? &*code : nullptr, row, /*from_guest=*/false);
  if (!row || row->wasm == jit::kNoWasmOffset) {
    counts_.hardware_unattributed += 1;
    return;
  }
  const auto address = record.id() == lwp::EventId::kDcacheMiss ? lwp::miss_address(record) : std::nullopt;
  if (!address || (config_.is_guest_memory && !config_.is_guest_memory(*address))) return;
  if (profile_of(code->module).add_address(code->version->function, row->wasm, *address)) {
    counts_.hardware_addresses += 1;
  }
}

void Monitor::tell(const lwp::EventRecord& record, const lwp::RawSample* sample,
                   const jit::RegisteredCode* code, const std::optional<jit::PcRow>& row, bool from_guest) {
  if (!config_.on_record || (config_.only_guest_records && !from_guest)) return;
  LocatedRecord located{.record = record,
                        .time_ns = sample ? sample->time_ns : record.timestamp,
                        .exact_time = true,
                        .cpu_ns = 0,
                        .thread = draining_,
                        .from_guest = from_guest,
                        .optimized = false,
                        .module = nullptr,
                        .function = FuncIndex(0),
                        .offset = std::nullopt};
  if (located.time_ns == 0) {
    located.time_ns = drain_time_;
    located.exact_time = false;
  }
  if (sample && record.id() == lwp::EventId::kCoreClocks) located.cpu_ns = sample->period_ns;
  if (code) {
    located.module = code->module.get();
    located.function = code->version->function;
    located.optimized = code->version->tier == jit::Tier::kOptimized;
    if (row && row->wasm != jit::kNoWasmOffset) {
      located.offset = row->wasm;
      located.function = code->module->function_at(row->wasm).value_or(located.function);
    }
  }
  config_.on_record(located);
}

void Monitor::attribute(const lwp::EventRecord& record, const lwp::RawSample* sample) {
  auto id = record.id();
  // Records made by a call out of generated code carry its return address: the instruction is the one before.
  bool return_address = id == lwp::EventId::kInstructions || id == lwp::EventId::kBranches ||
                        id == lwp::EventId::kValue || id == lwp::EventId::kProgrammed;
  uint64_t address = return_address ? record.address - 1 : record.address;
  auto code = registry_.find(reinterpret_cast<const void*>(address));
  std::optional<jit::PcRow> row;
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
  bool from_guest =
      id == lwp::EventId::kProgrammed || (id == lwp::EventId::kValue && !made_by_generated_code(record, row));
  tell(record, sample, code ? &*code : nullptr, row, from_guest);
  if (from_guest) {
    ++(id == lwp::EventId::kProgrammed ? counts_.guest_events : counts_.guest_values);
    if (!located) counts_.guest_unattributed += 1;
    return;
  }
  switch (id) {
    case lwp::EventId::kCoreClocks:
      counts_.clock_records += 1;
      if (!code) {
        counts_.clock_unknown_code += 1;
        return;
      }
      ++(located ? counts_.clock_attributed : counts_.clock_no_offset);
      profile_of(code->module)
          .add_sample(function, located ? row->wasm : jit::kNoWasmOffset, optimized,
                      sample ? static_cast<double>(sample->period_ns) * 1e-9 : 0, code->version->id,
                      code->version->nest);
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
      if (!located) {
        counts_.value_unattributed += 1;
        return;
      }
      profile_of(code->module).add_value(function, row->wasm, record.data2, optimized);
      return;
    default:
      counts_.other_records += 1;
      return;
  }
}

}  // namespace hindsight::feedback
