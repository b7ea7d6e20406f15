#include "feedback/lwp/units/hardware/hardware_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "feedback/lwp/units/perf_stream.h"

namespace hindsight::lwp {
namespace {

// For all hardware events of a thread together: about 700 load samples, or 80 branch stacks of 32. Small,
// because kernel.perf_event_mlock_kb bounds the sum over all threads of a user.
constexpr size_t kRingPages = 16;

// The rate of events that are opened stopped; they get another when they start.
constexpr uint32_t kIdleFrequency = 100;

struct Opened {
  pmu::FileDescriptor leader;
  pmu::FileDescriptor fd;
};

Result<Opened> open_attempt(PerfKernel& kernel, const HardwareAttempt& attempt, const std::string& name) {
  Opened opened;
  int group = -1;
  int error = 0;
  if (attempt.leader) {
    HINDSIGHT_ASSIGN(opened.leader, kernel.open(*attempt.leader, name + " (auxiliary)", -1, &error));
    group = opened.leader.get();
  }
  HINDSIGHT_ASSIGN(opened.fd, kernel.open(attempt.attr, name, group, &error));
  return opened;
}

// Goes through the plan; `take` keeps what was opened, or refuses it in turn.
HardwareOutcome open_plan(
    PerfKernel& kernel, const HardwarePlan& plan,
    const std::function<Status(const HardwareRequest&, const HardwareAttempt&, Opened)>& take) {
  HardwareOutcome outcome;
  for (const HardwareGap& gap : plan.gaps) outcome.refused.push_back({gap.event, gap.reason});
  for (const HardwareRequest& request : plan.requests) {
    std::string refusal;
    for (const HardwareAttempt& attempt : request.attempts) {
      auto opened = open_attempt(kernel, attempt, request.name);
      Status taken = opened ? take(request, attempt, std::move(*opened)) : Status();
      if (opened && taken) {
        for (const EventId e : request.events) {
          outcome.delivered.push_back({e, request.name, attempt.how});
        }
        refusal.clear();
        break;
      }
      // The last attempt is the most modest one: its refusal says the most.
      refusal = opened ? taken.error().message : opened.error().message;
    }
    if (refusal.empty()) continue;
    for (const EventId e : request.events) outcome.refused.push_back({e, refusal});
  }
  return outcome;
}

void append_unless_there(std::string& line, const std::string& text) {
  if (line.find(text) != std::string::npos) return;
  line += (line.empty() ? "" : "; ") + text;
}

}  // namespace

bool HardwareOutcome::delivers(EventId event) const {
  return std::ranges::find(delivered, event, &Delivered::event) != delivered.end();
}

std::string HardwareOutcome::why_not(EventId event) const {
  std::string line;
  for (const Refused& r : refused) {
    if (r.event == event) append_unless_there(line, r.why);
  }
  return line;
}

std::string HardwareOutcome::why_nothing() const {
  std::string line;
  for (const Refused& r : refused) append_unless_there(line, r.why);
  return line;
}

EventTable::EventTable(const HardwareOutcome& outcome, std::span<const EventInfo> clock,
                       std::string_view clock_name) {
  for (const EventInfo& of_clock : clock) {
    EventInfo row = of_clock;
    std::string by, how;
    for (const HardwareOutcome::Delivered& d : outcome.delivered) {
      if (d.event != of_clock.id) continue;
      append_unless_there(by, d.by);
      append_unless_there(how, d.how);
    }
    if (!by.empty()) {
      row.accuracy = Accuracy::kExact;
      row.by = keep("hardware: " + by);
      if (of_clock.by != "clock") how += fmt::format("; beside it, {}: {}", of_clock.by, of_clock.how);
      row.how = keep(std::move(how));
    } else if (row.by.empty()) {
      row.by = keep(std::string(clock_name));
    }
    row.why = keep(outcome.why_not(of_clock.id));
    rows_.push_back(row);
  }
}

bool EventTable::says_the_same_as(const EventTable& other) const {
  return std::ranges::equal(rows_, other.rows_, [](const EventInfo& a, const EventInfo& b) {
    return a.id == b.id && a.accuracy == b.accuracy && a.how == b.how && a.by == b.by && a.why == b.why;
  });
}

std::string_view EventTable::keep(std::string text) {
  return *texts_.emplace_back(std::make_unique<std::string>(std::move(text)));
}

HardwareOutcome probe_hardware(PerfKernel& kernel, const HardwarePlan& plan) {
  return open_plan(kernel, plan,
                   [](const HardwareRequest&, const HardwareAttempt&, Opened) { return Status(); });
}

Result<std::unique_ptr<HardwareSession>> HardwareSession::open(PerfKernel& kernel,
                                                               const HardwareMachine& machine,
                                                               uint32_t frequency_hz, CodeRange guest_code,
                                                               const BranchKinds& branches) {
  std::unique_ptr<HardwareSession> session(new HardwareSession(kernel, machine, guest_code));
  session->rate_ = frequency_hz != 0 ? frequency_hz : kIdleFrequency;
  const HardwarePlan plan = plan_hardware(machine, session->rate_, branches);
  session->outcome_ =
      open_plan(kernel, plan,
                [&](const HardwareRequest& request, const HardwareAttempt& attempt, Opened opened) -> Status {
                  HINDSIGHT_ASSIGN(const uint64_t id, kernel.identifier(opened.fd));
                  return session->add({std::move(opened.leader), std::move(opened.fd), request.fixed_period},
                                      {.identifier = id,
                                       .kind = request.kind,
                                       .sample_type = attempt.attr.sample_type,
                                       .weight_struct = attempt.weight_struct,
                                       .exact_ip = attempt.attr.precise_ip > 0});
                });
  if (session->events_.empty()) {
    return make_error(ErrorKind::kUnsupported, "no hardware event: " + session->outcome_.why_nothing());
  }
  if (frequency_hz != 0) HINDSIGHT_TRY(session->set_frequency(frequency_hz));
  return session;
}

Status HardwareSession::add(Event event, const HardwareLayout& layout) {
  if (!ring_) {
    HINDSIGHT_ASSIGN(ring_, kernel_.map(event.fd, kRingPages));
  } else {
    HINDSIGHT_TRY(kernel_.share_ring(event.fd, events_.front().fd));
  }
  events_.push_back(std::move(event));
  recorder_.add(layout);
  return {};
}

Status HardwareSession::set_frequency(uint32_t hz) {
  Status first;
  const auto note = [&](const Status& status) {
    if (!status && first) first = status;
  };
  for (Event& event : events_) {
    if (hz == 0) {
      note(kernel_.disable(event.head()));
      continue;
    }
    if (!event.fixed_period && hz != rate_) note(kernel_.set_frequency(event.fd, hz));
    if (!running_) note(kernel_.enable(event.head()));
  }
  running_ = hz != 0;
  if (hz != 0) rate_ = hz;
  return first;
}

void HardwareSession::drain(Batch& batch, UnitCounters& counters) {
  perf_event_mmap_page& page = ring_->page();
  // Acquire: the kernel wrote the records before this head. Release: our copies are done before the kernel
  // sees their space free. (Protocol of linux/perf_event.h.)
  const uint64_t head = std::atomic_ref(page.data_head).load(std::memory_order_acquire);
  std::atomic_ref tail(page.data_tail);
  const uint64_t from = tail.load(std::memory_order_relaxed);  // ours alone
  if (head == from) return;
  recorder_.write_to(batch.hardware, batch.taken_branches);
  const StreamCounts stream = walk_perf_stream(ring_->data(), from, head, scratch_, recorder_);
  tail.store(from + stream.consumed, std::memory_order_release);

  const HardwareCounts now = recorder_.counts();
  counters.records += now.records - seen_.records;
  counters.hardware_non_guest += now.non_guest - seen_.non_guest;
  counters.inexact += now.inexact - seen_.inexact;
  counters.no_event += now.no_event - seen_.no_event;
  seen_ = now;
  counters.lost += stream.lost;
  counters.throttled += stream.throttled;
  counters.malformed += stream.malformed;
}

}  // namespace hindsight::lwp
