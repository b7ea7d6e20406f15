// StoreBudget: what the guests of a store hold, against its limits. The stores of threads that a guest spawns have the
// budget of the store that spawned them. A shared memory keeps the one that it was made under.
//
// Threads: any. Each figure is a sum of its own that publishes nothing else: relaxed is enough. A figure is raised by
// compare-and-exchange, so that threads together never take more than the limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "base/result.h"
#include "base/store_limits.h"

namespace hindsight::wasm {
class Module;
}

namespace hindsight::rt {

class StoreBudget {
 public:
  explicit StoreBudget(const StoreLimits& limits = {}) : limits_(limits) {}
  StoreBudget(const StoreBudget&) = delete;
  StoreBudget& operator=(const StoreBudget&) = delete;

  const StoreLimits& limits() const { return limits_; }

  // False: nothing is taken.
  bool take_memory(uint64_t bytes) { return take(memory_bytes_, bytes, limits_.memory_bytes); }
  void give_memory(uint64_t bytes) { give(memory_bytes_, bytes); }
  bool take_table(uint64_t bytes) { return take(table_bytes_, bytes, limits_.table_bytes); }
  void give_table(uint64_t bytes) { give(table_bytes_, bytes); }
  // Takes the types of a module that gets an instance: counted when it is the first. The budget keeps the module. Error:
  // kResource.
  Status take_types(const std::shared_ptr<const wasm::Module>& module);

  // Code of the modules that have instances (code_tally.h). What is for speed is a part of all code, and at most half of
  // the limit.
  bool take_code(uint64_t bytes) { return take(code_bytes_, bytes, limits_.code_bytes); }
  bool take_code_for_speed(uint64_t bytes) {
    if (!take(speed_bytes_, bytes, limits_.code_bytes / 2)) return false;
    if (take_code(bytes)) return true;
    give(speed_bytes_, bytes);
    return false;
  }
  bool has_room_for_speed(uint64_t bytes) const {
    const auto fits = [bytes](uint64_t held, uint64_t limit) {
      return held <= limit && bytes <= limit - held;
    };
    return fits(code_bytes(), limits_.code_bytes) &&
           fits(speed_bytes_.load(std::memory_order_relaxed), limits_.code_bytes / 2);
  }
  // Without being asked, perhaps beyond the limit.
  void add_code(uint64_t bytes) { code_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void add_code_for_speed(uint64_t bytes) {  // which has been taken as code
    speed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void give_code(uint64_t bytes) { give(code_bytes_, bytes); }
  void give_code_for_speed(uint64_t bytes) {
    give(speed_bytes_, bytes);
    give(code_bytes_, bytes);
  }

  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }
  uint64_t table_bytes() const { return table_bytes_.load(std::memory_order_relaxed); }

  uint64_t code_bytes() const { return code_bytes_.load(std::memory_order_relaxed); }

  // Why `what`, which needs `wanted` of what a limit counts, cannot be had, where `held` is taken already. kResource.
  static std::unexpected<Error> refusal(const std::string& what, uint64_t wanted, uint64_t held,
                                        const char* unit, uint64_t limit, const char* limit_name);

 private:
  static bool take(std::atomic<uint64_t>& figure, uint64_t amount, uint64_t limit) {
    uint64_t held = figure.load(std::memory_order_relaxed);
    do {
      if (held > limit || amount > limit - held) return false;
    } while (!figure.compare_exchange_weak(held, held + amount, std::memory_order_relaxed));
    return true;
  }
  static void give(std::atomic<uint64_t>& figure, uint64_t amount) {
    figure.fetch_sub(amount, std::memory_order_relaxed);
  }

  const StoreLimits limits_;
  std::atomic<uint64_t> memory_bytes_{0};
  std::atomic<uint64_t> table_bytes_{0};
  std::atomic<uint64_t> code_bytes_{0};
  std::atomic<uint64_t> speed_bytes_{0};
  std::mutex mutex_;  // protects what follows
  std::unordered_set<std::shared_ptr<const wasm::Module>> modules_;
  uint64_t types_ = 0;
};

}  // namespace hindsight::rt
