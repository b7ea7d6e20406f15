// CodeTally: how much generated code a module has, and the budgets of the stores in which it has instances. Code is the
// module's. Stores that use the module share it, and it counts in each of them in full, as if that one were alone.
//
// What a guest waits for (its first call of a function) must have room in the budget of its own store. In those of others
// it counts without being asked, so that no store's small limit ends another store's guest. What is made for speed
// (optimized versions, copies of them) must have room in all of them. It takes at most half of a limit: first calls are
// to find room later.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fork_gate.h"
#include "base/result.h"
#include "runtime/instance/store_budget.h"

namespace hindsight::rt {

class CodeTally : public std::enable_shared_from_this<CodeTally> {
 public:
  // `most`: the limit of stores that may still come, as far as it is known.
  explicit CodeTally(uint64_t most) : most_(most) {}

  // The module gets an instance in a store of this budget, which from now on holds its code. kResource: there is more
  // than it has room for.
  Status join(const std::shared_ptr<StoreBudget>& budget, const std::string& what);

  // Room for so many bytes, held until the charge goes. kResource: there is none, and nothing is taken. `what` needs it.
  using Charge = std::shared_ptr<const void>;
  Result<Charge> take_needed(const std::string& what, uint64_t bytes, const StoreBudget& payer);
  Result<Charge> take_for_speed(const std::string& what, uint64_t bytes);
  // Whether take_for_speed would find room now.
  Status room_for_speed(const std::string& what, uint64_t bytes);

  uint64_t bytes() const;
  // Budgets that it keeps in mind, some of which may be gone.
  size_t budget_count() const;

 private:
  struct Taken;
  static constexpr size_t kFewBudgets = 16;  // are not worth looking through for those that are gone
  std::vector<std::shared_ptr<StoreBudget>> budgets();   // under mutex_
  Status look(const std::string& what, uint64_t bytes);  // the same: at the module's own figures
  void give(uint64_t bytes, bool for_speed);

  const uint64_t most_;
  mutable ForkSafeMutex mutex_;  // protects what follows
  // Those that are gone go when others are looked for, or when they may be half of all.
  std::unordered_map<const StoreBudget*, std::weak_ptr<StoreBudget>> budgets_;
  size_t most_budgets_ = kFewBudgets;
  uint64_t bytes_ = 0, for_speed_ = 0;  // the second is a part of the first
};

}  // namespace hindsight::rt
