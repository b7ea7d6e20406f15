;; A stream whose step leaves the page too often for the hardware's prefetchers.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 1000000
;; call: f 120
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load (local.get $i))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 2048))) (i32.const 262144))))
    (i32.add (local.get $sum) (local.get $n))))
