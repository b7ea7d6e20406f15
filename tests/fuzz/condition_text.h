// Modules of functions that choose by what they load, as text. Conditions are joined by and, or, select, and by one within another; there are
// switches, and loops that end by a count, by one condition or by several, or only by a trap. Some conditions always hold, or never,
// in forms in which a compiler sees that early, late or not at all. Some loads come near the end of memory, or over it, and what
// they load may be needed on one way alone, or on none. Other traps stand beside: divisions, conversions, unreachable.
#pragma once

#include <string>

#include "tests/fuzz/text_random.h"

namespace hindsight::fuzz {

class ConditionText : TextRandom {
 public:
  explicit ConditionText(uint32_t seed) : TextRandom(seed) {}

  std::string make() {
    std::string text =
        "(module (memory (export \"memory\") 1)\n(global $g (export \"g0\") (mut i32) (i32.const 5))\n" +
        data(kSafe, 1024 + 16) + data(kEnd - 600, 600);
    for (uint32_t i = 0; i < 16; ++i) text += function(i);
    return text + ")\n";
  }

 private:
  static constexpr uint32_t kEnd = 65536, kSafe = 1024;

  std::string function(uint32_t index) {
    counters_ = 0;
    trapping_ = 1 + below(4);  // of the loads, one in four of so many comes near the end
    std::string body;
    for (uint32_t statements = 3 + below(6); statements-- > 0;) body += statement(2 + below(2));
    std::string text = "(func (export \"f" + std::to_string(index) +
                       "\") (param $x i32) (result i64) (local $a i32) (local $b i32) (local $c i32) (local "
                       "$d i32) (local $w i64) (local $r i64)";
    for (uint32_t i = 0; i < counters_; ++i) text += " (local " + counter(i) + " i32)";
    text += "\n" + body + "(i64.add (local.get $r) " + (chance(2) ? "(local.get $w)" : i64(3)) + "))\n";
    return text;
  }

  static std::string counter(uint32_t i) { return "$i" + std::to_string(i); }
  static std::string set(const std::string& local, const std::string& value) {
    return "(local.set " + local + " " + value + ")\n";
  }
  std::string some() { return get(pick({"$a", "$b", "$c", "$d", "$a", "$x"})); }

  // "offset=N ADDRESS": well inside, or one that is near the end for some of what it is computed from.
  std::string place() {
    if (!chance(4) || !chance(trapping_))
      return "offset=" + std::to_string(kSafe + below(16)) + " (i32.and " + some() + " " +
             i32(pick({0x3ff, 0x3f, 4})) + ")";
    const int64_t mask = pick({1, 3, 15, 63});
    const int64_t at = kEnd - pick({1, 2, 4, 8, 9, 40});
    const std::string within = call("i32.and", some(), i32(mask));
    if (chance(3)) return "offset=" + std::to_string(at) + " " + within;
    if (chance(3)) return "(select " + i32(at) + " " + i32(kSafe) + " " + within + ")";
    return call("i32.add", i32(at), within);
  }
  std::string load() {
    return std::string("(") +
           pick({"i32.load", "i32.load", "i32.load8_u", "i32.load8_s", "i32.load16_u", "i32.load16_s"}) +
           " " + place() + ")";
  }
  std::string value(uint32_t depth) {
    if (depth == 0) return chance(5) ? i32(pick({0, 1, -1, 255, 77, 1 << 20})) : some();
    switch (below(7)) {
      case 0:
        return load();
      case 1:
        return "(select " + value(depth - 1) + " " + value(depth - 1) + " " + condition(depth - 1) + ")";
      case 2:
        return call(pick({"i32.shl", "i32.shr_u", "i32.shr_s"}), value(depth - 1), i32(below(31)));
      case 3:
        return call("i32.wrap_i64", "(local.get $w)");
      default:
        return call(pick({"i32.add", "i32.sub", "i32.and", "i32.or", "i32.xor", "i32.mul"}), value(depth - 1),
                    value(0));
    }
  }
  std::string compare(const std::string& a, const std::string& b) {
    return call(pick({"i32.eq", "i32.ne", "i32.lt_s", "i32.lt_u", "i32.gt_s", "i32.ge_u"}), a, b);
  }
  // Always holds, or never, whatever is loaded.
  std::string settled(uint32_t depth) {
    const std::string of = value(depth);
    switch (below(8)) {
      case 0:
        return call("i32.gt_u", call("i32.mul", call("i32.and", of, i32(255)), i32(2)), i32(900));
      case 1:
        return call("i32.lt_s", call("i32.and", of, i32(7)), i32(0));
      case 2:
        return call("i32.ge_u", call("i32.shr_u", of, i32(24)), i32(256));
      case 3:
        return call("i32.eq", call("i32.shl", of, i32(1)), i32(77));
      case 4:
        return call("i32.ne", call("i32.or", of, i32(1)), i32(0));
      case 5:
        return call("i32.gt_u", "(i32.load8_u " + place() + ")", i32(255));
      case 6:
        return call("i32.lt_s", "(i32.load16_s " + place() + ")", i32(-40000));
      default:
        return call("i32.eqz", call("i32.sub", some(), some()));  // of the same, now and then
    }
  }
  std::string condition(uint32_t depth) {
    if (depth == 0 || chance(3))
      return chance(3)   ? compare(load(), value(0))
             : chance(4) ? call("i32.eqz", value(1))
                         : compare(value(1), value(0));
    const std::string a = condition(depth - 1), b = condition(depth - 1);
    switch (below(8)) {
      case 0:
      case 1:
        return call("i32.or", a, b);
      case 2:
      case 3:
        return call("i32.and", a, b);
      case 4:
        return "(if (result i32) " + a + " (then " + b + ") (else " + (chance(3) ? condition(0) : i32(0)) +
               "))";
      case 5:
        return "(if (result i32) " + a + " (then " + i32(1) + ") (else " + b + "))";
      case 6:
        return call(pick({"i32.eq", "i32.xor", "i32.gt_u"}), a, b);
      default:
        return settled(1);
    }
  }

  std::string statement(uint32_t depth) {
    switch (below(depth == 0 ? 11 : 17)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return set(pick({"$a", "$b", "$c", "$d"}), load());
      case 4:
        return set(
            "$w", std::string("(") + pick({"i64.load", "i64.load32_u", "i64.load8_s"}) + " " + place() + ")");
      case 5:
        return "(drop " + load() + ")\n";
      case 6:
        return set("$r", call("i64.add", "(i64.mul (local.get $r) (i64.const 31))",
                              call("i64.extend_i32_u", value(2))));
      case 7:
        return "(global.set $g " + value(1) + ")\n";
      case 8:
        return std::string("(") + pick({"i32.store", "i32.store8", "i32.store16"}) + " " + place() + " " +
               value(1) + ")\n";
      case 9:
        return set(pick({"$a", "$b", "$c"}), value(2));
      case 10:
        return trap();
      case 11:
      case 12:
        return "(if " + condition(2) + " (then\n" + statements(depth - 1) + ")" +
               (chance(2) ? " (else\n" + statements(depth - 1) + ")" : "") + ")\n";
      case 13:
        return set(pick({"$a", "$b", "$c"}),
                   "(if (result i32) " + condition(2) + " (then " + value(2) + ") (else " + value(2) + "))");
      case 14:
        return choice(depth);
      default:
        return loop(depth);
    }
  }
  std::string statements(uint32_t depth) {
    std::string text;
    for (uint32_t count = 1 + below(3); count-- > 0;) text += statement(depth);
    return text;
  }
  // Another trap than one for memory, at times.
  std::string trap() {
    switch (below(5)) {
      case 0:
        return set("$b", call(pick({"i32.div_u", "i32.rem_u", "i32.div_s", "i32.rem_s"}), value(1),
                              call("i32.and", some(), i32(pick({3, 7, 255})))));
      case 1:
        return "(drop " + call("i32.div_u", some(), call("i32.and", some(), i32(63))) + ")\n";
      case 2:
        return "(drop (i32.trunc_f32_u (f32.convert_i32_s " + value(1) + ")))\n";
      default:
        return "(if " + call("i32.and", condition(1), compare(some(), i32(pick({0, 1, 77})))) +
               " (then (unreachable)))\n";
    }
  }
  std::string choice(uint32_t depth) {
    const bool falls = chance(3);
    return "(block $end (block $two (block $one (block $zero (br_table $zero $one $two" +
           std::string(chance(2) ? " $one" : "") + " $end (i32.and " + value(1) + " " + i32(pick({3, 7})) +
           ")))\n" + statement(depth - 1) + (falls ? "" : "(br $end)") + ")\n" + statements(depth - 1) +
           (chance(3) ? "" : "(br $end)") + ")\n" + statement(depth - 1) + ")\n";
  }
  std::string loop(uint32_t depth) {
    const std::string i = counter(counters_++), label = "$l" + std::to_string(counters_),
                      out = "$o" + std::to_string(counters_);
    const auto leave = [&](const std::string& when) { return "(br_if " + out + " " + when + ")\n"; };
    std::string text;
    if (chance(3)) {
      // Over memory, until a condition holds or memory ends. What is loaded on the way may be of no use.
      const int64_t step = pick({16, 16, 20, 48, 400});
      text = set(i, i32(pick({kSafe, 30000, 60000, static_cast<int64_t>(kEnd) - 500}))) + "(block " + out +
             " (loop " + label + "\n";
      const std::string pointed = std::string("(") + pick({"i32.load", "i32.load8_u", "i32.load16_s"}) +
                                  " offset=" + std::to_string(below(9)) + " " + get(i.c_str()) + ")";
      const std::string to = pick({"$a", "$b", "$c"});
      text += chance(4) ? "(drop " + pointed + ")\n" : set(to, pointed);
      text += leave(chance(2) ? settled(0) : condition(1));
      if (chance(2)) text += statement(0);  // thousands of iterations: no loop within
      if (chance(2)) text += leave(chance(3) ? settled(0) : condition(1));
      return text + set(i, call("i32.add", get(i.c_str()), i32(step))) + "(br " + label + ")))\n";
    }
    const std::string count = chance(2) ? i32(1 + below(5)) : call("i32.and", some(), i32(pick({3, 7, 31})));
    text = set(i, count) + "(block " + out + " (loop " + label + "\n";
    if (chance(2)) text += leave(call("i32.eqz", get(i.c_str())));
    if (chance(2)) text += leave(condition(2));
    text += statements(depth - 1);
    if (chance(3)) text += leave(condition(1));
    return text + set(i, call("i32.sub", get(i.c_str()), i32(1))) + "(br_if " + label + " " +
           call("i32.gt_s", get(i.c_str()), i32(0)) + ")))\n";
  }

  uint32_t counters_ = 0, trapping_ = 1;
};

}  // namespace hindsight::fuzz
