#include "feedback/lwp/model/core_model.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace hindsight::lwp {
namespace {

constexpr size_t kForwardingEntries = 1024;
constexpr size_t kMostResults =
    1024;  // of a function: left where its frame begins, however small the frame is
constexpr uint32_t kMemoryShift = 36;  // of the guest's 2^33 reachable bytes, room for neighbours
constexpr uint64_t kMemorySpan = (uint64_t{1} << 33) + 65536;
constexpr uint64_t kElsewhere = uint64_t{1} << 63;  // host addresses beside the memories that are numbered

uint64_t mix_key(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

}  // namespace

bool CoreModel::Counter::count(uint64_t events) {
  if (!on) return false;
  left -= static_cast<int64_t>(events);
  if (left >= 0) return false;
  while (left < 0) left += interval + 1;
  return true;
}

CoreModel::CoreModel(const ModelConfig& config, const TraceDirectory& directory, const ControlBlock& block,
                     Records& records)
    : config_(config),
      directory_(directory),
      records_(records),
      cache_(config.cache),
      predictor_(make_branch_predictor(config.predictor)),
      operation_(kCycle / config.width),
      done_(kTraceMaxAccesses + 1),
      window_(std::bit_ceil(uint64_t{config.window} + 4)),
      forwarding_(kForwardingEntries),
      store_buffer_(config.store_buffer) {
  const auto counter = [&](EventId id) {
    const EventSlot& slot = block.slot(id);
    Counter c;
    c.on = (block.flags & flag_of(id)) != 0;
    c.interval = std::max(decode_counter(slot.interval), 0);
    c.left = std::max(decode_counter(slot.counter), 0);
    return c;
  };
  instructions_ = counter(EventId::kInstructions);
  branches_ = counter(EventId::kBranches);
  misses_ = counter(EventId::kDcacheMiss);
  clocks_ = counter(EventId::kCoreClocks);
  min_latency_ = uint64_t{block.filters & kFilterMinLatencyMask} * kFilterLatencyUnitCycles;
  next_clock_ = static_cast<Ticks>(clocks_.left + 1) * kCycle;
}

CoreModel::~CoreModel() = default;

CoreModel::RunState* CoreModel::state_of(uint32_t id) {
  if (id < runs_.size() && runs_[id]) return runs_[id].get();
  const TraceRun* run = directory_.find(id);
  if (!run) return nullptr;
  if (id >= runs_.size()) runs_.resize(id + 1);
  auto state = std::make_unique<RunState>();
  state->run = run;
  const uint64_t function = mix_key(run->function->module ^ run->function->function.value);
  state->key = mix_key(function + run->offset.value);
  state->accesses.resize(run->accesses.size());
  runs_[id] = std::move(state);
  return runs_[id].get();
}

size_t CoreModel::consume(std::span<const uint64_t> words) {
  size_t begin = 0;  // of the words not taken in yet
  size_t at = 0;
  while (at < words.size()) {
    if (!is_run_word(words[at])) {
      ++at;
      continue;
    }
    RunState* state = state_of(trace_id_of(words[at]));
    if (!state) {
      ++unknown_;
      begin = ++at;
      continue;
    }
    const TraceRun& run = *state->run;
    size_t behind = 0;
    switch (run.end) {
      case TraceEnd::kEnter:
      case TraceEnd::kTable:
        behind = 2;
        break;
      case TraceEnd::kBranch:
      case TraceEnd::kIndirectCall:
      case TraceEnd::kIndirectTailCall:
      case TraceEnd::kLand:
        behind = 1;
        break;
      default:
        break;
    }
    if (at + behind >= words.size()) {
      // A trap may have left a run without its last words; then the next word is a run's.
      if (at + 1 >= words.size() || !is_run_word(words[at + 1])) {
        if (behind != 0) break;
      }
    }
    uint64_t extra[2] = {0, 0};
    size_t have = 0;
    while (have < behind && at + 1 + have < words.size() && !is_run_word(words[at + 1 + have])) {
      extra[have] = words[at + 1 + have];
      ++have;
    }
    const size_t accesses = at - begin;
    if (run.end == TraceEnd::kEnter) {
      unfinished_ += accesses;
      if (have == behind) enter(run, extra[0], extra[1]);
    } else if (run.end == TraceEnd::kLand) {
      unfinished_ += accesses;
      if (have == behind) land(extra[0]);
    } else if (accesses < run.words) {
      ++unknown_;  // not a stream that instrumented code writes
    } else {
      unfinished_ += accesses - run.words;
      if (have == behind) {
        execute(*state, words.data() + at - run.words, extra[0], extra[1]);
      } else {
        ++unfinished_;
      }
    }
    at += 1 + have;
    begin = at;
  }
  return begin;
}

void CoreModel::enter(const TraceRun& run, uint64_t frame, uint64_t memory) {
  // The native stack grows down: what is not above the new frame was left without a return.
  while (!frames_.empty() && frames_.back().address <= frame) {
    frames_.pop_back();
    called_ = false;
  }
  Frame f;
  f.address = frame;
  if (called_) {
    f.base = call_base_;
  } else if (!frames_.empty()) {
    f.base = frames_.back().base + frames_.back().slots;
  }
  called_ = false;
  f.slots = run.function->slots;
  f.memory = memory;
  const auto known = std::find(memories_.begin(), memories_.end(), memory);
  f.memory_key = static_cast<uint64_t>(known - memories_.begin()) << kMemoryShift;
  if (known == memories_.end()) memories_.push_back(memory);
  const size_t room = f.base + f.slots + kMostResults;
  if (ready_.size() < room) ready_.resize(2 * room);
  frames_.push_back(f);
}

// The frame is one of those that were entered; the ones below it in memory are gone.
void CoreModel::land(uint64_t frame) {
  while (frames_.size() > 1 && frames_.back().address < frame) frames_.pop_back();
  called_ = false;
}

uint64_t CoreModel::key_of(uint64_t host) const {
  const uint64_t address = host - frames_.back().memory;
  if (address < kMemorySpan) return frames_.back().memory_key + address;
  // Another memory of the instance: one that some instance has as its first, or an unknown one.
  for (size_t i = 0; i < memories_.size(); ++i)
    if (host - memories_[i] < kMemorySpan) return (uint64_t{i} << kMemoryShift) + (host - memories_[i]);
  return kElsewhere | host;
}

CoreModel::Ticks CoreModel::ready(const TraceRun& run, TraceSpan span) const {
  Ticks latest = 0;
  const Ticks* slots = ready_.data() + frames_.back().base;
  const uint32_t limit = frames_.back().slots;
  for (const TraceTerm& term : run.of(span)) {
    Ticks t;
    if (term.source >= kTraceAccess) {
      t = done_[term.source - kTraceAccess];
    } else {
      t = term.source < limit ? slots[term.source] + config_.forward * kCycle : 0;
    }
    latest = std::max(latest, t + term.delay * kCycle);
  }
  return latest;
}

// The next operations enter the window: not faster than the core's width, and not before those that far ahead
// left.
void CoreModel::dispatch(uint32_t operations) {
  operation_count_ += operations;
  dispatched_ += operations * operation_;
  const uint64_t mask = window_.size() - 1;
  while (window_begin_ != window_end_ &&
         window_[window_begin_ & mask].operation + config_.window <= operation_count_) {
    window_floor_ = window_[window_begin_ & mask].time;
    ++window_begin_;
  }
  shadow_ = std::max(shadow_ + operations * operation_, window_floor_);
  dispatched_ = std::max({dispatched_, window_floor_, shadow_});
}

void CoreModel::retired() {
  const uint64_t mask = window_.size() - 1;
  if (window_end_ != window_begin_ && window_[(window_end_ - 1) & mask].operation == operation_count_) {
    window_[(window_end_ - 1) & mask].time = retired_;
    return;
  }
  if (window_end_ - window_begin_ == window_.size()) ++window_begin_;
  window_[window_end_++ & mask] = {operation_count_, retired_};
}

void CoreModel::clock(const TraceRun& run, CodeOffset code) {
  if (!clocks_.on) return;
  while (retired_ >= next_clock_) {
    records_.record(make_clock_record(pc_of(run, code), 0));
    next_clock_ += static_cast<Ticks>(clocks_.interval + 1) * kCycle;
  }
}

void CoreModel::load(RunState& state, const TraceRun& run, size_t index, uint64_t host) {
  const TraceAccess& access = run.accesses[index];
  AccessState& totals = state.accesses[index];
  dispatch(access.operations);
  const uint64_t key = key_of(host);
  const Ticks known = ready(run, access.address);
  const Ticks start = std::max(dispatched_, known);
  // The wrong path after a mispredicted branch comes back to the right one long before a branch that waits
  // for memory is resolved. What does not depend on the branch was asked for then, and is on its way.
  const Ticks asked = config_.wrong_path ? std::max(std::min(shadow_, dispatched_), known) : start;
  const CacheAccess found = cache_.access(key, access.bytes, asked / kCycle,
                                          static_cast<uint32_t>(state.key) + static_cast<uint32_t>(index));
  const Ticks hit = config_.cache.levels[0].latency * kCycle;
  Ticks done = std::max(found.done * kCycle, start + hit);
  Ticks value = std::max(found.done * kCycle, asked + hit);  // on the wrong path too
  const Store& forwarded = forwarding_[(key >> 3) % kForwardingEntries];
  if (forwarded.granule == key >> 3 && forwarded.drained > start)
    done = value = std::max(start, forwarded.ready) + config_.forward * kCycle;
  done_[index] = value;

  const Ticks in_order = retired_ + access.operations * operation_;
  const Ticks oldest = std::max(in_order, start);
  const Ticks stall = done > oldest ? done - oldest : 0;
  retired_ = std::max(in_order, done);
  retired();
  clock(run, access.code);

  ++totals.executions;
  ++totals.from_level[found.level];
  totals.tlb_misses += found.tlb_misses;
  totals.latency += done - start;
  totals.stall += stall;
  if (found.level > 0 || found.tlb_misses > 0) totals.miss_stall += stall;
  if (config_.remember_addresses) {
    if (!totals.addresses) totals.addresses = std::make_unique<AddressSet>();
    totals.addresses->add(host - frames_.back().memory);
  }
  if (found.level > 0) {
    const uint64_t latency = (done - start + kCycle - 1) / kCycle;  // it began within a cycle
    if (latency >= min_latency_ && misses_.count(1)) {
      const MissSource source = found.level == cache_.levels() ? MissSource::kDram
                                : found.level >= 2             ? MissSource::kLocalL3
                                                               : MissSource::kOther;
      records_.record(make_dcache_miss_record(pc_of(run, access.code), host,
                                              static_cast<uint32_t>(std::min<uint64_t>(latency, UINT32_MAX)),
                                              source, 0));
    }
  }
}

// A store retires when address and value are known. It drains from the buffer in order when it has the line,
// which was asked for when the address was known.
void CoreModel::store(RunState& state, const TraceRun& run, size_t index, uint64_t host) {
  const TraceAccess& access = run.accesses[index];
  AccessState& totals = state.accesses[index];
  Ticks& slot = store_buffer_[stores_++ % store_buffer_.size()];
  const Ticks had_room = slot;
  dispatched_ = std::max(dispatched_, had_room);
  dispatch(access.operations);
  const uint64_t key = key_of(host);
  const Ticks start = std::max(dispatched_, ready(run, access.address));
  const Ticks value = std::max(start, ready(run, access.value));
  const CacheAccess found = cache_.access(key, access.bytes, start / kCycle,
                                          static_cast<uint32_t>(state.key) + static_cast<uint32_t>(index));
  done_[index] = value;
  const Ticks in_order = retired_ + access.operations * operation_;
  retired_ = std::max(in_order, value);
  retired();
  clock(run, access.code);
  last_drain_ = std::max({last_drain_ + kCycle, retired_, found.done * kCycle});
  slot = last_drain_;
  forwarding_[(key >> 3) % kForwardingEntries] = {key >> 3, value, last_drain_};
  ++totals.executions;
  ++totals.from_level[found.level];
  totals.tlb_misses += found.tlb_misses;
  const Ticks buffer_full = had_room > in_order ? had_room - in_order : 0;
  totals.stall += buffer_full;
  if (found.level > 0) totals.miss_stall += buffer_full;
}

// memory.copy, .fill and .init: a line after the other, as fast as they come.
void CoreModel::bulk(RunState& state, const TraceRun& run, size_t index, const uint64_t* words) {
  const TraceAccess& access = run.accesses[index];
  AccessState& totals = state.accesses[index];
  dispatch(access.operations);
  const Ticks start = std::max(dispatched_, ready(run, access.address));
  const bool copy = access.kind == TraceAccessKind::kCopy;
  const uint64_t bytes = words[copy ? 2 : 1];
  const uint64_t line = config_.cache.line_bytes;
  Ticks done = start;
  const auto touch = [&](uint64_t host, uint32_t site) {
    const uint64_t key = key_of(host);
    Ticks now = start;
    for (uint64_t at = 0; at < bytes; at += line, now += kCycle) {
      const CacheAccess found = cache_.access(key + at, static_cast<uint32_t>(std::min(line, bytes - at)),
                                              now / kCycle, static_cast<uint32_t>(state.key) + site);
      ++totals.from_level[found.level];
      done = std::max(done, found.done * kCycle);
    }
  };
  const auto site = 2 * static_cast<uint32_t>(index) + 1'000'000;
  touch(words[0], site);
  if (copy) touch(words[1], site + 1);
  done_[index] = done;
  const Ticks in_order = retired_ + access.operations * operation_;
  if (done > in_order) totals.stall += done - std::max(in_order, start);
  retired_ = std::max(in_order, done);
  retired();
  clock(run, access.code);
  ++totals.executions;
}

void CoreModel::end(RunState& state, uint64_t outcome, uint64_t target) {
  const TraceRun& run = *state.run;
  if (run.end == TraceEnd::kJump) {
    ++state.taken;
    if (branches_.count(1))
      records_.record(make_branch_record(pc_of(run, run.code) + 1, pc_of(run, run.taken), true, true));
    return;
  }
  if (run.end != TraceEnd::kBranch && run.end != TraceEnd::kTable && !is_indirect_call(run.end)) return;
  const bool right = run.end == TraceEnd::kBranch ? predictor_->predicted_right(state.key, outcome != 0)
                                                  : predictor_->target_predicted_right(state.key, outcome);
  const bool taken = run.end != TraceEnd::kBranch || outcome != 0;
  state.taken += taken ? 1 : 0;
  if (!right) {
    ++state.mispredicted;
    const Ticks known = std::max(dispatched_, ready(run, run.condition)) + kCycle;
    shadow_ = dispatched_;
    dispatched_ = std::max(dispatched_, known + config_.penalty * kCycle);
  }
  if (!is_indirect_call(run.end) && branches_.count(1)) {
    const uint64_t to = run.end == TraceEnd::kTable ? target : pc_of(run, taken ? run.taken : run.fall);
    records_.record(make_branch_record(pc_of(run, run.code) + 1, to, taken, right));
  }
}

void CoreModel::execute(RunState& state, const uint64_t* words, uint64_t outcome, uint64_t target) {
  const TraceRun& run = *state.run;
  if (frames_.empty()) {  // a stream that begins in the middle: a frame of zeros
    Frame f;
    f.address = UINT64_MAX;
    f.slots = run.function->slots;
    frames_.push_back(f);
    if (ready_.size() < f.slots + kMostResults) ready_.resize(f.slots + kMostResults);
  }
  const Ticks before = retired_;
  for (size_t i = 0; i < run.accesses.size(); ++i) {
    const TraceAccessKind kind = run.accesses[i].kind;
    switch (kind) {
      case TraceAccessKind::kLoad:
        load(state, run, i, *words);
        break;
      case TraceAccessKind::kStore:
        store(state, run, i, *words);
        break;
      case TraceAccessKind::kFill:
      case TraceAccessKind::kCopy:
        bulk(state, run, i, words);
        break;
    }
    words += trace_words(kind);
  }
  dispatch(run.operations);

  // All values are of the run's beginning or its accesses, so they are computed before the first is stored.
  new_.clear();
  Ticks last = run.end == TraceEnd::kBranch ? ready(run, run.condition) : 0;
  for (const TraceWrite& write : run.writes) {
    new_.push_back(ready(run, write.value));
    last = std::max(last, new_.back());
  }
  end(state, outcome, target);
  Frame& frame = frames_.back();
  Ticks* slots = ready_.data() + frame.base;
  const bool leaves =
      run.end == TraceEnd::kReturn || is_tail_call(run.end);  // results and arguments may be many
  for (size_t i = 0; i < new_.size(); ++i)
    if (run.writes[i].slot < frame.slots || leaves) slots[run.writes[i].slot] = new_[i];
  retired_ = std::max(retired_ + run.operations * operation_, last);
  retired();
  clock(run, run.code);
  state.time += retired_ - before;
  ++state.executions;

  total_instructions_ += run.instructions;
  if (run.instructions > 0 && instructions_.count(run.instructions))
    records_.record(make_instructions_record(pc_of(run, run.code) + 1, 0));
  if (run.end == TraceEnd::kCall || run.end == TraceEnd::kIndirectCall) {
    called_ = true;
    call_base_ = frame.base + run.call_slot;
  } else if (is_tail_call(run.end)) {
    called_ = true;
    call_base_ = frame.base;
    frames_.pop_back();
  } else {
    called_ = false;
    if (run.end == TraceEnd::kReturn) frames_.pop_back();
  }
}

ModelTotals CoreModel::totals() const {
  ModelTotals totals;
  totals.instructions = total_instructions_;
  totals.cycles = retired_ / kCycle;
  totals.unfinished = unfinished_;
  totals.unknown = unknown_;
  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;
  std::map<Key, ModelAccess> accesses;
  std::map<Key, ModelBranch> branches;
  std::map<std::pair<uint64_t, uint32_t>, std::pair<uint64_t, Ticks>> functions;
  for (const auto& state : runs_) {
    if (!state || state->executions == 0) continue;
    const TraceRun& run = *state->run;
    const uint64_t module = run.function->module;
    const FuncIndex function = run.function->function;
    auto& [instructions, time] = functions[{module, function.value}];
    instructions += state->executions * run.instructions;
    time += state->time;
    for (size_t i = 0; i < run.accesses.size(); ++i) {
      const AccessState& from = state->accesses[i];
      ModelAccess& a = accesses[{module, function.value, run.accesses[i].offset.value}];
      a.module = module;
      a.function = function;
      a.offset = run.accesses[i].offset;
      a.store = run.accesses[i].kind != TraceAccessKind::kLoad;
      a.executions += from.executions;
      for (size_t level = 0; level < std::size(a.from_level); ++level)
        a.from_level[level] += from.from_level[level];
      a.tlb_misses += from.tlb_misses;
      a.latency_cycles += from.latency / kCycle;
      a.stall_cycles += from.stall / kCycle;
      a.miss_stall_cycles += from.miss_stall / kCycle;
      if (from.addresses) a.addresses = from.addresses.get();
    }
    if (run.end == TraceEnd::kBranch || run.end == TraceEnd::kJump || run.end == TraceEnd::kTable ||
        is_indirect_call(run.end)) {
      ModelBranch& b = branches[{module, function.value, run.offset.value}];
      b.module = module;
      b.function = function;
      b.offset = run.offset;
      b.kind = run.end;
      b.executions += state->executions;
      b.taken += state->taken;
      b.mispredicted += state->mispredicted;
    }
  }
  for (auto& [key, access] : accesses) totals.accesses.push_back(access);
  for (auto& [key, branch] : branches) totals.branches.push_back(branch);
  for (const auto& [key, sums] : functions)
    totals.functions.push_back({key.first, FuncIndex(key.second), sums.first, sums.second / kCycle});
  return totals;
}

}  // namespace hindsight::lwp
