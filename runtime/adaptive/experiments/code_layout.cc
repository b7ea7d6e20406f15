#include "runtime/adaptive/experiments/code_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "jit/code/move_code.h"
#include "runtime/adaptive/experiments/call_graph.h"
#include "runtime/adaptive/experiments/huge_pages.h"
#include "runtime/adaptive/experiments/module_move.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr double kLeastGuestSeconds = 0.005;  // of which the guest must run, or counting goes on
constexpr size_t kMeters = 16;                // functions whose calls are the trial's unit of work
constexpr double kMostCallsASecond = 1e6;     // of each: more would cost what is to be measured
constexpr double kLeastCallsASecond = 1e5;    // of all: fewer would say little about a chunk

}  // namespace

CodeLayout::CodeLayout(CodeServices& services, feedback::Monitor& monitor,
                       const feedback::PolicyConfig& policy, Measurement& measurement, Hooks hooks, Pace pace)
    : services_(services),
      monitor_(monitor),
      policy_(policy),
      measurement_(measurement),
      hooks_(std::move(hooks)),
      pace_(pace) {}

// ---------------------------------------------------------------- monitor thread

void CodeLayout::round(const Round& round) {
  if (!policy_.changes[jit::ChangeKind::kSplitCold]) return;
  Move* move = nullptr;
  std::shared_ptr<ModuleCode> code;
  std::vector<ModuleCode::Exchange> stayed;
  bool placeable = false;
  {
    std::lock_guard lock(mutex_);
    if (!moves_.empty() && moves_.back().phase != Phase::kEnded) move = &moves_.back();
    if (move != nullptr) {
      code = move->code.lock();
      if (!code) return;  // forget() is on its way
      if (move->phase == Phase::kCounting) {
        end_counting(*move, *code);
        placeable = move->phase == Phase::kPlaceable;
      }
      if (move->phase == Phase::kComparing) {
        compare(*move, *code);
        if (move->phase == Phase::kEnded) stayed = std::move(move->pairs);
      }
    }
  }
  if (move == nullptr) {
    if (round.look) ask(round.modules);
    return;
  }
  flush();
  if (placeable && !hooks_.enqueue_place()) {
    {
      std::lock_guard lock(mutex_);
      end(*move, DecisionState::kFailed, "no thread could be created to place it");
    }
    flush();
  }
  for (const ModuleCode::Exchange& pair : stayed) hooks_.on_moved(code->module().get(), pair);
}

void CodeLayout::ask(const std::vector<std::shared_ptr<ModuleCode>>& modules) {
  std::optional<Measurement::Lease> lease = measurement_.try_begin(Disturbs::kPlaces);
  if (!lease) return;
  const double settled = hooks_.settled();
  for (const std::shared_ptr<ModuleCode>& code : modules) {
    std::vector<std::shared_ptr<jit::CodeVersion>> versions;
    feedback::LayoutEvidence evidence = evidence_of(*code, settled, versions);
    if (versions.empty()) continue;
    feedback::LayoutPlan plan = feedback::decide_layout(evidence, policy_);
    if (plan.move)
      return begin(code, std::move(plan), std::move(evidence), std::move(versions), std::move(*lease));
    if (plan.reason != last_reason_) say(LogLevel::kDebug, "policy", "no code-layout: " + plan.reason);
    last_reason_ = plan.reason;
  }
}

feedback::LayoutEvidence CodeLayout::evidence_of(
    const ModuleCode& code, double settled, std::vector<std::shared_ptr<jit::CodeVersion>>& versions) const {
  feedback::LayoutEvidence evidence;
  evidence.seconds_settled = settled;
  Placed placed{code.module().get(), {}, 0};
  {
    std::lock_guard lock(mutex_);
    for (const Placed& p : placed_)
      if (p.module == placed.module) placed = p;
  }
  evidence.layouts = placed.moves;
  for (auto& version : code.optimized_versions()) {
    if (version->entry == nullptr || jit::bytes_to_move(*version) == 0) continue;
    if (versions.size() == feedback::kMaxLayoutFunctions) break;
    evidence.functions.push_back(
        {version->function, version->code_size.value, 0, placed.versions.contains(version->id)});
    versions.push_back(std::move(version));
  }
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(placed.module);
    if (found == profiles.end()) return;
    evidence.samples = found->second->total_samples();
    evidence.seconds = found->second->seconds_seen();
    double of_late = 0, of_run = 0;
    for (feedback::LayoutEvidence::Function& f : evidence.functions) {
      const auto counts = found->second->functions().find(f.function.value);
      if (counts == found->second->functions().end()) continue;
      of_late += counts->second.samples_optimized;
      of_run += counts->second.run_samples_optimized;
      f.samples = counts->second.run_samples_optimized;
    }
    for (feedback::LayoutEvidence::Function& f : evidence.functions)
      f.samples *= of_run > 0 ? of_late / of_run : 0;
  });
  return evidence;
}

void CodeLayout::begin(const std::shared_ptr<ModuleCode>& code, feedback::LayoutPlan plan,
                       feedback::LayoutEvidence evidence,
                       std::vector<std::shared_ptr<jit::CodeVersion>> versions, Measurement::Lease lease) {
  say(LogLevel::kInfo, "policy", fmt::format("code-layout of {}: {}", code->module()->name, plan.reason));
  for (const std::string& line : feedback::describe_alternatives(plan.alternatives))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
  Move move;
  move.module = code->module().get();
  move.code = code;
  move.plan = std::move(plan);
  move.evidence = std::move(evidence);
  move.seconds = hooks_.now_seconds();
  move.begun = Clock::now();
  move.lease.emplace(std::move(lease));
  move.seconds_before = monitor_.guest_seconds();
  for (auto& version : versions) {
    if (!code->meter_calls(version->function)) continue;
    move.calls.push_back(code->metered_calls(version->function));
    move.versions.push_back(std::move(version));
  }
  std::lock_guard lock(mutex_);
  placed_of(move.module).moves += 1;
  moves_.push_back(std::move(move));
}

void CodeLayout::end_counting(Move& move, ModuleCode& code) {
  const auto waited = Clock::now() - move.begun;
  const bool ran = monitor_.guest_seconds() - move.seconds_before >= kLeastGuestSeconds;
  if (waited < pace_.counting || (!ran && waited < pace_.patience)) return;
  const double seconds = std::max(1e-3, monitor_.guest_seconds() - move.seconds_before);
  std::vector<std::pair<uint64_t, FuncIndex>> counted;
  for (size_t i = 0; i < move.versions.size(); ++i) {
    const FuncIndex function = move.versions[i]->function;
    code.stop_metering(function);
    move.calls[i] = code.metered_calls(function) - move.calls[i];
    if (move.calls[i] > 0) counted.emplace_back(move.calls[i], function);
  }
  // The most frequent of those that are not called all the time; and of these as many as it takes to count
  // anything.
  std::stable_sort(counted.begin(), counted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto frequent = std::partition_point(counted.begin(), counted.end(), [&](const auto& each) {
    return static_cast<double>(each.first) <= kMostCallsASecond * seconds;
  });
  double rate = 0;
  for (auto it = frequent; it != counted.begin() && move.meters.size() < kMeters;) {
    --it;
    move.meters.push_back(it->second);
    rate += static_cast<double>(it->first) / seconds;
  }
  for (auto it = frequent; it != counted.end() && rate < kLeastCallsASecond; ++it) {
    move.meters.push_back(it->second);
    rate += static_cast<double>(it->first) / seconds;
  }
  if (move.meters.empty()) return end(move, DecisionState::kFailed, "no counted function was called");
  move.phase = Phase::kPlaceable;
  move.state = DecisionState::kPlacing;
}

void CodeLayout::compare(Move& move, ModuleCode& code) {
  const auto now = Clock::now();
  if (now - move.begun < pace_.chunk) return;
  const uint64_t calls = metered(move, code);
  const double seconds = monitor_.guest_seconds();
  if (move.seconds_before >= 0) move.trial.chunk(calls - move.calls_before, seconds - move.seconds_before);
  move.begun = now;
  if (move.trial.state() != ExchangeTrial::State::kComparing) return settle(move, code);
  show(move, code, move.trial.other());
  // Read again: the exchange itself is nobody's.
  move.calls_before = metered(move, code);
  move.seconds_before = monitor_.guest_seconds();
}

// Makes one of the two placements current.
void CodeLayout::show(Move& move, ModuleCode& code, bool moved) {
  if (move.moved == moved) return;
  std::vector<ModuleCode::Exchange> wanted;
  for (const ModuleCode::Exchange& pair : move.pairs)
    wanted.push_back(moved ? pair : ModuleCode::Exchange{pair.to, pair.from});
  const std::vector<bool> done = code.exchange(wanted);
  std::vector<ModuleCode::Exchange> left;
  for (size_t i = 0; i < done.size(); ++i) {
    if (done[i])
      left.push_back(move.pairs[i]);
    else  // compiled anew: what was current has been retired by that
      code.retire_copy(wanted[i].to);
  }
  move.pairs = std::move(left);
  move.moved = moved;
}

void CodeLayout::settle(Move& move, ModuleCode& code) {
  for (const FuncIndex function : move.meters) code.stop_metering(function);
  const bool kept = move.trial.state() == ExchangeTrial::State::kKept;
  show(move, code, kept);
  Placed& placed = placed_of(move.module);
  for (const ModuleCode::Exchange& pair : move.pairs) {
    code.retire_copy(move.moved ? pair.from : pair.to);
    placed.versions.insert(move.moved ? pair.to->id : pair.from->id);
  }
  move.measured_gain = move.trial.gain();
  end(move, kept ? DecisionState::kKept : DecisionState::kRolledBack,
      fmt::format("{}; {}", move.outcome, move.trial.words()));
}

void CodeLayout::end(Move& move, DecisionState state, std::string outcome) {
  move.phase = Phase::kEnded;
  move.lease.reset();
  move.state = state;
  move.outcome = std::move(outcome);
  move.versions.clear();
  if (!move.moved) move.pairs.clear();
  lines_.push_back(fmt::format("code-layout: {}, {}", to_string(move.state), move.outcome));
}

// Says what was to be said, after the lock is released.
void CodeLayout::flush() {
  std::vector<std::string> lines;
  {
    std::lock_guard lock(mutex_);
    lines.swap(lines_);
  }
  for (const std::string& line : lines) say(LogLevel::kInfo, "trial", line);
}

uint64_t CodeLayout::metered(const Move& move, const ModuleCode& code) const {
  uint64_t sum = 0;
  for (const FuncIndex function : move.meters) sum += code.metered_calls(function);
  return sum;
}

CodeLayout::Placed& CodeLayout::placed_of(const wasm::Module* module) {
  for (Placed& placed : placed_)
    if (placed.module == module) return placed;
  return placed_.emplace_back(Placed{module, {}, 0});
}

// ---------------------------------------------------------------- compile threads

void CodeLayout::place(const std::atomic<bool>& stop) {
  std::shared_ptr<ModuleCode> code;  // let go of after the lock: its end is forget()
  Move* move = nullptr;
  std::vector<std::shared_ptr<jit::CodeVersion>> versions;
  std::vector<uint64_t> calls;
  {
    std::lock_guard lock(mutex_);
    if (moves_.empty() || moves_.back().phase != Phase::kPlaceable) return;
    code = moves_.back().code.lock();
    if (!code) return;
    move = &moves_.back();
    move->phase = Phase::kPlacing;
    for (size_t i = 0; i < move->versions.size(); ++i) {
      if (move->calls[i] == 0) continue;
      versions.push_back(move->versions[i]);
      calls.push_back(move->calls[i]);
    }
  }
  const auto begin = Clock::now();
  const auto fail = [&](const std::string& why, DecisionState state = DecisionState::kFailed) {
    {
      std::lock_guard lock(mutex_);
      end(*move, state, why);
    }
    flush();
  };
  auto optimizer = services_.optimizer();
  if (!optimizer) return fail(optimizer.error().describe());
  jit::CallGraph graph;
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(code->module().get());
    graph = make_call_graph(*code->module(), found != profiles.end() ? found->second.get() : nullptr,
                            versions, calls);
  });
  const std::vector<uint32_t> order = (*optimizer)->order_by_calls(graph);
  std::vector<size_t> sizes;
  size_t bytes = 0;
  for (const uint32_t i : order) {
    sizes.push_back(jit::bytes_to_move(*versions[i]));
    bytes += sizes.back();
  }
  if (stop.load(std::memory_order_relaxed)) return fail("the engine ended", DecisionState::kAbandoned);
  auto places = services_.arena().allocate_together(sizes, jit::kHugeCodePage);
  if (!places) return fail(places.error().describe());
  std::vector<ModuleCode::Exchange> pairs;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& from = versions[order[i]];
    auto made = jit::copy_version(from, std::move((*places)[i]));
    if (!made) continue;  // stays where it is
    std::shared_ptr<jit::CodeVersion> copy = code->hold_copy(std::move(*made));
    if (copy == nullptr) continue;  // the same
    code->register_copy(copy);
    pairs.push_back({from, std::move(copy)});
  }
  if (pairs.empty()) return fail("no code could be copied");
  const auto first = reinterpret_cast<uint64_t>(pairs.front().to->begin());
  const uint64_t end = (first + bytes + jit::kHugeCodePage - 1) & ~uint64_t{jit::kHugeCodePage - 1};
  const HugePageResult huge = move_to_huge_pages(first, end, stop);

  std::lock_guard lock(mutex_);
  move->outcome = fmt::format(
      "placed {} functions of {} KiB by {} known calls between them in {:.1f} ms; {} MiB on huge pages",
      pairs.size(), bytes >> 10, graph.calls.size(),
      1e3 * std::chrono::duration<double>(Clock::now() - begin).count(), huge.moved_bytes >> 20);
  if (huge.refused_bytes != 0) move->outcome += fmt::format(" ({})", huge.first_refusal);
  for (const FuncIndex function : move->meters) (void)code->meter_calls(function);
  move->pairs = std::move(pairs);
  move->phase = Phase::kComparing;
  move->state = DecisionState::kTrial;
  move->seconds_before = -1;
  move->begun = Clock::now();
}

// ---------------------------------------------------------------- any thread

void CodeLayout::forget(const ModuleCode& code) {
  std::lock_guard lock(mutex_);
  std::erase_if(placed_, [&](const Placed& placed) { return placed.module == code.module().get(); });
  for (Move& move : moves_) {
    if (move.module != code.module().get() || move.phase == Phase::kEnded) continue;
    // The current ones go with the module; of the others nobody else knows.
    for (const ModuleCode::Exchange& pair : move.pairs)
      services_.retired().add(move.moved ? pair.from : pair.to);
    move.pairs.clear();
    move.phase = Phase::kEnded;
    move.lease.reset();
    move.versions.clear();
    move.state = DecisionState::kAbandoned;
    move.outcome = "the module is gone";
  }
}

bool CodeLayout::busy() const {
  std::lock_guard lock(mutex_);
  return !moves_.empty() && moves_.back().phase != Phase::kEnded;
}

void CodeLayout::report(DecisionSink& decisions) const {
  std::lock_guard lock(mutex_);
  size_t number = 0;
  for (const Move& move : moves_)
    decisions.push_back(report_of_move(move, ++number, "code-layout", "code of optimized functions"));
}

size_t CodeLayout::forget_decisions(const wasm::Module* module) {
  std::lock_guard lock(mutex_);
  return std::erase_if(
      moves_, [&](const Move& move) { return move.module == module && move.phase == Phase::kEnded; });
}

void CodeLayout::save(const wasm::Module* module, feedback::ModuleProfile& profile) const {
  const std::lock_guard lock(mutex_);
  for (const Move& move : moves_) {
    if (move.module != module) continue;
    feedback::LayoutEpisode episode = feedback::make_layout_episode(move.evidence, move.plan);
    put_outcome(move, profile.layout_episodes.size() + 1, episode);
    profile.layout_episodes.push_back(std::move(episode));
  }
}

}  // namespace hindsight::rt
