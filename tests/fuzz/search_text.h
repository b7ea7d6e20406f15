// Modules with a loop of searches each, of random shape, as text. The loop is one that can run several at
// once, is prefetched, or only looks as if it could. Export "f" takes four addresses and a number of
// iterations, as those of loop_text.h.
#pragma once

#include <cstdint>
#include <random>
#include <sstream>
#include <string>

namespace hindsight::fuzz {

// For each key of an array: a walk of its own over nodes that lie anywhere, and something made of where it
// ends.
class SearchText {
 public:
  explicit SearchText(uint32_t seed) : random_(seed) {}

  std::string make() {
    const std::string search = this->search();
    std::ostringstream text;
    text << "(module (memory (export \"memory\") 1) (global $g (mut i32) (i32.const 3))\n"
            "(func $f (export \"f\") (param $p0 i32) (param $p1 i32) (param $p2 i32) (param $p3 i32) (param "
            "$n i32) "
            "(result i64)\n(local $i i32) (local $key i32) (local $at i32) (local $x i32) (local $steps i32) "
            "(local $low i32) (local $high i32) (local $sum i32) (local $last i32) (local $t i64)\n"
            "(local.set $n (i32.add (local.get $n) (i32.const 1)))\n(loop $keys\n"
         << "(local.set $key (i32.load " << element("$p0") << "))\n"
         << (chance(3) ? "(local.set $key (i32.rem_u (local.get $key) (i32.const 97)))\n" : "") << search;
    for (uint32_t i = 0, ends = 1 + below(2); i < ends; ++i) text << tail();
    text << "(local.set $i (i32.add (local.get $i) (i32.const 1)))\n"
         << (chance(2) ? "(br_if $keys (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))\n"
                       : "(br_if $keys (i32.lt_u (local.get $i) (local.get $n))))\n")
         << "(i64.add (local.get $t) (i64.extend_i32_u (i32.xor (local.get $sum) (i32.mul (local.get $last) "
            "(i32.const 5)))))))";
    return text.str();
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t of) { return below(of) == 0; }
  static std::string number(uint32_t value) { return "(i32.const " + std::to_string(value) + ")"; }
  static std::string element(const char* array) {
    return std::string("(i32.add (local.get ") + array + ") (i32.shl (local.get $i) (i32.const 2)))";
  }
  // Inside of the memory's first 32 KiB most of the time.
  std::string place(const std::string& of) {
    return "(i32.and " + of + " " + number(chance(40) ? 0x1fffc : 0x7ffc) + ")";
  }
  std::string load(const std::string& at) {
    const char* const kLoads[] = {"i32.load", "i32.load", "i32.load", "i32.load16_u", "i32.load8_u"};
    std::string text = std::string("(") + kLoads[below(5)];
    if (chance(2)) text += " offset=" + std::to_string(4 * below(5));
    return text + " " + at + ")";
  }
  std::string compared() {
    const char* const kComparisons[] = {"i32.lt_u", "i32.lt_s", "i32.ge_u", "i32.eq", "i32.gt_s"};
    return std::string("(") + kComparisons[below(5)] + " (local.get $x) (local.get $key))";
  }
  std::string counted(uint32_t most) {
    return "(br_if $out (i32.gt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1))) " +
           number(most) + "))\n";
  }

  std::string search() {
    std::string text = "(local.set $steps (i32.const 0))\n";
    const uint32_t shape = below(4);
    if (shape == 0) {  // halves of what is left
      text += "(local.set $low (i32.const 0)) (local.set $high " + number(16u << below(6)) +
              ")\n(block $out (loop $step\n(br_if $out (i32.ge_u (local.get $low) (local.get $high)))\n"
              "(local.set $at (i32.shr_u (i32.add (local.get $low) (local.get $high)) (i32.const 1)))\n"
              "(local.set $x " +
              load("(i32.add (local.get $p1) (i32.shl (local.get $at) (i32.const 2)))") + ")\n";
      if (chance(2))
        text += "(if " + compared() +
                " (then (local.set $low (i32.add (local.get $at) (i32.const 1)))) (else (local.set $high "
                "(local.get $at))))\n";
      else
        text +=
            "(local.set $low (select (i32.add (local.get $at) (i32.const 1)) (local.get $low) (local.tee "
            "$steps " +
            compared() +
            ")))\n(local.set $high (select (local.get $high) (local.get $at) (local.get $steps)))\n";
      text += "(br $step)))\n";
    } else if (shape == 1) {  // a base that halves of a length are added to
      text +=
          "(local.set $low (i32.const 0)) (local.set $high " + number(32u << below(5)) +
          ")\n(loop $step\n(local.set $high (i32.shr_u (local.get $high) (i32.const 1)))\n(local.set $x " +
          load(
              "(i32.add (local.get $p1) (i32.shl (i32.add (local.get $low) (local.get $high)) (i32.const "
              "2)))") +
          ")\n(local.set $low (i32.add (local.get $low) (select (local.get $high) (i32.const 0) " +
          compared() + ")))\n(br_if $step (i32.gt_u (local.get $high) (i32.const 1))))\n";
    } else {
      text += "(local.set $at " + place("(local.get $key)") + ")\n(block $out (loop $step\n";
      if (chance(2)) text += "(br_if $out (i32.eqz (local.get $at)))\n";
      text += "(local.set $x " + load("(local.get $at)") + ")\n" + counted(3 + below(20));
      if (chance(2)) text += "(br_if $out (i32.eq (local.get $x) (local.get $key)))\n";
      if (chance(4)) text += "(local.set $sum (i32.add (local.get $sum) (local.get $x)))\n";
      if (chance(8)) text += "(i32.store (local.get $p3) (local.get $x))\n";
      if (shape == 2)  // a list
        text += "(local.set $at " + place(load("(local.get $at)")) + ")\n";
      else  // a tree
        text += "(local.set $at " +
                place(load("(i32.add (local.get $at) (i32.shl " + compared() + " (i32.const 2)))")) + ")\n";
      text += "(br $step)))\n";
      if (chance(2)) text += "(local.set $low (local.get $steps))\n";
    }
    return text;
  }

  // What comes after a search.
  std::string tail() {
    const char* const kFound[] = {"$x", "$low", "$at", "$steps"};
    const std::string found = std::string("(local.get ") + kFound[below(4)] + ")";
    switch (below(9)) {
      case 0:
        return "(local.set $last " + found + ")\n";
      case 1:
        return "(i32.store " + element("$p2") + " " + found + ")\n";
      case 2:
        return "(local.set $last " + load(place(found)) + ")\n";  // of loads, only the last one's value
      case 3:
        return "(global.set $g " + load(place(found)) + ")\n";
      case 4:
        return "(local.set $t (i64.add (i64.mul (local.get $t) (i64.const 31)) (i64.extend_i32_u " + found +
               ")))\n";
      case 5:
        return "(local.set $sum (i32.add (local.get $sum) (select " + load(place(found)) +
               " (i32.const 0) (i32.eq " + found + " (i32.const 2)))))\n";
      case 6:
        return "(if " + compared() + " (then (local.set $sum (i32.xor (local.get $sum) " + found + "))))\n";
      case 7:
        return "(local.set $last (i32.eq " + found + " (local.get $key)))\n";
      default:
        return "(local.set $sum (i32.add (local.get $sum) " + found + "))\n";
    }
  }

  std::mt19937 random_;
};

}  // namespace hindsight::fuzz
