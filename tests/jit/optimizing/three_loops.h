// A function whose running loops are entered, at each of three levels.
#pragma once

namespace hindsight::jit::testing {

// Counts in base n: r = r * 3 + i*16 + j*4 + k for all i, j, k < n. There are things on the operand stack
// and branches out of the middle.
inline constexpr const char* kThreeLoops = R"((module (func (export "f") (param $n i32) (result i32)
  (local $i i32) (local $j i32) (local $k i32) (local $r i32)
  i32.const 1000
  (block $all
    (loop $a
      (local.set $j (i32.const 0))
      (block $rows
        i32.const 5
        (loop $b (param i32)
          local.set $k
          (local.set $k (i32.const 0))
          (loop $c
            (local.set $r (i32.add (i32.mul (local.get $r) (i32.const 3))
              (i32.add (i32.mul (local.get $i) (i32.const 16)) (i32.add (i32.mul (local.get $j) (i32.const 4)) (local.get $k)))))
            (br_if $all (i32.eq (local.get $r) (i32.const 123456)))
            (local.set $k (i32.add (local.get $k) (i32.const 1)))
            (br_if $c (i32.lt_u (local.get $k) (local.get $n))))
          (local.set $j (i32.add (local.get $j) (i32.const 1)))
          (br_if $rows (i32.and (i32.eq (local.get $j) (i32.const 2)) (i32.eq (local.get $i) (i32.const 1))))
          (if (i32.lt_u (local.get $j) (local.get $n)) (then i32.const 6 br $b))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $a (i32.lt_u (local.get $i) (local.get $n)))))
  local.get $r i32.add)))";

}  // namespace hindsight::jit::testing
