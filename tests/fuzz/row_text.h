// Modules of functions with several loops one behind the other, as text, or in an outer loop. Each copies, fills or adds up, unrolled or
// not, of words or vectors. Where one ends says where the next begins, how far it goes, or both; what one added up may too.
#pragma once

#include <string>

#include "tests/fuzz/text_random.h"

namespace hindsight::fuzz {

class RowText : TextRandom {
 public:
  explicit RowText(uint32_t seed) : TextRandom(seed) {}

  std::string make() {
    std::string text =
        "(module (memory (export \"memory\") 4)\n(func (export \"a_fill\") (local $i i32) (loop $l "
        "(i32.store "
        "(local.get $i) (i32.mul (i32.add (local.get $i) (i32.const 12345)) " +
        i32(2 * below(1 << 28) + 1) +
        ")) (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 262144)))))\n";
    for (uint32_t i = 0; i < 8; ++i) text += function(i);
    return text + ")\n";
  }

 private:
  static std::string set(const std::string& local, const std::string& value) {
    return "(local.set " + local + " " + value + ")\n";
  }
  static std::string add(const std::string& a, const std::string& b) { return call("i32.add", a, b); }

  std::string function(uint32_t index) {
    std::string body;
    const uint32_t loops = 2 + below(2);
    for (uint32_t i = 0; i < loops; ++i) body += loop(i);
    if (chance(3))
      body = set("$o", i32(3)) + "(loop $outer\n" + (chance(2) ? set("$i", i32(0)) : std::string()) + body +
             set("$p", call("i32.and", add(get("$p"), i32(pick({0, 4, 64, -16}))), i32(0xfffc))) +
             "(br_if $outer (local.tee $o (i32.sub (local.get $o) (i32.const 1)))))\n";
    const std::string name = std::to_string(index);
    std::string text = "(func $f" + name +
                       " (param $p i32) (param $q i32) (param $m i32) (param $n i32) (result i32 i32 i32) "
                       "(local $i i32) (local $s i32) (local $t i32) (local $e i32) (local $o i32) (local $v "
                       "v128)\n" +
                       body + get("$i") + get("$s") + get("$t") + ")\n";
    // Apart, close together, on top of each other, and near the end of memory.
    for (uint32_t i = 0; i < 3; ++i) {
      const int64_t p = chance(6) ? pick({65536 - 2048, 4 * 65536 - 600}) : pick({16, 32, 1024, 20000});
      const int64_t q = pick({p + 4, p + 64, p, p + 4096, 65536, 65552, 131072, 131080});
      text += "(func (export \"f" + name + "_" + std::to_string(i) + "\") (result i32 i32 i32) (call $f" +
              name + " " + i32(p) + i32(q) + i32(pick({4, 16, 64, 128, 200, 252})) +
              i32(pick({8, 32, 64, 96, 128})) + "))\n";
    }
    return text;
  }

  std::string loop(uint32_t number) {
    const auto copies = static_cast<uint32_t>(pick({1, 1, 2, 2, 4}));
    const bool vectors = chance(4), counts_down = chance(4);
    const uint32_t shift = vectors ? 4 : static_cast<uint32_t>(pick({2, 2, 0, 3})), bytes = 1u << shift;
    const char* const to = pick({"$p", "$q"});
    const char* const from = pick({"$p", "$q"});
    const uint32_t ahead = static_cast<uint32_t>(pick({0, bytes, 4096, 8192, 4096 + bytes}));
    std::string text;
    if (number == 0 || chance(4))
      text += set("$i", i32(0));
    else if (chance(3))
      text +=
          set("$i", chance(2) ? call("i32.and", get("$s"), i32(63)) : add(get("$i"), i32(pick({1, 3, -2}))));
    const std::string turns = chance(4)
                                  ? call("i32.shl", add(call("i32.and", get("$s"), i32(15)), i32(1)), i32(2))
                              : chance(3) ? i32(64)
                                          : get(pick({"$m", "$n"}));
    text += set("$e", counts_down ? turns : add(get("$i"), turns));
    const bool walks = chance(3);
    if (walks) text += set("$t", add(get(to), call("i32.shl", get("$i"), i32(shift))));
    const std::string place = walks ? get("$t") : add(get(to), call("i32.shl", get("$i"), i32(shift)));
    const std::string source = add(get(from), call("i32.shl", get("$i"), i32(shift)));
    const uint32_t what = below(4);  // fills, copies, adds up, both
    std::string body;
    for (uint32_t copy = 0; copy < copies; ++copy)
      body += statement(what, vectors, bytes, place, source, copy, ahead);
    if (walks) body += set("$t", add(get("$t"), i32(copies * bytes)));
    const std::string name = "$l" + std::to_string(number);
    const std::string next = add(get("$i"), i32(copies));
    text += "(loop " + name + "\n" + body +
            (counts_down ? set("$i", next) + "(br_if " + name + " (local.tee $e " +
                               call("i32.sub", get("$e"), i32(copies)) + "))"
                         : "(br_if " + name + " (i32.ne (local.tee $i " + next + ") (local.get $e)))") +
            ")\n";
    if (vectors) text += set("$s", add(get("$s"), "(i32x4.extract_lane 3 (local.get $v))"));
    if (chance(4))
      text += "(if (i32.eq (local.get $s) " + i32(pick({0, 5, 77})) +
              ") (then (return (i32.const 1) (i32.const 2) (i32.const 3))))\n";
    return text;
  }

  std::string statement(uint32_t what, bool vectors, uint32_t bytes, const std::string& place,
                        const std::string& source, uint32_t copy, uint32_t ahead) {
    const std::string at = " offset=" + std::to_string(copy * bytes) + " ";
    const std::string far = " offset=" + std::to_string(copy * bytes + ahead) + " ";
    const std::string index = copy == 0 ? get("$i") : add(get("$i"), i32(copy));
    const std::string number = i32(1 + below(50));
    std::string text;
    if (vectors) {
      const std::string load = "(v128.load" + far + source + ")";
      if (what != 2)
        text += "(v128.store" + at + place + " (i32x4.add " + load + " (i32x4.splat " + number + ")))\n";
      if (what >= 2) text += set("$v", call("i32x4.add", get("$v"), load));
      return text;
    }
    const bool wide = bytes == 8;
    const std::string load = std::string(wide         ? "(i32.wrap_i64 (i64.load"
                                         : bytes == 1 ? "(i32.load8_u"
                                                      : "(i32.load") +
                             far + source + (wide ? "))" : ")");
    const std::string store = wide ? "(i64.store" : bytes == 1 ? "(i32.store8" : "(i32.store";
    const auto stored = [&](const std::string& value) {
      return store + at + place + " " + (wide ? "(i64.extend_i32_u " + value + ")" : value) + ")\n";
    };
    if (what == 0) text += stored(add(call("i32.mul", index, number), i32(below(50))));
    if (what == 1 || what == 3) text += stored(call("i32.xor", load, number));
    if (what >= 2)
      text += set("$s", call(pick({"i32.add", "i32.add", "i32.xor", "i32.mul"}), get("$s"), load));
    return text;
  }
};

}  // namespace hindsight::fuzz
