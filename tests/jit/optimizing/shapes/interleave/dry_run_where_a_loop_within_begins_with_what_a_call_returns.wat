;; Each step goes through a list of its own, which begins where a call has said before the search.
;; change: interleave load 1 of f
;; fill: words 0 to 16000 below 1024
;; fill: words 65536 to 131072 below 1024
;; fill: chain 65536 to 131072 by 8 length 8
;; call: f 3000
;; call: f 2000
(module
  (import "m" "g" (func $g (param i32) (result i32)))
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $q i32) (local $h i32) (local $sum i32) (local $c i32) (local $x i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $h (call $g (i32.add (i32.const 65536) (i32.shl (i32.xor (local.get $key) (i32.const 1)) (i32.const 3)))))
      (local.set $c (i32.const 0))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 3))))
      (loop $step
        (local.set $x (i32.load offset=4 (local.get $p)))
        (local.set $q (local.get $h))
        (loop $list
          (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 5)) (i32.load offset=4 (local.get $q))))
          (br_if $list (local.tee $q (i32.load (local.get $q)))))
        (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 3)) (local.get $x)))
        (br_if $step (local.tee $p (i32.load (local.get $p)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $x) (local.get $c))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
