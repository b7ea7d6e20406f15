// Modules of loops over arrays, as text. The values are made of the loop's counters: i + c, i | c, i ^ c, i << c and
// so on. The values are extended, narrowed and masked. Steps have all sizes, an iteration has several copies of the
// body, and counts are nothing, constants, arguments or data. Arrays of bytes to 64-bit words and floating-point
// numbers, apart or on top of each other.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/text_random.h"

namespace hindsight::fuzz {

class StepText : TextRandom {
 public:
  explicit StepText(uint32_t seed) : TextRandom(seed) {}

  std::string make() {
    std::string text =
        "(module (memory (export \"memory\") 1)\n(global $g (export \"g0\") (mut i32) (i32.const 5))\n" +
        data(512, 64) + data(8000, 1500) + data(20000, 1500) +
        "(func $words (param i64) (result i64) (i64.xor (local.get 0) (i64.const 0x5555)))\n";
    for (uint32_t i = 0; i < 8; ++i) text += function(i);
    return text + ")\n";
  }

 private:
  // A value made of $i, in 32 bits; `ahead` is what another copy has it more.
  std::string narrow(uint32_t depth, int64_t ahead, std::mt19937& shape) {
    const auto draw = [&](uint32_t bound) { return static_cast<uint32_t>(shape() % bound); };
    static constexpr int kConstants[] = {0,  1,  2,  3,  4,   5,  6,  7,  8,  12,
                                         15, 16, 31, 63, 255, -1, -2, -3, -4, -8};
    const std::string constant = i32(kConstants[draw(std::size(kConstants))]);
    const uint32_t kind = draw(12);
    if (depth == 0 || kind == 0) return ahead == 0 ? get("$i") : call("i32.add", get("$i"), i32(ahead));
    const std::string of = narrow(depth - 1, ahead, shape);
    if (kind <= 3) return call("i32.add", of, constant);
    if (kind <= 5) return call("i32.or", of, constant);
    if (kind == 6) return call("i32.xor", of, constant);
    if (kind == 7) return call(std::vector{"i32.and", "i32.sub", "i32.mul"}[draw(3)], of, constant);
    if (kind == 8)
      return call(std::vector{"i32.shl", "i32.shr_u", "i32.shr_s", "i32.rotl"}[draw(4)], of,
                  i32(1 + draw(4)));
    if (kind == 9) return call(std::vector{"i32.extend8_s", "i32.extend16_s"}[draw(2)], of);
    if (kind == 10)
      return call(std::vector{"i32.div_u", "i32.rem_u", "i32.div_s"}[draw(3)], of,
                  i32(std::vector{2, 3, 4, 8}[draw(4)]));
    return call("i32.sub", constant, of);
  }
  std::string wide(uint32_t depth, int64_t ahead, std::mt19937& shape) {
    const auto draw = [&](uint32_t bound) { return static_cast<uint32_t>(shape() % bound); };
    const char* const extend = draw(2) ? "i64.extend_i32_u" : "i64.extend_i32_s";
    const uint32_t kind = draw(6);
    if (depth == 0 || kind == 0) return call(extend, narrow(depth, ahead, shape));
    // The other copies' distance added after the extension.
    if (kind == 1) return call("i64.add", call(extend, narrow(0, 0, shape)), i64(ahead));
    if (kind == 2) return ahead == 0 ? get("$j") : call("i64.add", get("$j"), i64(ahead));
    const std::string of = wide(depth - 1, ahead, shape);
    const int64_t constants[] = {1, 3, 5, 8, 255, -1, -2, 0x100000000};
    return call(std::vector{"i64.add", "i64.or", "i64.xor", "i64.mul", "i64.and"}[draw(5)], of,
                i64(constants[draw(8)]));
  }

  struct Array {
    const char* type;
    const char* load;
    const char* store;
    uint32_t bytes;
  };

  std::string function(uint32_t index) {
    static constexpr Array kArrays[] = {
        {"i32", "i32.load8_u", "i32.store8", 1}, {"i32", "i32.load16_s", "i32.store16", 2},
        {"i32", "i32.load", "i32.store", 4},     {"i32", "i32.load", "i32.store", 4},
        {"i64", "i64.load", "i64.store", 8},     {"i64", "i64.load32_u", "i64.store32", 4},
        {"i64", "i64.load8_s", "i64.store8", 1}, {"f32", "f32.load", "f32.store", 4},
        {"f64", "f64.load", "f64.store", 8}};
    const Array& array = kArrays[below(std::size(kArrays))];
    const auto copies = static_cast<int64_t>(pick({1, 2, 2, 2, 3, 4, 4, 8}));
    const int64_t part = pick({1, 1, 1, 2, 2, 2, 3, 4, -1, -2});
    const int64_t step = chance(5) ? pick({1, 2, 3, 4, 6, 8, -1, -4}) : part * copies;
    const int64_t turn = array.bytes * copies * (chance(5) ? -1 : 1) + (chance(10) ? array.bytes : 0);
    const int64_t begin =
        pick({0, 0, 0, 0, 0, 0, 8, 16, 1, 3, 4, 8, 64, 0xffffff00, 0x7fffffc0, 0xffffffff - 200 * step, -64});
    const uint32_t statements = 1 + below(2);
    std::vector<uint32_t> shapes;
    for (uint32_t i = 0; i < statements; ++i) shapes.push_back(static_cast<uint32_t>(random_()));
    const bool indexed = chance(4);
    std::string body;
    for (int64_t copy = 0; copy < copies; ++copy)
      for (const uint32_t shape : shapes)
        body += statement(array, copy, turn < 0 ? -copy : copy, copy * part, indexed, turn, shape);
    if (chance(6)) body += "(br_if $done (i32.eq " + get("$i") + " (i32.const 77)))";
    const int64_t p = 8192 + (turn < 0 ? 4096 : 0),
                  q = p + pick({0, 1, -1, 3, 12000, 12000, 12001}) * array.bytes;
    std::string text = "(func (export \"f" + std::to_string(index) +
                       "\") (param $n i32) (result i64) (local $i i32) (local $j i64) (local $k i32) (local "
                       "$p i32) (local $q i32) (local $s i32) "
                       "(local $t i64) (local $e i32) (local $x f64)\n(local.set $n " +
                       count() + ")\n(local.set $p " + i32(p) + ") (local.set $q " + i32(q) +
                       ") (local.set $i " + (chance(5) ? call("i32.load", i32(512)) : i32(begin)) +
                       ") (local.set $j (i64.extend_i32_s (local.get $i)))\n";
    if (indexed) text += "(local.set $k (i32.const 0))\n";
    text +=
        "(block $done (br_if $done (i32.eqz (local.get $n)))\n(local.set $e (i32.add (local.get $i) (i32.mul "
        "(local.get $n) " +
        i32(step) + ")))\n(loop $l " + body + "\n(local.set $p (i32.add (local.get $p) " + i32(turn) +
        ")) (local.set $q (i32.add (local.get $q) " + i32(turn) +
        ")) (local.set $k (i32.add (local.get $k) " + i32(copies) +
        ")) (local.set $j (i64.add (local.get $j) " + i64(step) +
        ")) (local.set $i (i32.add (local.get $i) " + i32(step) + "))\n";
    switch (below(4)) {
      case 0:
        text += "(br_if $l (i32.ne (local.get $i) (local.get $e)))";
        break;
      case 1:
        text += "(br_if $l (i32.lt_u (i32.div_s (local.get $k) " + i32(copies) + ") (local.get $n)))";
        break;
      default:
        text += "(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))";
        break;
    }
    return text +
           "))\n(i64.xor (i64.add (i64.extend_i32_u (local.get $s)) (i64.mul (i64.const 31) (local.get $t))) "
           "(i64.add (local.get $j) (i64.trunc_sat_f64_s "
           "(local.get $x)))))\n";
  }
  // How often the loop iterates: nothing, known, given, or read.
  std::string count() {
    const std::string given = "(i32.and (local.get $n) (i32.const 127))";
    switch (below(6)) {
      case 0:
        return i32(pick({1, 2, 15, 16, 63, 100, 128}));
      case 1:
        return "(i32.load8_u (i32.add (i32.const 512) (i32.and (local.get $n) (i32.const 63))))";
      case 2:
        return given;
      default:
        return call("i32.add", given, i32(pick({1, 16, 40, 100})));
    }
  }
  std::string statement(const Array& array, int64_t copy, int64_t element, int64_t ahead, bool indexed,
                        int64_t turn, uint32_t seed) {
    std::mt19937 shape(seed);
    const auto draw = [&](uint32_t bound) { return static_cast<uint32_t>(shape() % bound); };
    const auto place = [&](const char* base, int64_t beside) {
      const int64_t offset = (element + beside) * array.bytes;
      if (indexed) {
        const std::string at = call("i32.mul", copy == 0 ? get("$k") : call("i32.add", get("$k"), i32(copy)),
                                    i32(array.bytes * (turn < 0 ? -1 : 1)));
        return call("i32.add", i32(base[1] == 'p' ? 12288 : 28000), at);
      }
      if (offset >= 0 && draw(2)) return "offset=" + std::to_string(offset) + " " + get(base);
      return call("i32.add", get(base), i32(offset));
    };
    const std::string type = array.type;
    const uint32_t what = draw(8);
    std::string value;
    if (type == "i32") value = narrow(1 + draw(3) / 2, ahead, shape);
    if (type == "i64") value = wide(1 + draw(2), ahead, shape);
    if (type == "f32")
      value = call(draw(2) ? "f32.convert_i32_s" : "f32.convert_i32_u", narrow(1 + draw(2), ahead, shape));
    if (type == "f64")
      value = draw(2) ? call("f64.convert_i32_s", narrow(1 + draw(2), ahead, shape))
                      : call("f64.convert_i64_s", wide(1, ahead, shape));
    const char* const to = draw(2) ? "$p" : "$q";
    const std::string from =
        call(array.load, place(draw(2) ? "$p" : "$q", draw(3) ? 0 : static_cast<int64_t>(draw(3)) - 1));
    const bool floating = type[0] == 'f';
    if (what == 0 && !floating) {
      const char* const join = std::vector{"add", "xor", "or", "mul", "sub"}[draw(5)];
      const std::string sum = type == "i32" ? "$s" : "$t";
      return "(local.set " + sum + " " +
             call(type + "." + join, get(sum.c_str()), draw(2) ? value : call(type + ".mul", value, from)) +
             ")\n";
    }
    if (what == 1 && type == "i32") return "(global.set $g (i32.add (global.get $g) " + value + "))\n";
    if (what == 2 && floating) {
      const std::string as_double = type == "f64" ? value : call("f64.promote_f32", value);
      return "(local.set $x (f64.add (local.get $x) " + as_double + "))\n";
    }
    if (what >= 5 && !floating)
      value = call(type + "." + std::vector{"add", "xor", "mul", "sub", "and", "or"}[draw(6)], from, value);
    return call(array.store, place(to, 0), value) + "\n";
  }
};

}  // namespace hindsight::fuzz
