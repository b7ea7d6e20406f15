#include "runtime/engine/lwp_binding.h"

#include <algorithm>

#include "feedback/lwp/format/control_block.h"
#include "runtime/exec/host_caller.h"
#include "runtime/exec/lwp_sink.h"
#include "runtime/instance/instance.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {
namespace {

using wasm::ValType;

// What a store's guests have of LWP: the slot of EventId 1 in a control block of their own. Where records go
// belongs to the thread, and is asked for at each call. One thread at a time, the one inside the store.
class GuestLwp {
 public:
  GuestLwp(Store& store, RecordFeed& feed)
      : store_(store), feed_(feed.shared_from_this()), calls_(feed.new_calls()) {}

  // The unit of the calling thread; null: none that hands records out.
  LwpSink* sink() const {
    auto* sink = static_cast<LwpSink*>(store_.thread()->lwp_unit);
    return sink != nullptr && sink->listens() ? sink : nullptr;
  }

  bool insert(uint64_t data2, uint32_t data1, uint16_t flags) {
    LwpSink* unit = sink();
    if (unit == nullptr) {
      GuestCalls::count(calls_->off);
      return false;
    }
    GuestCalls::count(calls_->inserted);
    const bool full = unit->insert_event(host_call_return_address(store_), data2, data1, flags);
    if (full) GuestCalls::count(calls_->inserted_full);
    return full;
  }

  void value(uint64_t data2, uint32_t data1, uint16_t flags) {
    LwpSink* unit = sink();
    if (unit == nullptr) return GuestCalls::count(calls_->off);
    GuestCalls::count(calls_->values_seen);
    if (--counter_ >= 0) return;
    counter_ = interval_;
    GuestCalls::count(calls_->values_stored);
    if (unit->insert_value(host_call_return_address(store_), data2, data1, flags))
      GuestCalls::count(calls_->values_full);
  }

  // As a control block's interval: 26 bits, negative ones are 0. Returns the one before.
  int32_t set_interval(uint32_t word) {
    const int32_t before = interval_;
    interval_ = std::max(lwp::decode_counter(word), 0);
    counter_ = interval_;
    return before;
  }

  Status name_flags(const Instance* caller, uint16_t flags, uint32_t text, uint32_t length) {
    const Memory* memory = caller != nullptr ? caller->memory() : nullptr;
    if (memory == nullptr || !memory->in_bounds(text, length))
      return make_error(ErrorKind::kUsage, "hindsight_lwp.name_flags: the text lies outside of memory");
    feed_->guest_log().name_flags(flags, {reinterpret_cast<const char*>(memory->base() + text), length});
    return {};
  }

 private:
  Store& store_;
  const std::shared_ptr<RecordFeed> feed_;
  const std::shared_ptr<GuestCalls> calls_;
  int32_t interval_ = 0;  // every value is recorded
  int32_t counter_ = 0;
};

uint32_t low(uint64_t slot) {
  return static_cast<uint32_t>(slot);
}
uint16_t flags_of(uint64_t slot) {
  return static_cast<uint16_t>(slot);  // the instructions take 16 bits
}

}  // namespace

std::vector<BoundLwpFunction> bind_lwp(Store& store, RecordFeed& feed) {
  const auto guest = std::make_shared<GuestLwp>(store, feed);
  constexpr ValType i32 = ValType::kI32, i64 = ValType::kI64;
  std::vector<BoundLwpFunction> bound;
  const auto add = [&](const char* name, std::vector<ValType> params, std::vector<ValType> results,
                       RawHostFunction body) {
    wasm::FuncType type;
    type.params = std::move(params);
    type.results = std::move(results);
    bound.push_back({name, std::move(type), std::move(body)});
  };
  add("insert_event", {i64, i32, i32}, {i32}, [guest](Instance*, uint64_t* slots) -> Status {
    slots[0] = guest->insert(slots[0], low(slots[1]), flags_of(slots[2])) ? 1 : 0;
    return {};
  });
  add("value_sample", {i64, i32, i32}, {}, [guest](Instance*, uint64_t* slots) -> Status {
    guest->value(slots[0], low(slots[1]), flags_of(slots[2]));
    return {};
  });
  add("enabled", {}, {i32}, [guest](Instance*, uint64_t* slots) -> Status {
    slots[0] = guest->sink() != nullptr ? 1 : 0;
    return {};
  });
  add("set_value_interval", {i32}, {i32}, [guest](Instance*, uint64_t* slots) -> Status {
    slots[0] = static_cast<uint32_t>(guest->set_interval(low(slots[0])));
    return {};
  });
  add("name_flags", {i32, i32, i32}, {}, [guest](Instance* caller, uint64_t* slots) -> Status {
    return guest->name_flags(caller, flags_of(slots[0]), low(slots[1]), low(slots[2]));
  });
  return bound;
}

}  // namespace hindsight::rt
