#include "feedback/profile/profile.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/instruction_kinds.h"
#include "jit/wasm/loop_nests.h"

namespace hindsight::feedback {

const char* to_string(Entered entered) {
  switch (entered) {
    case Entered::kUnknown:
      return "unknown";
    case Entered::kNotYet:
      return "not yet";
    case Entered::kAgain:
      return "again";
  }
  return "unknown";
}

const char* to_string(ValueSite site) {
  switch (site) {
    case ValueSite::kDivisor:
      return "divisor";
    case ValueSite::kWideDivisor:
      return "wide divisor";
    case ValueSite::kByteCount:
      return "byte count";
    case ValueSite::kTripCount:
      return "trip count";
  }
  return "unknown";
}

uint32_t rejections_of(const ChangeLedger& changes, WasmOffset load) {
  uint32_t most = 0;
  for (const auto& [site, outcome] : changes)
    if (site.at == load && jit::is_of_load(site.kind)) most = std::max(most, outcome.rejections);
  return most;
}

void keep_dearest(std::vector<FunctionSamples::Place>& places, size_t most) {
  using Place = FunctionSamples::Place;
  if (places.size() > most) {
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.samples + a.stalls > b.samples + b.stalls;
    });
    places.resize(most);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.offset < b.offset; });
}

Profile::KnownLoops& Profile::loops_of(FuncIndex function) const {
  return loops_.try_emplace(function.value, module_->body(function)).first->second;
}

const Profile::NestFacts& Profile::nest_facts(FuncIndex function, LoopIndex loop) const {
  // Each loop is read with all in it. Where they are deep in each other, that is not done for all of them.
  constexpr uint64_t kTimesTheFunction = 16;
  KnownLoops& known = loops_of(function);
  const auto [found, fresh] = known.nests.try_emplace(loop.value);
  NestFacts& facts = found->second;
  if (!fresh) return facts;
  const wasm::FunctionBody& body = module_->body(function);
  facts.bytes = body.loops[loop.value].end.value + 1 - body.loops[loop.value].offset.value;
  known.bytes_read += facts.bytes;
  if (known.bytes_read > kTimesTheFunction * (body.end.value - body.begin.value)) {
    facts.why_none = "too many loops are around each other";
    return facts;
  }
  facts.bytes = wasm::nest_bytes(*module_, function, loop);
  facts.why_none = wasm::why_no_nest(*module_, function, loop);
  return facts;
}

const CallsInLoops& Profile::calls_in_loops(FuncIndex function) const {
  KnownLoops& known = loops_of(function);
  if (!known.calls) known.calls.emplace(*module_, function, known.loops);
  return *known.calls;
}

// Jump pointers show what they give in the next traversal alone. Callers do not wait for that.
static bool is_slow_to_tell(jit::ChangeKind kind) {
  return kind == jit::ChangeKind::kJumpPointers;
}

bool Profile::is_for_callers(FuncIndex callee, uint32_t load, const FunctionCounts& counts) const {
  const WasmOffset at(load);
  if (has_load_change(counts.changes, at, [](jit::ChangeKind kind, ChangeState state) {
        return state == ChangeState::kKept || (state == ChangeState::kInTrial && !is_slow_to_tell(kind));
      }))
    return false;
  // Where it could be prefetched and that gave nothing, its address is no matter of the loop around.
  if (counts.changes.state({jit::ChangeKind::kPrefetch, at}) == ChangeState::kRolledBack) return false;
  if (!is_in_body(callee, at)) return false;
  return !loops_of(callee).loops.innermost(at) ||
         counts.changes.state({jit::ChangeKind::kInterleave, at}) == ChangeState::kNotPossible;
}

double Profile::stalls_for_callers(FuncIndex callee) const {
  return stalls_of(callee, &Profile::is_for_callers);
}

double Profile::stalls_undecided(FuncIndex callee) const {
  return stalls_of(callee, &Profile::is_undecided);
}

bool Profile::is_undecided(FuncIndex callee, uint32_t load, const FunctionCounts& counts) const {
  const WasmOffset at(load);
  if (!is_in_body(callee, at) || !loops_of(callee).loops.innermost(at)) return false;
  const auto has = [&](ChangeState wanted) {
    return has_load_change(counts.changes, at, [&](jit::ChangeKind kind, ChangeState state) {
      return state == wanted && !is_slow_to_tell(kind);
    });
  };
  return has(ChangeState::kInTrial) ||
         (!has(ChangeState::kKept) && !judged(counts.changes.state({jit::ChangeKind::kPrefetch, at})) &&
          !judged(counts.changes.state({jit::ChangeKind::kInterleave, at})));
}

// A body that was inlined into the callee itself is not looked into.
bool Profile::is_in_body(FuncIndex function, WasmOffset at) const {
  const wasm::FunctionBody& body = module_->body(function);
  return body.begin <= at && at < body.end;
}

double Profile::stalls_of(FuncIndex callee, LoadQuestion is_meant) const {
  const auto found = functions_.find(callee.value);
  if (found == functions_.end()) return 0;
  double stalls = 0;
  for (const auto& [offset, load] : found->second.loads)
    if (!load.is_store && load.stall_baseline + load.stall_optimized > 0 &&
        (this->*is_meant)(callee, offset, found->second))
      stalls += load.stall_baseline + load.stall_optimized;
  return stalls;
}

bool Profile::calls_what_stalls(FuncIndex function, double samples) const {
  const auto& calls = calls_in_loops(function).calls();
  return std::any_of(calls.begin(), calls.end(), [&](const CallsInLoops::Call& call) {
    const auto found = functions_.find(call.callee.value);
    return found != functions_.end() && found->second.samples() >= samples &&
           stalls_for_callers(call.callee) >= samples;
  });
}

namespace {

constexpr double kSamplesOfNewPlace = 2;  // one may be a loop that ends at once

void add_sample_of_nest(FunctionCounts& counts, LoopIndex root, VersionId version, WasmOffset at,
                        double seconds) {
  counts.seconds_in_nests += seconds;
  NestCounts& nest = counts.nests[root.value];
  if (version.value == 0 || version.value != nest.version) return;
  nest.samples_optimized += 1;
  nest.seconds_optimized += seconds;
  nest.run_seconds_optimized += seconds;
  nest.shift.add(at.value);
}

}  // namespace

void Profile::add_sample(FuncIndex function, WasmOffset at, bool optimized_code, double seconds,
                         VersionId version, std::optional<LoopIndex> nest) {
  FunctionCounts& counts = functions_[function.value];
  if (optimized_code) {
    counts.samples_optimized += 1;
    counts.samples_recent += 1;
    const bool replaced =
        version.value != 0 && (version.value < counts.published_version ||
                               std::find(counts.lost_versions.begin(), counts.lost_versions.end(),
                                         version.value) != counts.lost_versions.end());
    if (nest) {
      add_sample_of_nest(counts, *nest, version, at, seconds);
    } else if (replaced) {
      counts.samples_stayed += 1;
      counts.seconds_stayed += seconds;
    } else if (version.value != 0) {
      counts.shift.add(at.value);
    }
    counts.seconds_optimized += seconds;
    counts.run_seconds_optimized += seconds;
    counts.run_samples_optimized += 1;
  } else {
    counts.samples_baseline += 1;
    counts.seconds_baseline += seconds;
    counts.run_seconds_baseline += seconds;
    counts.run_samples_baseline += 1;
    const std::optional<LoopIndex> loop = loops_of(function).loops.innermost(at);
    if (late_.counts()) add_late(function, counts, loop, seconds);
    if (loop) {
      LoopCounts& of_loop = counts.loops[loop->value];
      of_loop.samples_baseline += 1;
      of_loop.seconds_baseline += seconds;
      of_loop.run_samples_baseline += 1;
      of_loop.run_seconds_baseline += seconds;
      const auto nest = counts.nests.find(loop->value);
      if (nest == counts.nests.end() || nest->second.version == 0) {
        samples_without_code_ += 1;
        if (of_loop.run_samples_baseline == kSamplesOfNewPlace) new_places_ += 1;
      }
    }
  }
  counts.samples_at[at.value] += 1;
  counts.places[at.value].samples += 1;
  total_samples_ += 1;
  samples_seen_ += 1;
  seconds_seen_ += seconds;
}

void Profile::add_late(FuncIndex function, const FunctionCounts& counts, std::optional<LoopIndex> loop,
                       double seconds) {
  LateTime::Place* const place = late_.add_sample(*module_, function, loop, seconds);
  if (place == nullptr) return;
  const PlaceState seen = state_of(function, counts, loop);
  PlaceState state = place->state.value_or(seen);
  // What was published may have been taken back since.
  if (state == PlaceState::kPublished) state = seen;
  place->late[static_cast<size_t>(state)] += seconds;
}

PlaceState Profile::state_of(FuncIndex function, const FunctionCounts& counts,
                             std::optional<LoopIndex> loop) const {
  bool under_way = false;
  const std::vector<wasm::LoopInfo>& loops = module_->body(function).loops;
  for (; loop && !counts.nests.empty(); loop = loops[loop->value].parent) {
    const auto nest = counts.nests.find(loop->value);
    if (nest == counts.nests.end()) continue;
    if (nest->second.version != 0) return PlaceState::kPublished;
    under_way = under_way || nest->second.under_way;
  }
  if (counts.samples_when_published) return PlaceState::kPublished;
  if (counts.observed) return PlaceState::kObserved;
  return under_way || counts.optimized ? PlaceState::kCompiling : PlaceState::kWaiting;
}

void Profile::note_place(FuncIndex function, std::optional<LoopIndex> loop, PlaceState state,
                         std::string why) {
  late_.note(*module_, function, loop, state, std::move(why));
}

std::optional<WasmOffset> Profile::load_at_or_before(WasmOffset at) {
  std::optional<FuncIndex> function = module_->function_at(at);
  if (!function) return std::nullopt;
  // What a change adds to a loop has the loop's own place. Its loads are not the guest's in front of it.
  if (wasm::is_loop(*module_, at)) return std::nullopt;
  auto [found, fresh] = load_offsets_.try_emplace(function->value);
  std::vector<uint32_t>& offsets = found->second;
  if (fresh) {
    wasm::InstrReader reader(*module_, module_->body(*function));
    wasm::Instr instr;
    while (!reader.at_end()) {
      reader.next(instr);
      if (instr.opcode >= wasm::Opcode::kI32Load && instr.opcode <= wasm::Opcode::kI64Load32U)
        offsets.push_back(instr.offset.value);
    }
  }
  auto behind = std::upper_bound(offsets.begin(), offsets.end(), at.value);
  if (behind == offsets.begin()) return std::nullopt;
  return WasmOffset(*(behind - 1));
}

namespace {

void note_address(LoadCounts& counts, uint64_t address) {
  counts.addresses += 1;
  counts.lowest = std::min(counts.lowest, address);
  counts.highest = std::max(counts.highest, address);
  if (counts.pages.size() < kMaxPagesSeen) counts.pages.insert(address >> 12);
}

// To a few pages, which the TLB holds: a table beside the records that are gone through. What else stalls in the same
// memory is not to be judged by that.
bool comes_back(const LoadCounts& counts) {
  constexpr uint64_t kToTell = 8, kAPage = 4;  // addresses
  return counts.addresses > kToTell &&
         kAPage * counts.pages.size() < std::min<uint64_t>(counts.addresses, kMaxPagesSeen);
}

}  // namespace

bool Profile::add_stall(FuncIndex function, WasmOffset load, bool optimized_code, const uint64_t* address) {
  std::optional<WasmOffset> charged = load_at_or_before(load);
  if (!charged) return false;
  FunctionCounts& of_function = functions_[function.value];
  LoadCounts& counts = of_function.loads[charged->value];
  (optimized_code ? counts.stall_optimized : counts.stall_baseline) += 1;
  if (optimized_code) counts.stall_recent += 1;
  of_function.places[charged->value].stalls += 1;
  if (address) {
    note_address(counts, *address);
    if (!comes_back(counts)) pages_.add(*address, samples_seen_, seconds_seen_);
  }
  return true;
}

// Its addresses are no evidence about pages: after a store that touches a page first, the sample stands there too.
bool Profile::add_store_stall(FuncIndex function, WasmOffset store, bool optimized_code, uint64_t address) {
  if (!wasm::is_store(*module_, store)) return false;
  FunctionCounts& of_function = functions_[function.value];
  LoadCounts& counts = of_function.loads[store.value];
  counts.is_store = true;
  (optimized_code ? counts.stall_optimized : counts.stall_baseline) += 1;
  if (optimized_code) counts.stall_recent += 1;
  of_function.places[store.value].stalls += 1;
  if (counts.addresses > 0 && address > counts.last) counts.rising += 1;
  counts.last = address;
  note_address(counts, address);
  return true;
}

void PageCounts::add(uint64_t address, uint64_t samples, double seconds) {
  stall_samples += 1;
  const uint64_t index = address / kHugePageBytes;
  if (trial) trial->add(index);
  if (huge.contains(index) || (regions.size() >= kMaxRegions && !regions.contains(index))) return;
  const auto [found, fresh] = regions.try_emplace(index);
  Region& region = found->second;
  if (fresh) region = {.samples_before = samples - std::min<uint64_t>(samples, 1), .first_seconds = seconds};
  region.addresses += 1;
  region.last_seconds = seconds;
  addresses += 1;
  if (pages.size() < kMaxPagesSeen) pages.insert(address >> 12);
}

void PageCounts::settle(uint64_t begin, uint64_t end) {
  for (uint64_t region = begin / kHugePageBytes; region < end / kHugePageBytes; ++region) {
    if (const auto found = regions.find(region); found != regions.end()) {
      addresses -= found->second.addresses;
      regions.erase(found);
    }
    huge.insert(region);
  }
  std::erase_if(pages, [&](uint64_t page) { return page >= begin >> 12 && page < end >> 12; });
}

void PageCounts::reopen(uint64_t begin, uint64_t end) {
  huge.erase(huge.lower_bound(begin / kHugePageBytes), huge.lower_bound(end / kHugePageBytes));
}

namespace {

// Loads of which a change is kept that has their data fetched early.
std::set<uint32_t> hidden_loads(const ChangeLedger& changes) {
  std::set<uint32_t> loads;
  for (const auto& [site, outcome] : changes)
    if (jit::is_of_load(site.kind) && outcome.state == ChangeState::kKept) loads.insert(site.at.value);
  return loads;
}

}  // namespace

PageEvidence Profile::page_evidence() const {
  PageEvidence e;
  e.addresses = pages_.addresses;
  e.distinct_pages = pages_.pages.size();
  if (pages_.regions.empty()) return e;
  uint64_t samples_before = samples_seen_;
  double first_seconds = seconds_seen_, last_seconds = 0;
  for (const auto& [index, region] : pages_.regions) {
    e.regions.push_back({index, region.addresses});
    samples_before = std::min(samples_before, region.samples_before);
    first_seconds = std::min(first_seconds, region.first_seconds);
    last_seconds = std::max(last_seconds, region.last_seconds);
  }
  e.samples = static_cast<double>(samples_seen_ - samples_before);
  e.seconds = seconds_seen_ - first_seconds;
  e.stall_samples = static_cast<double>(pages_.addresses);
  e.seconds_idle = seconds_seen_ - last_seconds;
  e.hidden_share = hidden_share(e.seconds);
  return e;
}

// Of the last `seconds`. A share of late would be taken for all of them, of which the functions may have run a part, and the
// time of the functions alone for what goes on, though they may have ended.
double Profile::hidden_share(double seconds) const {
  double all = 0, of_late = 0, in_all = 0;  // samples, samples, seconds
  for (const auto& [index, counts] : functions_) {
    const double samples = counts.samples();
    all += samples;
    if (counts.samples_baseline <= 0) continue;
    double stalled = 0;  // before the decisions
    for (const uint32_t offset : hidden_loads(counts.changes))
      if (const auto load = counts.loads.find(offset); load != counts.loads.end())
        stalled += load->second.stall_baseline;
    const double share = std::min(1.0, stalled / counts.samples_baseline);
    of_late += samples * share;
    in_all += (counts.run_seconds_baseline + counts.run_seconds_optimized) * share;
  }
  if (of_late <= 0 || seconds <= 0 || pages_.stall_samples == 0) return 0;
  // In regions on huge pages nothing of it is left to be had.
  const double here = static_cast<double>(pages_.addresses) / static_cast<double>(pages_.stall_samples);
  return here * std::min({1.0, of_late / all, in_all / seconds});
}

bool Profile::add_address(FuncIndex function, WasmOffset load, uint64_t address) {
  std::optional<WasmOffset> charged = load_at_or_before(load);
  auto known = functions_.find(function.value);
  if (!charged || known == functions_.end()) return false;
  auto counts = known->second.loads.find(charged->value);
  if (counts == known->second.loads.end()) return false;
  note_address(counts->second, address);
  return true;
}

void Profile::add_branch(FuncIndex function, WasmOffset at, bool taken) {
  BranchCounts& counts = functions_[function.value].branches[at.value];
  counts.total += 1;
  counts.taken += taken ? 1 : 0;
}

void ValueCounts::add(uint64_t value) {
  total += 1;
  for (Candidate& candidate : candidates) {
    if (candidate.value != value) continue;
    candidate.count += 1;
    return;
  }
  if (candidates.size() < kCandidates) {
    candidates.push_back({value, 1});
    return;
  }
  for (Candidate& candidate : candidates) candidate.count -= 1;
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.count == 0; });
}

void ValueCounts::fade_into(const ValueCounts& later) {
  total /= 2;
  for (Candidate& candidate : candidates) candidate.count /= 2;
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.count == 0; });
  for (const Candidate& candidate : later.candidates) {
    for (uint64_t i = 0; i < candidate.count; ++i) add(candidate.value);
  }
}

void FunctionCounts::begin(jit::Site site) {
  changes.begin(site);
  if (jit::is_of_load(site.kind)) loads.try_emplace(site.at.value);
}

void FunctionCounts::settle(const ChangeLedger& known) {
  for (const auto& [site, outcome] : known) {
    changes.put(site, outcome);
    if (jit::is_of_load(site.kind)) loads.try_emplace(site.at.value);
  }
}

void FunctionCounts::settle(jit::Site site, ChangeState state) {
  changes.settle(site, state);
  if (!jit::is_of_load(site.kind)) return;
  LoadCounts& counts = loads[site.at.value];
  if (state != ChangeState::kRolledBack) return;
  counts.run_seconds_when_rejected = run_seconds();
  counts.share_when_rejected = samples_recent > 0 ? counts.stall_recent / samples_recent : 0;
  counts.span_when_rejected = counts.span();
}

void FunctionCounts::note_failed_compile(bool has_code, uint32_t times) {
  optimized = has_code;
  if (!has_code) failed_compiles += times;
}

void FunctionCounts::publish(VersionId version, std::vector<LoopIndex> exits,
                             std::vector<LoopIndex> entries) {
  observed = false;
  failed_compiles = 0;
  published_version = version.value;
  std::erase_if(lost_versions, [&](uint64_t lost) { return lost < published_version; });
  run_seconds_when_published = run_seconds();
  exit_loops = std::move(exits);
  entry_loops = std::move(entries);
  shift = {};
  samples_stayed = seconds_stayed = 0;
  samples_when_published = samples_baseline;
  seconds_when_published = seconds_baseline;
  optimized_seconds_when_published = seconds_optimized - seconds_in_nests;
  for (const auto& [offset, later] : unforeseen) values[offset].fade_into(later);
  unforeseen.clear();
  // What loops run in baseline code from here on, they run in spite of it.
  for (auto& [loop, of] : loops) of.samples_baseline = of.seconds_baseline = 0;
}

void FunctionCounts::settle_baseline(LoopIndex loop) {
  const auto found = loops.find(loop.value);
  if (found == loops.end()) return;
  LoopCounts& of = found->second;
  samples_baseline = std::max(0.0, samples_baseline - of.samples_baseline);
  seconds_baseline = std::max(0.0, seconds_baseline - of.seconds_baseline);
  if (samples_when_published) *samples_when_published = std::min(*samples_when_published, samples_baseline);
  if (seconds_when_published) *seconds_when_published = std::min(*seconds_when_published, seconds_baseline);
  of.samples_baseline = of.seconds_baseline = 0;
}

void FunctionCounts::publish_again(VersionId lost) {
  const double since = run_seconds_when_published;
  publish(VersionId(published_version), std::move(exit_loops), std::move(entry_loops));
  run_seconds_when_published = since;
  lost_versions.push_back(lost.value);
}

void FunctionCounts::publish_nest(LoopIndex root, VersionId version) {
  NestCounts& nest = nests[root.value];
  nest.version = version.value;
  nest.under_way = false;
  nest.seconds_when_published = nest.seconds_optimized;
  nest.run_seconds_when_published = nest.run_seconds_optimized;
  nest.shift = {};
}

void FunctionCounts::foresee_calls(WasmOffset begin, WasmOffset end) {
  auto later = unforeseen.lower_bound(begin.value);
  while (later != unforeseen.end() && later->first < end.value) {
    values[later->first].fade_into(later->second);
    later = unforeseen.erase(later);
  }
}

void FunctionCounts::stay() {
  SampleShift seen = std::move(shift);
  publish(VersionId{published_version}, exit_loops, entry_loops);
  shift = std::move(seen);
}

void FunctionCounts::see_anew() {
  FunctionCounts anew;
  anew.observed = true;
  anew.optimize_count = optimize_count;
  anew.failed_compiles = failed_compiles;
  anew.published_version = published_version;
  anew.lost_versions = lost_versions;
  anew.run_seconds_baseline = run_seconds_baseline;
  anew.run_seconds_optimized = run_seconds_optimized;
  anew.run_samples_baseline = run_samples_baseline;
  anew.run_samples_optimized = run_samples_optimized;
  anew.instruction_records = instruction_records;
  anew.compile_seconds = compile_seconds;
  anew.places = std::move(places);
  for (const auto& [loop, of] : loops) {
    LoopCounts& again = anew.loops[loop];
    again.run_samples_baseline = of.run_samples_baseline;
    again.run_seconds_baseline = of.run_seconds_baseline;
  }
  for (const auto& [root, of] : nests) {
    NestCounts& again = anew.nests[root];
    again.under_way = of.under_way;
    again.only_for_callees = of.only_for_callees;
    again.early = of.early;
    again.compiles = of.compiles;
    again.fruitless = of.fruitless;
    again.compile_seconds = of.compile_seconds;
    again.run_seconds_optimized = of.run_seconds_optimized;
  }
  *this = std::move(anew);
}

void Profile::add_value(FuncIndex function, WasmOffset at, uint64_t value, bool optimized_code) {
  FunctionCounts& counts = functions_[function.value];
  (optimized_code ? counts.unforeseen : counts.values)[at.value].add(value);
}

void Profile::add_outcomes(FuncIndex function, WasmOffset at, const BranchOutcomeCounts& counts) {
  BranchOutcomeCounts& sum = functions_[function.value].branches[at.value].bursts;
  sum.outcomes += counts.outcomes;
  sum.taken += counts.taken;
  sum.judged += counts.judged;
  sum.mispredicted += counts.mispredicted;
}

void Profile::set_latency(FuncIndex function, WasmOffset load, const LoadLatency& latency) {
  functions_[function.value].loads[load.value].latency = latency;
}

const LoadLatency* Profile::latency(FuncIndex function, WasmOffset at) {
  const auto counts = functions_.find(function.value);
  if (counts == functions_.end() || counts->second.loads.empty()) return nullptr;
  const std::optional<WasmOffset> charged = load_at_or_before(at);
  if (!charged) return nullptr;
  const auto load = counts->second.loads.find(charged->value);
  if (load == counts->second.loads.end() || load->second.latency.timed == 0) return nullptr;
  return &load->second.latency;
}

void Profile::add_instructions(FuncIndex function) {
  functions_[function.value].instruction_records += 1;
}

void Profile::decay(double factor) {
  // Fast enough for a change to win within a second, slow enough for the steady rate to tell.
  constexpr int kRecently = 5;
  const double recent = std::pow(factor, kRecently);
  for (auto& [index, counts] : functions_) {
    counts.samples_baseline *= factor;
    counts.samples_optimized *= factor;
    counts.samples_recent *= recent;
    counts.samples_stayed *= factor;
    counts.seconds_stayed *= factor;
    counts.seconds_baseline *= factor;
    counts.seconds_optimized *= factor;
    counts.seconds_in_nests *= factor;
    counts.seconds_when_watched *= factor;
    counts.optimized_seconds_when_published *= factor;
    if (counts.samples_when_published) *counts.samples_when_published *= factor;
    if (counts.seconds_when_published) *counts.seconds_when_published *= factor;
    for (auto& [loop, of] : counts.loops) {
      of.samples_baseline *= factor;
      of.seconds_baseline *= factor;
    }
    for (auto& [root, nest] : counts.nests) {
      nest.samples_optimized *= factor;
      nest.seconds_optimized *= factor;
      nest.seconds_when_published *= factor;
    }
    for (auto& [offset, samples] : counts.samples_at) samples *= factor;
    for (auto& [offset, load] : counts.loads) {
      load.stall_baseline *= factor;
      load.stall_optimized *= factor;
      load.stall_recent *= recent;
    }
  }
  total_samples_ *= factor;
  late_.decay(factor);
}

namespace {

bool is_select(const wasm::Module& module, uint32_t offset) {
  if (offset >= module.bytes.size()) return false;
  const auto opcode = static_cast<wasm::Opcode>(module.bytes[offset]);
  return opcode == wasm::Opcode::kSelect || opcode == wasm::Opcode::kSelectT;
}

// What a value of the instruction at `offset` can be specialized on; nothing: it cannot.
std::optional<ValueSite> value_site(const wasm::Module& module, uint32_t offset) {
  // A saved profile may name any offset.
  if (size_t{offset} + 1 >= module.bytes.size()) return std::nullopt;
  using wasm::Opcode;
  switch (static_cast<Opcode>(module.bytes[offset])) {
    case Opcode::kI32DivS:
    case Opcode::kI32DivU:
    case Opcode::kI32RemS:
    case Opcode::kI32RemU:
      return ValueSite::kDivisor;
    case Opcode::kI64DivS:
    case Opcode::kI64DivU:
    case Opcode::kI64RemS:
    case Opcode::kI64RemU:
      return ValueSite::kWideDivisor;
    case Opcode::kLoop:
      return ValueSite::kTripCount;
    default:
      break;
  }
  // A prefix, and a number in one byte unless an encoder made it longer than it needs to be.
  constexpr uint8_t kPrefix = 0xfc, kMemoryCopy = 10, kMemoryFill = 11;
  const uint8_t behind = static_cast<uint8_t>(module.bytes[offset + 1]);
  if (static_cast<uint8_t>(module.bytes[offset]) == kPrefix &&
      (behind == kMemoryCopy || behind == kMemoryFill))
    return ValueSite::kByteCount;
  return std::nullopt;
}

// By descending records.
std::vector<ValueEvidence::Value> usual_first(const ValueCounts& counts) {
  std::vector<ValueEvidence::Value> values;
  for (const ValueCounts::Candidate& candidate : counts.candidates)
    values.push_back({candidate.value, candidate.count});
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
    return std::tie(b.records, a.value) < std::tie(a.records, b.value);
  });
  return values;
}

// By descending records.
std::vector<CallEvidence::Target> targets_of(const ValueCounts& values) {
  std::vector<CallEvidence::Target> targets;
  for (const ValueCounts::Candidate& candidate : values.candidates)
    targets.push_back({static_cast<uint32_t>(candidate.value), candidate.count});
  std::sort(targets.begin(), targets.end(), [](const auto& a, const auto& b) {
    return std::tie(b.records, a.element) < std::tie(a.records, b.element);
  });
  return targets;
}

}  // namespace

namespace {

uint64_t bytes_of_bodies(const wasm::Module& module) {
  if (module.function_count() == module.imported_functions) return 0;
  const WasmOffset begin = module.body(FuncIndex(module.imported_functions)).begin;
  return module.body(FuncIndex(module.function_count() - 1)).end.value - begin.value;
}

}  // namespace

LoopEvidence Profile::loop_evidence(FuncIndex function, const FunctionCounts& counts, LoopIndex index) const {
  const wasm::LoopInfo& loop = module_->body(function).loops[index.value];
  LoopEvidence e;
  e.loop = index;
  e.offset = loop.offset;
  e.depth = loop.depth;
  e.parent = loop.parent ? static_cast<int32_t>(loop.parent->value) : -1;
  if (!loop.reachable) return e;
  // Those between its opcode and its end.
  const auto last = counts.samples_at.lower_bound(loop.end.value);
  for (auto at = counts.samples_at.lower_bound(loop.offset.value); at != last; ++at) e.samples += at->second;
  e.end = loop.end;
  e.inner_loops = loops_of(function).loops.inner_loops(index);
  if (const auto of = counts.loops.find(index.value); of != counts.loops.end()) {
    e.samples_baseline = of->second.samples_baseline;
    e.seconds_baseline = of->second.seconds_baseline;
    e.seconds_run_baseline = of->second.run_seconds_baseline;
  }
  if (const auto trips = counts.values.find(loop.offset.value); trips != counts.values.end())
    e.trip_records = trips->second.total;
  if (const auto of = counts.nests.find(index.value); of != counts.nests.end()) {
    const NestCounts& nest = of->second;
    e.has_nest = nest.under_way || nest.version != 0;
    e.early = e.has_nest && nest.early;
    e.compiles = nest.compiles;
    e.fruitless = nest.fruitless;
    e.compile_seconds = nest.compile_seconds;
    e.under_way = nest.under_way;
    e.only_for_callees = nest.under_way && nest.only_for_callees;
    e.samples_optimized = nest.samples_optimized;
    e.seconds_optimized = nest.seconds_optimized;
    e.seconds_run_optimized = nest.run_seconds_optimized;
    e.seconds_in_code = std::max(0.0, nest.run_seconds_optimized - nest.run_seconds_when_published);
    e.moved_share = nest.shift.share();
  }
  if (e.samples > 0 || e.has_nest) {
    const NestFacts& facts = nest_facts(function, index);
    e.code_bytes = facts.bytes;
    e.no_nest = facts.why_none;
  } else {
    e.code_bytes = loop.end.value + 1 - loop.offset.value;
  }
  return e;
}

static std::vector<BranchEvidence> seen_branches(const FunctionCounts& counts) {
  std::vector<BranchEvidence> seen;
  for (const auto& [offset, branch] : counts.branches) {
    if (!branch.seen()) continue;
    seen.push_back({.branch = WasmOffset(offset),
                    .sampled = branch.total,
                    .sampled_taken = branch.taken,
                    .outcomes = branch.bursts.outcomes,
                    .taken = branch.bursts.taken,
                    .judged = branch.bursts.judged,
                    .mispredicted = branch.bursts.mispredicted});
  }
  return seen;
}

static void keep_worst_predicted(std::vector<BranchEvidence>& branches) {
  std::stable_sort(branches.begin(), branches.end(), [](const BranchEvidence& a, const BranchEvidence& b) {
    return std::tie(a.mispredicted, a.outcomes, a.sampled) > std::tie(b.mispredicted, b.outcomes, b.sampled);
  });
  if (branches.size() > kMaxBranches) branches.resize(kMaxBranches);
}

void Profile::add_callees(FuncIndex function, const FunctionCounts& counts,
                          FunctionEvidence& evidence) const {
  constexpr double kLeastShareOfCaller = 0.002;  // of the callee's samples, in the loop that calls it
  const std::vector<wasm::LoopInfo>& loops = module_->body(function).loops;
  const auto samples_in = [&](LoopIndex loop) {
    double samples = 0;
    const auto last = counts.samples_at.lower_bound(loops[loop.value].end.value);
    for (auto at = counts.samples_at.lower_bound(loops[loop.value].offset.value); at != last; ++at)
      samples += at->second;
    return samples;
  };
  for (const auto& [callee, loop] : calls_in_loops(function).calls()) {
    // Calls are in order of their callees.
    if (!evidence.callees.empty() && evidence.callees.back().function == callee) {
      CalleeEvidence& known = evidence.callees.back();
      if (samples_in(loop) > samples_in(known.called_in)) known.called_in = loop;
      continue;
    }
    const double stalls = stalls_for_callers(callee);
    if (stalls <= 0) continue;
    const FunctionCounts& its = functions_.at(callee.value);
    evidence.callees.push_back({.function = callee,
                                .name = module_->function_name(callee),
                                .called_in = loop,
                                .samples = its.samples(),
                                .seconds = its.seconds_baseline + its.seconds_optimized,
                                .stall_samples = stalls,
                                .stall_samples_undecided = stalls_undecided(callee)});
  }
  // The stalls are those of all its callers. A loop that calls it for much of them has samples of its own.
  std::erase_if(evidence.callees, [&](const CalleeEvidence& callee) {
    return samples_in(callee.called_in) < kLeastShareOfCaller * callee.samples;
  });
  std::stable_sort(evidence.callees.begin(), evidence.callees.end(),
                   [](const auto& a, const auto& b) { return a.stall_samples > b.stall_samples; });
  if (evidence.callees.size() > kMaxCallees) evidence.callees.resize(kMaxCallees);
  for (CalleeEvidence& callee : evidence.callees) {
    const FunctionCounts& its = functions_.at(callee.function.value);
    callee.branches = seen_branches(its);
    keep_worst_predicted(callee.branches);
    for (const auto& [offset, load] : its.loads) {
      const double stalls = load.stall_baseline + load.stall_optimized;
      if (load.is_store || stalls <= 0 || !is_for_callers(callee.function, offset, its)) continue;
      // It may be in the function's own code as well, inlined there.
      const auto own = std::find_if(evidence.loads.begin(), evidence.loads.end(),
                                    [&](const LoadEvidence& l) { return l.load.value == offset; });
      LoadEvidence& e = own != evidence.loads.end() ? *own : evidence.loads.emplace_back();
      e.load = WasmOffset(offset);
      e.callee = callee.function;
      e.stall_samples += stalls;
      e.stall_samples_optimized +=
          stalls;  // whatever code it is: in that of the loop around, it would be this one
      e.addresses += load.addresses;
      e.address_span_bytes = std::max(e.address_span_bytes, load.span());
      e.distinct_pages = std::max<uint64_t>(e.distinct_pages, load.pages.size());
      e.in_loop = true;
      if (e.latency.timed == 0) e.latency = load.latency;
    }
  }
}

FunctionEvidence Profile::evidence(FuncIndex function) const {
  FunctionEvidence evidence;
  evidence.function = function;
  evidence.name = module_->function_name(function);
  const wasm::FunctionBody& body = module_->body(function);
  evidence.code_bytes = body.end.value - body.begin.value;
  evidence.total_samples = total_samples_;
  evidence.module_bytes = bytes_of_bodies(*module_);
  auto found = functions_.find(function.value);
  if (found == functions_.end()) return evidence;
  const FunctionCounts& counts = found->second;
  evidence.samples_baseline = counts.samples_baseline;
  evidence.samples_optimized = counts.samples_optimized;
  evidence.seconds_baseline = counts.seconds_baseline;
  evidence.seconds_optimized = counts.seconds_optimized;
  evidence.optimized = counts.optimized;
  evidence.early = counts.optimized && counts.early;
  evidence.optimize_count = counts.optimize_count;
  evidence.failed_compiles = counts.failed_compiles;
  evidence.compile_seconds = counts.compile_seconds;
  evidence.changes = counts.changes;
  evidence.samples_recent = counts.samples_recent;
  evidence.samples_stayed = counts.samples_stayed;
  evidence.seconds_stayed = counts.seconds_stayed;
  evidence.moved_share = counts.shift.share();
  evidence.seconds_run = counts.run_seconds();
  evidence.seconds_run_baseline = counts.run_seconds_baseline;
  evidence.samples_run_baseline = counts.run_samples_baseline;
  evidence.exit_loops = counts.exit_loops;
  evidence.entry_loops = counts.entry_loops;
  evidence.entered = counts.entered;
  evidence.loop_entries_only = counts.loop_entries_only;
  if (counts.entered != Entered::kUnknown) {
    evidence.seconds_watched = std::max(0.0, counts.seconds_baseline - counts.seconds_when_watched);
    evidence.all_seconds_watched = std::max(0.0, seconds_seen_ - counts.all_seconds_when_watched);
  }
  if (counts.samples_when_published && counts.seconds_when_published) {
    evidence.samples_left_behind = std::max(0.0, counts.samples_baseline - *counts.samples_when_published);
    evidence.seconds_left_behind = std::max(0.0, counts.seconds_baseline - *counts.seconds_when_published);
  }
  const bool calls_itself = calls_in_loops(function).calls_itself();
  for (const auto& [offset, load] : counts.loads) {
    LoadEvidence e;
    e.load = WasmOffset(offset);
    e.stall_samples = load.stall_baseline + load.stall_optimized;
    e.stall_samples_optimized = load.stall_optimized;
    e.addresses = load.addresses;
    e.address_span_bytes = load.span();
    e.distinct_pages = load.pages.size();
    e.in_loop = e.load < body.begin || e.load >= body.end ||
                std::any_of(body.loops.begin(), body.loops.end(), [&](const wasm::LoopInfo& loop) {
                  return loop.offset <= e.load && e.load < loop.end;
                });
    e.in_recursion = calls_itself;
    e.stall_samples_recent = load.stall_recent;
    if (rejections_of(counts.changes, e.load) > 0) {
      e.seconds_since_rejected = std::max(0.0, counts.run_seconds() - load.run_seconds_when_rejected);
      e.share_when_rejected = load.share_when_rejected;
      e.span_when_rejected = load.span_when_rejected;
    }
    e.latency = load.latency;
    e.is_store = load.is_store;
    e.rising_addresses = load.rising;
    evidence.loads.push_back(e);
  }
  add_callees(function, counts, evidence);
  std::stable_sort(
      evidence.loads.begin(), evidence.loads.end(),
      [](const LoadEvidence& a, const LoadEvidence& b) { return a.stall_samples > b.stall_samples; });
  if (evidence.loads.size() > kMaxLoads) evidence.loads.resize(kMaxLoads);

  evidence.branches = seen_branches(counts);
  for (const auto& [offset, values] : counts.values) {
    if (!is_select(*module_, offset)) continue;
    BranchEvidence e{.branch = WasmOffset(offset), .sampled = values.total, .chooses = true};
    for (const ValueCounts::Candidate& candidate : values.candidates)
      if (candidate.value != 0) e.sampled_taken += candidate.count;
    evidence.branches.push_back(e);
  }
  keep_worst_predicted(evidence.branches);

  std::set<uint32_t> sites;
  for (const auto& [offset, values] : counts.values) sites.insert(offset);
  for (const auto& [offset, values] : counts.unforeseen) sites.insert(offset);
  for (const uint32_t offset : sites) {
    if (offset >= module_->bytes.size()) continue;
    const auto opcode = static_cast<wasm::Opcode>(module_->bytes[offset]);
    if (opcode != wasm::Opcode::kCallIndirect && opcode != wasm::Opcode::kCallRef) continue;
    CallEvidence e{.call = WasmOffset(offset), .by_reference = opcode == wasm::Opcode::kCallRef};
    if (const auto values = counts.values.find(offset); values != counts.values.end()) {
      e.records = values->second.total;
      e.targets = targets_of(values->second);
    }
    if (const auto values = counts.unforeseen.find(offset); values != counts.unforeseen.end()) {
      e.unforeseen_records = values->second.total;
      e.unforeseen = targets_of(values->second);
    }
    evidence.calls.push_back(std::move(e));
  }
  evidence.seconds_since_published = std::max(
      0.0, counts.seconds_optimized - counts.seconds_in_nests - counts.optimized_seconds_when_published);
  std::stable_sort(evidence.calls.begin(), evidence.calls.end(),
                   [](const CallEvidence& a, const CallEvidence& b) {
                     return a.records + a.unforeseen_records > b.records + b.unforeseen_records;
                   });
  if (evidence.calls.size() > kMaxCalls) evidence.calls.resize(kMaxCalls);

  for (const auto& [offset, values] : counts.values) {
    const std::optional<ValueSite> site = value_site(*module_, offset);
    if (!site) continue;
    evidence.values.push_back(
        {.at = WasmOffset(offset), .site = *site, .records = values.total, .values = usual_first(values)});
  }
  std::stable_sort(evidence.values.begin(), evidence.values.end(),
                   [](const ValueEvidence& a, const ValueEvidence& b) { return a.records > b.records; });
  if (evidence.values.size() > kMaxValues) evidence.values.resize(kMaxValues);

  // From the innermost ones on: not all of them may be looked at (nest_facts).
  evidence.loops.resize(body.loops.size());
  for (size_t i = body.loops.size(); i-- > 0;)
    evidence.loops[i] = loop_evidence(function, counts, LoopIndex(static_cast<uint32_t>(i)));
  return evidence;
}

FunctionSamples Profile::run_samples(FuncIndex function) const {
  FunctionSamples all;
  all.function = function;
  all.name = module_->function_name(function);
  all.begin = module_->body(function).begin;
  const auto found = functions_.find(function.value);
  if (found == functions_.end()) return all;
  const FunctionCounts& counts = found->second;
  all.seconds_baseline = counts.run_seconds_baseline;
  all.seconds_optimized = counts.run_seconds_optimized;
  for (const auto& [offset, place] : counts.places) {
    all.samples += static_cast<double>(place.samples);
    all.places.push_back(
        {WasmOffset(offset), static_cast<double>(place.samples), static_cast<double>(place.stalls)});
  }
  keep_dearest(all.places);
  return all;
}

void Profile::seed(const FunctionEvidence& earlier) {
  FunctionCounts& counts = functions_[earlier.function.value];
  counts.compile_seconds = earlier.compile_seconds;
  const std::vector<wasm::LoopInfo>& loops = module_->body(earlier.function).loops;
  for (const LoopEvidence& loop : earlier.loops)
    if (loop.compile_seconds > 0 && loop.loop.value < loops.size() &&
        loops[loop.loop.value].offset == loop.offset)
      counts.nests[loop.loop.value].compile_seconds = loop.compile_seconds;
  counts.settle(seed_of(earlier.changes));
  for (const LoadEvidence& load : earlier.loads) {
    if (!counts.loads.contains(load.load.value) && load.latency.timed == 0) continue;
    LoadCounts& of_load = counts.loads[load.load.value];
    of_load.share_when_rejected = load.share_when_rejected;
    of_load.span_when_rejected = load.span_when_rejected;
    of_load.latency = load.latency;
    of_load.is_store = load.is_store;
  }
  for (const BranchEvidence& branch : earlier.branches) {
    if (!branch.chooses) {
      BranchCounts& of_branch = counts.branches[branch.branch.value];
      of_branch.taken = branch.sampled_taken;
      of_branch.total = branch.sampled;
      of_branch.bursts = {branch.outcomes, branch.taken, branch.judged, branch.mispredicted};
      continue;
    }
    ValueCounts& values = counts.values[branch.branch.value];
    values = {};
    values.total = branch.sampled;
    for (const auto& [value, count] :
         {std::pair<uint64_t, uint64_t>{1, branch.sampled_taken}, {0, branch.sampled - branch.sampled_taken}})
      if (count != 0) values.candidates.push_back({value, count});
  }
  for (const ValueEvidence& of : earlier.values) {
    ValueCounts& values = counts.values[of.at.value];
    values = {};
    values.total = of.records;
    for (const ValueEvidence::Value& value : of.values)
      if (values.candidates.size() < ValueCounts::kCandidates)
        values.candidates.push_back({value.value, value.records});
  }
  for (const CallEvidence& call : earlier.calls) {
    ValueCounts& values = counts.values[call.call.value];
    values = {};
    values.total = call.records;
    for (const CallEvidence::Target& target : call.targets)
      if (values.candidates.size() < ValueCounts::kCandidates)
        values.candidates.push_back({target.element, target.records});
  }
}

}  // namespace hindsight::feedback
