;; As one_way_of_a_branch, where whole iterations could run ahead too. The way that is guessed is the usual one: that is worth more.
;; change: prefetch load 1 of f
;; change: interleave load 1 of f
;; change: weigh-branches branch 1 of f taken 900 not-taken 100
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 600
(module
  (import "h" "of" (func $of (param i32) (result i32)))
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (call $of (local.get $i)))
        (if (i32.and (local.get $v) (i32.const 3))
          (then (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))))
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl (local.get $v) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
