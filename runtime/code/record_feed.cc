#include "runtime/code/record_feed.h"

#include "base/monotonic_clock.h"
#include "runtime/code/exit_gate.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {
namespace {

// Turns `data2` of a miss into an address of the linear memory that holds it. That is its distance from
// the memory's base, which is where the reservation begins.
void find_guest_address(const lwp::EventRecord& record, LwpRecord& out) {
  if (record.id() != lwp::EventId::kDcacheMiss) return;
  const auto address = lwp::miss_address(record);
  if (!address) return;
  const auto found = memory_reservations().find(*address);
  if (found.begin == 0) return;
  out.guest_address = *address - found.begin;
  out.guest_memory = found.tag;
}

}  // namespace

RecordFeed::RecordFeed(std::function<void(const LwpRecord&)> callback)
    : callback_(std::move(callback)), log_(monotonic_ns()) {}

void RecordFeed::on_record(const feedback::LocatedRecord& located) {
  if (located.from_guest) log_.add(located);
  if (!callback_) return;
  const lwp::EventRecord& r = located.record;
  LwpRecord out;
  out.event_id = r.event_id;
  out.core_id = r.core_id;
  out.flags = r.flags;
  out.data1 = r.data1;
  out.address = r.address;
  out.data2 = r.data2;
  out.timestamp = r.timestamp;
  out.time_ns = located.time_ns;
  out.exact_time = located.exact_time;
  out.cpu_ns = located.cpu_ns;
  out.thread = located.thread;
  out.from_guest = located.from_guest;
  out.optimized = located.optimized;
  if (located.module) {
    function_ = located.module->function_name(located.function);
    out.function = function_;
  }
  if (located.offset) out.wasm_offset = located.offset->value;
  find_guest_address(r, out);
  if (located.from_guest) {
    label_ = log_.name_of(r.flags);
    out.label = label_;
  }
  ExitGate::call_host([&] { callback_(out); });
}

std::shared_ptr<GuestCalls> RecordFeed::new_calls() {
  auto* calls = new GuestCalls;
  {
    const std::lock_guard lock(mutex_);
    calls_.insert(calls);
  }
  return {calls, [feed = shared_from_this()](GuestCalls* ended) {
            const std::lock_guard lock(feed->mutex_);
            add(feed->ended_, *ended);
            feed->calls_.erase(ended);
            delete ended;
          }};
}

void RecordFeed::add(GuestEventReport& sum, const GuestCalls& calls) {
  sum.inserted += calls.inserted.load(std::memory_order_relaxed);
  sum.inserted_full += calls.inserted_full.load(std::memory_order_relaxed);
  sum.values_seen += calls.values_seen.load(std::memory_order_relaxed);
  sum.values_stored += calls.values_stored.load(std::memory_order_relaxed);
  sum.values_full += calls.values_full.load(std::memory_order_relaxed);
  sum.calls_off += calls.off.load(std::memory_order_relaxed);
}

void RecordFeed::fill(GuestEventReport& report) const {
  {
    const std::lock_guard lock(mutex_);
    report = ended_;
    for (const GuestCalls* calls : calls_) add(report, *calls);
  }
  log_.fill(report);
}

}  // namespace hindsight::rt
