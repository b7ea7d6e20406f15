// Modules with one loop each, of random shape, as text: what compilers make of loops over arrays, unrolled or not.
// Export "f" takes four addresses and a number of iterations.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace hindsight::fuzz {

// Loops of random shape: element sizes, steps, unrolled copies, sums, values carried to the next iteration,
// every kind of count. Each is compiled by both tiers and run on the same memory.
class LoopText {
 public:
  explicit LoopText(uint32_t seed) : random_(seed) {}

  std::string make() {
    copies_ = pick({1, 1, 2, 2, 3, 4, 8});
    indexed_ = chance(2);
    down_ = chance(5);
    const uint32_t statements = 1 + below(3);
    for (uint32_t i = 0; i < statements; ++i)
      kinds_.push_back({below(6), below(4), below(4), static_cast<uint32_t>(random_())});
    std::ostringstream body;
    for (uint32_t copy = 0; copy < copies_; ++copy)
      for (uint32_t i = 0; i < statements; ++i) body << statement(i, copy);
    const int step = down_ ? -static_cast<int>(copies_) : static_cast<int>(copies_);
    for (uint32_t array = 0; array < 4; ++array)
      if (!indexed_)
        body << "(local.set $p" << array << " (i32.add (local.get $p" << array << ") (i32.const "
             << step * (1 << size_[array]) << ")))\n";
    body << "(local.set $i (i32.add (local.get $i) (i32.const " << step << ")))\n";
    const std::string counted =
        "(local.tee $n (i32.sub (local.get $n) (i32.const " + std::to_string(copies_) + ")))";
    const std::string again =
        copies_ == 1 && chance(2) ? counted : "(i32.gt_s " + counted + " (i32.const 0))";
    const bool even = chance(2);
    std::ostringstream text;
    text << "(module (memory (export \"memory\") 1)\n(func $f (export \"f\") (param $p0 i32) (param $p1 i32) "
            "(param $p2 i32)"
            " (param $p3 i32) (param $n i32) (result i64) (local $i i32) (local $s i32) (local $t i64) "
            "(local $c i32)\n";
    text << "(local.set $n (i32.mul (i32.add (i32.const 1) (local.get $n)) (i32.const " << copies_ << ")))\n";
    text << "(loop $l\n"
         << body.str() << "(br_if $l " << (even ? counted : again) << "))\n"
         << "(i64.add (i64.mul (local.get $t) (i64.const 3)) (i64.extend_i32_u (i32.xor (local.get $s) "
            "(i32.add (local.get $c) "
         << (chance(2) ? "(local.get $i)" : "(i32.const 5)") << "))))))";
    return text.str();
  }

 private:
  struct Kind {
    uint32_t what, to, from, seed;
  };
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t of) { return below(of) == 0; }
  uint32_t pick(std::initializer_list<uint32_t> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }

  // Elements of array a have 1 << size_[a] bytes.
  std::string address(uint32_t array, int element) {
    const int bytes = element * (1 << size_[array]);
    if (indexed_)
      return "(i32.add (local.get $p" + std::to_string(array) +
             ") (i32.shl (i32.add (local.get $i) (i32.const " + std::to_string(element) + ")) (i32.const " +
             std::to_string(size_[array]) + ")))";
    return "(i32.add (local.get $p" + std::to_string(array) + ") (i32.const " + std::to_string(bytes) + "))";
  }
  std::string load(uint32_t array, int element) {
    static constexpr const char* kLoads[] = {"i32.load8_u", "i32.load16_s", "i32.load"};
    return std::string("(") + kLoads[size_[array]] + " " + address(array, element) + ")";
  }
  std::string statement(uint32_t index, uint32_t copy) {
    const Kind& kind = kinds_[index];
    const int here = (down_ ? -1 : 1) * static_cast<int>(copy);
    std::mt19937 shape(kind.seed);
    const int beside = static_cast<int>(shape() % 3) - 1;
    std::string value = load(kind.from, here + (shape() % 2 ? beside : 0));
    if (shape() % 2) value = "(i32.mul " + value + " (i32.const " + std::to_string(shape() % 1000) + "))";
    if (shape() % 3 == 0)
      value = "(i32.add " + value + " (i32.add (local.get $i) (i32.const " + std::to_string(here) + ")))";
    if (shape() % 3 == 0) value = "(i32.xor " + value + " " + load((kind.from + 1) % 4, here) + ")";
    if (shape() % 4 == 0)
      value = "(select " + value + " (i32.const 77) (i32.lt_u " + value + " (i32.const 100)))";
    static constexpr const char* kStores[] = {"i32.store8", "i32.store16", "i32.store"};
    switch (kind.what) {
      case 0:
        return "(local.set $s (i32.add (local.get $s) " + value + "))\n";
      case 1:
        return "(local.set $t (i64.xor (local.get $t) (i64.mul (i64.extend_i32_u " + value +
               ") (i64.const 0x9e3779b97f4a7c15))))\n";
      case 2:  // the previous element's value
        return std::string("(") + kStores[size_[kind.to]] + " " + address(kind.to, here) +
               " (i32.add (local.get $c) " + value + "))\n(local.set $c " + load(kind.from, here) + ")\n";
      default:
        return std::string("(") + kStores[size_[kind.to]] + " " + address(kind.to, here) + " " + value +
               ")\n";
    }
  }

  std::mt19937 random_;
  uint32_t copies_ = 1;
  bool indexed_ = false;
  bool down_ = false;
  std::vector<Kind> kinds_;
  const uint32_t size_[4] = {0, 1, 2, 2};
};

// The same for loops on vectors of 128 bits.
class VectorLoopText {
 public:
  explicit VectorLoopText(uint32_t seed) : random_(seed) {}

  std::string make() {
    const uint32_t copies = below(3) == 0 ? 2 : below(4) == 0 ? 4 : 1;
    const uint32_t shape = static_cast<uint32_t>(random_());
    std::ostringstream text;
    text << "(module (memory (export \"memory\") 1)\n(func $f (export \"f\") (param $p0 i32) (param $p1 i32) "
            "(param $p2 i32)"
            " (param $p3 i32) (param $n i32) (result i64) (local $s v128) (local $t v128)\n"
            "(local.set $n (i32.mul (i32.add (i32.const 1) (local.get $n)) (i32.const "
         << copies << ")))\n(loop $l\n";
    for (uint32_t copy = 0; copy < copies; ++copy) {
      random_.seed(shape);
      text << body(16 * copy);
    }
    for (uint32_t array = 0; array < 4; ++array)
      text << "(local.set $p" << array << " (i32.add (local.get $p" << array << ") (i32.const " << 16 * copies
           << ")))\n";
    text << "(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const " << copies << ")))))\n"
         << "(i64.add (i64.add (i64x2.extract_lane 0 (local.get $s)) (i64.mul (i64.const 3) "
            "(i64x2.extract_lane 1 (local.get $s))))"
            " (i64.add (i64x2.extract_lane 0 (local.get $t)) (i64.mul (i64.const 5) (i64x2.extract_lane 1 "
            "(local.get $t)))))))";
    return text.str();
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  std::string load(uint32_t array, uint32_t offset) {
    return "(v128.load offset=" + std::to_string(offset) + " (local.get $p" + std::to_string(array) + "))";
  }
  std::string value(uint32_t depth, uint32_t offset) {
    if (depth == 0) return below(5) == 0 ? "(v128.const i32x4 1 -2 300 0x7fff)" : load(below(3), offset);
    static constexpr const char* kUnary[] = {"i16x8.extend_low_i8x16_u",
                                             "i16x8.extend_high_i8x16_s",
                                             "i32x4.extend_low_i16x8_s",
                                             "i8x16.popcnt",
                                             "i8x16.abs",
                                             "i32x4.neg",
                                             "v128.not",
                                             "i16x8.extadd_pairwise_i8x16_u",
                                             "i32x4.extadd_pairwise_i16x8_s"};
    static constexpr const char* kBinary[] = {"i8x16.add",
                                              "i16x8.mul",
                                              "i32x4.mul",
                                              "i64x2.add",
                                              "i8x16.add_sat_u",
                                              "i16x8.sub_sat_s",
                                              "i8x16.avgr_u",
                                              "i8x16.min_u",
                                              "i32x4.max_s",
                                              "i8x16.eq",
                                              "i16x8.gt_s",
                                              "i32x4.lt_u",
                                              "v128.xor",
                                              "v128.andnot",
                                              "i8x16.narrow_i16x8_u",
                                              "i16x8.narrow_i32x4_s",
                                              "i32x4.dot_i16x8_s",
                                              "i16x8.q15mulr_sat_s",
                                              "i8x16.swizzle",
                                              "i16x8.extmul_low_i8x16_u",
                                              "i32x4.extmul_high_i16x8_s",
                                              "i64x2.extmul_low_i32x4_u",
                                              "i8x16.shuffle 0 17 2 19 31 5 22 7 8 9 26 11 12 13 30 15"};
    switch (below(7)) {
      case 0:
        return std::string("(") + kUnary[below(std::size(kUnary))] + " " + value(depth - 1, offset) + ")";
      case 1:
        return "(i32x4.shl " + value(depth - 1, offset) + " (i32.const " + std::to_string(below(40)) + "))";
      case 2:
        return "(v128.bitselect " + value(depth - 1, offset) + " " + value(0, offset) + " " +
               value(0, offset) + ")";
      case 3:
        return "(i32x4.trunc_sat_f32x4_s (f32x4.mul (f32x4.convert_i32x4_s " + value(depth - 1, offset) +
               ") (f32x4.add (f32x4.convert_i32x4_u " + value(0, offset) +
               ") (f32x4.splat (f32.const 0.37)))))";
      default:
        return std::string("(") + kBinary[below(std::size(kBinary))] + " " + value(depth - 1, offset) + " " +
               value(below(2), offset) + ")";
    }
  }
  std::string body(uint32_t offset) {
    std::string text;
    const uint32_t statements = 1 + below(2);
    for (uint32_t i = 0; i < statements; ++i) {
      const uint32_t kind = below(5);
      const std::string computed = value(1 + below(3), offset);
      if (kind == 0)
        text += "(local.set $s (i32x4.add (local.get $s) " + computed + "))\n";
      else if (kind == 1)
        text += "(local.set $t (v128.xor (local.get $t) " + computed + "))\n";
      else
        text += "(v128.store offset=" + std::to_string(offset) + " (local.get $p" + std::to_string(kind - 1) +
                ") " + computed + ")\n";
    }
    return text;
  }

  std::mt19937 random_;
};

}  // namespace hindsight::fuzz
