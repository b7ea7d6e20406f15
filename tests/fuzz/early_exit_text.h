// Modules with one loop each that goes through bytes and ends early, of random shape, as text. Export "f" takes four addresses and a
// number of iterations, as those of loop_text.h.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/text_random.h"

namespace hindsight::fuzz {

// What memcmp, strcmp, strlen, find and the like are made of, in any order: one or two bytes loaded before or between the exits, some exits by them,
// perhaps one by a count. One may go by the byte of the iteration before. On random bytes most exits are taken once in a hundred iterations.
class EarlyExitText : TextRandom {
 public:
  explicit EarlyExitText(uint32_t seed) : TextRandom(seed) {}

  std::string make() {
    two_ = chance(2);
    indexed_ = chance(2);
    remembers_ = chance(3);
    for (std::string& offset : offsets_)
      offset = " offset=" + std::to_string(pick({0, 0, 0, 1, 7, 15, 4080, 4095, 20000}));
    std::vector<std::string> steps;
    const bool late = two_ && chance(2);  // the second byte is loaded after an exit
    steps.push_back(set("$x", load(0)));
    if (two_ && !late) steps.push_back(set("$y", load(1)));
    for (uint32_t exits = 1 + below(2); exits-- > 0;) steps.push_back(exit(!late));
    if (late) {
      steps.push_back(set("$y", load(1)));
      steps.push_back(exit(true));
    }
    const bool counts = !chance(4);
    if (counts)
      steps.insert(steps.begin() + below(static_cast<uint32_t>(steps.size() + 1)),
                   leave("(i32.eqz (local.tee $n (i32.sub (local.get $n) (i32.const 1))))"));
    // Another count, in 64 bits, up to what is not known before.
    if (chance(3)) {
      steps.insert(steps.begin() + below(static_cast<uint32_t>(steps.size() + 1)),
                   leave("(i64.eq (local.get $j) (local.get $most))"));
      steps.push_back(set("$j", "(i64.add (local.get $j) (i64.const 1))"));
    }
    if (remembers_)
      steps.push_back(set("$last", pick({"(local.get $x)", "(i32.shl (local.get $x) (i32.const 1))"})));
    for (const char* const counter : {"$i", "$k"})
      if (chance(2) || (indexed_ && counter[1] == 'i'))
        steps.push_back(set(counter, "(i32.add (local.get " + std::string(counter) + ") " +
                                         i32(counter[1] == 'i' ? 1 : pick({-1, 3, -7})) + ")"));
    if (!indexed_)
      for (const char* const at : {"$p0", "$p1"})
        steps.push_back(set(at, "(i32.add (local.get " + std::string(at) + ") (i32.const 1))"));
    if (chance(12)) steps.push_back("(i32.store8 (local.get $p2) (local.get $x))\n");  // no loop to pass over
    std::ostringstream text;
    text << "(module (memory (export \"memory\") 1)\n(func $f (export \"f\") (param $p0 i32) (param $p1 i32) "
            "(param "
            "$p2 i32) (param $p3 i32) (param $n i32) (result i64)\n(local $i i32) (local $k i32) (local $x "
            "i32) (local "
            "$y i32) (local $last i32) (local $way i32) (local $j i64) (local $most i64)\n"
            "(local.set $most (i64.and (i64.mul (i64.extend_i32_u (local.get $n)) (i64.const 40503)) "
            "(i64.const 127)))\n"
            "(local.set $n "
         << (chance(3) ? i32(1 + below(40)) : "(i32.add (local.get $n) (i32.const 1))")
         << ")\n(block $out (loop $l\n";
    for (const std::string& step : steps) text << step;
    text << "(br $l)))\n(i64.xor (i64.extend_i32_u (local.get $n))"
            " (i64.add (i64.mul (i64.const 1000003) (i64.extend_i32_u (i32.add (local.get $i) (i32.mul "
            "(i32.const 77) "
            "(local.get $k)))))"
            " (i64.add (i64.shl (i64.extend_i32_u (i32.add (local.get $p0) (i32.mul (i32.const 5) (local.get "
            "$p1)))) "
            "(i64.const 13))"
            " (i64.extend_i32_u (i32.add (i32.mul (i32.const 11) (local.get $way)) (i32.add (i32.mul "
            "(i32.const 256) "
            "(local.get $x)) (i32.add "
         << (chance(2) ? "(local.get $y)" : "(i32.const 0)") << " "
         << (remembers_ ? "(local.get $last)" : "(i32.const 9)") << ")))))))))";
    return text.str();
  }

 private:
  static std::string set(const char* local, const std::string& value) {
    return "(local.set " + std::string(local) + " " + value + ")\n";
  }
  std::string load(uint32_t stream) {
    const std::string pointer = stream == 0 ? "(local.get $p0)" : "(local.get $p1)";
    return std::string("(") + pick({"i32.load8_u", "i32.load8_u", "i32.load8_s"}) + offsets_[stream] + " " +
           (indexed_ ? "(i32.add (local.get $i) " + pointer + ")" : pointer) + ")";
  }
  std::string leave(const std::string& condition) {
    ++ways_;
    if (chance(2)) return "(br_if $out " + condition + ")\n";
    return "(if " + condition + " (then (local.set $way " + i32(ways_) + ") (br $out)))\n";
  }
  std::string exit(bool both) {
    const std::string x = "(local.get $x)", y = both && two_ ? "(local.get $y)" : x;
    const std::string other = remembers_ && chance(2) ? "(local.get $last)" : y;
    switch (below(6)) {
      case 0:
        return leave("(i32.eq " + x + " " + i32(below(256)) + ")");
      case 1:
        return leave("(i32.eqz " + x + ")");
      case 2:
        return leave("(i32.eq (i32.and (i32.xor " + x + " " + other + ") (i32.const 255)) " +
                     i32(below(256)) + ")");
      case 3:
        return leave("(i32.gt_s (i32.add " + x + " " + other + ") " + i32(490 + below(20)) + ")");
      case 4:
        return leave("(i32.lt_u (i32.and (i32.add " + x + " (i32.shl " + other +
                     " (i32.const 1))) (i32.const 127)) " + i32(1 + below(2)) + ")");
      default:
        return leave("(i32.or (i32.eqz " + x + ") (i32.eq " + other + " " + i32(below(128)) + "))");
    }
  }

  bool two_ = false, indexed_ = false, remembers_ = false;
  std::string offsets_[2];
  uint32_t ways_ = 0;
};

}  // namespace hindsight::fuzz
