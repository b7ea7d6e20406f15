// Modules of what programs do besides going through arrays, as text. They have memories that grow while they are used,
// segments, tables that change, recursion, 64-bit and narrow atomic accesses, lanes, and addresses above 2 GiB. They
// have long functions without a branch. Some are pairs of modules of which one imports what the other exports.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/text_random.h"

namespace hindsight::fuzz {

class MixedText : TextRandom {
 public:
  explicit MixedText(uint32_t seed) : TextRandom(seed) {}

  std::string make() {
    // A memory that nobody looks at as a whole: all of it would take its time.
    high_ = chance(8);
    std::string text = high_ ? "(module (memory 32800)\n" : "(module (memory (export \"memory\") 1 4)\n";
    text += globals() + functions_and_tables() + data(1024, 600) + data(60000, 300);
    return text + functions(10) + ")\n";
  }

  // What the other module imports, then a line ";; next", then that one.
  std::string make_linked() {
    std::string text = "(module (memory (export \"memory\") 1 4)\n" + globals() + functions_and_tables() +
                       data(1024, 600) + data(60000, 300) +
                       "(export \"table\" (table $table)) (export \"c0\" (func $c0)) (export \"c1\" (func "
                       "$c1)) (export \"c2\" (func $c2)) (export \"rec\" (func $rec))\n" +
                       functions(2, "o") +
                       ")\n;; next\n(module (import \"other\" \"memory\" (memory 1 4)) (import \"other\" "
                       "\"g0\" (global $g (mut i32))) "
                       "(import \"other\" \"g1\" (global $h (mut i64))) (import \"other\" \"table\" (table "
                       "$table 8 16 funcref))\n"
                       "(type $t (func (param i32) (result i32)))\n(import \"other\" \"c0\" (func $c0 (type "
                       "$t))) (import \"other\" \"c1\" (func $c1 (type $t))) "
                       "(import \"other\" \"c2\" (func $c2 (type $t))) (import \"other\" \"rec\" (func $rec "
                       "(param i32 i64) (result i64)))\n"
                       "(import \"other\" \"o0\" (func $o0 (param i32) (result i64)))\n"
                       "(export \"memory\" (memory 0)) (export \"g0\" (global $g)) (export \"g1\" (global "
                       "$h))\n(elem $e func $c1 $own $c2 $c0)\n"
                       "(func $own (param i32) (result i32) (global.set $g (i32.add (global.get $g) "
                       "(i32.const 3))) (i32.sub (local.get 0) (global.get $g)))\n" +
                       segment();
    linked_ = true;
    return text + functions(8) + ")\n";
  }

  // Few functions, each of thousands of operators in a line.
  std::string make_straight() {
    std::string text = "(module (memory (export \"memory\") 1)\n" + globals() + data(1024, 600);
    for (uint32_t i = 0; i < 2; ++i) {
      text += "(func (export \"f" + std::to_string(i) +
              "\") (param $x i32) (result i64) (local $a i32) (local $b i32) (local $c i32) (local $d i32) "
              "(local $r i64) (local $u i64) (local $v i64)\n"
              "(local.set $a (local.get $x)) (local.set $r (i64.extend_i32_s (local.get $x)))\n";
      const uint32_t lines = 100 + below(900);
      for (uint32_t k = 0; k < lines; ++k) text += straight_line();
      text +=
          "(i64.xor (i64.add (local.get $r) (local.get $u)) (i64.extend_i32_u (i32.add (local.get $a) "
          "(i32.xor (local.get $b) (i32.sub (local.get $c) (local.get $d)))))))\n";
    }
    return text + ")\n";
  }

 private:
  static std::string globals() {
    return "(global $g (export \"g0\") (mut i32) (i32.const 5)) (global $h (export \"g1\") (mut i64) "
           "(i64.const 9))\n";
  }
  std::string segment() {
    std::string text = "(data $d \"";
    for (uint32_t i = 0; i < 64; ++i) text += byte(below(256));
    return text + "\")\n";
  }
  std::string functions_and_tables() {
    return "(type $t (func (param i32) (result i32)))\n(table $table 8 16 funcref) (elem (i32.const 0) $c0 "
           "$c1 $c2 $c0) (elem $e func $c1 $c2 $c2 $c0)\n"
           "(func $c0 (param i32) (result i32) (i32.add (local.get 0) (i32.const 3)))\n(func $c1 (param i32) "
           "(result i32) (i32.xor (local.get 0) (i32.const 0x55)))\n"
           "(func $c2 (param i32) (result i32) (table.set $table (i32.and (local.get 0) (i32.const 3)) "
           "(ref.func $c1)) (i32.mul (local.get 0) (i32.const 7)))\n"
           // Twice at each level, with something in memory on the way; never deeper than 12.
           "(func $rec (param $x i32) (param $y i64) (result i64) (local $s i64)\n"
           "(if (i32.eqz (local.get $x)) (then (return (i64.xor (local.get $y) (i64.load (i32.const "
           "1024))))))\n"
           "(i64.store offset=1024 (i32.shl (i32.and (local.get $x) (i32.const 15)) (i32.const 3)) "
           "(local.get $y))\n"
           "(local.set $s (call $rec (i32.sub (local.get $x) (i32.const 1)) (i64.add (local.get $y) "
           "(i64.const 7))))\n"
           "(if (i32.and (local.get $x) (i32.const 3)) (then (local.set $s (i64.sub (local.get $s) (call "
           "$rec (i32.div_u (local.get $x) (i32.const 2)) (local.get $s))))))\n"
           "(i64.add (local.get $s) (i64.mul (i64.load8_u offset=1024 (local.get $x)) (local.get $y))))\n" +
           segment();
  }
  std::string functions(uint32_t count, const std::string& prefix = "f") {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) {
      text += "(func " + (prefix == "o" ? "$o" + std::to_string(i) + " " : std::string()) + "(export \"" +
              prefix + std::to_string(i) +
              "\") (param $x i32) (result i64) (local $i i32) (local $k i32) (local $n i32) (local $p i32) "
              "(local $r i64) "
              "(local $a i32) (local $v v128) (local $d f64)\n";
      for (uint32_t k = 0, lines = 1 + below(4); k < lines; ++k) text += line(3);
      text +=
          "(i64.add (local.get $r) (i64.xor (i64.extend_i32_u (local.get $a)) (i64.add (i64x2.extract_lane 0 "
          "(local.get $v)) (i64.mul (i64.const 5) (i64x2.extract_lane 1 (local.get $v)))))))\n";
    }
    return text;
  }

  std::string number() {
    switch (below(8)) {
      case 0:
        return i32(pick({0, 1, 2, 7, -1, 255, 4096}));
      case 1:
        return get("$x");
      case 2:
        return get("$i");
      case 3:
        return "(global.get $g)";
      case 4:
        return call(pick({"i32.add", "i32.xor", "i32.mul", "i32.or"}), get(pick({"$a", "$i"})),
                    i32(pick({1, 3, 5, 9})));
      case 5:
        return "(i32.wrap_i64 (local.get $r))";
      case 6:
        return call(pick({"i32.load", "i32.load8_u", "i32.load16_s"}), place());
      default:
        return get("$a");
    }
  }
  std::string wide() {
    switch (below(5)) {
      case 0:
        return i64(pick({0, 1, -1, 77, 0x100000001}));
      case 1:
        return "(global.get $h)";
      case 2:
        return call(pick({"i64.load", "i64.load32_s", "i64.load16_u", "i64.load8_u"}), place());
      case 3:
        return call(pick({"i64.extend_i32_u", "i64.extend_i32_s"}), number());
      default:
        return get("$r");
    }
  }
  std::string index() {
    return chance(2)
               ? get("$i")
               : call("i32.and", chance(2) ? get("$a") : get("$x"), i32(pick({0x3ff, 0xffc, 0x7f8, 15})));
  }
  // Mostly of the first page; of high memories also above 2 GiB.
  std::string place() {
    const char* const scale[] = {"0", "1", "2", "3"};
    const std::string at = call("i32.shl", call("i32.and", index(), i32(0x3ff)),
                                std::string("(i32.const ") + scale[below(4)] + ")");
    if (high_ && chance(2)) {
      // 2^31 or more in all, by the offset, the address or both.
      const int64_t offset = pick({0, 0x80000000, 0x7fffffff, 0x40000000, 0x80000800});
      const int64_t base = 0x80000000 + pick({0, 8, 4096}) - offset;
      return "offset=" + std::to_string(offset) + " " + call("i32.add", at, i32(base < 0 ? 0 : base));
    }
    if (chance(60))
      return "offset=" + std::to_string(pick({65500, 0x80000000, 0xffffffff, 0xfffffff0, 65536})) + " " + at;
    return chance(2) ? "offset=" + std::to_string(pick({1024, 1028, 2048, 60000 - 56000})) + " " + at : at;
  }
  // Aligned, for atomics.
  std::string aligned(uint32_t bytes) {
    return "offset=" + std::to_string(1024 + 8 * below(8)) + " " +
           call("i32.and", index(), i32(0xff8 + (bytes < 8 ? 4 : 0)));
  }
  std::string take(const std::string& value) {
    return "(local.set $r " +
           call(pick({"i64.add", "i64.xor", "i64.sub"}), "(i64.mul (local.get $r) (i64.const 3))", value) +
           ")\n";
  }

  std::string line(uint32_t depth) {
    switch (below(depth == 0 ? 12 : 16)) {
      case 0:
        return "(local.set $a " + call(pick({"i32.add", "i32.xor", "i32.sub"}), get("$a"), number()) + ")\n";
      case 1:
        return take(wide());
      case 2:
        return "(" + std::string(pick({"i32.store", "i32.store8", "i32.store16"})) + " " + place() + " " +
               number() + ")\n";
      case 3:
        return "(" + std::string(pick({"i64.store", "i64.store8", "i64.store16", "i64.store32"})) + " " +
               place() + " " + wide() + ")\n";
      case 4:
        return chance(2) ? "(global.set $g " + number() + ")\n" : "(global.set $h " + wide() + ")\n";
      case 5:
        return atomic();
      case 6:
        return lanes();
      case 7:
        return high_ ? take("(i64.extend_i32_u (memory.size))") : growth();
      case 8:
        return table();
      case 9:
        return "(local.set $a (call_indirect $table (type $t) " + number() + " (i32.and " + number() +
               " (i32.const " + std::to_string(chance(6) ? 7 : 3) + "))))\n";
      case 10:
        return linked_ && chance(3) ? take("(call $o0 " + number() + ")")
                                    : take("(call $rec (i32.and " + number() + " (i32.const " +
                                           std::to_string(pick({3, 7, 9})) + ")) " + wide() + ")");
      case 11:
        return floats();
      case 12:
        return "(if " + call(pick({"i32.and", "i32.lt_u", "i32.gt_s"}), number(), i32(pick({1, 3, 100}))) +
               " (then " + line(depth - 1) + ")" + (chance(2) ? " (else " + line(depth - 1) + ")" : "") +
               ")\n";
      default:
        return loop(depth);
    }
  }
  std::string loop(uint32_t depth) {
    if (depth < 3) {  // an inner one
      std::string body = line(0);
      return "(local.set $k " + (chance(2) ? i32(pick({1, 4, 7})) : call("i32.and", number(), i32(7))) +
             ")\n(block $out (loop $in (br_if $out (i32.le_s (local.get $k) (i32.const 0)))\n" + body +
             "(local.set $k (i32.sub (local.get $k) (i32.const 1))) (br $in)))\n";
    }
    // As many iterations as an argument or data say, perhaps none.
    const std::string count = chance(2) ? "(i32.and (local.get $x) (i32.const 63))"
                              : chance(2)
                                  ? "(i32.load8_u offset=1024 (i32.and (local.get $x) (i32.const 255)))"
                                  : i32(pick({1, 20, 100}));
    std::string body;
    for (uint32_t i = 0, lines = 1 + below(3); i < lines; ++i) body += line(chance(2) ? 1 : 0);
    const int64_t step = pick({1, 1, 2, 4});
    return "(local.set $n " + count +
           ") (local.set $i (i32.const 0))\n(block $end (loop $l (br_if $end (i32.ge_u (local.get $i) "
           "(local.get $n)))\n" +
           body + "(local.set $i (i32.add (local.get $i) " + i32(step) + ")) (br $l)))\n";
  }
  std::string atomic() {
    static constexpr struct {
      const char* width;
      uint32_t bytes;
    } kWidths[] = {{"", 8}, {"", 8}, {"8", 1}, {"16", 2}, {"32", 4}};
    const auto& [width, bytes] = kWidths[below(5)];
    const std::string tail = *width ? "_u" : "";
    const std::string at = aligned(bytes);
    switch (below(4)) {
      case 0:
        return take("(i64.atomic.load" + std::string(width) + tail + " " + at + ")");
      case 1:
        return "(i64.atomic.store" + std::string(width) + " " + at + " " + wide() + ")\n";
      case 2:
        return take("(i64.atomic.rmw" + std::string(width) + ".cmpxchg" + tail + " " + at + " " + wide() +
                    " " + wide() + ")");
      default:
        return take("(i64.atomic.rmw" + std::string(width) + "." +
                    pick({"add", "sub", "and", "or", "xor", "xchg"}) + tail + " " + at + " " + wide() + ")");
    }
  }
  std::string lanes() {
    const uint32_t size = below(4);
    const std::string bits = std::to_string(8u << size), lane = std::to_string(below(16u >> size));
    const std::string at = place();
    const size_t split = at.rfind("offset=", 0) == 0 ? at.find(' ') + 1 : 0;
    const std::string access = "_lane " + at.substr(0, split) + lane + " " + at.substr(split);
    switch (below(5)) {
      case 0:
        return "(local.set $v (v128.load" + bits + access + " (local.get $v)))\n";
      case 1:
        return "(v128.store" + bits + access + " (local.get $v))\n";
      case 2:
        return "(local.set $v (" +
               std::string(pick({"i32x4.add", "i64x2.sub", "i8x16.avgr_u", "v128.xor", "i16x8.mul"})) +
               " (local.get $v) (v128.load " + place() + ")))\n";
      case 3:
        return "(v128.store " + place() +
               " (i8x16.shuffle 1 0 3 2 20 21 22 23 8 9 10 11 31 30 29 28 (local.get $v) (v128.load " +
               place() + ")))\n";
      default:
        return "(local.set $v (i32x4.replace_lane " + std::to_string(below(4)) + " (local.get $v) " +
               number() + "))\n";
    }
  }
  std::string growth() {
    const std::string last =
        "(i32.sub (i32.shl (memory.size) (i32.const 16)) " + i32(pick({8, 8, 16, 64, 7, 1})) + ")";
    switch (below(8)) {
      case 0:
        return take("(i64.extend_i32_s (memory.grow " +
                    (chance(3) ? call("i32.and", number(), i32(1)) : i32(pick({0, 0, 1, 100}))) + "))");
      case 1:
        return take("(i64.extend_i32_u (memory.size))");
      case 2:
        return "(i64.store " + last + " " + wide() + ")\n";
      case 3:
        return take("(i64.load " + last + ")");
      case 4:
        return "(memory.init $d " + (chance(3) ? last : "(i32.const 3000)") + " (i32.and " + number() +
               " (i32.const 31)) (i32.and " + number() + " (i32.const 31)))\n";
      case 5:
        return chance(10) ? "(data.drop $d)\n"
                          : "(memory.fill (i32.and " + number() + " (i32.const 0x3fff)) " + number() +
                                " (i32.and " + number() + " (i32.const 63)))\n";
      case 6:
        return "(memory.copy (i32.and " + number() + " (i32.const 0x3fff)) (i32.and " + number() +
               " (i32.const 0x3fff)) (i32.and " + number() + " (i32.const 127)))\n";
      default:  // over the old end, right after growing
        return "(drop (memory.grow (i32.const 1))) (i64.store " + last +
               " (i64.const 0x1234)) (i32.store8 (i32.const 65536) (i32.const 1))\n";
    }
  }
  std::string table() {
    switch (below(7)) {
      case 0:
        return "(table.set $table (i32.and " + number() + " (i32.const 3)) (ref.func " +
               std::string(pick({"$c0", "$c1", "$c2"})) + "))\n";
      case 1:
        return take("(i64.extend_i32_s (table.grow $table (ref.null func) (i32.and " + number() +
                    " (i32.const 1))))");
      case 2:
        return take("(i64.extend_i32_u (table.size $table))");
      case 3:
        return take("(i64.extend_i32_u (ref.is_null (table.get $table (i32.and " + number() +
                    " (i32.const 7)))))");
      case 4:
        return "(table.init $table $e (i32.and " + number() + " (i32.const 1)) (i32.and " + number() +
               " (i32.const 1)) (i32.and " + number() + " (i32.const 3)))\n";
      case 5:
        return "(table.copy $table $table (i32.and " + number() + " (i32.const 1)) (i32.and " + number() +
               " (i32.const 1)) (i32.and " + number() + " (i32.const 3)))\n";
      default:
        return chance(4) ? "(table.fill $table (i32.const 4) (ref.func $c0) (i32.and " + number() +
                               " (i32.const 3)))\n"
                         : "(table.fill $table (i32.const 1) (ref.func $c1) (i32.const 2))\n";
    }
  }
  // Never as bits: engines choose those of a NaN.
  std::string floats() {
    switch (below(4)) {
      case 0:
        return "(local.set $d (f64.add (local.get $d) (f64.convert_i32_s " + number() + ")))\n";
      case 1:
        return "(local.set $d (f64.mul (local.get $d) (f64.promote_f32 (f32.convert_i64_s " + wide() +
               "))))\n";
      case 2:
        return take("(i64.trunc_sat_f64_s (local.get $d))");
      default:
        return "(f64.store " + place() + " (f64.convert_i64_s " + wide() + "))\n";
    }
  }
  std::string straight_line() {
    const auto narrow = [&] { return get(pick({"$a", "$b", "$c", "$d"})); };
    const auto word = [&] { return get(pick({"$r", "$u", "$v"})); };
    const auto to = [&](const char* local, const std::string& value) {
      return std::string("(local.set ") + local + " " + value + ")\n";
    };
    const char* const n = pick({"$a", "$b", "$c", "$d"});
    const char* const w = pick({"$r", "$u", "$v"});
    const auto mask = [&](const std::string& of) { return call("i32.and", of, i32(0x7fff)); };
    switch (below(12)) {
      case 0:
      case 1:
        return to(n, call(pick({"i32.add", "i32.xor", "i32.sub", "i32.mul", "i32.or", "i32.and"}), narrow(),
                          chance(3) ? i32(pick({1, 3, 255, -1, 0x10000})) : narrow()));
      case 2:
        return to(n, call(pick({"i32.shl", "i32.shr_u", "i32.shr_s", "i32.rotl"}), narrow(),
                          chance(2) ? i32(below(32)) : narrow()));
      case 3:
        return to(w, call(pick({"i64.add", "i64.xor", "i64.sub", "i64.mul", "i64.or"}), word(), word()));
      case 4:
        return to(w, call(pick({"i64.shl", "i64.shr_u", "i64.rotr"}), word(), i64(below(64))));
      case 5:
        return to(w, call(pick({"i64.extend_i32_u", "i64.extend_i32_s"}), narrow()));
      case 6:
        return to(n, chance(2)
                         ? call("i32.wrap_i64", word())
                         : call(pick({"i32.extend8_s", "i32.extend16_s", "i32.clz", "i32.popcnt", "i32.eqz"}),
                                narrow()));
      case 7:
        return to(n, call(pick({"i32.load", "i32.load8_s", "i32.load16_u"}), mask(narrow())));
      case 8:
        return "(" + std::string(pick({"i32.store", "i32.store8", "i32.store16"})) + " " + mask(narrow()) +
               " " + narrow() + ")\n";
      case 9:
        return to(n, "(select " + narrow() + " " + narrow() + " " +
                         call(pick({"i32.lt_s", "i32.eq", "i32.ge_u"}), narrow(), narrow()) + ")");
      case 10:
        return to(n, call(pick({"i32.div_u", "i32.rem_u", "i32.rem_s"}), narrow(),
                          call("i32.or", narrow(), i32(1))));
      default:
        return chance(2) ? to(w, call("i64.load", mask(narrow())))
                         : "(i64.store " + mask(narrow()) + " " + word() + ")\n";
    }
  }

  bool high_ = false, linked_ = false;
};

}  // namespace hindsight::fuzz
