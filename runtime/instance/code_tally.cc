#include "runtime/instance/code_tally.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hindsight::rt {
namespace {

std::unexpected<Error> no_room_for_speed(const std::string& what, uint64_t bytes, uint64_t limit) {
  return make_error(ErrorKind::kResource, what + " would take " + std::to_string(bytes) +
                                              " bytes of code more; the limit code-bytes allows " +
                                              std::to_string(limit) + ", at most half of it for speed");
}

}  // namespace

// What a charge holds.
struct CodeTally::Taken {
  Taken(std::shared_ptr<CodeTally> t, uint64_t b, bool s) : tally(std::move(t)), bytes(b), for_speed(s) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (taken) tally->give(bytes, for_speed);
  }
  const std::shared_ptr<CodeTally> tally;
  const uint64_t bytes;
  const bool for_speed;
  bool taken = false;
};

std::vector<std::shared_ptr<StoreBudget>> CodeTally::budgets() {
  std::vector<std::shared_ptr<StoreBudget>> there;
  there.reserve(budgets_.size());
  std::erase_if(budgets_, [&](const auto& known) {
    std::shared_ptr<StoreBudget> budget = known.second.lock();
    if (budget == nullptr) return true;
    there.push_back(std::move(budget));
    return false;
  });
  return there;
}

Status CodeTally::join(const std::shared_ptr<StoreBudget>& budget, const std::string& what) {
  const std::lock_guard lock(mutex_);
  // One that is there is this one, and not one that had its address before.
  if (const auto known = budgets_.find(budget.get()); known != budgets_.end() && !known->second.expired())
    return {};
  if (budgets_.size() >= most_budgets_) {
    std::erase_if(budgets_, [](const auto& known) { return known.second.expired(); });
    most_budgets_ = std::max(kFewBudgets, 2 * budgets_.size());
  }
  budgets_.insert_or_assign(budget.get(), budget);
  if (budget->take_code(bytes_)) {
    budget->add_code_for_speed(for_speed_);
    return {};
  }
  budgets_.erase(budget.get());
  return StoreBudget::refusal(what, bytes_, budget->code_bytes(), "bytes of code",
                              budget->limits().code_bytes, "code-bytes");
}

Result<CodeTally::Charge> CodeTally::take_needed(const std::string& what, uint64_t bytes,
                                                 const StoreBudget& payer) {
  auto charge = std::make_shared<Taken>(shared_from_this(), bytes, false);
  const std::lock_guard lock(mutex_);
  const auto there = budgets();
  for (const auto& budget : there)
    if (budget.get() == &payer && !budget->take_code(bytes))
      return StoreBudget::refusal(what, bytes, budget->code_bytes(), "bytes of code",
                                  budget->limits().code_bytes, "code-bytes");
  for (const auto& budget : there)
    if (budget.get() != &payer) budget->add_code(bytes);
  bytes_ += bytes;
  charge->taken = true;
  return charge;
}

Status CodeTally::look(const std::string& what, uint64_t bytes) {
  // As a store that comes later would.
  const uint64_t half = most_ / 2;
  if (for_speed_ > half || bytes > half - for_speed_) return no_room_for_speed(what, bytes, most_);
  return {};
}

Result<CodeTally::Charge> CodeTally::take_for_speed(const std::string& what, uint64_t bytes) {
  auto charge = std::make_shared<Taken>(shared_from_this(), bytes, true);
  const std::lock_guard lock(mutex_);
  HINDSIGHT_TRY(look(what, bytes));
  const auto there = budgets();
  for (size_t i = 0; i < there.size(); i++) {
    if (there[i]->take_code_for_speed(bytes)) continue;
    const uint64_t limit = there[i]->limits().code_bytes;
    while (i-- > 0) there[i]->give_code_for_speed(bytes);
    return no_room_for_speed(what, bytes, limit);
  }
  bytes_ += bytes;
  for_speed_ += bytes;
  charge->taken = true;
  return charge;
}

Status CodeTally::room_for_speed(const std::string& what, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  HINDSIGHT_TRY(look(what, bytes));
  for (const auto& budget : budgets())
    if (!budget->has_room_for_speed(bytes))
      return no_room_for_speed(what, bytes, budget->limits().code_bytes);
  return {};
}

void CodeTally::give(uint64_t bytes, bool for_speed) {
  const std::lock_guard lock(mutex_);
  // Nothing is made here: code goes where there may be no memory.
  for (const auto& [address, weak] : budgets_) {
    if (const std::shared_ptr<StoreBudget> budget = weak.lock()) {
      if (for_speed)
        budget->give_code_for_speed(bytes);
      else
        budget->give_code(bytes);
    }
  }
  bytes_ -= bytes;
  if (for_speed) for_speed_ -= bytes;
}

size_t CodeTally::budget_count() const {
  const std::lock_guard lock(mutex_);
  return budgets_.size();
}

uint64_t CodeTally::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace hindsight::rt
