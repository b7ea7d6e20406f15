// The hardware unit against a kernel that is played: it grants and refuses event by event, and writes rings.
#include "feedback/lwp/units/hardware/hardware_unit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>

#include "feedback/lwp/units/clock_unit.h"
#include "feedback/lwp/units/hardware/hardware_session.h"
#include "tests/feedback/lwp/units/kernel_ring.h"

namespace hindsight::lwp {
namespace {

constexpr size_t kPage = 4096;

// Grants what `answer` gives 0 for, with real (empty) descriptors; remembers everything.
class PlayedKernel final : public PerfKernel {
 public:
  struct Event {
    perf_event_attr attr;
    int group;
    bool enabled = false;
    uint64_t frequency = 0;
    bool shares = false;
    int owner = -1;
  };
  std::function<int(const perf_event_attr&)> answer = [](const perf_event_attr&) { return 0; };
  int map_error = 0;
  int share_error = 0;
  std::map<int, Event> events;  // by descriptor; closed ones stay until the number is used again
  std::vector<std::byte>* memory = nullptr;
  int mapped = 0;

  Result<pmu::FileDescriptor> open(const perf_event_attr& attr, std::string_view what, int group,
                                   int* error) override {
    if (const int e = answer(attr)) {
      if (error) *error = e;
      return make_error(ErrorKind::kUnsupported, std::string(what) + ": " + pmu::explain_perf_errno(e));
    }
    pmu::FileDescriptor fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    events[fd.get()] = {attr, group, !attr.disabled && group < 0, attr.freq ? attr.sample_freq : 0};
    return fd;
  }
  Result<uint64_t> identifier(const pmu::FileDescriptor& event) override {
    return 1000 + static_cast<uint64_t>(event.get());
  }
  Result<std::unique_ptr<PerfRingMemory>> map(const pmu::FileDescriptor&, size_t data_pages) override {
    if (map_error) return make_error(ErrorKind::kResource, "the played ring cannot be mapped");
    ++mapped;
    auto ring = std::make_unique<Memory>(*this, data_pages);
    memory = &ring->bytes;
    return ring;
  }
  Status share_ring(const pmu::FileDescriptor& event, const pmu::FileDescriptor& owner) override {
    if (share_error) return make_error(ErrorKind::kResource, "the played ring cannot be shared");
    events[event.get()].owner = owner.get();
    return {};
  }
  Status enable(const pmu::FileDescriptor& leader) override {
    events[leader.get()].enabled = true;
    return {};
  }
  Status disable(const pmu::FileDescriptor& leader) override {
    events[leader.get()].enabled = false;
    return {};
  }
  Status set_frequency(const pmu::FileDescriptor& event, uint64_t hz) override {
    events[event.get()].frequency = hz;
    return {};
  }

  perf_event_mmap_page& page() { return *reinterpret_cast<perf_event_mmap_page*>(memory->data()); }
  // The identifier of the opened event with this configuration.
  uint64_t id_of(uint64_t config) const {
    uint64_t id = 0;
    for (const auto& [fd, e] : events) {  // the last: what was closed again has lower numbers
      if (e.attr.config == config && e.attr.sample_type != 0) id = 1000 + static_cast<uint64_t>(fd);
    }
    return id;
  }
  // Writes one sample as the kernel would and publishes it.
  void write(uint64_t type, const SampleFields& fields) {
    GuardedRing one(kPage);
    const size_t size = one.sample(type, fields);
    const size_t data = memory->size() - kPage;
    for (size_t i = 0; i < size; ++i) (*memory)[kPage + (page().data_head + i) % data] = one.at(i);
    page().data_head += size;
  }

 private:
  struct Memory final : PerfRingMemory {
    Memory(PlayedKernel& k, size_t data_pages) : kernel(k), bytes(kPage * (1 + data_pages)) {}
    ~Memory() override {
      --kernel.mapped;
      kernel.memory = nullptr;
    }
    perf_event_mmap_page& page() override { return *reinterpret_cast<perf_event_mmap_page*>(bytes.data()); }
    std::span<const std::byte> data() override { return std::span<const std::byte>(bytes).subspan(kPage); }
    PlayedKernel& kernel;
    std::vector<std::byte> bytes;
  };
};

HardwareMachine skylake() {
  HardwareMachine m;
  m.vendor = pmu::Vendor::kIntel;
  m.signature = {6, 0x5E, 3};
  m.microarchitecture = "Skylake";
  return m;
}

HardwareMachine zen4() {
  HardwareMachine m;
  m.vendor = pmu::Vendor::kAmd;
  m.signature = {0x19, 0x11, 1};
  m.microarchitecture = "Zen 4";
  m.sources = {{.name = "ibs_op",
                .kind = pmu::SourceKind::kIbs,
                .type = 11,
                .cpus = "",
                .formats = {{"cnt_ctl", "config:19"}, {"swfilt", "config2:0"}},
                .events = {}}};
  return m;
}

const EventInfo* row(std::span<const EventInfo> rows, EventId id) {
  const auto it = std::ranges::find(rows, id, &EventInfo::id);
  return it == rows.end() ? nullptr : &*it;
}

std::unique_ptr<UnitFactory> factory(PlayedKernel& kernel, HardwareMachine m = skylake()) {
  return make_hardware_factory(kernel, std::move(m), make_clock_factory(ClockSource::kBest));
}

// PEBS loads are the event with this configuration on Skylake, and so on.
constexpr uint64_t kUnitLoads = 0x01CD, kBranches = 0xC4, kUnitInstructions = 0xC0;

TEST(HardwareUnit, DeliversWhatTheHardwareHasAndTheRestByTheClock) {
  PlayedKernel kernel;
  const auto f = factory(kernel);
  for (const EventId id : {EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}) {
    const EventInfo* info = row(f->events(), id);
    ASSERT_TRUE(info) << to_string(id);
    EXPECT_EQ(info->accuracy, Accuracy::kExact) << to_string(id);
    EXPECT_TRUE(info->by.starts_with("hardware: ")) << info->by;
    EXPECT_TRUE(info->why.empty()) << info->why;
  }
  EXPECT_NE(row(f->events(), EventId::kDcacheMiss)->how.find("PEBS"), std::string_view::npos);
  EXPECT_NE(row(f->events(), EventId::kBranches)->how.find("beside it, baseline code"),
            std::string_view::npos);
  const EventInfo* clocks = row(f->events(), EventId::kCoreClocks);
  ASSERT_TRUE(clocks);
  EXPECT_EQ(clocks->by, "clock");
}

TEST(HardwareUnit, DegradesEventByEventAndSaysWhy) {
  struct Case {
    uint64_t refused_config;
    int error;
    EventId event;
  };
  for (const Case& c :
       {Case{kUnitLoads, EOPNOTSUPP, EventId::kDcacheMiss}, Case{kBranches, EACCES, EventId::kBranches},
        Case{kUnitInstructions, ENOENT, EventId::kInstructions}}) {
    PlayedKernel kernel;
    kernel.answer = [&](const perf_event_attr& a) { return a.config == c.refused_config ? c.error : 0; };
    const auto f = factory(kernel);
    for (const EventInfo& info : f->events()) {
      if (info.id == c.event) {
        EXPECT_FALSE(info.by.empty() || info.by.starts_with("hardware")) << to_string(info.id);
        EXPECT_NE(info.why.find(strerrorname_np(c.error)), std::string_view::npos) << info.why;
      } else if (info.id == EventId::kInstructions || info.id == EventId::kBranches ||
                 info.id == EventId::kDcacheMiss) {
        EXPECT_TRUE(info.by.starts_with("hardware: ")) << to_string(info.id);
      }
    }
    // The attached unit says the same of itself.
    const auto unit = f->create({});
    ASSERT_TRUE(unit);
    ASSERT_TRUE((*unit)->attach());
    const EventInfo* info = row((*unit)->events(), c.event);
    ASSERT_TRUE(info);
    EXPECT_FALSE(info->by.empty() || info->by.starts_with("hardware")) << info->by;
    EXPECT_FALSE(info->why.empty());
    (*unit)->detach();
  }
}

TEST(HardwareUnit, LeavesInstructionsToBaselineCodeWhereTheyWouldComeLate) {
  PlayedKernel kernel;  // a PMU without PEBS: precise_ip is refused
  kernel.answer = [](const perf_event_attr& a) { return a.precise_ip > 0 ? EOPNOTSUPP : 0; };
  const auto f = factory(kernel);
  const EventInfo* instructions = row(f->events(), EventId::kInstructions);
  EXPECT_EQ(instructions->by, "baseline code");
  EXPECT_NE(instructions->why.find("EOPNOTSUPP"), std::string_view::npos);
  EXPECT_EQ(row(f->events(), EventId::kDcacheMiss)->by, "clock");
  EXPECT_TRUE(row(f->events(), EventId::kBranches)->by.starts_with("hardware: LBR"));
}

TEST(HardwareUnit, FallsBackToTheOlderWeight) {
  PlayedKernel kernel;  // Linux before 5.12
  kernel.answer = [](const perf_event_attr& a) {
    return a.sample_type & PERF_SAMPLE_WEIGHT_STRUCT ? EINVAL : 0;
  };
  const auto f = factory(kernel);
  EXPECT_TRUE(row(f->events(), EventId::kDcacheMiss)->by.starts_with("hardware: "));
}

TEST(HardwareUnit, IsRefusedWithEveryReasonWhereNothingCanBeHad) {
  PlayedKernel kernel;
  kernel.answer = [](const perf_event_attr&) { return ENOENT; };
  const std::string why = hardware_refusal(kernel, skylake());
  for (const char* part : {"PEBS loads", "LBR branches", "PEBS instructions", "ENOENT"}) {
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }
  kernel.answer = [](const perf_event_attr& a) { return a.config == kUnitInstructions ? 0 : ENOENT; };
  EXPECT_EQ(hardware_refusal(kernel, skylake()), "");
}

TEST(HardwareUnit, PutsTheAuxiliaryEventInFrontOfTheLoadEvent) {
  PlayedKernel kernel;
  HardwareMachine m = skylake();
  m.signature.model = 0x8F;
  m.microarchitecture = "Sapphire Rapids";
  // As its kernel does: ENODATA unless the group is headed by the auxiliary event.
  auto session = HardwareSession::open(kernel, m, 250, {});
  ASSERT_TRUE(session);
  const auto loads =
      std::ranges::find_if(kernel.events, [](const auto& e) { return e.second.attr.config == kUnitLoads; });
  ASSERT_NE(loads, kernel.events.end());
  ASSERT_GE(loads->second.group, 0);
  EXPECT_EQ(kernel.events.at(loads->second.group).attr.config, 0x8203u);
  EXPECT_TRUE(kernel.events.at(loads->second.group).enabled);  // the group starts with its leader
}

TEST(HardwareUnit, HandsOutTheRecordsOfTheHardwareBesideTheThreadsOwn) {
  PlayedKernel kernel;
  const auto f = factory(kernel);
  auto unit = f->create({.frequency_hz = 100, .guest_code = {0x1000, 0x9000}});
  ASSERT_TRUE(unit);
  ASSERT_TRUE((*unit)->attach());
  ASSERT_TRUE(kernel.memory);
  const uint64_t base =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  kernel.write(base | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT,
               {.identifier = kernel.id_of(kUnitLoads),
                .ip = 0x1000,
                .time = 1,
                .address = 0x77,
                .weight = 200,
                .data_source = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LOC_RAM)});
  kernel.write(
      base | PERF_SAMPLE_BRANCH_STACK,
      {.identifier = kernel.id_of(kBranches), .time = 2, .branches = {branch(0x2000, 0x3000, false, true)}});
  kernel.write(base, {.identifier = kernel.id_of(kUnitInstructions), .ip = 0x4000, .time = 3});
  kernel.write(base,
               {.identifier = kernel.id_of(kUnitInstructions), .ip = 0xF000, .time = 4});  // not the guest's
  record_event((*unit)->ring(), make_value_record(0x5000, 1, 2, 3));

  Batch batch;
  (*unit)->drain(batch);
  EXPECT_EQ(batch.hardware,
            (std::vector<EventRecord>{make_dcache_miss_record(0x1000, 0x77, 200, MissSource::kDram, 1),
                                      make_instructions_record(0x4000, 3)}));
  EXPECT_EQ(batch.taken_branches,
            (std::vector<EventRecord>{make_branch_record(0x2000, 0x3000, true, true, 2)}));
  EXPECT_EQ(batch.records, (std::vector<EventRecord>{make_value_record(0x5000, 1, 2, 3)}));
  EXPECT_EQ((*unit)->counters().records, 4u);
  EXPECT_GE((*unit)->counters().hardware_non_guest, 1u);
  EXPECT_EQ(kernel.page().data_tail, kernel.page().data_head);  // the space is the kernel's again
  (*unit)->detach();
}

TEST(HardwareUnit, HandsOutAfterDetachWhatWasSampledBeforeAndClosesEverything) {
  PlayedKernel kernel;
  auto unit = factory(kernel, zen4())->create({});
  ASSERT_TRUE(unit);
  ASSERT_TRUE((*unit)->attach());
  EXPECT_EQ(kernel.mapped, 1);
  const IbsRegisters op{.caps = 0xBFF, .rip = 0x1234};
  kernel.write(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                   PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
               {.identifier = kernel.id_of(1u << 19), .ip = 0x1234, .raw = op.raw()});
  (*unit)->detach();
  EXPECT_EQ(kernel.mapped, 0);
  Batch batch;
  (*unit)->drain(batch);
  ASSERT_EQ(batch.hardware.size(), 1u);
  EXPECT_EQ(batch.hardware[0].address, 0x1234u);
  batch.clear();
  (*unit)->drain(batch);
  EXPECT_TRUE(batch.hardware.empty());
  EXPECT_TRUE((*unit)->attach());  // and again
  (*unit)->detach();
}

TEST(HardwareUnit, SharesOneRingAmongTheEventsOfAThread) {
  PlayedKernel kernel;
  auto session = HardwareSession::open(kernel, skylake(), 250, {});
  ASSERT_TRUE(session);
  EXPECT_EQ(kernel.mapped, 1);
  std::set<int> owners;
  size_t sharing = 0;
  for (const auto& [fd, e] : kernel.events) {
    if (e.owner < 0) continue;
    owners.insert(e.owner);
    ++sharing;
  }
  EXPECT_EQ(owners.size(), 1u);
  EXPECT_EQ(sharing, 2u);  // loads own it; branches and instructions write into it
}

TEST(HardwareUnit, LosesOnlyTheEventWhoseRingCannotBeShared) {
  PlayedKernel kernel;
  kernel.share_error = EINVAL;
  auto session = HardwareSession::open(kernel, skylake(), 250, {});
  ASSERT_TRUE(session);
  EXPECT_TRUE((*session)->outcome().delivers(EventId::kDcacheMiss));
  EXPECT_FALSE((*session)->outcome().delivers(EventId::kBranches));
  EXPECT_NE((*session)->outcome().why_not(EventId::kBranches).find("shared"), std::string::npos);
}

TEST(HardwareUnit, IsAClockUnitWhereTheRingHasNoMemory) {
  PlayedKernel kernel;
  const auto f = factory(kernel);
  auto unit = f->create({});
  ASSERT_TRUE(unit);
  kernel.map_error = ENOMEM;
  const Status status = (*unit)->attach();
  ASSERT_TRUE(status) << status.error().describe();
  const EventInfo* loads = row((*unit)->events(), EventId::kDcacheMiss);
  EXPECT_TRUE(loads->by.starts_with("clock")) << loads->by;
  EXPECT_NE(loads->why.find("cannot be mapped"), std::string_view::npos) << loads->why;
  (*unit)->detach();
}

TEST(HardwareUnit, PausesAndChangesTheRateOfWhatHasOne) {
  PlayedKernel kernel;
  HardwareMachine zen3 = zen4();
  zen3.signature = {0x19, 0x21, 0};
  zen3.microarchitecture = "Zen 3";
  auto unit = factory(kernel, zen3)->create({.frequency_hz = 0});
  ASSERT_TRUE(unit);
  ASSERT_TRUE((*unit)->attach());
  const auto running = [&] {
    return std::ranges::count_if(kernel.events, [](const auto& e) { return e.second.enabled; });
  };
  EXPECT_EQ(running(), 0);
  ASSERT_TRUE((*unit)->set_frequency(1000));
  EXPECT_EQ(running(), 2);  // IBS and BRS
  for (const auto& [fd, e] : kernel.events) {
    if (e.attr.type == 11) {
      EXPECT_EQ(e.frequency, 1000u);
    } else {
      EXPECT_EQ(e.frequency, 0u);  // BRS keeps its period
    }
  }
  ASSERT_TRUE((*unit)->set_frequency(0));
  EXPECT_EQ(running(), 0);
  EXPECT_FALSE((*unit)->set_frequency(kMaxFrequency + 1));
  (*unit)->detach();
}

TEST(HardwareUnit, CanBeAttachedOnceAtATime) {
  PlayedKernel kernel;
  auto unit = factory(kernel)->create({});
  ASSERT_TRUE(unit);
  ASSERT_TRUE((*unit)->attach());
  const Status again = (*unit)->attach();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  (*unit)->detach();
  (*unit)->detach();
}

TEST(HardwareUnit, OutlivesItsFactory) {
  PlayedKernel kernel;
  std::unique_ptr<Unit> unit;
  {
    const auto f = factory(kernel);
    unit = std::move(*f->create({}));
  }
  ASSERT_TRUE(unit->attach());
  EXPECT_FALSE(unit->events().empty());
  unit->detach();
}

TEST(HardwareOutcome, SaysEachReasonOnce) {
  HardwareOutcome outcome;
  for (const EventId e : {EventId::kInstructions, EventId::kBranches})
    outcome.refused.push_back({e, "IBS: no"});
  EXPECT_EQ(outcome.why_nothing(), "IBS: no");
}

}  // namespace
}  // namespace hindsight::lwp
