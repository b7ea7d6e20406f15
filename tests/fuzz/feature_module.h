// Random modules of the language's later parts, as bytes. They have several memories, one of them perhaps
// with 64-bit addresses. They have calls in all ways with targets that change, exceptions, and atomic
// accesses by one thread. Loops of many shapes are around all of that. Every program ends: loops count,
// and calls use up fuel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace hindsight::fuzz {

class FeatureModule {
 public:
  using Bytes = std::vector<uint8_t>;
  explicit FeatureModule(uint32_t seed) : random_(seed) {}
  Bytes make();

 private:
  // What a function has: parameters i32 and i64 (types 0 and 1 differ in the result), then these locals.
  enum : uint32_t { kI32s = 2, kI64s = 6, kF64s = 9, kRef = 11, kCounters32 = 12, kCounters64 = 15 };
  static constexpr uint32_t kFunctions = 5, kTableSize = 8;

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t of) { return below(of) == 0; }

  void op(std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) code_.push_back(byte);
  }
  void leb(uint64_t value);
  void signed_leb(int64_t value);
  void i32(int32_t value);
  void i64(int64_t value);
  void get(uint32_t local);
  void set(uint32_t local);
  void access(uint8_t align, bool second, uint32_t offset);

  void expr32(int depth);
  void expr64(int depth);
  void expr_float(int depth);
  bool address(int depth, bool aligned);  // whether it is in the second memory
  void load32(int depth);
  void load64(int depth);
  void atomic32(int depth);
  void call(int depth, bool wide);

  void statements(int depth, uint32_t count);
  void statement(int depth);
  void store(int depth);
  void bulk(int depth);
  void branches(int depth);
  void catching(int depth);
  void outer_loop(int depth);
  void array_loop();
  void array_statement(uint32_t counter, bool wide, uint32_t base, uint32_t scale, uint32_t accumulator);
  void change_table(int depth);

  Bytes function(uint32_t index);
  Bytes entry(uint32_t callee);
  Bytes checksum();
  Bytes data();

  std::mt19937 random_;
  Bytes code_;
  uint32_t index_ = 0;  // of the function being made: it calls those below
  uint32_t loops_ = 0;  // around the place
  bool second_ = false, second64_ = false;
};

}  // namespace hindsight::fuzz
