// poll_oneoff: waits for the first of several clocks and descriptors.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/monotonic_clock.h"
#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/calls/times.h"
#include "runtime/wasi/wait.h"

namespace hindsight::wasi::calls {
namespace {

// More subscriptions than a guest can have a use for; the host's memory for them is ours, not the guest's.
constexpr uint32_t kMaxSubscriptions = 1u << 16;

// A wait for a time of day looks at the clock this often, because the clock may be set meanwhile.
constexpr uint64_t kRealtimePeriod = 1'000'000'000;

struct Subscription {
  uint64_t userdata = 0;
  EventType type = EventType::kClock;
  Errno error = Errno::kSuccess;  // why it can never happen: an event of its own, at once
  // Clocks.
  bool realtime = false;  // `due` is a time of day; otherwise monotonic_ns()'s clock
  uint64_t due = 0;
  // Descriptors.
  FdEntry* entry = nullptr;
  std::optional<size_t> polled;  // its place among the host's pollfds; none: ready always
  short revents = 0;
};

uint64_t saturated_sum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t realtime_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return to_nanoseconds(now).value_or(0);
}

void read_clock(GuestMemory memory, uint64_t at, const layout::Subscription& from,
                Subscription& subscription) {
  // In range: the caller has checked the whole subscription.
  const uint32_t id = memory.load<uint32_t>(at + from.clock_id).value_or(0);
  const uint64_t timeout = memory.load<uint64_t>(at + from.clock_timeout).value_or(0);
  const uint16_t flags = memory.load<uint16_t>(at + from.clock_flags).value_or(0);
  const bool absolute = flags & kSubscriptionClockAbstime;
  if (flags & ~kSubscriptionClockAbstime) {
    subscription.error = Errno::kInval;
  } else if (id == static_cast<uint32_t>(ClockId::kRealtime)) {
    // So long from now is so long on any clock; only a time of day follows the clock being set.
    subscription.realtime = absolute;
    subscription.due = absolute ? timeout : saturated_sum(monotonic_ns(), timeout);
  } else if (id == static_cast<uint32_t>(ClockId::kMonotonic)) {
    subscription.due = absolute ? timeout : saturated_sum(monotonic_ns(), timeout);
  } else {
    // Processor time does not pass while waiting for it.
    subscription.error = host_clock(id) ? Errno::kNotsup : Errno::kInval;
  }
}

void read_descriptor(WasiContext& context, GuestMemory memory, uint64_t at, const layout::Subscription& from,
                     Subscription& subscription) {
  const uint32_t fd = memory.load<uint32_t>(at + from.fd).value_or(0);
  const uint64_t direction = subscription.type == EventType::kFdRead ? rights::kFdRead : rights::kFdWrite;
  auto entry = context.fds().get(fd, rights::kPollFdReadwrite);
  // Polling what could not be read or written anyway is refused, but for directories: those are ready.
  if (entry && !(*entry)->is_directory()) entry = context.fds().get(fd, direction);
  if (!entry) {
    subscription.error = entry.error();
    return;
  }
  subscription.entry = *entry;
}

Answer<std::vector<Subscription>> read_all(WasiContext& context, GuestMemory memory, uint32_t subscriptions,
                                           uint32_t count, const layout::Subscription& from) {
  std::vector<Subscription> all(count);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t at = subscriptions + i * from.size;
    Subscription& subscription = all[i];
    subscription.userdata = memory.load<uint64_t>(at + from.userdata).value_or(0);
    const uint8_t tag = memory.load<uint8_t>(at + from.tag).value_or(0);
    if (tag > static_cast<uint8_t>(EventType::kFdWrite)) return std::unexpected(Errno::kInval);
    subscription.type = static_cast<EventType>(tag);
    if (subscription.type == EventType::kClock) {
      read_clock(memory, at, from, subscription);
    } else {
      read_descriptor(context, memory, at, from, subscription);
    }
  }
  return all;
}

// Bytes that can be read without waiting, as far as the host says.
uint64_t readable_bytes(const FdEntry& entry) {
  if (entry.kind == FdEntry::Kind::kText) return entry.text.size() - entry.text_position;
  if (entry.kind == FdEntry::Kind::kSink) return 0;
  if (entry.filetype == Filetype::kRegularFile) {
    struct stat status;
    const off_t position = ::lseek(entry.fd.get(), 0, SEEK_CUR);
    if (position < 0 || ::fstat(entry.fd.get(), &status) != 0) return 0;
    return position < status.st_size ? static_cast<uint64_t>(status.st_size - position) : 0;
  }
  int waiting = 0;
  return ::ioctl(entry.fd.get(), FIONREAD, &waiting) == 0 && waiting > 0 ? static_cast<uint64_t>(waiting) : 0;
}

bool due_now(const Subscription& subscription) {
  return subscription.due <= (subscription.realtime ? realtime_now() : monotonic_ns());
}

bool happened(const Subscription& subscription) {
  if (subscription.error != Errno::kSuccess) return true;
  if (subscription.type == EventType::kClock) return due_now(subscription);
  return !subscription.polled || subscription.revents != 0;
}

Errno store_event(GuestMemory memory, uint64_t at, const Subscription& subscription) {
  namespace field = layout::event;
  uint64_t nbytes = 0;
  uint16_t flags = 0;
  Errno error = subscription.error;
  if (error == Errno::kSuccess && subscription.type != EventType::kClock) {
    if (subscription.type == EventType::kFdRead) nbytes = readable_bytes(*subscription.entry);
    if (subscription.revents & POLLHUP) flags |= kEventHangup;
    if (subscription.revents & POLLNVAL) error = Errno::kBadf;
    // On the reading end of a connection an error is for the read to tell; a broken pipe is a hangup.
    if ((subscription.revents & POLLERR) && subscription.type == EventType::kFdWrite) flags |= kEventHangup;
  }
  const uint8_t zeros[field::kSize] = {};
  if (!memory.store_bytes(at, zeros, sizeof zeros)) return Errno::kFault;
  const bool stored = memory.store(at + field::kUserdata, subscription.userdata) &&
                      memory.store(at + field::kError, error) &&
                      memory.store(at + field::kType, subscription.type) &&
                      memory.store(at + field::kNbytes, nbytes) && memory.store(at + field::kFlags, flags);
  return stored ? Errno::kSuccess : Errno::kFault;
}

// The next time to look at the clocks, in monotonic_ns()'s terms; none without clocks.
std::optional<uint64_t> next_look(const std::vector<Subscription>& all) {
  std::optional<uint64_t> soonest;
  const uint64_t now = monotonic_ns();
  for (const Subscription& subscription : all) {
    if (subscription.type != EventType::kClock || subscription.error != Errno::kSuccess) continue;
    uint64_t look = subscription.due;
    if (subscription.realtime) {
      const uint64_t time_of_day = realtime_now();
      const uint64_t left = subscription.due > time_of_day ? subscription.due - time_of_day : 0;
      look = now + std::min(left, kRealtimePeriod);
    }
    soonest = std::min(soonest.value_or(look), look);
  }
  return soonest;
}

// Returns when at least one subscription has happened.
Errno wait_for_any(WasiContext& context, std::vector<Subscription>& all) {
  std::vector<pollfd> polled;
  for (Subscription& subscription : all) {
    if (!subscription.entry || subscription.entry->always_ready()) continue;
    const short events = subscription.type == EventType::kFdRead ? POLLIN : POLLOUT;
    subscription.polled = polled.size();
    polled.push_back({.fd = subscription.entry->fd.get(), .events = events, .revents = 0});
  }
  polled.emplace_back();  // wait_for's own
  // What has happened already is told at once, with whatever else is ready by now.
  while (true) {
    const bool any = std::ranges::any_of(all, happened);
    const auto ready = wait_for(context, polled, any ? std::optional<uint64_t>(0) : next_look(all));
    if (!ready) return ready.error();
    for (Subscription& subscription : all) {
      if (subscription.polled) subscription.revents = polled[*subscription.polled].revents;
    }
    if (any || std::ranges::any_of(all, happened)) return Errno::kSuccess;
  }
}

Errno poll(WasiContext& context, GuestMemory memory, uint32_t subscriptions, uint32_t events, uint32_t count,
           uint32_t happened_count, const layout::Subscription& from) {
  if (count == 0 || count > kMaxSubscriptions) return Errno::kInval;
  if (!memory.contains(subscriptions, uint64_t{count} * from.size) ||
      !memory.contains(events, uint64_t{count} * layout::event::kSize) ||
      !memory.contains(happened_count, sizeof(uint32_t)))
    return Errno::kFault;
  auto all = read_all(context, memory, subscriptions, count, from);
  if (!all) return all.error();
  const Errno waited = wait_for_any(context, *all);
  if (waited != Errno::kSuccess) return waited;
  uint32_t told = 0;
  for (const Subscription& subscription : *all) {
    if (!happened(subscription)) continue;
    const Errno stored = store_event(memory, events + uint64_t{told} * layout::event::kSize, subscription);
    if (stored != Errno::kSuccess) return stored;
    told++;
  }
  return memory.store(happened_count, told) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace

Errno poll_oneoff(WasiContext& context, GuestMemory memory, uint32_t subscriptions, uint32_t events,
                  uint32_t count, uint32_t happened_count) {
  return poll(context, memory, subscriptions, events, count, happened_count, layout::kSubscription);
}

Errno unstable_poll_oneoff(WasiContext& context, GuestMemory memory, uint32_t subscriptions, uint32_t events,
                           uint32_t count, uint32_t happened_count) {
  return poll(context, memory, subscriptions, events, count, happened_count, layout::kSubscription0);
}

}  // namespace hindsight::wasi::calls
