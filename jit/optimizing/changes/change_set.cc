#include "jit/optimizing/changes/change_set.h"

#include <llvm/IR/InstIterator.h>

#include <algorithm>

#include "jit/code/cell_memory.h"
#include "jit/wasm/instruction_kinds.h"

namespace hindsight::jit::optimizing {
namespace {

constexpr Claim claim_of(ChangeKind kind) {
  return traits_of(kind).claim;
}

// Whether it is about how often a loop iterates, and not about an operator in it.
bool is_of_trips(const IrModule& ir, const Slot& slot) {
  return slot.kind() == ChangeKind::kValue && wasm::is_loop(ir.wasm, slot.at());
}

// Which changes share the cell of a loop: those that are together in its two versions do.
ChangeKind cell_kind(const IrModule& ir, const Slot& slot) {
  // Changed before LLVM's passes over loops: it is no place of the others' any more.
  if (claim_of(slot.kind()) != Claim::kTogether || is_of_trips(ir, slot)) return slot.kind();
  return std::ranges::find(kChanges, Claim::kTogether, &ChangeTraits::claim)->kind;
}

bool is_around(const Slot& slot, const LoopPlace& place) {
  return slot.answer.is_applied() && std::ranges::find(place.around, slot.answer.loop) != place.around.end();
}

}  // namespace

uint32_t Slot::setting() const {
  const Knob& knob = traits_of(kind()).knob;
  return std::clamp(request.setting == 0 ? knob.first : request.setting, knob.least, knob.most);
}

void Slot::refuse(std::string_view why) {
  if (!answer.is_applied() && !answer.waits()) answer.why = why;
}

void Slot::wait(std::string_view why) {
  if (answer.is_applied()) return;
  answer.state = Answer::State::kWaits;
  answer.why = why;
}

void Slot::apply(const LoopClaim& claim, std::string why) {
  if (answer.is_applied()) return;
  answer.state = Answer::State::kApplied;
  answer.loop = claim.loop();
  answer.why = std::move(why);
}

bool Slot::is_elsewhere(const LoopClaim& claim) const {
  return answer.is_applied() && answer.loop != claim.loop();
}

ChangeSet::ChangeSet(IrModule& ir_module) : ir(ir_module) {
  std::set<WasmOffset> formed;
  for (const Request& request : ir.request.changes) {
    const Site site = request.site;
    if (is_of_version(site.kind)) continue;
    // A branch can have one form.
    if (is_of_branch(site.kind) && !formed.insert(site.at).second) continue;
    slots_.push_back(
        {.request = request, .answer = {.site = site, .why = std::string(traits_of(site.kind).absent)}});
  }
  std::ranges::stable_sort(slots_, [](const Slot& a, const Slot& b) {
    return a.kind() != b.kind() ? a.kind() < b.kind() : a.request.weight > b.request.weight;
  });
  std::set<Site> seen;
  std::erase_if(slots_, [&](const Slot& slot) { return !seen.insert(slot.request.site).second; });
}

std::span<Slot> ChangeSet::of(ChangeKind kind) {
  const auto found = std::ranges::equal_range(slots_, kind, {}, &Slot::kind);
  return {found.begin(), found.end()};
}

std::span<const Slot> ChangeSet::of(ChangeKind kind) const {
  const auto found = std::ranges::equal_range(slots_, kind, {}, &Slot::kind);
  return {found.begin(), found.end()};
}

bool ChangeSet::is_known(Site site) const {
  const std::span<const Slot> its = of(site.kind);
  return std::ranges::find(its, site.at, &Slot::at) != its.end() ||
         std::ranges::find(followers_, site, &Answer::site) != followers_.end();
}

std::expected<LoopClaim, std::string> ChangeSet::claim(const Slot& slot, const LoopPlace& place) {
  const Claim its = claim_of(slot.kind());
  if (its == Claim::kBeside && slot.answer.waits()) return std::unexpected(slot.answer.why);
  if (is_of_trips(ir, slot)) {
    const bool loads = std::ranges::any_of(slots_, [&](const Slot& other) {
      return is_of_load(other.kind()) && place.loads.contains(other.at());
    });
    if (loads) return std::unexpected("the loop has loads to prefetch instead");
    return LoopClaim(place.loop);
  }
  for (const Slot& other : slots_) {
    if (its == Claim::kBeside || !other.answer.is_applied() || other.kind() == slot.kind()) continue;
    const ChangeTraits& traits = traits_of(other.kind());
    if (traits.claim == Claim::kFirst && is_around(other, place))
      return std::unexpected(std::string(traits.instead));
    if (its == Claim::kLast && other.answer.loop == place.loop)
      return std::unexpected(std::string(traits.instead));
  }
  if (its == Claim::kFirst)
    for (Slot& other : slots_)
      if (claim_of(other.kind()) == Claim::kBeside && place.loads.contains(other.at()))
        other.wait(traits_of(slot.kind()).instead);
  return LoopClaim(place.loop);
}

uint32_t ChangeSet::cell_of(const LoopClaim& claim, Slot& slot) {
  const ChangeKind kind = cell_kind(ir, slot);
  const auto [found, is_new] =
      cell_of_loop_.emplace(std::pair(kind, claim.loop().value), static_cast<uint32_t>(cells.size()));
  if (is_new) {
    cells.push_back(kind == ChangeKind::kJumpPointers ? make_loop_cell_with_history() : make_loop_cell());
    LoopCell& cell = *cells.back();
    cell.countdown = static_cast<int32_t>(cell.strip_length);
    cell.enabled = !is_tuned(kind) || slot.request.enabled ? 1 : 0;
    if (is_tuned(kind)) cell.distance = slot.setting();
    cell.site = static_cast<uint32_t>(&slot - slots_.data());
  }
  return slot.answer.cell = found->second;
}

void ChangeSet::follow(Slot& slot, const LoopClaim& claim, std::string_view why) {
  slot.answer.state = Answer::State::kFollows;
  slot.answer.loop = claim.loop();
  slot.answer.why = why;
  cell_of(claim, slot);
}

void ChangeSet::add_follower(Site site, const LoopClaim& claim, uint32_t cell, std::string_view why) {
  Answer answer{.site = site, .state = Answer::State::kFollows, .loop = claim.loop(), .cell = cell};
  answer.why = why;
  followers_.push_back(std::move(answer));
}

std::optional<uint32_t> ChangeSet::timed_slot(Slot& slot) {
  Answer& its = slot.answer;
  if (its.timed) return its.timed;
  const auto taken = std::ranges::count_if(
      slots_, [&](const Slot& other) { return other.answer.timed && other.answer.cell == its.cell; });
  if (taken < static_cast<ptrdiff_t>(kMostTimedLoads)) its.timed = static_cast<uint32_t>(taken);
  return its.timed;
}

std::vector<Answer> ChangeSet::answers() const {
  std::vector<Answer> answers;
  for (const Slot& slot : slots_) answers.push_back(slot.answer);
  answers.insert(answers.end(), followers_.begin(), followers_.end());
  return answers;
}

std::vector<llvm::LoadInst*> loads_of(const IrModule& ir, llvm::Function& function, WasmOffset offset) {
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (!load || ir.is_of(*load, IrModule::World::kRuntime)) continue;
    const llvm::DILocation* const position = ir.position_of(*load);
    if (position && position->getLine() == offset.value) loads.push_back(load);
  }
  return loads;
}

}  // namespace hindsight::jit::optimizing
