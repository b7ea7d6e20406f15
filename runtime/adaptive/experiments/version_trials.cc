#include "runtime/adaptive/experiments/version_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hindsight::rt {

using feedback::ChangeState;

// ---------------------------------------------------------------- monitor thread

void VersionTrials::begin(Subject subject) {
  const std::shared_ptr<ModuleCode> code = subject.code.lock();
  if (!code) return;
  const jit::CodeVersion& with = *subject.with;
  ExchangeTrial::Rule rule = pace_.rule;
  if (with.nest) rule.unit = "iterations";
  Trial trial{.subject = std::move(subject), .compared = ExchangeTrial(rule)};
  const bool metered = with.nest ? with.work != nullptr : code->meter_calls(with.function);
  trial.begun = read(trial, *code);
  trial.chunk.begin(trial.begun);
  if (!metered) {
    hooks_.on_ended(
        {.subject = trial.subject, .words = "cannot be measured: what it does cannot be counted"});
    return;
  }
  const std::lock_guard lock(mutex_);
  trial_.emplace(std::move(trial));
}

void VersionTrials::round() {
  // Let go of after the lock is released: its end is forget().
  std::shared_ptr<ModuleCode> code;
  std::optional<Subject> wanted;
  std::optional<Ending> ending;
  {
    const std::lock_guard lock(mutex_);
    if (!trial_) return;
    code = trial_->subject.code.lock();
    if (!code) return;  // forget() is on its way
    if (trial_->phase == Phase::kCounting) {
      count(*trial_, *code);
      if (trial_->phase == Phase::kCompiling) wanted = trial_->subject;
    } else if (trial_->phase == Phase::kComparing) {
      compare(*trial_, *code);
    }
    if (trial_->ended) {
      ending = std::move(trial_->ending);
      trial_.reset();
    }
  }
  // The next round tells of it.
  if (wanted && !hooks_.compile(*wanted)) offer(nullptr, "no thread could be created to compile it");
  if (ending) hooks_.on_ended(*ending);
}

void VersionTrials::count(Trial& trial, ModuleCode& code) {
  const CallChunk::Reading now = read(trial, code);
  const double waited = now.seconds - trial.begun.seconds, ran = now.cpu_seconds - trial.begun.cpu_seconds;
  const uint64_t calls = now.calls - trial.begun.calls;
  const bool nest = trial.subject.with->nest.has_value();
  const bool enough = calls >= pace_.chunk.least_calls && ran > 0;
  if (waited < pace_.counting_seconds) return;
  if (!enough && ran < pace_.most_counting_seconds && waited < pace_.most_seconds) return;
  if (!enough) {
    return end(trial, code, ChangeState::kNone,
               fmt::format("cannot be measured: {} {} in {:.0f} ms are too few", calls,
                           nest ? "iterations" : "calls", 1e3 * ran));
  }
  const double rate = static_cast<double>(calls) / ran;
  if (!nest && rate > kMostVersionCallsASecond) {
    return end(trial, code, ChangeState::kNone,
               fmt::format("cannot be measured: counting {:.0f} million calls a second would cost too much",
                           1e-6 * rate));
  }
  trial.phase = Phase::kCompiling;
}

void VersionTrials::compare(Trial& trial, ModuleCode& code) {
  const CallChunk::Reading now = read(trial, code);
  if (now.seconds - trial.begun.seconds >= pace_.most_seconds)
    return end(trial, code, ChangeState::kNone,
               "cannot be measured: too few calls, or trials of loops all the time");
  // A loop's trial is not disturbed by an exchange in the middle of it.
  if (hooks_.disturbed()) return trial.chunk.begin(now);
  CallChunk::Chunk chunk;
  CallChunk::Pace pace = pace_.chunk;
  if (trial.subject.with->nest) pace.least_seconds = std::min(pace.least_seconds, pace_.nest_chunk_seconds);
  pace.least_cpu_seconds = pace_.rule.least_seconds;  // else it does not count
  if (!trial.chunk.look(now, pace, chunk)) return;
  // More calls on one side rather than fewer on the other: a chunk must not become too short to count by it.
  const double favour = trial.shown ? 1 / pace_.bias : pace_.bias;
  if (favour > 1) chunk.calls = static_cast<uint64_t>(favour * static_cast<double>(chunk.calls));
  trial.compared.chunk(chunk.calls, chunk.cpu_seconds);
  if (trial.compared.state() != ExchangeTrial::State::kComparing) {
    const bool lost =
        trial.compared.state() == ExchangeTrial::State::kKept;  // the version without it is kept
    const ChangeState outcome = lost                        ? ChangeState::kRolledBack
                                : trial.compared.measured() ? ChangeState::kKept
                                                            : ChangeState::kNone;
    return end(trial, code, outcome,
               (trial.compared.measured() ? "without it: " : "") + trial.compared.words());
  }
  if (!show(trial, code, trial.compared.other()))
    return end(trial, code, ChangeState::kNone, "the function was compiled again meanwhile");
  // Read again: the exchange itself is nobody's.
  trial.chunk.begin(read(trial, code));
}

bool VersionTrials::show(Trial& trial, ModuleCode& code, bool without) {
  if (trial.shown == without) return true;
  const ModuleCode::Exchange exchange = without ? ModuleCode::Exchange{trial.subject.with, trial.without}
                                                : ModuleCode::Exchange{trial.without, trial.subject.with};
  const double seconds = read(trial, code).cpu_seconds;
  if (trial.shown) trial.seconds_in_it += seconds - trial.seconds_shown;
  trial.seconds_shown = seconds;
  if (!code.exchange({&exchange, 1}).front()) {
    // What was current has been retired by whoever replaced it.
    code.retire_copy(exchange.to);
    trial.without = nullptr;
    trial.shown = false;
    return false;
  }
  trial.shown = without;
  return true;
}

void VersionTrials::end(Trial& trial, ModuleCode& code, ChangeState outcome, std::string words) {
  if (!trial.subject.with->nest) code.stop_metering(trial.subject.with->function);
  trial.ended = true;
  trial.ending = {.subject = trial.subject, .words = std::move(words)};
  if (trial.without == nullptr) return;
  const std::shared_ptr<jit::CodeVersion> without = trial.without;
  const bool there = show(trial, code, outcome == ChangeState::kRolledBack);
  const double slower = outcome == ChangeState::kNone ? 1 : std::clamp(-trial.compared.gain(), 0.0, 1.0);
  seconds_lost_ += slower * trial.seconds_in_it;
  if (!there) {
    trial.ending.words = "the function was compiled again meanwhile";
    return;
  }
  trial.ending.left = trial.shown ? trial.subject.with : without;
  trial.ending.without = without;
  trial.ending.outcome = outcome;
  if (outcome != ChangeState::kNone) trial.ending.gain = 1 / (1 + trial.compared.gain()) - 1;
}

// What both count is the same.
bool VersionTrials::is_alike(const jit::CodeVersion& with, const jit::CodeVersion& without) {
  if (!with.nest) return true;
  return without.work != nullptr;
}

// ---------------------------------------------------------------- compile threads

void VersionTrials::offer(std::shared_ptr<jit::CodeVersion> without, const std::string& why_not) {
  std::shared_ptr<ModuleCode> code;  // let go of after the lock is released
  const std::lock_guard lock(mutex_);
  if (!trial_ || trial_->phase != Phase::kCompiling || trial_->ended) return;
  code = trial_->subject.code.lock();
  if (!code) return;
  // The next round tells of it.
  if (without == nullptr) return end(*trial_, *code, ChangeState::kNone, "cannot be measured: " + why_not);
  begin_with(std::move(without), *code, /*registered=*/false);
}

void VersionTrials::offer_again(std::shared_ptr<jit::CodeVersion> without) {
  std::shared_ptr<ModuleCode> code;  // let go of after the lock is released
  const std::lock_guard lock(mutex_);
  if (trial_ && trial_->phase == Phase::kCompiling && !trial_->ended) code = trial_->subject.code.lock();
  // Threads may still be in it.
  if (code == nullptr || !begin_with(without, *code, /*registered=*/true))
    services_.retired().add(std::move(without));
}

bool VersionTrials::begin_with(std::shared_ptr<jit::CodeVersion> without, ModuleCode& code, bool registered) {
  if (!is_alike(*trial_->subject.with, *without)) {
    end(*trial_, code, ChangeState::kNone,
        "cannot be measured: only one of the two can be left in its loop, and counts its iterations");
    return false;
  }
  if (!registered) code.register_copy(without);
  trial_->without = std::move(without);
  trial_->phase = Phase::kComparing;
  trial_->begun = read(*trial_, code);
  trial_->chunk.begin(trial_->begun);
  return true;
}

// ---------------------------------------------------------------- any thread

void VersionTrials::forget(const ModuleCode& code) {
  const std::lock_guard lock(mutex_);
  if (!trial_ || trial_->subject.module != code.module().get() || !trial_->subject.code.expired()) return;
  // The current one goes with the module; of the other nobody else knows.
  if (trial_->without != nullptr)
    services_.retired().add(trial_->shown ? trial_->subject.with : trial_->without);
  trial_.reset();
}

bool VersionTrials::busy() const {
  const std::lock_guard lock(mutex_);
  return trial_.has_value();
}

std::shared_ptr<jit::CodeVersion> VersionTrials::subject(const wasm::Module* module,
                                                         FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  if (!trial_ || trial_->subject.module != module || trial_->subject.with->function != function ||
      trial_->subject.with->nest)
    return nullptr;
  return trial_->subject.with;
}

double VersionTrials::seconds_lost() const {
  const std::lock_guard lock(mutex_);
  return seconds_lost_;
}

}  // namespace hindsight::rt
